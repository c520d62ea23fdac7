//! The token bucket, and the leaky bucket as a meter. The arithmetic is the same: free space is
//! permits.
//!
//! # Decisions
//!
//! A bucket of capacity C is refilled with r permits every P nanoseconds. Its state is the time F
//! at which it is full again, in ticks ([`Rate`]): at t it lacks `max(F - t, 0) / P` permits. A
//! request of cost c at t moves F to `max(F, t) + c * P`. It is admitted if and only if the bucket
//! then lacks no more than it holds: `F - t <= C * P`. So it admits at most `C + x * r / P` permits
//! in any x nanoseconds.
//!
//! A reservation may leave it lacking more: then its permits are there when F - t has come down to
//! `C * P`, which is its delay. The delay is at most the time in which the bucket fills.
//!
//! A cost that is settled moves F, whether it fits or not. After a change of quotas the bucket
//! lacks as much as before, also if that is more than it holds. Requests wait until this *debt* has
//! flowed in. So a bucket that shrinks and grows again grants nothing anew.
//!
//! F is less than 2^93 ticks: `t` is below 2^62 ns, and F at most 2^61 ns later: two fillings, each
//! below 2^60 ns, or what is kept of a debt ([`Rate::latest`]).
//!
//! # Refunds
//!
//! ```text
//! { full_at: 93, opened: 24, refunds: 7, waited: 1 }
//! ```
//!
//! A refund pours permits back: F goes back by `c * P`. They count until the bucket has been full.
//! `opened` is a hash of the time at which it was full last, so a receipt of an earlier filling is
//! told apart (but for one in 2^24). What has flowed in since the charge stays, also what would have
//! flowed over without it. So the bound holds for intervals that have the charge and the refund in
//! them. One that begins between may have as many permits more as are refunded, less those that the
//! bucket lacks as it begins.
//!
//! If reservations have waited since the bucket was full, one that lacks more than C owes the
//! difference to them, and they have their delays. Once the last of them passes, the bucket must
//! lack what was charged after the refunded permits, and what is kept of their request. So F goes
//! back by at most C less those, and not at all if something was refunded since. `refunds` counts
//! refunds. At its largest it stays, and a bucket that owes refunds nothing, until it has been
//! full.
//!
//! Sources: J. S. Turner, "New directions in communications (or which way to the information
//! age?)", IEEE Communications Magazine 24 (10), 1986 (the leaky bucket as a counter); RFC 2215,
//! `TOKEN_BUCKET_TSPEC` (the token bucket); ITU-T I.371 (the generic cell rate algorithm, whose
//! theoretical arrival time is `F - (C - 1) * P`).

use super::rate::Rate;
use super::{Account, Verdict, Widths, count, most};
use crate::decision::Left;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    capacity: u32,
    rate: Rate,
    /// The ticks in which an empty bucket fills.
    fills_in: u128,
    /// What a new key lacks of a full bucket, in ticks.
    lacks_at_first: u128,
}

/// The fields of a state.
#[derive(Clone, Copy)]
struct Fields {
    full_at: u128,
    opened: u128,
    /// With [`WAITED`].
    refunds: u128,
}

const FULL_AT_BITS: u32 = 93;
const OPENED_BITS: u32 = 24;
const REFUNDS_BITS: u32 = 8;
const WIDTHS: Widths<3> = Widths([FULL_AT_BITS, OPENED_BITS, REFUNDS_BITS]);

/// Whether a reservation has waited since the bucket was full. The highest bit of the refunds.
const WAITED: u128 = 1 << (REFUNDS_BITS - 1);

impl Fields {
    #[inline]
    fn of(state: u128) -> Self {
        let [full_at, opened, refunds] = WIDTHS.unpack(state);
        Self { full_at, opened, refunds }
    }

    #[inline]
    fn state(self) -> u128 {
        WIDTHS.pack([self.full_at, self.opened, self.refunds])
    }

    /// A bucket that was full, or as a new one is, at `now`.
    fn opened(full_at: u128, now: u64) -> Self {
        // Fibonacci hashing: times that are round numbers get hashes that differ.
        let opened = now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - OPENED_BITS);
        Self { full_at, opened: opened.into(), refunds: 0 }
    }
}

impl Bucket {
    /// A bucket with `start` permits for a new key, refilled with `permits` every `period`.
    pub(crate) fn new(capacity: u32, permits: u32, period: u64, start: u32) -> Self {
        let rate = Rate::new(permits, period);
        let lacks_at_first = rate.ticks_of(capacity.saturating_sub(start));
        Self { capacity, rate, fills_in: rate.ticks_of(capacity), lacks_at_first }
    }

    /// When the bucket is full, as of a time: no earlier than then.
    #[inline]
    fn full_at(&self, state: u128, now: u64) -> u128 {
        let ticks = self.rate.ticks(now);
        match state {
            0 => ticks + self.lacks_at_first,
            _ => Fields::of(state).full_at.max(ticks),
        }
    }

    /// The bucket at a time.
    #[inline]
    fn at(&self, state: u128, now: u64) -> Fields {
        let fields = Fields::of(state);
        if fields.full_at > self.rate.ticks(now) { fields } else { Fields::opened(self.full_at(state, now), now) }
    }

    /// The time from `now` until a bucket that is full at `full_at` owes nothing.
    #[inline]
    fn owes_for(&self, full_at: u128, now: u64) -> u64 {
        self.rate.ns_up(full_at.saturating_sub(self.rate.ticks(now) + self.fills_in))
    }
}

impl Account for Bucket {
    #[inline(always)]
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let full_at = self.full_at(state, now) + self.rate.ticks_of(cost);
        let wait_ns = self.owes_for(full_at, now);
        let longest = within.filter(|_| wait_ns > 0).map_or(0, |within| self.rate.ns_down(self.fills_in).min(within));
        if wait_ns > longest {
            // A key that starts with too little begins to earn.
            return Verdict::Deny {
                wait_ns: wait_ns - longest,
                state: (state == 0).then(|| self.at(state, now).state()),
            };
        }
        // A denial has no use for the rest of the state.
        let held = self.at(state, now);
        let refunds = if wait_ns > 0 { held.refunds | WAITED } else { held.refunds };
        Verdict::Admit { state: Fields { full_at, refunds, ..held }.state(), delay_ns: wait_ns }
    }

    #[inline(always)]
    fn decide_open(&self, state: u128, now: u64, cost: u32) -> Verdict {
        let (full_at, ticks, charge) = (state & most(FULL_AT_BITS), self.rate.ticks(now), self.rate.ticks_of(cost));
        // It is full, so `opened` changes, too.
        if full_at <= ticks {
            return self.decide(state, now, cost, None);
        }
        let lacks = full_at - ticks + charge;
        if lacks > self.fills_in {
            return Verdict::Deny { wait_ns: self.rate.ns_up(lacks - self.fills_in), state: None };
        }
        // The time is the lowest field, and remains below 2^93.
        Verdict::Admit { state: state + charge, delay_ns: 0 }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)> {
        let (held, then, ticks) = (Fields::of(state), Fields::of(after), self.rate.ticks(now));
        // The charge is of an earlier filling, or has been refilled.
        if held.opened != then.opened || held.full_at <= ticks {
            return None;
        }
        let later = self.rate.permits_up(held.full_at.saturating_sub(then.full_at));
        let [refunds, refunds_then] = [held.refunds, then.refunds].map(|refunds| refunds & !WAITED);
        let permits = if held.full_at <= ticks + self.fills_in || held.refunds & WAITED == 0 {
            cost - kept
        } else if refunds == refunds_then && refunds < WAITED - 1 {
            (cost - kept).min(count(u64::from(self.capacity).saturating_sub(later.saturating_add(kept.into()))))
        } else {
            0
        };
        let full_at = held.full_at.saturating_sub(self.rate.ticks_of(permits));
        let another = u128::from(refunds < WAITED - 1);
        (permits > 0).then(|| (Fields { full_at, refunds: held.refunds + another, ..held }.state(), permits))
    }

    fn owe(&self, state: u128, now: u64, cost: u32) -> u128 {
        let full_at = self.full_at(state, now) + self.rate.ticks_of(cost);
        Fields { full_at: full_at.min(self.rate.latest(now)), ..self.at(state, now) }.state()
    }

    /// The state under this quota: as many permits are missing as from the other bucket. Permits that
    /// the other bucket granted are not refunded to this one.
    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        let fields = Fields::of(state);
        let lacks = self.rate.same_permits(from.rate, fields.full_at.saturating_sub(from.rate.ticks(now)));
        let full_at = self.rate.ticks(now).saturating_add(lacks).min(self.rate.latest(now));
        Fields { full_at, opened: (fields.opened + 1) & most(OPENED_BITS), refunds: 0 }.state()
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let fields = Fields::of(state);
        Fields { full_at: self.rate.moved(fields.full_at, by, self.rate.latest(now)), ..fields }.state()
    }

    /// A key that was never asked and starts low earns nothing until it is.
    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        let full_at = self.full_at(state, now);
        let lacks = count(self.rate.permits_up(full_at.saturating_sub(self.rate.ticks(now))));
        let (limit, remaining) = (self.capacity, self.capacity.saturating_sub(lacks));
        if remaining == limit {
            return Left::all(limit);
        }
        // Nothing is refilled before the first request, so no wait can be told.
        if state == 0 {
            return Left { limit, remaining, next_after_ns: u64::MAX, reset_after_ns: u64::MAX };
        }
        let next_after_ns = self.owes_for(full_at + self.rate.ticks_of(remaining + 1), now);
        Left { limit, remaining, next_after_ns, reset_after_ns: self.rate.ns_up(full_at).saturating_sub(now) }
    }

    /// Never, if a new key starts with less than a full bucket: a full one then tells that the key
    /// is not new.
    fn over_at(&self, state: u128) -> u64 {
        match state {
            0 => 0,
            _ if self.lacks_at_first > 0 => u64::MAX,
            _ => self.rate.ns_up(Fields::of(state).full_at),
        }
    }
}
