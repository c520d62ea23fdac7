//! The token bucket, and the leaky bucket as a meter. The arithmetic is the same: free space is
//! permits.
//!
//! # Decisions
//!
//! A bucket of capacity C is refilled with r permits every P nanoseconds. Its account (b, n) is
//! that of a bucket that was full at b and has lost n permits since, without being full in between.
//! So at t it lacks `n - (t - b) * r / P` permits. That fraction is never computed: both sides are
//! compared times P.
//!
//! - `n <= (t - b) * r / P`: the bucket is full. The account is over, and the next request opens
//!   one.
//! - `n + c - C <= (t - b) * r / P`: it has c permits. They are charged: n grows by c, and no
//!   refill is lost.
//! - Otherwise the request is denied until `b + ceil((n + c - C) * P / r)`.
//!
//! A later anchor means that the bucket was full later, and has less of its refill back: never more
//! permits.
//!
//! # Why `used` fits
//!
//! Under steady pressure a bucket is never full, and n would grow for ever. A stride of T = k * r
//! permits is refilled in exactly k * P nanoseconds (both whole), so (b, n) and (b + k * P, n - T)
//! are the same account. The second replaces the first as soon as a charge would bring n to T + C
//! or more:
//!
//! - n is less than T + C before any request, and at most T + 2C - 1 - T = 2C - 1 after an advance,
//!   which is less than T + C because T >= C: one advance is enough. [`Rate::stride`] chooses T so
//!   that T + 2C <= 2^32.
//! - The charge was admitted, so `(t - b) * r / P >= n + c - C >= T`: the new anchor is not later
//!   than t.
//!
//! The products: n + c < 2^33 by P < 2^60, and t - b < 2^62 by r <= 2^30. Both are far below 2^128.
//!
//! Sources: J. S. Turner, "New directions in communications (or which way to the information
//! age?)", IEEE Communications Magazine 24 (10), 1986 (the leaky bucket as a counter); RFC 2215,
//! `TOKEN_BUCKET_TSPEC` (the token bucket); ITU-T I.371 (the generic cell rate algorithm, which
//! agrees for evenly spaced permits).

use super::account::{Account, Effect, Given, Opening, Since};
use super::rate::{Rate, Stride};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    capacity: u64,
    rate: Rate,
    stride: Stride,
    /// A charge that would bring `used` here advances the anchor by the stride.
    advances_at: u64,
    /// The permits that a new key lacks of a full bucket.
    lacks_at_first: u64,
}

impl Bucket {
    pub(crate) fn new(capacity: u32, permits: u32, period: u64, start: u32) -> Self {
        let rate = Rate::new(permits, period);
        let stride = rate.stride(capacity);
        Self {
            capacity: capacity.into(),
            rate,
            stride,
            advances_at: stride.permits + u64::from(capacity),
            lacks_at_first: capacity.saturating_sub(start).into(),
        }
    }

    #[inline]
    pub(crate) fn effect(&self, account: Account, now: u64, cost: u32) -> Effect {
        let cost = u64::from(cost);
        let refilled = self.rate.flow(now.saturating_sub(account.anchor));
        if self.rate.volume(account.used) <= refilled {
            return Effect::Open { used: cost };
        }
        let used = account.used + cost;
        let owed = used.saturating_sub(self.capacity);
        if self.rate.volume(owed) > refilled {
            let passes_at = account.anchor.saturating_add(self.rate.time_for(owed));
            return Effect::Deny { wait_ns: passes_at.saturating_sub(now) };
        }
        if used < self.advances_at {
            Effect::Charge { used }
        } else {
            Effect::Advance { used: used - self.stride.permits }
        }
    }

    /// Decides a request that is denied now, passes after `wait_ns`, and accepts a wait of
    /// `within`.
    pub(crate) fn reserve(&self, account: Account, now: u64, cost: u32, wait_ns: u64, within: u64) -> (Effect, u64) {
        let longest = self.rate.time_within(self.capacity).min(within);
        if wait_ns > longest {
            return (Effect::Deny { wait_ns: wait_ns - longest }, 0);
        }
        let used = account.used + u64::from(cost);
        let has_passed = || self.rate.flow(now.saturating_sub(account.anchor)) >= self.rate.volume(self.stride.permits);
        let effect = if used >= self.advances_at && has_passed() {
            Effect::Advance { used: used - self.stride.permits }
        } else {
            Effect::Charge { used }
        };
        (effect, wait_ns)
    }

    pub(crate) fn refund(&self, account: Account, now: u64, cost: u32, since: Since) -> Option<Given> {
        let refilled = self.rate.flow(now.saturating_sub(account.anchor));
        let taken = self.rate.volume(account.used);
        if taken <= refilled {
            return None;
        }
        let is_ahead = taken > refilled + self.rate.volume(self.capacity);
        let permits = match is_ahead {
            false => cost,
            true if since.only_charged => {
                let moved = if since.advanced { self.stride.permits } else { 0 };
                let later = (account.used + moved).saturating_sub(since.used);
                cost.min(u32::try_from(self.capacity.saturating_sub(later)).unwrap_or(u32::MAX))
            }
            true => 0,
        };
        Some(Given { permits, used: account.used.checked_sub(permits.into())? })
    }

    /// The permits missing at a time, rounded up.
    fn lacks(&self, account: Account, now: u64) -> u64 {
        let refilled = self.rate.flow(now.saturating_sub(account.anchor));
        self.rate.permits_of(self.rate.volume(account.used).saturating_sub(refilled))
    }

    /// The permits that this bucket lacks when it replaces another: those that the other lacks, at
    /// most all of this one; and as much again of the other's debt. If the other owes more than it
    /// can have owed then, it was charged later: it is paid when the other would have paid, as far
    /// as there is room.
    pub(crate) fn lacks_after(&self, other: &Self, account: Account, now: u64) -> u64 {
        let lacks = other.lacks(account, now);
        let owed = lacks.saturating_sub(other.capacity);
        let lacks = (lacks - owed).min(self.capacity);
        if owed <= other.capacity {
            return lacks + owed.min(self.capacity);
        }
        let as_long = self.rate.permits_of(self.rate.flow(other.rate.time_for(owed)));
        lacks.saturating_add(as_long).min(self.advances_at - 1)
    }

    /// An upper bound of `used`: see the head of this file.
    pub(crate) fn used_below(&self) -> u64 {
        self.advances_at + self.capacity
    }

    #[inline]
    pub(crate) fn advanced(&self, anchor: u64) -> u64 {
        anchor.saturating_add(self.stride.ns)
    }

    /// Never, if a new key starts with less than a full bucket: a full one then tells that the key
    /// is not new.
    pub(crate) fn over_at(&self, account: Account) -> u64 {
        if self.lacks_at_first > 0 { u64::MAX } else { self.all_free_at(account) }
    }

    pub(crate) fn all_free_at(&self, account: Account) -> u64 {
        account.anchor.saturating_add(self.rate.time_for(account.used))
    }

    pub(crate) fn remaining(&self, account: Account, now: u64) -> u32 {
        u32::try_from(self.capacity.saturating_sub(self.lacks(account, now))).unwrap_or(u32::MAX)
    }

    pub(crate) fn opening(&self, cost: u32) -> Opening {
        let used = self.lacks_at_first + u64::from(cost);
        match used.saturating_sub(self.capacity) {
            0 => Opening { used, wait_ns: None },
            owed => Opening { used: self.lacks_at_first, wait_ns: Some(self.rate.time_for(owed)) },
        }
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
    fn fractions_of_a_permit_are_kept() {
        // Three every ten nanoseconds.
        let bucket = Bucket::new(5, 3, 10, 5);
        assert_eq!(bucket.effect(at(100, 5), 103, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(bucket.effect(at(100, 5), 104, 1), Effect::Charge { used: 6 });
        assert_eq!(bucket.effect(at(100, 6), 106, 1), Effect::Deny { wait_ns: 1 });
        assert_eq!(bucket.effect(at(100, 6), 107, 1), Effect::Charge { used: 7 });
        assert_eq!(bucket.effect(at(100, 5), 100, 5), Effect::Deny { wait_ns: 17 });
        assert_eq!([100, 104, 107, 116, 117].map(|now| bucket.remaining(at(100, 5), now)), [0, 1, 2, 4, 5]);
    }

    #[test]
    fn a_full_bucket_holds_no_more_than_its_capacity() {
        let bucket = Bucket::new(5, 1, 10, 5);
        assert_eq!(bucket.effect(at(100, 5), 149, 5), Effect::Deny { wait_ns: 1 });
        assert_eq!(bucket.effect(at(100, 5), 150, 5), Effect::Open { used: 5 });
        assert_eq!(bucket.effect(at(100, 5), 1_000_000, 5), Effect::Open { used: 5 });
        assert_eq!(bucket.over_at(at(100, 5)), 150);
        // A time before the anchor counts as the anchor.
        assert_eq!(bucket.effect(at(100, 5), 90, 1), Effect::Deny { wait_ns: 20 });
    }

    #[test]
    fn a_bucket_that_starts_with_less_is_never_as_new_again() {
        let bucket = Bucket::new(5, 1, 10, 2);
        assert_eq!(bucket.opening(0), Opening { used: 3, wait_ns: None });
        assert_eq!(bucket.opening(2), Opening { used: 5, wait_ns: None });
        assert_eq!(bucket.opening(3), Opening { used: 3, wait_ns: Some(10) });
        assert_eq!(bucket.effect(at(0, 3), 9, 3), Effect::Deny { wait_ns: 1 });
        assert_eq!(bucket.effect(at(0, 3), 10, 3), Effect::Charge { used: 6 });
        assert_eq!(bucket.over_at(at(0, 3)), u64::MAX);
        assert_eq!(bucket.all_free_at(at(0, 3)), 30);
        assert_eq!(Bucket::new(5, 1, 10, 0).opening(1), Opening { used: 5, wait_ns: Some(10) });
    }

    #[test]
    fn an_advance_is_the_same_account() {
        let bucket = Bucket::new(1 << 30, (1 << 30) - 1, 1_000_003, 1 << 30);
        let before = at(7, bucket.advances_at - 1);
        let now = before.anchor + bucket.rate.time_for(before.used);
        // One permit is lacking, or less: it holds all but one.
        let Effect::Advance { used } = bucket.effect(before, now - 1, 1) else { panic!("{bucket:?}") };
        let after = at(bucket.advanced(before.anchor), used);
        assert!(after.anchor <= now);
        let plain = at(before.anchor, before.used + 1);
        for later in [now, now + 1, now + 999_983] {
            assert_eq!(bucket.remaining(after, later), bucket.remaining(plain, later));
        }
        assert_eq!(bucket.over_at(after), bucket.over_at(plain));
    }

    #[test]
    fn the_slowest_and_the_fastest() {
        const YEAR: u64 = 31_557_600_000_000_000;
        let slow = Bucket::new(36, 1, YEAR, 36);
        assert_eq!(slow.effect(at(1 << 61, 36), (1 << 61) + 1, 36), Effect::Deny { wait_ns: 36 * YEAR - 1 });
        let fast = Bucket::new(1 << 30, 1 << 30, 1, 1 << 30);
        assert_eq!(fast.effect(at(0, 1 << 30), 0, 1 << 30), Effect::Deny { wait_ns: 1 });
        assert_eq!(fast.effect(at(0, 1 << 30), 1, 1 << 30), Effect::Open { used: 1 << 30 });
        // Nonsense is answered somehow.
        assert!(matches!(slow.effect(at(u64::MAX, u32::MAX.into()), u64::MAX, u32::MAX), Effect::Deny { .. }));
        assert_eq!(slow.over_at(at(u64::MAX, u32::MAX.into())), u64::MAX);
    }
}
