//! The sliding window counter: two counts in aligned windows, the older weighted by its overlap.
//!
//! # Decisions
//!
//! The account has the start of the current window, and the permits granted in it and in the window
//! before. At `elapsed` into the window, a window that ends now covers `W - elapsed` of the one
//! before: its *left*. A request of cost c is admitted if and only if `current + previous * left /
//! W + c <= N`; both sides are compared times W.
//!
//! - In the window of the account: charged.
//! - In the next window: the current count becomes the previous one, and the account advances.
//! - Later: neither window overlaps. The account is over, and a new one opens.
//!
//! Without other traffic the weighted sum never rises and never jumps: at the end of a window
//! `previous` has faded to nothing, and `current` begins to fade from its full weight. So the first
//! time at which a request passes is found by solving for `left`, in this window or, if the current
//! count alone denies, in the next.
//!
//! `used` packs both counts, previous above current, in 16 bits each: each is at most the limit, at
//! most 65,535.
//!
//! Source: J. Desgats, "How we built rate limiting capable of scaling to millions of domains",
//! Cloudflare 2017, <https://blog.cloudflare.com/counting-things-a-lot-of-different-things/>.

use super::account::{Account, Effect, Given, Since, saturated};
use super::window::Grid;

const COUNT_BITS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counter {
    limit: u64,
    window: u64,
    grid: Grid,
}

/// The counts at a time: those of its window and of the window before, and the end of its window.
#[derive(Clone, Copy)]
struct Counts {
    previous: u64,
    current: u64,
    end: u64,
}

impl Counter {
    pub(crate) fn new(limit: u32, window: u64, first: u64) -> Self {
        Self { limit: limit.into(), window, grid: Grid::new(first, window) }
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn grid(&self) -> Grid {
        self.grid
    }

    /// The counts in a window that ends `earlier` nanoseconds before the one that they are of. The
    /// weight that the previous count loses by that is added to the current one.
    pub(crate) fn ends_earlier(&self, used: u64, earlier: u64) -> u64 {
        let (previous, current) = Self::counts(Account { anchor: 0, used });
        let lost = u128::from(previous) * u128::from(earlier.min(self.window));
        let lost = saturated(lost.div_ceil(u128::from(self.window.max(1))));
        (previous << COUNT_BITS) | (current + lost).min((1 << COUNT_BITS) - 1)
    }

    /// The same counts in the window that runs at a time, if these windows only begin at other times
    /// than the others. No count weighs less then than it did.
    pub(crate) fn shifted(&self, other: &Self, account: Account, at: u64) -> Option<Account> {
        if self.window != other.window || self.grid == other.grid {
            return None;
        }
        let written = other.as_written(account);
        let counts = if at < written.end { written } else { other.one_on(written) };
        let anchor = self.anchor_at(at);
        let used = (counts.previous << COUNT_BITS) | counts.current;
        Some(Account { anchor, used: self.ends_earlier(used, counts.end.saturating_sub(self.grid.end_of(anchor))) })
    }

    fn counts(account: Account) -> (u64, u64) {
        (account.used >> COUNT_BITS, account.used & ((1 << COUNT_BITS) - 1))
    }

    /// The counts in the window of the account, and where that ends.
    #[inline]
    fn as_written(&self, account: Account) -> Counts {
        let (previous, current) = Self::counts(account);
        Counts { previous, current, end: self.grid.end_of(account.anchor) }
    }

    /// The same counts, one window on.
    #[inline]
    fn one_on(&self, counts: Counts) -> Counts {
        Counts { previous: counts.current, current: 0, end: counts.end.saturating_add(self.window) }
    }

    /// How much of the previous window overlaps, in nanoseconds.
    #[inline]
    fn left(&self, counts: Counts, now: u64) -> u64 {
        counts.end.saturating_sub(now).min(self.window)
    }

    /// The weighted sum and the cost, times W, are within the limit.
    #[inline]
    fn fits(&self, counts: Counts, now: u64, cost: u64) -> bool {
        let wide = |permits: u64, ns: u64| u128::from(permits) * u128::from(ns);
        wide(counts.previous, self.left(counts, now)) + wide(counts.current + cost, self.window)
            <= wide(self.limit, self.window)
    }

    #[inline]
    pub(crate) fn effect(&self, account: Account, now: u64, cost: u32) -> Effect {
        let cost = u64::from(cost);
        let written = self.as_written(account);
        let next = self.one_on(written);
        // An account without permits is like none.
        if next.end <= now || account.used == 0 {
            return Effect::Open { used: cost };
        }
        let (counts, admitted) = if now < written.end {
            (written, Effect::Charge { used: account.used + cost })
        } else {
            (next, Effect::Advance { used: (next.previous << COUNT_BITS) | cost })
        };
        if self.fits(counts, now, cost) {
            admitted
        } else {
            Effect::Deny { wait_ns: self.passes_at(counts, cost).saturating_sub(now) }
        }
    }

    /// The time at which a denied request passes: the previous count has faded to the room there
    /// is.
    fn passes_at(&self, counts: Counts, cost: u64) -> u64 {
        let fading = match self.limit.checked_sub(counts.current + cost) {
            Some(_) => counts,
            None => self.one_on(counts),
        };
        let room = self.limit.saturating_sub(fading.current + cost);
        let left = (u128::from(room) * u128::from(self.window)).checked_div(u128::from(fading.previous));
        fading.end.saturating_sub(left.map_or(self.window, saturated))
    }

    /// Taken from the count that it was added to, while that has weight.
    pub(crate) fn refund(&self, account: Account, now: u64, cost: u32, since: Since) -> Option<Given> {
        let written = self.as_written(account);
        let weighs_until = if since.advanced { written.end } else { self.one_on(written).end };
        let cost_there = if since.advanced { u64::from(cost) << COUNT_BITS } else { cost.into() };
        let count = if since.advanced { written.previous } else { written.current };
        if weighs_until <= now || count < cost.into() {
            return None;
        }
        Some(Given { permits: cost, used: account.used - cost_there })
    }

    /// An upper bound of `used`.
    pub(crate) fn used_below(&self) -> u64 {
        1 << (2 * COUNT_BITS)
    }

    #[inline]
    pub(crate) fn advanced(&self, anchor: u64) -> u64 {
        self.grid.end_of(anchor)
    }

    #[inline]
    pub(crate) fn anchor_at(&self, now: u64) -> u64 {
        self.grid.start_at(now)
    }

    pub(crate) fn over_at(&self, account: Account) -> u64 {
        match Self::counts(account) {
            (0, 0) => account.anchor,
            (_, 0) => self.as_written(account).end,
            _ => self.one_on(self.as_written(account)).end,
        }
    }

    pub(crate) fn ends_at(&self, account: Account) -> u64 {
        self.one_on(self.as_written(account)).end
    }

    pub(crate) fn all_free_at(&self, account: Account) -> u64 {
        self.over_at(account)
    }

    pub(crate) fn remaining(&self, account: Account, now: u64) -> u32 {
        let written = self.as_written(account);
        let next = self.one_on(written);
        let counts = if now < written.end {
            written
        } else if now < next.end {
            next
        } else {
            Counts { previous: 0, current: 0, end: now }
        };
        let weighed = u128::from(counts.previous) * u128::from(self.left(counts, now));
        let used = saturated(weighed.div_ceil(u128::from(self.window.max(1)))) + counts.current;
        u32::try_from(self.limit.saturating_sub(used)).unwrap_or(u32::MAX)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    const fn at(anchor: u64, previous: u64, current: u64) -> Account {
        Account { anchor, used: previous << 16 | current }
    }

    #[test]
    fn the_example_of_the_source() {
        // "A limit of 50 per minute, 42 in the previous minute, 18 in the current one, which
        // started 15 seconds ago": 42 * 45 / 60 + 18 = 49.5.
        let second = 1_000_000_000;
        let counter = Counter::new(50, 60 * second, 0);
        let account = at(60 * second, 42, 18);
        assert_eq!(counter.remaining(account, 75 * second), 0);
        // 31 of 42 weigh 44.3 seconds.
        let passes_at = 120 * second - 31 * 60 * second / 42;
        assert_eq!(counter.effect(account, 75 * second, 1), Effect::Deny { wait_ns: passes_at - 75 * second });
        assert_eq!(counter.effect(account, passes_at, 1), Effect::Charge { used: 42 << 16 | 19 });
    }

    #[test]
    fn the_next_window_weighs_the_current_count() {
        let counter = Counter::new(10, 100, 0);
        // The current count alone is in the way: half of it has to fade.
        assert_eq!(counter.effect(at(0, 3, 8), 99, 6), Effect::Deny { wait_ns: 51 });
        assert_eq!(counter.effect(at(0, 3, 8), 149, 6), Effect::Deny { wait_ns: 1 });
        assert_eq!(counter.effect(at(0, 3, 8), 150, 6), Effect::Advance { used: 8 << 16 | 6 });
        assert_eq!(counter.advanced(0), 100);
        assert_eq!(counter.effect(at(0, 0, 10), 0, 10), Effect::Deny { wait_ns: 200 });
        assert_eq!(counter.effect(at(0, 0, 10), 199, 10), Effect::Deny { wait_ns: 1 });
        assert_eq!(counter.effect(at(0, 0, 10), 200, 10), Effect::Open { used: 10 });
        assert_eq!(counter.over_at(at(0, 3, 8)), 200);
        assert_eq!(counter.over_at(at(0, 3, 0)), 100);
    }

    #[test]
    fn what_is_before_the_first_boundary_is_the_rest_of_a_window() {
        let counter = Counter::new(10, 100, 30);
        assert_eq!([0, 29, 30, 129, 130].map(|now| counter.anchor_at(now)), [0, 0, 30, 30, 130]);
        assert_eq!(counter.advanced(0), 30);
        assert_eq!(counter.effect(at(0, 0, 10), 29, 1), Effect::Deny { wait_ns: 11 });
        assert_eq!(counter.effect(at(0, 0, 10), 40, 1), Effect::Advance { used: 10 << 16 | 1 });
        assert_eq!(counter.effect(at(0, 0, 10), 130, 1), Effect::Open { used: 1 });
    }

    #[cfg(feature = "snapshot")]
    #[test]
    fn a_window_that_ends_earlier_weighs_no_less() {
        let counter = Counter::new(10, 100, 0);
        // At 250, 8 weigh 50 of 100. In a window that ends at 270 they would weigh 20.
        let ends_earlier = |previous: u64, current: u64, earlier| {
            let used = counter.ends_earlier(previous << 16 | current, earlier);
            (used >> 16, used & 0xFFFF)
        };
        assert_eq!(ends_earlier(8, 1, 30), (8, 4));
        assert_eq!(ends_earlier(8, 1, 0), (8, 1));
        assert_eq!(ends_earlier(8, 1, u64::MAX), (8, 9));
        assert_eq!(ends_earlier(65_535, 65_535, u64::MAX), (65_535, 65_535));
    }

    #[test]
    fn the_largest_limit_fits() {
        let counter = Counter::new(65_535, (1 << 59) - 1, 0);
        let full = at(0, 65_535, 65_535);
        assert!(full.used < 1 << 32);
        assert_eq!(counter.over_at(full), (1 << 60) - 2);
        assert_eq!(counter.remaining(full, 1 << 58), 0);
        assert!(matches!(counter.effect(at(u64::MAX, 65_535, 65_535), u64::MAX, u32::MAX), Effect::Open { .. }));
    }
}
