//! The fixed window: permits count from its start to its end.
//!
//! ```text
//! { moves: 8, used: 31, start: 62 }
//! ```
//!
//! The window that began at s has granted n permits. A request of cost c is admitted while
//! `n + c <= N` and `t < s + W`. At exactly `s + W` the window is over. The next begins with a
//! request or, aligned, at the boundary before it. If the boundaries change while a window is open,
//! its permits count in the aligned window of the change.
//!
//! `moves` grows with each such change, modulo 2^8: a receipt of before is worth nothing after it.
//! It begins with a number by the length of the window: after a change of the length, an aligned
//! window may begin where one of another length began, and a receipt of that one is worth nothing.
//! A window whose permits were all refunded is like none. `used` is at most 2^30, the largest limit:
//! a charge is admitted only up to the limit.
//!
//! Source: common practice; for instance "Pattern: Rate limiter 2" in the documentation of Redis'
//! `INCR`.

#[cfg(feature = "snapshot")]
use super::moved;
use super::packed::packed;
use super::{Account, Verdict, count};
use crate::decision::Left;

packed! {
    /// The fields of a state.
    struct Fields {
        start: u64 = 62,
        used: u64 = 31,
        moves: u64 = MOVES_BITS,
    }
}

const MOVES_BITS: u32 = 8;

/// Aligned windows: one begins at `first` and at every whole number of windows after it. What is
/// before `first` belongs to a window from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    first: u64,
    window: u64,
}

impl Grid {
    /// Some boundary, and the length of a window.
    pub(super) fn new(boundary: u64, window: u64) -> Self {
        let window = window.max(1);
        Self { first: boundary % window, window }
    }

    /// The last boundary that is no later.
    #[inline]
    pub(super) fn before(self, time: u64) -> u64 {
        time.checked_sub(self.first).map_or(0, |since| time - since % self.window)
    }

    /// Whether a window begins then.
    pub(super) fn has(self, time: u64) -> bool {
        self.before(time) == time
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    limit: u32,
    window: u64,
    grid: Option<Grid>,
}

impl Window {
    /// `boundary` is one of the aligned ones, if the windows are aligned.
    pub(crate) fn new(limit: u32, window: u64, boundary: Option<u64>) -> Self {
        Self { limit, window, grid: boundary.map(|boundary| Grid::new(boundary, window)) }
    }

    /// A window that begins then.
    fn opened(&self, start: u64) -> Fields {
        // Lengths that are near each other have numbers that are not.
        let moves = self.window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - MOVES_BITS);
        Fields { start, used: 0, moves }
    }

    fn end(&self, fields: Fields) -> u64 {
        fields.start.saturating_add(self.window)
    }

    /// Whether permits count in the window.
    #[inline]
    fn counts(&self, fields: Fields, now: u64) -> bool {
        fields.used > 0 && now < self.end(fields)
    }

    /// The state under this quota: the same start and count, unless the window is over by either
    /// length.
    pub(super) fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        let fields = Fields::of(state);
        match self == from {
            true => state,
            false if from.counts(fields, now) && self.counts(fields, now) => self.aligned(fields, now),
            false => 0,
        }
    }

    /// The same permits in the aligned window of that time, if there is one, unless they are in an
    /// aligned window.
    fn aligned(&self, fields: Fields, now: u64) -> u128 {
        let Fields { start, used, moves } = fields;
        match self.grid.filter(|grid| !grid.has(start)) {
            Some(grid) if self.counts(fields, now) => {
                let moves = (moves + 1) % (1 << MOVES_BITS);
                Fields { start: grid.before(now.max(start)), used, moves }.state()
            }
            _ => fields.state(),
        }
    }
}

impl Account for Window {
    #[inline]
    fn decide(&self, state: u128, now: u64, cost: u32, _: Option<u64>) -> Verdict {
        let held = Fields::of(state);
        let begins = || self.grid.map_or(now, |grid| grid.before(now));
        let open = if self.counts(held, now) { held } else { self.opened(begins()) };
        let used = open.used + u64::from(cost);
        if used > self.limit.into() {
            return Verdict::Deny { wait_ns: self.end(open).saturating_sub(now), state: None };
        }
        Verdict::Admit { state: Fields { used, ..open }.state(), delay_ns: 0 }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32) -> Option<(u128, u32)> {
        let (held, then) = (Fields::of(state), Fields::of(after));
        let permits = count(held.used).min(cost);
        let is_same = (held.start, held.moves) == (then.start, then.moves);
        let used = held.used - u64::from(permits);
        (is_same && self.counts(held, now)).then(|| (Fields { used, ..held }.state(), permits))
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let fields = Fields::of(state);
        self.aligned(Fields { start: moved(fields.start, by, now), ..fields }, now)
    }

    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        let fields = Fields::of(state);
        if !self.counts(fields, now) {
            return Left::all(self.limit);
        }
        let (remaining, wait_ns) = (self.limit.saturating_sub(count(fields.used)), self.end(fields) - now);
        Left { remaining, ..Left::none_for(self.limit, wait_ns) }
    }

    fn over_at(&self, state: u128) -> u64 {
        let fields = Fields::of(state);
        if fields.used == 0 { 0 } else { self.end(fields) }
    }
}
