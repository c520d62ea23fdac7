//! The clock that a log is decided on.

use core::time::Duration;

use tollgate::{Algorithm, Penalty, Quota};

/// What a pause means to one quota, or to something else that a limiter remembers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    /// A pause of this length leaves nothing that counts, and neither does a longer one.
    pub(crate) longest: u64,
    /// Its windows or steps begin at multiples of this, counted from 1970; 1 where they begin with
    /// requests, and the most where they are those of the calendar.
    pub(crate) period: u64,
}

impl Pause {
    pub(crate) fn of(quota: &Quota) -> Self {
        let longest = nanos(quota.window());
        let period = match quota.algorithm() {
            // Its permits can count until the end of the next window: this is two of them.
            Algorithm::SlidingCounter => longest / 2,
            Algorithm::QuantisedLog => quota.resolution().map_or(1, nanos),
            _ if quota.phase().is_some() => longest,
            _ if quota.calendar_window().is_some() => u64::MAX,
            _ => 1,
        };
        Self { longest, period: period.max(1) }
    }

    pub(crate) fn of_penalty(penalty: &Penalty) -> Self {
        // A block that counts towards the length of the next one does so until the key has been quiet.
        let block = penalty.growth().map_or(penalty.blocked_for(), |(_, longest, quiet)| longest.saturating_add(quiet));
        Self { longest: nanos(penalty.within().max(block)), period: 1 }
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// The log's own clock. It counts from the first event (logs may start before 1970) and cuts pauses
/// down to the longest window.
///
/// A pause of a window leaves no live permit, and neither does a longer one, so no decision
/// changes; but a log with one absurd date in it does not use up the years that a limiter's clock
/// can count. Where windows begin at times of their own, they are put where they would be if the
/// clock counted from 1970, and pauses are cut by whole windows only.
#[derive(Debug)]
pub(crate) struct LogClock {
    longest_pause: u64,
    /// Readings that differ by this mean the same to every quota that is left alone; 0 where that
    /// is more than can be counted.
    period: u64,
    last: i64,
    reading: u64,
}

impl LogClock {
    /// What a limiter counts to: 109 years.
    const END: u64 = 3 * (1 << 60) - (1 << 41);

    /// `None` where the first event lies before or after all that can be counted.
    pub(crate) fn new(pauses: &[Pause], first: i64) -> Option<Self> {
        let longest_pause = pauses.iter().map(|pause| pause.longest).max().unwrap_or(0);
        let period = pauses.iter().fold(1, |period, pause| least_common_multiple(period, u128::from(pause.period)));
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

/// Of two numbers of which the second is below 2^64 and the first was made here; stays put once it
/// is 2^64 or more.
fn least_common_multiple(one: u128, other: u128) -> u128 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    if one > u128::from(u64::MAX) { one } else { one / a.max(1) * other }
}

#[cfg(test)]
mod tests {
    use tollgate::{Calendar, Zone};

    use super::*;

    #[test]
    fn pauses_are_cut_by_whole_windows_where_windows_stand_still() {
        let minutes = Quota::sliding_counter(5, Duration::from_secs(60));
        let hours = Quota::fixed_window(5, Duration::from_secs(90 * 60)).aligned(Duration::from_secs(7));
        let log = Quota::new(5, Duration::from_secs(7));
        let hour = 3_600_000_000_000_u64;
        let mut plain = LogClock::new(&[Pause::of(&log)], -5).unwrap();
        assert_eq!((plain.reading_at(-5), plain.reading_at(i64::MAX)), (Some(0), Some(7_000_000_000)));
        // Both meet every hour and a half, in which 1970 and the time before it agree.
        for first in [-1, 1_431_857_103_000_000_007_i64] {
            let mut clock = LogClock::new(&[&minutes, &hours, &log].map(Pause::of), first).unwrap();
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
    fn a_calendar_leaves_pauses_as_they_are() {
        let quotas = [Quota::calendar(5, Calendar::Day, Zone::UTC), Quota::new(5, Duration::from_secs(7))];
        let mut clock = LogClock::new(&quotas.map(|quota| Pause::of(&quota)), 1_000).unwrap();
        assert_eq!(clock.reading_at(1 << 60), Some(1 << 60));
    }

    #[test]
    fn windows_that_never_meet_leave_pauses_as_they_are() {
        let odd = |seconds| Quota::sliding_counter(5, Duration::from_secs(seconds));
        let quotas = [99_991, 99_989, 99_971].map(|seconds| Pause::of(&odd(seconds)));
        let mut clock = LogClock::new(&quotas, 1_000).unwrap();
        assert_eq!(clock.reading_at(1 << 60), Some(1 << 60));
        assert!(LogClock::new(&quotas, -1).is_none());
    }
}
