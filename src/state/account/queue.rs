//! The leaky bucket as a queue: requests leave it evenly, one after the other, and are told their
//! wait.
//!
//! ```text
//! { changes: 32, leaves_at: 93 }
//! ```
//!
//! # Decisions
//!
//! The queue lets r places leave every P nanoseconds. Its state is the time L at which the next
//! place leaves, in ticks ([`Rate`]); the queue is empty if that has passed. A request at t is told
//! the delay `max(L - t, 0)`, rounded up to a nanosecond, and is admitted if and only if that is at
//! most the maximum delay D. A request of cost c takes c places: L moves to `max(L, t) + c * P`. So
//! places leave at least `P / r` apart, and nobody is told to wait longer than D, by any clock.
//!
//! L is less than 2^93 ticks: it is at most D and one limit of places after `t`, together below
//! 2^60 ns; or after a change of quotas two limits of places.
//!
//! Only the last place can be refunded, because those behind another have been told theirs. A place
//! is the last as long as the state is the one that its request left behind: later requests move L
//! up, and refunds take places off as from a stack. `changes` counts changes of quotas, after which no
//! state is one of before.
//!
//! Source: A. S. Tanenbaum, "Computer Networks", the leaky bucket under traffic shaping: a queue
//! with an even outflow.

use super::packed::packed;
use super::rate::Rate;
use super::{Account, Verdict};
use crate::decision::Left;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    limit: u32,
    rate: Rate,
    max_delay: u64,
}

packed! {
    /// The fields of a state.
    struct Fields {
        /// When the next place leaves, in ticks.
        leaves_at: u128 = 93,
        changes: u32 = 32,
    }
}

impl Queue {
    pub(crate) fn new(limit: u32, permits: u32, period: u64, max_delay: u64) -> Self {
        Self { limit, rate: Rate::new(permits, period), max_delay }
    }

    /// The delay of a request.
    #[inline]
    fn delay(&self, state: u128, now: u64) -> u64 {
        self.rate.ns_until(Fields::of(state).leaves_at, now)
    }

    /// The state under this quota: the next place leaves when it would have, or earlier if this
    /// queue can't be that long.
    pub(super) fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        if self == from || state == 0 {
            return state;
        }
        let Fields { leaves_at, changes } = Fields::of(state);
        let longest = self.rate.ticks(now) + 2 * self.rate.ticks_of(self.limit);
        let leaves_at = self.rate.same_time(from.rate, leaves_at).min(longest);
        // Receipts of before are told apart.
        Fields { leaves_at, changes: changes.wrapping_add(1) }.state()
    }
}

impl Account for Queue {
    #[inline]
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let (delay_ns, longest) = (self.delay(state, now), self.max_delay.min(within.unwrap_or(u64::MAX)));
        if delay_ns > longest {
            return Verdict::Deny { wait_ns: delay_ns - longest, state: None };
        }
        let fields = Fields::of(state);
        let leaves_at = fields.leaves_at.max(self.rate.ticks(now)) + self.rate.ticks_of(cost);
        Verdict::Admit { state: Fields { leaves_at, ..fields }.state(), delay_ns }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32) -> Option<(u128, u32)> {
        let fields = Fields::of(state);
        let is_last = state == after && fields.leaves_at > self.rate.ticks(now);
        let leaves_at = fields.leaves_at.saturating_sub(self.rate.ticks_of(cost));
        is_last.then(|| (Fields { leaves_at, ..fields }.state(), cost))
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let places = self.rate.ticks_of(self.limit);
        let most = self.rate.ticks(now) + self.rate.ticks(self.max_delay).max(places) + places;
        let fields = Fields::of(state);
        Fields { leaves_at: self.rate.moved(fields.leaves_at, by, most), ..fields }.state()
    }

    /// The first place decides, so all permits are left or none.
    fn left(&self, state: u128, now: u64, within: Option<u64>) -> Left {
        match self.delay(state, now).saturating_sub(self.max_delay.min(within.unwrap_or(u64::MAX))) {
            0 => Left::all(self.limit),
            wait_ns => Left::none_for(self.limit, wait_ns),
        }
    }

    fn over_at(&self, state: u128) -> u64 {
        self.rate.ns_up(Fields::of(state).leaves_at)
    }
}
