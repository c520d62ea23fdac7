//! Warm-up: a cold limiter admits a third of its rate, and rises to it over a stated time.
//!
//! # The model
//!
//! It is that of Guava's `RateLimiter.create(permitsPerSecond, warmupPeriod, unit)`
//! (`SmoothRateLimiter.SmoothWarmingUp`, with its cold factor of 3). The limiter *stores* a permit
//! for each interval I = P / r that it is idle, at most `W / I`, with W the warm-up time. Stored
//! permits mean that it is cold: they are spent first, and each takes longer than I.
//!
//! ```text
//! time of a permit
//!  3 I |                    /
//!      |                /
//!    I |-----------/             area of the right half: W
//!      +-----------+---------+   area of the left half: W / 2
//!      0         W/2I       W/I  stored permits
//! ```
//!
//! A request of cost c is admitted if the limiter is *free*. Then the area of the c permits left of
//! the stored ones, and I for each beyond them, is the time until it is free again. So a large
//! request is admitted at once, and those after it wait. An area does not depend on how the permits
//! are grouped. Under steady demand a cold limiter reaches its rate after W, having admitted half
//! of what it stored. After being idle for W it is as cold as a new one. In any x nanoseconds it
//! admits at most one limit of permits more than `x * r / P`.
//!
//! Differences:
//!
//! - Guava's `acquire` waits until the limiter is free; here, as by `tryAcquire`, the request is
//!   denied and told how long. A reservation waits, at most as long as one request of the limit can
//!   make it. Guava counts in microseconds and floating point.
//! - Sentinel's `WarmUpController` stores the same numbers of permits, and reads the rate of the
//!   stored ones from the same line. It compares that with what passed in the last second, so a
//!   second's permits may pass at its start, and it stores permits at each full second.
//!
//! # The state
//!
//! ```text
//! { stored: 62 - b, free_at: 63 + b }        b = ceil(log2 r)
//! ```
//!
//! `free_at` is in ticks of 1/r ns ([`Rate`]), and `stored` in parts of a permit. With `s` stored
//! of `S`, and `u = max(2s - S, 0)`, the area right of `s` above I is `u^2 / 2S`, in units of one
//! part of I. So a charge moves `free_at` by `c * P + ceil((u^2 - u'^2) / 2S * unit)`: at most a
//! tick later than the exact time for each request, and never earlier.
//!
//! A part is a P-th of a permit, which takes as long as a tick, so nothing else is rounded. Only if
//! `W * r` ticks are too many for `stored`, parts are larger: S is then just below 2^32 parts, and
//! since at most 2^30 permits are stored, a permit has at least 3. Idle time then counts as whole
//! parts, rounded up: colder.
//!
//! Products: `u` is less than 2^62, or less than 2^32 and multiplied by P < 2^60. Idle time that
//! counts is less than `W * r`, at most 2^30 * P ticks, times parts: less than 2^62 * P.
//!
//! Only the last request can be refunded, as from a queue, because the later ones were charged for
//! what it had warmed up. Permits that it spent beyond the stored ones are stored: colder, too.

use super::rate::Rate;
use super::{Account, STATE_BITS, Verdict};
use crate::decision::Left;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WarmUp {
    limit: u32,
    rate: Rate,
    /// The ticks of the warm-up.
    warm_up: u128,
    /// The parts of a permit.
    parts: u128,
    /// The parts of a cold limiter.
    cold: u128,
    /// The longest delay of a reservation.
    longest: u64,
}

/// The fields of a state.
#[derive(Clone, Copy)]
struct Fields {
    free_at: u128,
    stored: u128,
}

/// The most permits stored.
const MOST_STORED: u128 = 1 << 30;
/// The most parts stored, if a part is more than a tick.
const MOST_PARTS: u128 = (1 << 32) - 1;
/// The longest time until a limiter is free, and the longest warm-up.
const LONGEST: u64 = (1 << 60) - 1;

impl WarmUp {
    /// At most `limit` permits in a request, `permits` every `period` once it is warm, and that
    /// after `warm_up`, in nanoseconds. `None` if a number is zero, a rate or the limit is above
    /// 2^30, more than 2^30 permits would be stored, the warm-up is longer than 2^60 - 1, or a
    /// request may take longer than that.
    pub(crate) fn new(limit: u32, permits: u32, period: u64, warm_up: u64) -> Option<Self> {
        let in_range = |number: u32| (1..=1 << 30).contains(&number);
        if !in_range(limit)
            || !in_range(permits)
            || period == 0
            || period > LONGEST
            || !(1..=LONGEST).contains(&warm_up)
        {
            return None;
        }
        let rate = Rate::new(permits, period);
        let (period, warm_up) = (rate.ticks_per_permit(), rate.ticks(warm_up));
        if warm_up > MOST_STORED * period {
            return None;
        }
        let stored_bits = STATE_BITS - rate.time_bits();
        let parts = if warm_up < 1 << stored_bits { period } else { MOST_PARTS * period / warm_up };
        let cold = if parts == period { warm_up } else { (warm_up * parts).div_ceil(period) };
        let unbounded = Self { limit, rate, warm_up, parts, cold, longest: 0 };
        let (_, ticks) = unbounded.spent(cold, limit);
        let longest = rate.ns_down(ticks);
        (longest <= LONGEST).then_some(Self { longest, ..unbounded })
    }

    fn fields(&self, state: u128) -> Fields {
        let bits = self.rate.time_bits();
        Fields { free_at: state & ((1 << bits) - 1), stored: (state >> bits).min(self.cold) }
    }

    fn state(&self, fields: Fields) -> u128 {
        let bits = self.rate.time_bits();
        fields.stored << bits | fields.free_at.min((1 << bits) - 1)
    }

    /// The limiter at a time: free no earlier than then, with what it stored while it was idle.
    #[inline]
    fn at(&self, state: u128, now: u64) -> Fields {
        let (fields, ticks) = (self.fields(state), self.rate.ticks(now));
        let idle = ticks.saturating_sub(fields.free_at);
        if idle == 0 {
            return fields;
        }
        let stored = match state {
            0 => self.cold,
            _ if idle >= self.warm_up => self.cold,
            _ if self.parts == self.rate.ticks_per_permit() => fields.stored + idle,
            _ => fields.stored + (idle * self.parts).div_ceil(self.rate.ticks_per_permit()),
        };
        Fields { free_at: ticks, stored: stored.min(self.cold) }
    }

    /// What is stored after so many permits, and the ticks that they take.
    #[inline]
    fn spent(&self, stored: u128, cost: u32) -> (u128, u128) {
        let after = stored.saturating_sub(u128::from(cost) * self.parts);
        (after, self.rate.ticks_of(cost) + self.extra(stored, after))
    }

    /// The ticks that stored permits take longer than others.
    #[inline]
    fn extra(&self, before: u128, after: u128) -> u128 {
        let [before, after] = [before, after].map(|stored| (2 * stored).saturating_sub(self.cold));
        if before == 0 {
            return 0;
        }
        let area = before * before - after * after;
        let period = self.rate.ticks_per_permit();
        if self.parts == period {
            area.div_ceil(2 * self.cold)
        } else {
            (area * period).div_ceil(2 * self.cold * self.parts)
        }
    }

    fn wait(&self, state: u128, now: u64) -> u64 {
        self.rate.ns_until(self.fields(state).free_at, now)
    }

    /// The state under this quota: free when it would have been, or earlier if this limiter can't
    /// be taken for as long; and as cold, in proportion.
    pub(super) fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        if self == from || state == 0 {
            return state;
        }
        let Fields { free_at, stored } = from.at(state, now);
        let longest = self.rate.ticks(now) + 2 * self.rate.ticks(self.longest);
        let free_at = self.rate.same_time(from.rate, free_at).min(longest);
        // The products are of numbers below 2^62, and stored is at most what is cold.
        self.state(Fields { free_at, stored: (stored * self.cold).div_ceil(from.cold) })
    }
}

impl Account for WarmUp {
    #[inline]
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let (delay_ns, longest) = (self.wait(state, now), within.map_or(0, |within| self.longest.min(within)));
        if delay_ns > longest {
            return Verdict::Deny { wait_ns: delay_ns - longest, state: None };
        }
        let Fields { free_at, stored } = self.at(state, now);
        let (stored, ticks) = self.spent(stored, cost);
        Verdict::Admit { state: self.state(Fields { free_at: free_at + ticks, stored }), delay_ns }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32) -> Option<(u128, u32)> {
        let Fields { free_at, stored } = self.fields(state);
        let before = (stored + u128::from(cost) * self.parts).min(self.cold);
        // If nothing is stored, it is unknown how many were.
        let extra = if stored == 0 { 0 } else { self.extra(before, stored) };
        let free_at_before = free_at.saturating_sub(self.rate.ticks_of(cost) + extra);
        let is_last = state == after && free_at > self.rate.ticks(now);
        is_last.then(|| (self.state(Fields { free_at: free_at_before, stored: before }), cost))
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let fields = self.fields(state);
        let most = self.rate.ticks(now) + 2 * self.rate.ticks(self.longest);
        self.state(Fields { free_at: self.rate.moved(fields.free_at, by, most), ..fields })
    }

    fn left(&self, state: u128, now: u64, _: Option<u64>) -> Left {
        match self.wait(state, now) {
            0 => Left::all(self.limit),
            wait_ns => Left::none_for(self.limit, wait_ns),
        }
    }

    /// Once it has been idle for as long as it takes to be as cold as a new one.
    fn over_at(&self, state: u128) -> u64 {
        if state == 0 {
            return 0;
        }
        let Fields { free_at, stored } = self.fields(state);
        let idle = match self.cold - stored {
            0 => 0,
            lacks => (lacks - 1) * self.rate.ticks_per_permit() / self.parts + 1,
        };
        self.rate.ns_up(free_at + idle.min(self.warm_up))
    }
}
