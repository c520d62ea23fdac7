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
//! When the limiter is *free*, a request of cost c takes the area of the c permits left of the
//! stored ones, and I for each beyond them, until it is free again. An area does not depend on how
//! the permits are grouped. Under steady demand a cold limiter reaches its rate after W, having
//! admitted half of what it stored. After being idle for W it is as cold as a new one.
//!
//! Differences:
//!
//! - Guava's `acquire` waits until the limiter is free; here, as by `tryAcquire`, the request is
//!   denied and told how long, unless it is a reservation. Guava counts in microseconds and floating
//!   point.
//! - Sentinel's `WarmUpController` stores the same numbers of permits, and reads the rate of the
//!   stored ones from the same line. It compares that with what passed in the last second, so a
//!   second's permits may pass at its start, and it stores permits at each full second.
//!
//! # The numbers
//!
//! What is stored is counted in parts of a permit, and takes at most 62 - ceil(log2 r) bits. With
//! `s` stored of `S`, and `u = max(2s - S, 0)`, the area right of `s` above I is `u^2 / 2S`, in
//! units of one part of I. So a charge takes `ceil((u^2 - u'^2) / 2S * unit)` ticks ([`Rate`])
//! longer than its permits at I: at most a tick more than the exact time for each request, and never
//! less.
//!
//! A part is a P-th of a permit, which takes as long as a tick, so nothing else is rounded. Only if
//! `W * r` ticks are too many for the state, parts are larger: S is then just below 2^32 parts, and
//! since at most 2^30 permits are stored, a permit has at least 3. Idle time then counts as whole
//! parts, rounded up: colder.
//!
//! Products: `u` is less than 2^62, or less than 2^32 and multiplied by P < 2^60. Idle time that
//! counts is less than `W * r`, at most 2^30 * P ticks, times parts: less than 2^62 * P.
//!
//! A refund stores its permits, also those that the request spent beyond the stored ones: colder,
//! too.

use super::rate::Rate;

/// The permits that a limiter can store. One that never warms up stores none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Store {
    /// The ticks of the warm-up.
    warm_up: u128,
    /// The ticks of a permit.
    period: u128,
    /// The parts of a permit.
    parts: u128,
    /// The parts of a cold limiter.
    pub(super) cold: u128,
}

/// The most parts stored, if a part is more than a tick.
const MOST_PARTS: u128 = (1 << 32) - 1;

impl Store {
    /// `warm_up` is in ticks of the rate. A state has so many bits for what is stored.
    pub(super) fn new(rate: Rate, warm_up: u128, bits: u32) -> Self {
        let period = rate.ticks_of(1);
        if warm_up < 1 << bits {
            return Self { warm_up, period, parts: period, cold: warm_up };
        }
        let parts = MOST_PARTS * period / warm_up;
        Self { warm_up, period, parts, cold: (warm_up * parts).div_ceil(period) }
    }

    /// What is stored after so many ticks of being idle.
    pub(super) fn rested(&self, stored: u128, idle: u128) -> u128 {
        let more = match idle {
            _ if idle >= self.warm_up => self.cold,
            _ if self.parts == self.period => idle,
            _ => (idle * self.parts).div_ceil(self.period),
        };
        (stored + more).min(self.cold)
    }

    /// What is stored after so many permits, and the ticks that they take longer than warm ones.
    pub(super) fn spent(&self, stored: u128, cost: u32) -> (u128, u128) {
        let after = stored.saturating_sub(u128::from(cost) * self.parts);
        (after, self.longer(stored, after))
    }

    /// What was stored before so many permits, and the ticks that they took longer.
    pub(super) fn unspent(&self, stored: u128, cost: u32) -> (u128, u128) {
        let before = (stored + u128::from(cost) * self.parts).min(self.cold);
        // If nothing is stored, it is unknown how many were.
        (before, if stored == 0 { 0 } else { self.longer(before, stored) })
    }

    /// The ticks that stored permits take longer than others.
    fn longer(&self, before: u128, after: u128) -> u128 {
        let [before, after] = [before, after].map(|stored| (2 * stored).saturating_sub(self.cold));
        // At most half cold, it takes no longer.
        if before == 0 {
            return 0;
        }
        let area = before * before - after * after;
        if self.parts == self.period {
            area.div_ceil(2 * self.cold)
        } else {
            (area * self.period).div_ceil(2 * self.cold * self.parts)
        }
    }

    /// As large a part of what is cold as was stored of another one.
    pub(super) fn as_cold(&self, other: Self, stored: u128) -> u128 {
        // The products are of numbers below 2^62, and stored is at most what is cold.
        (stored * self.cold).div_ceil(other.cold)
    }

    /// The ticks of being idle until a limiter is cold.
    pub(super) fn until_cold(&self, stored: u128) -> u128 {
        let idle = match self.cold - stored {
            0 => 0,
            lacks => (lacks - 1) * self.period / self.parts + 1,
        };
        idle.min(self.warm_up)
    }
}
