//! The leaky bucket as a queue: requests leave it evenly, one after the other, and are told their
//! wait.
//!
//! # Decisions
//!
//! The queue lets r places leave every P nanoseconds. Its account (b, n) is that of a queue that
//! was empty at b and has had n places taken since, without being empty in between: place i
//! (counted from zero) leaves at `b + i * P / r`.
//!
//! - `n * P / r <= t - b`: the next place would have left already. The queue is empty, the account
//!   is over, and the next request opens one and leaves at once.
//! - Otherwise a request's delay is that of its first place, `ceil(b + n * P / r) - t`. It is
//!   admitted if that is at most the maximum delay D, that is `n * P <= (t - b + D) * r`. A request
//!   of cost c takes c places.
//! - Otherwise it is denied, and passes as soon as its delay is down to D. So a clock that went
//!   back, even to before b, may deny a request that was admitted before; no request is told to
//!   wait longer than D.
//!
//! A later anchor makes every place later: no request that joins after it is admitted because of
//! it.
//!
//! # Why `used` fits
//!
//! As for the bucket ([`super::bucket`]) the anchor advances by a stride of T permits. It does so
//! when n, before the charge, is at least T + L, with L the limit, `floor(D * r / P) + 1`:
//!
//! - The request was admitted, so `(t - b) * r / P >= n - D * r / P > n - L >= T`: the new anchor
//!   is not later than t.
//! - n is less than T + 2L after a charge, because it was less than T + L before; and at most T +
//!   2L - 1 + L - T = 3L - 1 after an advance, which is less than T + 2L because T >= L.
//!   [`Rate::stride`] chooses T so that T + 2L <= 2^32.
//!
//! Source: A. S. Tanenbaum, "Computer Networks", the leaky bucket under traffic shaping: a queue
//! with an even outflow.

use super::account::{Account, Effect, Given, Since};
use super::rate::{Rate, Stride};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    limit: u32,
    max_delay: u64,
    rate: Rate,
    stride: Stride,
    /// An account that has used this much advances by the stride with the next charge.
    advances_at: u64,
}

impl Queue {
    pub(crate) fn new(limit: u32, permits: u32, period: u64, max_delay: u64) -> Self {
        let rate = Rate::new(permits, period);
        let stride = rate.stride(limit);
        Self { limit, max_delay, rate, stride, advances_at: stride.permits + u64::from(limit) }
    }

    #[inline]
    pub(crate) fn effect(&self, account: Account, now: u64, cost: u32) -> Effect {
        let cost = u64::from(cost);
        let gone = now.saturating_sub(account.anchor);
        let taken = self.rate.volume(account.used);
        if taken <= self.rate.flow(gone) {
            // Before the anchor if the clock lags.
            return match account.anchor.saturating_sub(now).checked_sub(self.max_delay) {
                Some(wait_ns @ 1..) => Effect::Deny { wait_ns },
                _ => Effect::Open { used: cost },
            };
        }
        // From the reading, even if that is before the anchor: the delay is never longer than the
        // maximum.
        if taken > self.rate.flow(now.saturating_add(self.max_delay).saturating_sub(account.anchor)) {
            return Effect::Deny { wait_ns: self.delay_ns(account, now).saturating_sub(self.max_delay) };
        }
        if account.used < self.advances_at {
            Effect::Charge { used: account.used + cost }
        } else {
            Effect::Advance { used: account.used - self.stride.permits + cost }
        }
    }

    /// The effect of a request, if its delay is at most `within`, too.
    pub(crate) fn reserve(&self, account: Account, now: u64, effect: Effect, within: u64) -> (Effect, u64) {
        let (delay, longest) = (self.delay_ns(account, now), self.max_delay.min(within));
        if delay > longest { (Effect::Deny { wait_ns: delay - longest }, 0) } else { (effect, delay) }
    }

    /// Only the last place can be refunded: those behind it have been told theirs.
    pub(crate) fn refund(&self, account: Account, now: u64, cost: u32, since: Since) -> Option<Given> {
        let moved = if since.advanced { self.stride.permits } else { 0 };
        // Places are refunded as from a stack, so `used` after the charge tells whether it has the
        // last place.
        let is_last = account.used + moved == since.used;
        let is_over = self.rate.volume(account.used) <= self.rate.flow(now.saturating_sub(account.anchor));
        if !is_last || is_over {
            return None;
        }
        Some(Given { permits: cost, used: account.used.checked_sub(cost.into())? })
    }

    /// The places taken of this queue when it replaces another: those that leave until the other's
    /// next one, rounded up, as far as the queue is that long. If the other can't have had as many
    /// then, some were taken later: all are taken of this one, as far as there is room.
    pub(crate) fn places_after(&self, other: &Self, account: Account, at: u64) -> u64 {
        let until = other.all_free_at(account).saturating_sub(at);
        let is_of_then = until <= other.rate.time_for(2 * u64::from(other.limit));
        let most = if is_of_then { 2 * u64::from(self.limit) } else { self.used_below() - 1 };
        self.rate.permits_of(self.rate.flow(until)).min(most)
    }

    /// An upper bound of `used`: see the head of this file.
    pub(crate) fn used_below(&self) -> u64 {
        self.advances_at + u64::from(self.limit)
    }

    #[inline]
    pub(crate) fn advanced(&self, anchor: u64) -> u64 {
        anchor.saturating_add(self.stride.ns)
    }

    pub(crate) fn over_at(&self, account: Account) -> u64 {
        self.all_free_at(account)
    }

    pub(crate) fn all_free_at(&self, account: Account) -> u64 {
        account.anchor.saturating_add(self.rate.time_for(account.used))
    }

    /// The first place decides; the limit bounds the others.
    pub(crate) fn remaining(&self, account: Account, now: u64) -> u32 {
        if self.delay_ns(account, now) <= self.max_delay { self.limit } else { 0 }
    }

    pub(crate) fn delay_ns(&self, account: Account, now: u64) -> u64 {
        self.all_free_at(account).saturating_sub(now)
    }

    /// The same account one stride ago, if that could have been reached.
    #[cfg(all(test, not(tollgate_loom)))]
    pub(super) fn one_stride_ago(&self, account: Account) -> Option<Account> {
        let Stride { permits, ns } = self.stride;
        let (anchor, used) = (account.anchor.checked_sub(ns)?, account.used + permits);
        (used < self.advances_at).then_some(Account { anchor, used })
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    const fn at(anchor: u64, used: u64) -> Account {
        Account { anchor, used }
    }

    #[test]
    fn each_place_leaves_after_the_one_before() {
        // Three every ten nanoseconds, a delay of up to seven: three places.
        let queue = Queue::new(3, 3, 10, 7);
        assert_eq!([1, 2, 3].map(|used| queue.delay_ns(at(100, used), 100)), [4, 7, 10]);
        assert_eq!(queue.effect(at(100, 2), 100, 1), Effect::Charge { used: 3 });
        assert_eq!(queue.effect(at(100, 3), 100, 1), Effect::Deny { wait_ns: 3 });
        assert_eq!(queue.effect(at(100, 3), 102, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(queue.effect(at(100, 3), 103, 1), Effect::Charge { used: 4 });
        assert_eq!(queue.effect(at(100, 3), 109, 1), Effect::Charge { used: 4 });
        assert_eq!(queue.effect(at(100, 3), 110, 1), Effect::Open { used: 1 });
        assert_eq!(queue.over_at(at(100, 3)), 110);
    }

    #[test]
    fn the_first_place_decides_and_the_cost_takes_the_others() {
        let queue = Queue::new(6, 1, 100, 500);
        assert_eq!(queue.remaining(at(0, 5), 0), 6);
        assert_eq!(queue.effect(at(0, 5), 0, 6), Effect::Charge { used: 11 });
        assert_eq!(queue.remaining(at(0, 11), 0), 0);
        assert_eq!(queue.effect(at(0, 11), 0, 1), Effect::Deny { wait_ns: 600 });
        assert_eq!(queue.delay_ns(at(0, 11), 600), 500);
    }

    #[test]
    fn without_a_delay_it_admits_when_it_is_empty() {
        let queue = Queue::new(1, 1, 100, 0);
        assert_eq!(queue.effect(at(0, 1), 99, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(queue.effect(at(0, 1), 100, 1), Effect::Open { used: 1 });
    }

    /// So the delay is never longer than the maximum, and `remaining` tells whether a request is
    /// admitted.
    #[test]
    fn a_clock_that_went_back_waits_as_long_as_it_says() {
        let queue = Queue::new(6, 1, 100, 500);
        assert_eq!((queue.delay_ns(at(1000, 1), 600), queue.remaining(at(1000, 1), 600)), (500, 6));
        assert_eq!(queue.effect(at(1000, 1), 600, 1), Effect::Charge { used: 2 });
        assert_eq!((queue.delay_ns(at(1000, 1), 599), queue.remaining(at(1000, 1), 599)), (501, 0));
        assert_eq!(queue.effect(at(1000, 1), 599, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(queue.effect(at(1000, 1), 0, 1), Effect::Deny { wait_ns: 600 });
    }

    #[test]
    fn an_advance_is_the_same_account() {
        let queue = Queue::new(1 << 30, (1 << 30) - 3, 1_000_003, 1_000_000);
        let before = at(7, queue.advances_at + (1 << 30) - 1);
        let now = before.anchor + queue.rate.time_for(before.used) - queue.max_delay;
        assert!(matches!(queue.effect(before, now - 1, 1), Effect::Deny { wait_ns: 1 }));
        let Effect::Advance { used } = queue.effect(before, now, 1 << 30) else { panic!("{queue:?}") };
        let after = at(queue.advanced(before.anchor), used);
        assert!(after.anchor <= now);
        let plain = at(before.anchor, before.used + (1 << 30));
        for later in [now, now + 1, now + 999_983] {
            assert_eq!(queue.delay_ns(after, later), queue.delay_ns(plain, later));
        }
    }
}
