//! The clock that a log is decided on.

use tollgate::{Algorithm, Quota};

/// The log's own clock. It counts from the first event (logs may start before 1970) and cuts pauses down to the longest window.
///
/// A pause of a window leaves no live permit, and neither does a longer one, so no decision changes; but a log with one
/// absurd date in it does not use up the years that a limiter's clock can count. Where windows begin at times of their own,
/// they are put where they would be if the clock counted from 1970, and pauses are cut by whole windows only.
pub(crate) struct LogClock {
    longest_pause: u64,
    /// Readings that differ by this mean the same to every quota that is left alone; 0 where that is more than can be counted.
    period: u64,
    last: i64,
    reading: u64,
}

impl LogClock {
    /// What a limiter counts to: 109 years.
    const END: u64 = 3 * (1 << 60) - (1 << 41);

    /// `None` where the first event lies before or after all that can be counted.
    pub(crate) fn new<'a>(quotas: impl Iterator<Item = &'a Quota>, first: i64) -> Option<Self> {
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
    pub(crate) fn reading_at(&mut self, time: i64) -> Option<u64> {
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
        let mut plain = LogClock::new([&log].into_iter(), -5).unwrap();
        assert_eq!((plain.reading_at(-5), plain.reading_at(i64::MAX)), (Some(0), Some(7_000_000_000)));
        // Both meet every hour and a half, in which 1970 and the time before it agree.
        for first in [-1, 1_431_857_103_000_000_007_i64] {
            let mut clock = LogClock::new([&minutes, &hours, &log].into_iter(), first).unwrap();
            for pause in [0, 1, hour, 2 * hour, 5 * hour + 3, 1_000_000 * hour + 1] {
                let before = clock.reading;
                let time = clock.last + i64::try_from(pause).unwrap();
                let reading = clock.reading_at(time).unwrap();
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
        let mut clock = LogClock::new(quotas.iter(), 1_000).unwrap();
        assert_eq!(clock.reading_at(1 << 60), Some(1 << 60));
        assert!(LogClock::new(quotas.iter(), -1).is_none());
    }
}
