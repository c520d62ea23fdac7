//! The fixed window: permits count from its start to its end.
//!
//! The account (b, n) says that the window that began at b has granted n permits. A request of cost
//! c is admitted while `n + c <= N` and `t < b + W`. At exactly `b + W` the account is over.
//!
//! A window begins with the first request after the last window or, aligned, at one of the
//! boundaries of a [`Grid`]. A window that opens later is the one that a later request would have
//! opened, with as many permits left. `used` is at most the limit, 2^30.
//!
//! Source: common practice; for instance "Pattern: Rate limiter 2" in the documentation of Redis'
//! `INCR`.

use super::account::{Account, Effect, Given, Since};

/// Aligned windows: one begins at `first` and at every whole number of windows after it. Before
/// `first` there is the rest of a window that began before time did; its anchor is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grid {
    first: u64,
    window: u64,
}

impl Grid {
    /// `first` is less than the window.
    pub(crate) fn new(first: u64, window: u64) -> Self {
        Self { first, window: window.max(1) }
    }

    /// The start of the window that a time lies in.
    #[inline]
    pub(crate) fn start_at(self, now: u64) -> u64 {
        match now.checked_sub(self.first) {
            Some(since) => now - since % self.window,
            None => 0,
        }
    }

    /// The end of the window with that start.
    #[inline]
    pub(crate) fn end_of(self, start: u64) -> u64 {
        if start < self.first { self.first } else { start.saturating_add(self.window) }
    }

    /// The last moment of the window with that start.
    #[cfg(feature = "snapshot")]
    pub(crate) fn last_of(self, start: u64) -> u64 {
        self.end_of(start).saturating_sub(1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    limit: u64,
    window: u64,
    grid: Option<Grid>,
}

impl Window {
    /// `first` is a boundary, if the windows are aligned.
    pub(crate) fn new(limit: u32, window: u64, first: Option<u64>) -> Self {
        Self { limit: limit.into(), window, grid: first.map(|first| Grid::new(first, window)) }
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn grid(&self) -> Option<Grid> {
        self.grid
    }

    #[inline]
    pub(crate) fn end_of(&self, start: u64) -> u64 {
        match self.grid {
            Some(grid) => grid.end_of(start),
            None => start.saturating_add(self.window),
        }
    }

    #[inline]
    pub(crate) fn effect(&self, account: Account, now: u64, cost: u32) -> Effect {
        let end = self.end_of(account.anchor);
        let used = account.used + u64::from(cost);
        // A window whose permits were all refunded is like none.
        if end <= now || account.used == 0 {
            Effect::Open { used: cost.into() }
        } else if used <= self.limit {
            Effect::Charge { used }
        } else {
            Effect::Deny { wait_ns: end - now }
        }
    }

    pub(crate) fn refund(&self, account: Account, now: u64, cost: u32, _since: Since) -> Option<Given> {
        if self.end_of(account.anchor) <= now {
            return None;
        }
        Some(Given { permits: cost, used: account.used.checked_sub(cost.into())? })
    }

    /// The same permits in the window that runs at a time, if these windows are aligned and only
    /// begin at other times than the others.
    pub(crate) fn shifted(&self, other: &Self, account: Account, at: u64) -> Option<Account> {
        let grid = self.grid.filter(|grid| self.window == other.window && other.grid != Some(*grid))?;
        Some(Account { anchor: grid.start_at(at), ..account })
    }

    /// An upper bound of `used`.
    pub(crate) fn used_below(&self) -> u64 {
        self.limit + 1
    }

    /// Never called: an account is over with its window.
    pub(crate) fn advanced(&self, anchor: u64) -> u64 {
        self.end_of(anchor)
    }

    #[inline]
    pub(crate) fn anchor_at(&self, now: u64) -> u64 {
        self.grid.map_or(now, |grid| grid.start_at(now))
    }

    pub(crate) fn over_at(&self, account: Account) -> u64 {
        if account.used == 0 { account.anchor } else { self.end_of(account.anchor) }
    }

    pub(crate) fn all_free_at(&self, account: Account) -> u64 {
        self.over_at(account)
    }

    pub(crate) fn remaining(&self, account: Account, now: u64) -> u32 {
        let used = if self.end_of(account.anchor) <= now { 0 } else { account.used };
        u32::try_from(self.limit.saturating_sub(used)).unwrap_or(u32::MAX)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    const fn at(anchor: u64, used: u64) -> Account {
        Account { anchor, used }
    }

    #[test]
    fn a_window_is_half_open() {
        let window = Window::new(3, 10, None);
        assert_eq!(window.anchor_at(17), 17);
        assert_eq!(window.effect(at(17, 2), 26, 1), Effect::Charge { used: 3 });
        assert_eq!(window.effect(at(17, 2), 26, 2), Effect::Deny { wait_ns: 1 });
        assert_eq!(window.effect(at(17, 2), 27, 2), Effect::Open { used: 2 });
        assert_eq!(window.effect(at(17, 3), 9, 1), Effect::Deny { wait_ns: 18 });
        assert_eq!([26, 27].map(|now| window.remaining(at(17, 2), now)), [1, 3]);
        assert_eq!(window.over_at(at(17, 2)), 27);
    }

    #[test]
    fn aligned_windows_lie_side_by_side() {
        let window = Window::new(3, 10, Some(4));
        // Before the first boundary there is the rest of a window.
        assert_eq!([0, 3, 4, 13, 14].map(|now| window.anchor_at(now)), [0, 0, 4, 4, 14]);
        assert_eq!([0, 4, 14].map(|start| window.end_of(start)), [4, 14, 24]);
        assert_eq!(window.effect(at(4, 3), 13, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(window.effect(at(0, 3), 3, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(window.effect(at(0, 3), 4, 1), Effect::Open { used: 1 });
        assert_eq!(Window::new(3, 10, Some(0)).anchor_at(9), 0);
    }
}
