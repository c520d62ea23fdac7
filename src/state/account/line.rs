//! Requests in a line, each served for a time of its own: the leaky bucket as a queue, and the
//! warm-up.
//!
//! ```text
//! { free_at: b, rest: 125 - b }        b = 93 for a queue; 63 + ceil(log2 r) for a warm-up
//! ```
//!
//! # Decisions
//!
//! At the rate of r permits every P nanoseconds, the state is the time F at which the line is free,
//! in ticks ([`Rate`]). A request at t is told the delay `max(F - t, 0)`, rounded up to a
//! nanosecond, and is admitted if and only if it may wait for that long. Then a request of cost c
//! moves F to `max(F, t) + c * P`, and as much later as a cold limiter takes longer ([`Store`]).
//!
//! - In a **queue** a request may wait for the maximum delay D. So its permits, which are places,
//!   leave at least `P / r` apart, and no request is told to wait longer than D, by any clock.
//! - A **warm-up** is for requests that do not wait. So a large request is admitted at once, and
//!   those after it wait. In any x nanoseconds it admits at most one limit of permits more than
//!   `x * r / P`. A reservation waits, at most as long as one request of the limit can make it.
//!
//! After a change of quotas the line is free when it would have been, also if it is longer than one
//! under the new quota gets: requests wait for it. So they do for a cost that is settled.
//!
//! The F of a queue is less than 2^93 ticks: it is at most D and one limit of places after `t`,
//! together below 2^60 ns; or after a change of quotas 2^61 ns ([`Rate::latest`]).
//!
//! # Refunds
//!
//! Only the last request can be refunded, because those behind another have been told their delays,
//! and were charged for what it had warmed up. A request is the last as long as the state is the one
//! that it left behind: later requests move F up, and refunds take places off as from a stack. The
//! `rest` of a queue counts changes of quotas, after which no state is one of before; that of a
//! warm-up is what is stored.
//!
//! Source: A. S. Tanenbaum, "Computer Networks", the leaky bucket under traffic shaping: a queue
//! with an even outflow. `warm_up.rs` has that of the warm-up.

use super::rate::Rate;
use super::warm_up::Store;
use super::{Account, STATE_BITS, Verdict, Widths};
use crate::decision::Left;

/// The leaky bucket as a queue.
pub(crate) type Queue = Line<false>;
/// The warm-up.
pub(crate) type WarmUp = Line<true>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line<const WARMS_UP: bool> {
    limit: u32,
    rate: Rate,
    /// The longest delay that any request is told.
    max_delay: u64,
    /// What a warm-up stores.
    store: Store,
}

impl Queue {
    pub(crate) fn new(limit: u32, permits: u32, period: u64, max_delay: u64) -> Self {
        Self { limit, rate: Rate::new(permits, period), max_delay, store: Store::default() }
    }
}

impl WarmUp {
    /// At most `limit` permits in a request, `permits` every `period` once it is warm, and that
    /// after `warm_up`, in nanoseconds.
    pub(crate) fn new(limit: u32, permits: u32, period: u64, warm_up: u64) -> Self {
        let rate = Rate::new(permits, period);
        let store = Store::new(rate, rate.ticks(warm_up), STATE_BITS - rate.time_bits());
        let (_, longer) = store.spent(store.cold, limit);
        Self { limit, rate, max_delay: rate.ns_down(rate.ticks_of(limit) + longer), store }
    }
}

impl<const WARMS_UP: bool> Line<WARMS_UP> {
    /// The time at which the line is free, and the rest.
    fn widths(&self) -> Widths<2> {
        let time_bits = if WARMS_UP { self.rate.time_bits() } else { 93 };
        Widths([time_bits, STATE_BITS - time_bits])
    }

    fn fields(&self, state: u128) -> [u128; 2] {
        let [free_at, rest] = self.widths().unpack(state);
        [free_at, if WARMS_UP { rest.min(self.store.cold) } else { rest }]
    }

    fn state(&self, free_at: u128, rest: u128) -> u128 {
        self.widths().pack([free_at, rest])
    }

    /// The fields at a time: free no earlier than then, with what was stored while the line was idle.
    fn at(&self, state: u128, now: u64) -> [u128; 2] {
        let ([free_at, rest], ticks) = (self.fields(state), self.rate.ticks(now));
        let idle = ticks.saturating_sub(free_at);
        [free_at.max(ticks), if WARMS_UP && idle > 0 { self.store.rested(rest, idle) } else { rest }]
    }
}

impl<const WARMS_UP: bool> Account for Line<WARMS_UP> {
    #[inline(always)]
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let within = within.unwrap_or(if WARMS_UP { 0 } else { u64::MAX });
        let [free_at, rest] = self.at(state, now);
        let (delay_ns, longest) = (self.rate.ns_until(free_at, now), self.max_delay.min(within));
        if delay_ns > longest {
            return Verdict::Deny { wait_ns: delay_ns - longest, state: None };
        }
        let (rest, longer) = if WARMS_UP { self.store.spent(rest, cost) } else { (rest, 0) };
        let free_at = free_at + self.rate.ticks_of(cost) + longer;
        Verdict::Admit { state: self.state(free_at, rest), delay_ns }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)> {
        let [free_at, rest] = self.fields(state);
        let (rest, longer) = if WARMS_UP { self.store.unspent(rest, cost) } else { (rest, 0) };
        // What is kept is charged as if it were all.
        let (rest, kept_longer) = if WARMS_UP { self.store.spent(rest, kept) } else { (rest, 0) };
        let is_last = state == after && free_at > self.rate.ticks(now);
        let shorter = self.rate.ticks_of(cost - kept) + longer.saturating_sub(kept_longer);
        is_last.then(|| (self.state(free_at.saturating_sub(shorter), rest), cost - kept))
    }

    fn owe(&self, state: u128, now: u64, cost: u32) -> u128 {
        let [free_at, rest] = self.at(state, now);
        let (rest, longer) = if WARMS_UP { self.store.spent(rest, cost) } else { (rest, 0) };
        let free_at = free_at + self.rate.ticks_of(cost) + longer;
        self.state(free_at.min(self.rate.latest(now)), rest)
    }

    /// The state under this quota: free when it would have been. A warm-up is as cold, in proportion.
    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        let [free_at, rest] = if WARMS_UP { from.at(state, now) } else { from.fields(state) };
        let free_at = self.rate.same_time(from.rate, free_at).min(self.rate.latest(now));
        // Receipts of before are told apart. Rates may have the same ticks, so a warm-up may be as it was.
        if !WARMS_UP {
            return self.state(free_at, (rest + 1) % (1 << 32));
        }
        let rest = self.store.as_cold(from.store, rest);
        let converted = self.state(free_at, rest);
        if converted == state { self.state(free_at, rest + 1) } else { converted }
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let [free_at, rest] = self.fields(state);
        self.state(self.rate.moved(free_at, by, self.rate.latest(now)), rest)
    }

    /// The first permit decides, so all are left or none. Those of a warm-up are left to requests
    /// that do not wait.
    fn left(&self, state: u128, now: u64, within: Option<u64>) -> Left {
        let longest = if WARMS_UP { 0 } else { self.max_delay.min(within.unwrap_or(u64::MAX)) };
        let [free_at, _] = self.fields(state);
        match self.rate.ns_until(free_at, now).saturating_sub(longest) {
            0 => Left::all(self.limit),
            wait_ns => Left::none_for(self.limit, wait_ns),
        }
    }

    /// A warm-up is as new once it is cold.
    fn over_at(&self, state: u128) -> u64 {
        let [free_at, rest] = self.fields(state);
        let idle = if WARMS_UP && state > 0 { self.store.until_cold(rest) } else { 0 };
        self.rate.ns_up(free_at + idle)
    }
}
