//! The blocks of a penalty: each is longer than the last, until the key has been quiet.
//!
//! ```text
//! { time: 63, is_over: 1, number: 8 }
//! ```
//!
//! # Decisions
//!
//! A block is a request for one permit. The block with the number k lasts
//! `L(k) = min(first * factor^(k - 1), longest)`, exactly. It is granted if no other is running. If the
//! last one ended less than `quiet` ago, its number is one more than that one's, and otherwise one. So
//! blocks of a key never overlap, and a penalty whose blocks do not grow has a `quiet` of zero. A clock
//! that goes back finds the block running, as long as it is before its end.
//!
//! `time` is when the block began. It follows from the number how long it lasts, so a block under
//! other numbers lasts as long as these say, from the time at which it began. A block that is over
//! stays so: `is_over` tells that `time` is when it ended.
//!
//! # Bounds
//!
//! Products saturate, which is exact, because `longest` is less. A number is at most 255: a block has
//! its longest time by the 61st, or keeps its length. A time is less than 2^62, or 2^63 if it is that of
//! a block behind another one.

use super::{Account, Verdict, Widths};
use crate::decision::Left;

/// The lengths of blocks, in nanoseconds: at least one, and at most 2^60.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocks {
    pub(crate) first: u64,
    /// How many times as long as the last one each block is.
    pub(crate) factor: u64,
    pub(crate) longest: u64,
    /// The time after a block for which it counts.
    pub(crate) quiet: u64,
}

/// The last block of a key.
#[derive(Clone, Copy)]
struct Last {
    time: u64,
    /// Whether `time` is the end.
    is_over: bool,
    /// Zero if there was none.
    number: u8,
}

const WIDTHS: Widths<3> = Widths([63, 1, 8]);

impl Last {
    fn of(state: u128) -> Self {
        let [time, is_over, number] = WIDTHS.unpack(state);
        Self {
            time: u64::try_from(time).unwrap_or(u64::MAX),
            is_over: is_over > 0,
            number: u8::try_from(number).unwrap_or(u8::MAX),
        }
    }

    fn state(self) -> u128 {
        WIDTHS.pack([self.time.into(), self.is_over.into(), self.number.into()])
    }
}

impl Blocks {
    /// The length of the block with this number.
    pub(crate) fn length(&self, number: u8) -> u64 {
        let times = self.factor.saturating_pow(u32::from(number).saturating_sub(1));
        self.first.saturating_mul(times).min(self.longest)
    }

    fn end(&self, last: Last) -> u64 {
        if last.is_over { last.time } else { last.time.saturating_add(self.length(last.number)) }
    }

    /// The rest of the block that is running, and its number.
    pub(crate) fn running(&self, state: u128, now: u64) -> Option<(u64, u8)> {
        let last = Last::of(state);
        let rest = self.end(last).saturating_sub(now);
        (last.number > 0 && rest > 0).then_some((rest, last.number))
    }

    /// The state with a block that begins then, after the last one.
    fn begun(&self, state: u128, time: u64) -> u128 {
        let counts = time < self.over_at(state);
        let number = if counts { Last::of(state).number.saturating_add(1) } else { 1 };
        Last { time, is_over: false, number }.state()
    }

    /// The state as it is under any numbers: a block that is over has its end.
    fn settled(&self, state: u128, now: u64) -> u128 {
        let last = Last::of(state);
        let time = self.end(last);
        if time > now { state } else { Last { time, is_over: true, ..last }.state() }
    }
}

impl Account for Blocks {
    fn decide(&self, state: u128, now: u64, _: u32, _: Option<u64>) -> Verdict {
        match self.running(state, now) {
            Some((wait_ns, _)) => Verdict::Deny { wait_ns, state: None },
            None => Verdict::Admit { state: self.begun(state, now), delay_ns: 0 },
        }
    }

    /// A block ends with its time, or is forgotten.
    fn refund(&self, _: u128, _: u64, _: u128, _: u32, _: u32) -> Option<(u128, u32)> {
        None
    }

    /// The next block, behind the one that is running.
    fn owe(&self, state: u128, now: u64, _: u32) -> u128 {
        let rest = self.running(state, now).map_or(0, |(rest, _)| rest);
        self.begun(state, now.saturating_add(rest))
    }

    /// A running block lasts as long as these numbers say, from the time at which it began. One that is
    /// over ended when it did.
    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        if from.over_at(state) > now { from.settled(state, now) } else { 0 }
    }

    #[cfg(feature = "snapshot")]
    fn exported(&self, state: u128, now: u64) -> u128 {
        self.settled(state, now)
    }

    #[cfg(feature = "snapshot")]
    fn of_stamp(&self, time: u64) -> Option<u128> {
        Some(Last { time, is_over: false, number: 1 }.state())
    }

    /// A clock that lags finds a block that begins later, so the time may be after `now`.
    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, _: u64) -> u128 {
        let last = Last::of(state);
        let time = u64::try_from((i128::from(last.time) + by).max(1)).unwrap_or(u64::MAX);
        if last.number == 0 { 0 } else { Last { time, ..last }.state() }
    }

    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        self.running(state, now).map_or(Left::all(1), |(rest, _)| Left::none_for(1, rest))
    }

    fn over_at(&self, state: u128) -> u64 {
        let last = Last::of(state);
        if last.number == 0 { 0 } else { self.end(last).saturating_add(self.quiet) }
    }
}
