//! The decisions: every event through a real limiter, on the log's own clock.

use tollgate::{Algorithm, Decision, Denial, DenialReason, MockClock, Quota};

use crate::errors::RunError;
use crate::log::{Event, Log};
use crate::plan::Plan;

/// What the limiter would have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted {
        /// The wait in a queue.
        delay_ns: u64,
    },
    Denied(Denial),
    /// The cost is more than the limit: denied however long one waits.
    NeverPasses,
}

impl Verdict {
    pub(crate) fn is_admitted(self) -> bool {
        matches!(self, Self::Admitted { .. })
    }
}

/// How many requests were answered in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) never_pass: u64,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Admitted { .. } => self.admitted += 1,
            Verdict::Denied(_) => self.denied += 1,
            Verdict::NeverPasses => self.never_pass += 1,
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.admitted + self.denied + self.never_pass
    }
}

/// What became of the requests with one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeyTally {
    pub(crate) requests: u64,
    /// Those that this very key was in the way of.
    pub(crate) turned_away: u64,
}

/// What one dimension did.
#[derive(Debug)]
pub(crate) struct DimensionOutcome {
    /// By the keys' numbers.
    pub(crate) by_key: Vec<KeyTally>,
    /// Denied requests that waited for this dimension longest.
    pub(crate) decided: u64,
    /// Denied requests that this dimension alone would have denied too.
    pub(crate) in_the_way: u64,
    /// Of those decided, how many by each quota.
    pub(crate) by_quota: Vec<u64>,
    /// And how many because a new key found no place.
    pub(crate) at_key_cap: u64,
}

/// What the limiter would have done to a log.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) totals: Tally,
    pub(crate) dimensions: Vec<DimensionOutcome>,
    /// Admitted requests that had to wait in a queue, and the longest wait.
    pub(crate) delayed: u64,
    pub(crate) longest_delay_ns: u64,
}

impl Outcome {
    fn of_nothing(log: &Log, plan: &Plan) -> Self {
        let dimension = |dimension: &crate::plan::Dimension| DimensionOutcome {
            by_key: vec![KeyTally::default(); log.keys[dimension.column].len()],
            decided: 0,
            in_the_way: 0,
            by_quota: vec![0; dimension.quotas.len()],
            at_key_cap: 0,
        };
        let dimensions = plan.dimensions.iter().map(dimension).collect();
        Self { totals: Tally::default(), dimensions, delayed: 0, longest_delay_ns: 0 }
    }

    /// `keys` are those of the request, and `most` has the largest cost of each dimension.
    fn count(&mut self, keys: &[Option<usize>], cost: u32, verdict: Verdict, most: &[u32]) {
        self.totals.count(verdict);
        let mut in_the_way = 0_u32;
        match verdict {
            Verdict::Admitted { delay_ns } => {
                self.delayed += u64::from(delay_ns > 0);
                self.longest_delay_ns = self.longest_delay_ns.max(delay_ns);
            }
            Verdict::Denied(denial) => {
                in_the_way = denial.violated().fold(0, |bits, dimension| bits | 1 << dimension);
                let decider = &mut self.dimensions[denial.dimension()];
                decider.decided += 1;
                if denial.reason() == DenialReason::KeyCap {
                    decider.at_key_cap += 1;
                } else {
                    decider.by_quota[denial.quota()] += 1;
                }
            }
            Verdict::NeverPasses => {}
        }
        for (at, dimension) in self.dimensions.iter_mut().enumerate() {
            let Some(key) = keys[at] else { continue };
            let violated = in_the_way & (1 << at) != 0;
            dimension.in_the_way += u64::from(violated);
            let key = &mut dimension.by_key[key];
            key.requests += 1;
            key.turned_away += u64::from(violated || verdict == Verdict::NeverPasses && cost > most[at]);
        }
    }
}

/// The log's own clock. It counts from the first event (logs may start before 1970) and cuts pauses down to the longest window.
///
/// A pause of a window leaves no live permit, and neither does a longer one, so no decision changes; but a log with one
/// absurd date in it does not use up the years that a limiter's clock can count. Where windows begin at times of their own,
/// they are put where they would be if the clock counted from 1970, and pauses are cut by whole windows only.
struct Timeline {
    longest_pause: u64,
    /// Readings that differ by this mean the same to every quota that is left alone; 0 where that is more than can be counted.
    period: u64,
    last: i64,
    reading: u64,
}

impl Timeline {
    /// What a limiter counts to: 109 years.
    const END: u64 = 3 * (1 << 60) - (1 << 41);

    /// `None` where the first event lies before or after all that can be counted.
    fn new<'a>(quotas: impl Iterator<Item = &'a Quota>, first: i64) -> Option<Self> {
        let (mut longest_pause, mut period) = (0, 1_u128);
        for quota in quotas {
            let window = u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX);
            longest_pause = window.max(longest_pause);
            let begins_every = match quota.algorithm() {
                // Its permits can count until the end of the next window: this is two of them.
                Algorithm::SlidingCounter => window / 2,
                Algorithm::QuantisedLog => {
                    quota.resolution().map_or(1, |step| u64::try_from(step.as_nanos()).unwrap_or(u64::MAX))
                }
                _ if quota.phase().is_some() => window,
                _ => 1,
            };
            period = least_common_multiple(period, u128::from(begins_every.max(1)));
        }
        let period = u64::try_from(period).ok().filter(|&period| period < Self::END).unwrap_or(0);
        let reading = match i64::try_from(period) {
            Ok(period) if period > 0 => u64::try_from(first.rem_euclid(period)).ok()?,
            _ => u64::try_from(first).ok().filter(|&reading| reading < Self::END)?,
        };
        Some(Self { longest_pause, period, last: first, reading })
    }

    /// What the clock reads at an event that is no earlier than the last. `None` past the end.
    fn reading_at(&mut self, time: i64) -> Option<u64> {
        let pause = time.abs_diff(self.last);
        let beyond = pause.saturating_sub(self.longest_pause);
        let cut = beyond - beyond.checked_rem(self.period).unwrap_or(beyond);
        self.reading = self.reading.checked_add(pause - cut)?;
        self.last = time;
        (self.reading < Self::END).then_some(self.reading)
    }
}

/// Of two numbers of which the second is below 2^64 and the first was made here; stays put once it is 2^64 or more.
fn least_common_multiple(one: u128, other: u128) -> u128 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    if one > u128::from(u64::MAX) { one } else { one / a.max(1) * other }
}

/// Decides every event that has a key of the plan, in order, and shows each verdict to `witness`.
///
/// # Errors
///
/// The quotas are some that the library refuses, the log has more keys at once than a limiter can hold or covers more years than
/// its clock can count, or the witness fails.
pub(crate) fn decide(
    log: &Log,
    plan: &Plan,
    mut witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>,
) -> Result<Outcome, RunError> {
    let clock = MockClock::new();
    let limiter = plan.builder().clock(clock.clone()).build().map_err(RunError::Limit)?;
    let least = |quotas: &[Quota]| quotas.iter().map(Quota::limit).min().unwrap_or(0);
    let most: Vec<u32> = plan.dimensions.iter().map(|dimension| least(&dimension.quotas)).collect();
    let mut outcome = Outcome::of_nothing(log, plan);
    let first = log.events.first().map_or(0, |event| event.time);
    let mut timeline = Timeline::new(plan.quotas(), first).ok_or(RunError::LogTooLong)?;
    let mut numbers: Vec<Option<usize>> = Vec::with_capacity(plan.dimensions.len());
    let mut keys: Vec<Option<&str>> = Vec::with_capacity(plan.dimensions.len());
    for event in &log.events {
        numbers.clear();
        numbers.extend(plan.dimensions.iter().map(|dimension| log.key(event, dimension.column)));
        if numbers.iter().all(Option::is_none) {
            continue;
        }
        clock.set(timeline.reading_at(event.time).ok_or(RunError::LogTooLong)?);
        keys.clear();
        let columns = plan.dimensions.iter().map(|dimension| &log.keys[dimension.column]);
        keys.extend(columns.zip(&numbers).map(|(keys, number)| number.map(|number| keys.text(number))));
        let verdict = match limiter.try_acquire_n(keys.as_slice(), event.cost) {
            Ok(Decision::Admitted(admission)) => {
                Verdict::Admitted { delay_ns: u64::try_from(admission.delay().as_nanos()).unwrap_or(u64::MAX) }
            }
            Ok(Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap && !plan.has_key_cap() => {
                return Err(RunError::TooManyKeys);
            }
            Ok(Decision::Denied(denial)) => Verdict::Denied(denial),
            // There is a key for every dimension, or none: it is the cost.
            Err(_) => Verdict::NeverPasses,
        };
        outcome.count(&numbers, event.cost, verdict, &most);
        witness(event, verdict)?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn pauses_are_cut_by_whole_windows_where_windows_stand_still() {
        let minutes = Quota::sliding_counter(5, Duration::from_secs(60));
        let hours = Quota::fixed_window(5, Duration::from_secs(90 * 60)).aligned(Duration::from_secs(7));
        let log = Quota::new(5, Duration::from_secs(7));
        let hour = 3_600_000_000_000_u64;
        let mut plain = Timeline::new([&log].into_iter(), -5).unwrap();
        assert_eq!((plain.reading_at(-5), plain.reading_at(i64::MAX)), (Some(0), Some(7_000_000_000)));
        // Both meet every hour and a half, in which 1970 and the time before it agree.
        for first in [-1, 1_431_857_103_000_000_007_i64] {
            let mut timeline = Timeline::new([&minutes, &hours, &log].into_iter(), first).unwrap();
            for pause in [0, 1, hour, 2 * hour, 5 * hour + 3, 1_000_000 * hour + 1] {
                let before = timeline.reading;
                let time = timeline.last + i64::try_from(pause).unwrap();
                let reading = timeline.reading_at(time).unwrap();
                let period = i64::try_from(3 * hour / 2).unwrap();
                assert_eq!(i64::try_from(reading).unwrap() % period, time.rem_euclid(period), "{pause}");
                assert!(reading - before >= pause.min(3 * hour / 2) && reading - before < 3 * hour);
            }
        }
    }

    #[test]
    fn windows_that_never_meet_leave_pauses_as_they_are() {
        let odd = |seconds| Quota::sliding_counter(5, Duration::from_secs(seconds));
        let quotas = [odd(99_991), odd(99_989), odd(99_971)];
        let mut timeline = Timeline::new(quotas.iter(), 1_000).unwrap();
        assert_eq!(timeline.reading_at(1 << 60), Some(1 << 60));
        assert!(Timeline::new(quotas.iter(), -1).is_none());
    }
}
