//! Requests over time, in steps that people count in.

use crate::outcome::Answer;
use crate::time::{Nanos, SECOND};

/// How many requests had each answer in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) too_big: u64,
}

/// Counts in steps of equal length.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) start: Nanos,
    pub(crate) step: Nanos,
    pub(crate) buckets: Vec<Bucket>,
}

impl Timeline {
    /// Covers the times from `first` to `last` in at most so many steps.
    pub(crate) fn new(first: Nanos, last: Nanos, most: usize) -> Self {
        let span = last.abs_diff(first);
        let most = u64::try_from(most.max(2)).unwrap_or(u64::MAX);
        // A step that is one longer than needed leaves room for the start being moved back to a
        // multiple of the step.
        let fits = |step: &Nanos| (span / step.unsigned_abs()).saturating_add(2) <= most;
        let step = if span == 0 { SECOND } else { steps().find(fits).unwrap_or(Nanos::MAX) };
        let start = first.saturating_sub(first.rem_euclid(step));
        let count = last.abs_diff(start) / step.unsigned_abs() + 1;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self { start, step, buckets: vec![Bucket::default(); count] }
    }

    pub(crate) fn add(&mut self, time: Nanos, answer: Answer) {
        let at = usize::try_from(time.abs_diff(self.start) / self.step.unsigned_abs()).unwrap_or(usize::MAX);
        if let Some(bucket) = self.buckets.get_mut(at) {
            match answer {
                Answer::Admitted => bucket.admitted += 1,
                Answer::Denied => bucket.denied += 1,
                Answer::TooBig => bucket.too_big += 1,
                Answer::WithoutKey => {}
            }
        }
    }

    /// Where the last step ends.
    pub(crate) fn end(&self) -> Nanos {
        let count = i128::try_from(self.buckets.len()).unwrap_or(i128::MAX);
        let end = i128::from(self.start) + i128::from(self.step).saturating_mul(count);
        Nanos::try_from(end).unwrap_or(Nanos::MAX)
    }
}

/// Lengths that people count time in, from a nanosecond to a century, ascending.
pub(crate) fn steps() -> impl Iterator<Item = Nanos> {
    const MINUTE: Nanos = 60 * SECOND;
    const HOUR: Nanos = 60 * MINUTE;
    const DAY: Nanos = 24 * HOUR;
    let below_a_second = (0..9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)));
    let in_units_of = |unit: Nanos, counts: &'static [Nanos]| counts.iter().map(move |count| count * unit);
    below_a_second
        .chain(in_units_of(SECOND, &[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30]))
        .chain(in_units_of(MINUTE, &[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30]))
        .chain(in_units_of(HOUR, &[1, 2, 3, 4, 6, 8, 12]))
        .chain(in_units_of(DAY, &[1, 2, 3, 4, 7, 14, 28, 56, 91, 182, 364, 728, 1820, 3640, 7280, 14_560, 36_400]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_in_a_bucket() {
        let spans = [0, 1, 999, SECOND, 61 * SECOND, 3 * 86_400 * SECOND, i64::MAX / 3];
        for first in [0, -1, 1_431_857_103 * SECOND + 7, -5 * SECOND] {
            for span in spans {
                let mut timeline = Timeline::new(first, first + span, 60);
                assert!(timeline.buckets.len() <= 60, "{first} {span}: {}", timeline.buckets.len());
                assert!(timeline.start <= first && first + span < timeline.end());
                assert_eq!(timeline.start.rem_euclid(timeline.step), 0);
                for time in [first, first + span / 2, first + span] {
                    timeline.add(time, Answer::Admitted);
                }
                timeline.add(first, Answer::Denied);
                timeline.add(first, Answer::TooBig);
                assert_eq!(timeline.buckets.iter().map(|bucket| bucket.admitted).sum::<u64>(), 3);
                assert_eq!((timeline.buckets[0].denied, timeline.buckets[0].too_big), (1, 1));
            }
        }
    }

    #[test]
    fn the_widest_log_fits_the_narrowest_chart() {
        let timeline = Timeline::new(i64::MIN, i64::MAX, 30);
        assert!(timeline.buckets.len() <= 31, "{}", timeline.buckets.len());
        assert_eq!((timeline.start, timeline.end()), (i64::MIN, i64::MAX));
        assert!(steps().is_sorted());
    }
}
