//! [`DirectLimiter`]: one quota and no keys.

use core::fmt;

use crate::cell::Unchanged;
use crate::clock::{Clock, MonotonicClock};
use crate::decision::{Decision, Status};
use crate::error::{BuildError, CostExceedsLimit};
use crate::quota::Quota;
use crate::quotas::Quotas;
use crate::reservation::{Lents, LimiterId};
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
    id: LimiterId,
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
        Self::with_quotas(&[quota], clock)
    }

    /// A limiter with several quotas, each of which every request must fit into, and a clock of the caller's choice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no quota, one can't be used, or there are several and not all of them are sliding window logs.
    pub fn with_quotas(quotas: &[Quota], clock: C) -> Result<Self, BuildError> {
        let quotas = Quotas::new(quotas)?;
        Ok(Self { state: Single::new(&quotas), clock, id: LimiterId::new() })
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
        self.state.revision().check_cost(cost)?;
        Ok(self.decide(cost))
    }

    /// As [`try_acquire`](Self::try_acquire), and tells what is left of each quota and when more is: see
    /// [`Limiter::try_acquire_status`](crate::Limiter::try_acquire_status).
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// let status = limiter.try_acquire_status();
    /// assert_eq!((status.limit(), status.remaining()), (5, 4));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_status(&self) -> Status {
        self.decide_with_numbers(1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), and tells what is left.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert_eq!(limiter.try_acquire_status().remaining(), 4);
    /// assert_eq!(limiter.try_acquire_n_status(3)?.remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_n_status(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.state.revision().check_cost(cost)?;
        Ok(if cost == 0 { self.state.peek(0, &self.clock) } else { self.decide_with_numbers(cost) })
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
        self.state.revision().check_cost(cost)?;
        Ok(self.state.peek(cost, &self.clock))
    }

    /// Gives back the full quota.
    pub fn clear(&self) {
        self.state.clear(&self.clock);
    }

    /// The quotas, in the order in which they were given.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.state.revision().quotas
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Changes the quotas, which go on with what they have granted.
    pub(crate) fn change(&self, quotas: &[Quota]) -> Result<(), Unchanged> {
        self.state.change(quotas, &self.clock)
    }

    pub(crate) fn id(&self) -> LimiterId {
        self.id
    }

    /// Decides a request that would wait for up to `within` nanoseconds, and says what could be given back of it.
    pub(crate) fn acquire_within(&self, cost: u32, within: u64) -> Result<(Status, Lents), CostExceedsLimit> {
        self.state.revision().check_cost(cost)?;
        if cost == 0 {
            return Ok((self.state.peek(0, &self.clock), Lents::Nothing));
        }
        let (status, lent) = self.state.acquire_within(cost, within, &self.clock);
        Ok((status, Lents::One(lent)))
    }

    pub(crate) fn give_back(&self, lents: &Lents) -> u32 {
        match lents {
            Lents::One(lent) => self.state.give_back(lent, &self.clock),
            _ => 0,
        }
    }

    #[inline]
    fn decide_with_numbers(&self, cost: u32) -> Status {
        let mut status = Status::nothing();
        match self.state.status_at_once(cost, &self.clock, &mut status.left) {
            Some(at_once) => status.decision = at_once.into(),
            None => status = self.state.acquire(cost, &self.clock),
        }
        status
    }

    #[inline]
    fn decide(&self, cost: u32) -> Decision {
        if cost == 0 {
            return self.state.peek(0, &self.clock).decision;
        }
        let at_once = self.state.decide_at_once(cost, &self.clock);
        at_once.map_or_else(|| self.state.acquire(cost, &self.clock).decision, Decision::from)
    }
}

impl<C: Clock + fmt::Debug> fmt::Debug for DirectLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectLimiter")
            .field("quotas", &self.quotas())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
