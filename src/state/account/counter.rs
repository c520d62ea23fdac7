//! The sliding window counter: two counts in aligned windows, the older weighted by its overlap.
//!
//! ```text
//! { moves: 23, current: 20, previous: 20, start: 62 }
//! ```
//!
//! # Decisions
//!
//! The state has the start of the current window, and the permits granted in it and in the window
//! before. A window that ends now covers `left`, the rest of the current window, of the one before.
//! A request of cost c is admitted if and only if `current + previous * left / W + c <= N`; both
//! sides are compared times W.
//!
//! When the window is over, its count is the previous one of the next window. When that is over,
//! too, nothing counts. Without other traffic the weighted sum never rises and never jumps: at the
//! end of a window `previous` has faded to nothing, and `current` begins to fade from its full
//! weight. So the first time at which a request passes is found by solving for `left`, in this
//! window or, if the current count alone denies, in the next.
//!
//! If the boundaries change, the counts go to the aligned window of the change. If that ends earlier
//! than theirs, the previous count would fade sooner; the difference counts as granted in it.
//!
//! # Bounds
//!
//! A count is less than 2^16: a charge is admitted only up to the limit, which is below that, under
//! this quota and any earlier one. Its field has 20 bits. A product is of at most 2^21 permits and
//! less than 2^60 nanoseconds, and two of them are added: less than 2^82.
//!
//! Source: J. Desgats, "How we built rate limiting capable of scaling to millions of domains",
//! Cloudflare 2017, <https://blog.cloudflare.com/counting-things-a-lot-of-different-things/>.

#[cfg(feature = "snapshot")]
use super::moved;
use super::packed::packed;
use super::window::Grid;
use super::{Account, Verdict, count};
use crate::decision::Left;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counter {
    limit: u32,
    window: u64,
    grid: Grid,
}

packed! {
    /// The fields of a state.
    struct Counts {
        start: u64 = 62,
        // Limits are below 2^16.
        previous: u64 = 20,
        current: u64 = 20,
        /// How often the counts have moved to other windows than their own.
        moves: u64 = MOVES_BITS,
    }
}

const MOVES_BITS: u32 = 23;

/// A product of permits and nanoseconds.
fn product(permits: u64, ns: u64) -> u128 {
    u128::from(permits) * u128::from(ns)
}

impl Counter {
    /// `boundary` is one of those at which windows begin.
    pub(crate) fn new(limit: u32, window: u64, boundary: u64) -> Self {
        Self { limit, window: window.max(1), grid: Grid::new(boundary, window) }
    }

    fn end(&self, counts: Counts) -> u64 {
        counts.start.saturating_add(self.window)
    }

    /// The same counts, one window on.
    fn next(&self, counts: Counts) -> Counts {
        Counts { start: self.end(counts), previous: counts.current, current: 0, ..counts }
    }

    /// The counts at a time; those of a new key if nothing counts.
    #[inline]
    fn at(&self, state: u128, now: u64) -> Counts {
        let mut counts = Counts::of(state);
        if now >= self.end(counts) {
            counts = self.next(counts);
        }
        if now >= self.end(counts) || counts.previous + counts.current == 0 {
            return Counts { start: self.grid.before(now), previous: 0, current: 0, moves: counts.moves };
        }
        counts
    }

    /// What the previous count weighs, times W.
    #[inline]
    fn weight(&self, counts: Counts, now: u64) -> u128 {
        product(counts.previous, self.end(counts).saturating_sub(now).min(self.window))
    }

    /// The wait of a request that is denied: until the previous count has faded to the room there
    /// is.
    fn wait(&self, counts: Counts, now: u64, cost: u64) -> u64 {
        let limit = u64::from(self.limit);
        let fading = if counts.current + cost <= limit { counts } else { self.next(counts) };
        let room = product(limit.saturating_sub(fading.current + cost), self.window);
        let left = room.checked_div(fading.previous.into()).unwrap_or_default().min(self.window.into());
        self.end(fading).saturating_sub(u64::try_from(left).unwrap_or_default()).saturating_sub(now)
    }

    /// The state under this quota: the counts that still count.
    pub(super) fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        if self == from {
            return state;
        }
        let before = from.at(state, now);
        let state = self.aligned(before, now);
        let is_same = (self.window, self.grid) == (from.window, from.grid);
        let after = Counts::of(state);
        if state == 0 || is_same || after.start == before.start {
            return state;
        }
        // Receipts of before are told apart.
        Counts { moves: (before.moves + 1) % (1 << MOVES_BITS), ..after }.state()
    }

    /// The counts in the aligned window of that time.
    fn aligned(&self, mut counts: Counts, now: u64) -> u128 {
        if now >= self.end(counts) {
            counts = self.next(counts);
        }
        if now >= self.end(counts) || counts.previous + counts.current == 0 {
            return 0;
        }
        let (end, start) = (self.end(counts), self.grid.before(now.max(counts.start)));
        let earlier = end.saturating_sub(start.saturating_add(self.window));
        let lost = product(counts.previous, earlier).div_ceil(self.window.into());
        let lost = u64::try_from(lost).unwrap_or(u64::MAX);
        let most = counts.current.max(self.limit.into());
        Counts { start, current: counts.current.saturating_add(lost).min(most), ..counts }.state()
    }
}

impl Account for Counter {
    #[inline]
    fn decide(&self, state: u128, now: u64, cost: u32, _: Option<u64>) -> Verdict {
        let (counts, cost) = (self.at(state, now), u64::from(cost));
        let current = counts.current + cost;
        if self.weight(counts, now) + product(current, self.window) > product(self.limit.into(), self.window) {
            return Verdict::Deny { wait_ns: self.wait(counts, now, cost), state: None };
        }
        Verdict::Admit { state: Counts { current, ..counts }.state(), delay_ns: 0 }
    }

    /// From the count that they were added to, while that has weight.
    fn refund(&self, state: u128, now: u64, after: u128, cost: u32) -> Option<(u128, u32)> {
        let (mut held, then) = (Counts::of(state), Counts::of(after));
        if held.moves != then.moves {
            return None;
        }
        let (charged, until) = if held.start == then.start {
            let until = self.end(self.next(held));
            (&mut held.current, until)
        } else if held.start == self.next(then).start {
            let until = self.end(held);
            (&mut held.previous, until)
        } else {
            return None;
        };
        let permits = count(*charged).min(cost);
        *charged -= u64::from(permits);
        (now < until && permits > 0).then(|| (held.state(), permits))
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let counts = Counts::of(state);
        self.aligned(Counts { start: moved(counts.start, by, now), ..counts }, now)
    }

    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        let (counts, limit) = (self.at(state, now), self.limit);
        let weighed = u64::try_from(self.weight(counts, now).div_ceil(self.window.into())).unwrap_or(u64::MAX);
        let remaining = limit.saturating_sub(count(weighed.saturating_add(counts.current)));
        if remaining == limit {
            return Left::all(limit);
        }
        let next_after_ns = self.wait(counts, now, u64::from(remaining) + 1);
        Left { limit, remaining, next_after_ns, reset_after_ns: self.over_at(state).saturating_sub(now) }
    }

    fn over_at(&self, state: u128) -> u64 {
        let counts = Counts::of(state);
        match (counts.previous, counts.current) {
            (0, 0) => 0,
            (_, 0) => self.end(counts),
            _ => self.end(self.next(counts)),
        }
    }
}
