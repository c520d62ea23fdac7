//! [`DirectLimiter`]: one quota and no keys.

use core::fmt;

use crate::clock::{Clock, MonotonicClock};
use crate::decision::{Decision, Status};
use crate::error::{BuildError, CostExceedsLimit};
use crate::quota::Quota;
use crate::single::Single;

/// A rate limiter for one thing as a whole (a service, an outgoing connection): a [`Limiter`](crate::Limiter) without keys.
///
/// ```
/// use tollgate::{DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_second(2))?;
/// assert!(limiter.try_acquire().is_admitted());
/// assert!(limiter.try_acquire_n(2)?.is_denied());
/// assert!(limiter.try_acquire_n(3).is_err(), "more at once than the limit could never succeed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DirectLimiter<C = MonotonicClock> {
    state: Single,
    clock: C,
}

impl DirectLimiter {
    /// A limiter with the default clock.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota can't be used: its limit or window is zero or past the stated maxima.
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::with_clock(quota, MonotonicClock::new())
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// A limiter with a clock of the caller's choice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota can't be used.
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, BuildError> {
        quota.validate()?;
        Ok(Self { state: Single::new(quota), clock })
    }

    /// One permit, now or not at all.
    pub fn try_acquire(&self) -> Decision {
        self.decide(1)
    }

    /// `cost` permits, all of them now or none. A cost of zero charges nothing and is always admitted.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_n(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.check_cost(cost)?;
        Ok(self.decide(cost))
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), and tells what remains and when all of it is free again.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_status(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.check_cost(cost)?;
        Ok(if cost == 0 { self.state.peek(0, &self.clock) } else { self.state.acquire(cost, &self.clock) })
    }

    /// What [`try_acquire`](Self::try_acquire) would answer now; charges nothing and writes nothing.
    pub fn peek(&self) -> Status {
        self.state.peek(1, &self.clock)
    }

    /// What [`try_acquire_n`](Self::try_acquire_n) would answer now; charges nothing and writes nothing.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_n(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.check_cost(cost)?;
        Ok(self.state.peek(cost, &self.clock))
    }

    /// Gives back the full quota.
    pub fn clear(&self) {
        self.state.clear(&self.clock);
    }

    /// The quota.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.state.quota()
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    fn check_cost(&self, cost: u32) -> Result<(), CostExceedsLimit> {
        let limit = self.quota().limit();
        if cost > limit { Err(CostExceedsLimit::new(cost, limit)) } else { Ok(()) }
    }

    #[inline]
    fn decide(&self, cost: u32) -> Decision {
        if cost == 0 {
            return self.state.peek(0, &self.clock).decision;
        }
        let at_once = self.state.decide_at_once(cost, &self.clock);
        at_once.unwrap_or_else(|| self.state.acquire(cost, &self.clock).decision)
    }
}

impl<C: fmt::Debug> fmt::Debug for DirectLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectLimiter")
            .field("quota", &self.state.quota())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
