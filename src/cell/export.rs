//! Exported permits of a cell, independent of any clock.

use super::words::{MAX_TIME, TIME_ZERO};

/// The permits of a key, by their age in nanoseconds. An age is negative if a clock lags behind the
/// permit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Export {
    /// The live stamps of a log, oldest first.
    Stamps(Vec<i64>),
    /// An account, and how long ago it opened.
    Account { age: i64, used: u64 },
    /// The steps of a quantised log, oldest first: the age of each one's end, and its permits.
    Steps(Vec<(i64, u32)>),
    /// An account whose windows are aligned, how long ago it opened, and the age of the last moment
    /// of its window.
    Aligned { age: i64, last: i64, used: u64 },
}

/// The time of the export, by the clock of the import.
#[derive(Clone, Copy)]
pub(super) struct Import {
    /// The clock reading.
    pub(super) now: u64,
    /// Nanoseconds since the export.
    pub(super) elapsed: u64,
}

impl Import {
    /// The time of an age, by this clock.
    pub(super) fn at(self, age: i64) -> u64 {
        let time = i128::from(self.now) - i128::from(age) - i128::from(self.elapsed);
        // A time before the beginning has expired under any window.
        u64::try_from(time.clamp(i128::from(TIME_ZERO >> 1), i128::from(MAX_TIME))).unwrap_or(MAX_TIME)
    }
}

/// The age of a stamp.
pub(super) fn age(now: u64, stamp: u64) -> i64 {
    i64::try_from(i128::from(now) - i128::from(stamp)).unwrap_or(i64::MAX)
}
