//! What a cell holds, written down apart from any clock.

use super::words::{MAX_TIME, TIME_ZERO};

/// The permits of a key, by their age in nanoseconds. An age is less than zero where a clock lags behind them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kept {
    /// The live stamps of a log, oldest first.
    Stamps(Vec<i64>),
    /// An account that opened so long ago.
    Account { age: i64, used: u64 },
    /// The steps of a quantised log, oldest first: the age of each one's end, and its permits.
    Steps(Vec<(i64, u32)>),
}

/// When it was kept, by the clock that it is put back under.
#[derive(Clone, Copy)]
pub(super) struct Restored {
    /// What the clock shows.
    pub(super) now: u64,
    /// Nanoseconds since it was kept.
    pub(super) elapsed: u64,
}

impl Restored {
    /// When, by this clock, something of an age was.
    pub(super) fn at(self, age: i64) -> u64 {
        let time = i128::from(self.now) - i128::from(age) - i128::from(self.elapsed);
        // What was before the beginning of time has expired under any window.
        u64::try_from(time.clamp(i128::from(TIME_ZERO >> 1), i128::from(MAX_TIME))).unwrap_or(MAX_TIME)
    }
}

/// The age of a stamp.
pub(super) fn age(now: u64, stamp: u64) -> i64 {
    i64::try_from(i128::from(now) - i128::from(stamp)).unwrap_or(i64::MAX)
}
