//! Counts in windows of one length: the fixed window, and the sliding window counter.
//!
//! ```text
//! { start: 62, current: 31, moves: 32 }                 fixed window
//! { start: 62, previous: 20, current: 20, moves: 23 }   sliding window counter
//! ```
//!
//! The state has the start of the current window, and the permits granted in it and, of a sliding
//! window counter, in the window before.
//!
//! # The fixed window
//!
//! Permits count from the start of their window to its end: a request of cost c is admitted while
//! `current + c <= N`. The next window begins with a request or, aligned, at the boundary before it.
//!
//! # The sliding window counter
//!
//! A window that ends now covers `left`, the rest of the current window, of the one before. A
//! request of cost c is admitted if and only if `current + previous * left / W + c <= N`; both sides
//! are compared times W.
//!
//! When the window is over, its count is the previous one of the next window. When that is over,
//! too, nothing counts. Without other traffic the weighted sum never rises and never jumps: at the
//! end of a window `previous` has faded to nothing, and `current` begins to fade from its full
//! weight. So the first time at which a request passes is found by solving for `left`, in this
//! window or, if the current count alone denies, in the next.
//!
//! A moving window holds less than 2N permits: p or fewer of the window before, and, if its last one
//! comes `elapsed` after the start of the current one, `N - p + p * elapsed / W` or fewer of that.
//! `tests/behaviour/sliding_counter.rs` has the error at an even rate.
//!
//! # Both
//!
//! The window that began at s is over at exactly `s + W`. Counts of which all was refunded are like
//! none.
//!
//! If the boundaries change, the counts go to the aligned window of the change. If that ends earlier
//! than theirs, the previous count would fade sooner; the difference counts as granted in it, also
//! above the limit. So many changes to and fro may deny more than one change.
//!
//! `moves` grows with each such change, modulo its field: a receipt of before is worth nothing after
//! it. It begins with a number by the length of the window: after a change of the length, an aligned
//! window may begin where one of another length began, and a receipt of that one is worth nothing.
//!
//! # Bounds
//!
//! A charge is admitted only up to the limit, under this quota and any earlier one. So a count of a
//! fixed window is at most 2^30, and one of a sliding window counter less than 2^16; with costs
//! that were settled, and after changes of the boundaries, it is at most what its field holds, so
//! more counts as that. A product is of at most 2^31 permits and less than 2^60 nanoseconds.
//!
//! Sources: common practice, for instance "Pattern: Rate limiter 2" in the documentation of Redis'
//! `INCR` (the fixed window); J. Desgats, "How we built rate limiting capable of scaling to millions
//! of domains", Cloudflare 2017,
//! <https://blog.cloudflare.com/counting-things-a-lot-of-different-things/> (the counter).

use super::{Account, Verdict, Widths, count};
use crate::decision::Left;

/// The fixed window.
pub(crate) type Window = Windows<false>;
/// The sliding window counter.
pub(crate) type Counter = Windows<true>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Windows<const SLIDES: bool> {
    limit: u32,
    window: u64,
    /// The first boundary, if the windows are aligned: one begins then and at every whole number of
    /// windows after it. What is before belongs to a window from zero.
    first: Option<u64>,
}

#[derive(Clone, Copy)]
struct Counts {
    start: u64,
    /// The permits of the window before; always zero if the window is fixed.
    previous: u64,
    current: u64,
    /// Changes when the counts move to other windows than their own.
    moves: u64,
}

/// A product of permits and nanoseconds.
fn product(permits: u64, ns: u64) -> u128 {
    u128::from(permits) * u128::from(ns)
}

impl<const SLIDES: bool> Windows<SLIDES> {
    const WIDTHS: Widths<4> = Widths(if SLIDES { [62, 20, 20, 23] } else { [62, 0, 31, 32] });
    const MOVES_BITS: u32 = Self::WIDTHS.0[3];

    /// `boundary` is one of those at which windows begin, if they are aligned. A counter's are.
    pub(crate) fn new(limit: u32, window: u64, boundary: Option<u64>) -> Self {
        let window = window.max(1);
        Self { limit, window, first: boundary.map(|boundary| boundary % window) }
    }

    fn counts(state: u128) -> Counts {
        let fields = Self::WIDTHS.unpack(state);
        let [start, previous, current, moves] = fields.map(|field| u64::try_from(field).unwrap_or(u64::MAX));
        Counts { start, previous, current, moves }
    }

    fn state(Counts { start, previous, current, moves }: Counts) -> u128 {
        Self::WIDTHS.pack([start, previous, current, moves].map(u128::from))
    }

    /// The start of a window that is opened at that time.
    fn opens(&self, time: u64) -> u64 {
        let Some(first) = self.first else { return time };
        time.checked_sub(first).map_or(0, |since| time - since % self.window)
    }

    fn end(&self, counts: Counts) -> u64 {
        counts.start.saturating_add(self.window)
    }

    /// The same counts, one window on.
    fn next(&self, counts: Counts) -> Counts {
        Counts { start: self.end(counts), previous: counts.current, current: 0, ..counts }
    }

    /// The counts at a time; `None` if nothing counts.
    fn live(&self, counts: Counts, now: u64) -> Option<Counts> {
        let counts = if SLIDES && now >= self.end(counts) { self.next(counts) } else { counts };
        (counts.previous + counts.current > 0 && now < self.end(counts)).then_some(counts)
    }

    /// The same, or those of a new window.
    fn at(&self, state: u128, now: u64) -> Counts {
        self.live(Self::counts(state), now).unwrap_or_else(|| {
            // Lengths that are near each other have numbers that are not.
            let moves = self.window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - Self::MOVES_BITS);
            Counts { start: self.opens(now), previous: 0, current: 0, moves }
        })
    }

    /// What the previous count weighs, times W.
    fn weight(&self, counts: Counts, now: u64) -> u128 {
        product(counts.previous, self.end(counts).saturating_sub(now).min(self.window))
    }

    /// The wait of a request that is denied: until the window is over, or the previous count has
    /// faded to the room there is.
    fn wait(&self, counts: Counts, now: u64, cost: u64) -> u64 {
        // A fixed window frees all of its permits at once, when it ends.
        if !SLIDES {
            return self.end(counts).saturating_sub(now);
        }
        let limit = u64::from(self.limit);
        let fading = if counts.current + cost <= limit { counts } else { self.next(counts) };
        let room = product(limit.saturating_sub(fading.current + cost), self.window);
        let left = room.checked_div(fading.previous.into()).unwrap_or_default().min(self.window.into());
        self.end(fading).saturating_sub(u64::try_from(left).unwrap_or_default()).saturating_sub(now)
    }

    /// The end of the time for which counts count.
    fn last(&self, counts: Counts) -> u64 {
        match (counts.previous, counts.current) {
            (0, 0) => 0,
            (_, current) if SLIDES && current > 0 => self.end(self.next(counts)),
            _ => self.end(counts),
        }
    }

    /// The state with the counts in the aligned window of that time, if windows are aligned.
    fn aligned(&self, before: Counts, now: u64) -> u128 {
        let Some(counts) = self.live(before, now) else { return 0 };
        let start = self.first.map_or(counts.start, |_| self.opens(now.max(counts.start)));
        let earlier = self.end(counts).saturating_sub(start.saturating_add(self.window));
        let lost = product(counts.previous, earlier).div_ceil(self.window.into());
        let lost = u64::try_from(lost).unwrap_or(u64::MAX);
        let current = counts.current.saturating_add(lost);
        // Receipts of before are told apart.
        let moves = (counts.moves + u64::from(start != before.start)) % (1 << Self::MOVES_BITS);
        Self::state(Counts { start, current, moves, ..counts })
    }
}

impl Window {
    /// The start of the window whose permits the state has; `None` if it has none.
    pub(super) fn start(state: u128) -> Option<u64> {
        let counts = Self::counts(state);
        (counts.current > 0).then_some(counts.start)
    }

    /// The same state of a window with another start.
    #[cfg(feature = "snapshot")]
    pub(super) fn starting_at(state: u128, start: u64) -> u128 {
        Self::state(Counts { start, ..Self::counts(state) })
    }
}

impl<const SLIDES: bool> Account for Windows<SLIDES> {
    #[inline(always)]
    fn decide(&self, state: u128, now: u64, cost: u32, _: Option<u64>) -> Verdict {
        let (counts, cost) = (self.at(state, now), u64::from(cost));
        let current = counts.current + cost;
        let room = u64::from(self.limit).checked_sub(current);
        if room.is_none_or(|room| self.weight(counts, now) > product(room, self.window)) {
            return Verdict::Deny { wait_ns: self.wait(counts, now, cost), state: None };
        }
        Verdict::Admit { state: Self::state(Counts { current, ..counts }), delay_ns: 0 }
    }

    /// Takes the permits off the count that they were added to, while that counts.
    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)> {
        let (mut held, then) = (Self::counts(state), Self::counts(after));
        let (charged, until) = if held.start == then.start {
            let until = self.last(held);
            (&mut held.current, until)
        } else if held.start == self.next(then).start {
            let until = self.end(held);
            (&mut held.previous, until)
        } else {
            // The window of the charge counts no more.
            return None;
        };
        let permits = count(*charged).min(cost - kept);
        *charged -= u64::from(permits);
        (held.moves == then.moves && now < until && permits > 0).then(|| (Self::state(held), permits))
    }

    fn owe(&self, state: u128, now: u64, cost: u32) -> u128 {
        let counts = self.at(state, now);
        Self::state(Counts { current: counts.current + u64::from(cost), ..counts })
    }

    /// The state under this quota: the counts that still count, by either length.
    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        from.live(Self::counts(state), now).map_or(0, |counts| {
            // The window before the current one has another start under another length.
            let is_other = counts.previous > 0 && self.window != from.window;
            self.aligned(Counts { moves: counts.moves + u64::from(is_other), ..counts }, now)
        })
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let counts = Self::counts(state);
        let start = i128::from(counts.start).saturating_add(by).clamp(1, now.into());
        self.aligned(Counts { start: u64::try_from(start).unwrap_or(now), ..counts }, now)
    }

    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        let (counts, limit) = (self.at(state, now), self.limit);
        let weighed = u64::try_from(self.weight(counts, now).div_ceil(self.window.into())).unwrap_or(u64::MAX);
        let remaining = limit.saturating_sub(count(weighed.saturating_add(counts.current)));
        if remaining == limit {
            return Left::all(limit);
        }
        let next_after_ns = self.wait(counts, now, u64::from(remaining) + 1);
        Left { limit, remaining, next_after_ns, reset_after_ns: self.last(counts).saturating_sub(now) }
    }

    fn over_at(&self, state: u128) -> u64 {
        self.last(Self::counts(state))
    }
}
