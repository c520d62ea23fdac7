//! [`DirectLimiter`]: one quota and no keys.

use core::fmt;
use core::hash::Hash;

use crate::clock::{Clock, MonotonicClock};
use crate::counts::Counts;
use crate::decision::{Decision, Status};
use crate::engine::Engine;
use crate::error::CostExceedsLimit;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::quota::Quota;
use crate::quotas::Shown;
use crate::single::Single;
#[cfg(feature = "serde")]
use crate::snapshot::Snapshot;

/// A rate limiter for one thing as a whole (a service, an outgoing connection): a
/// [`Limiter`](crate::Limiter) without keys.
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
    pub(crate) engine: Engine<C, OneKey>,
}

/// Gives everything the fingerprint of the one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneKey;

impl Fingerprinter for OneKey {
    fn fingerprint<Q: Hash + ?Sized>(&self, _: &Q) -> Fingerprint {
        Single::KEY
    }
}

impl<C: Clock> DirectLimiter<C> {
    pub(super) fn of(engine: Engine<C, OneKey>) -> Self {
        Self { engine }
    }

    /// One permit, now or not at all.
    pub fn try_acquire(&self) -> Decision {
        self.engine.decide(Single::KEY, 1)
    }

    /// `cost` permits, all of them now or none. A cost of zero charges nothing and is always
    /// admitted.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_n(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        let key = self.engine.checked(Single::KEY, cost)?;
        Ok(self.engine.decide(key, cost))
    }

    /// As [`try_acquire`](Self::try_acquire), with the permits left of each quota: see
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
        self.engine.decide_in_full(Single::KEY, 1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), with the permits left.
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
        let key = self.engine.checked(Single::KEY, cost)?;
        Ok(self.engine.decide_in_full(key, cost))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer now; charges nothing and writes
    /// nothing.
    pub fn peek(&self) -> Status {
        self.engine.look(Single::KEY, 1)
    }

    /// What [`try_acquire_n`](Self::try_acquire_n) would answer now; charges nothing and writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_n(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        let key = self.engine.checked(Single::KEY, cost)?;
        Ok(self.engine.look(key, cost))
    }

    /// Gives back the full quota. Ends a [penalty](crate::Penalty) too.
    pub fn clear(&self) {
        self.engine.forget(Single::KEY);
    }

    /// What the limiter holds and has done: as those of a [`Limiter`](crate::Limiter) with one key.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// What the limiter holds, to be restored after a restart; see [`Snapshot`].
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let before = DirectLimiter::new(Quota::per_hour(1))?;
    /// assert!(before.try_acquire().is_admitted());
    /// let snapshot = before.snapshot();
    ///
    /// let after = DirectLimiter::builder(Quota::per_hour(1)).restore(&snapshot)?;
    /// assert!(after.try_acquire().is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(1)
    }

    /// The quotas, in the order in which they were given.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        self.engine.quotas(0)
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }
}

impl<C: Clock + fmt::Debug> fmt::Debug for DirectLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectLimiter")
            .field("quotas", &Shown(self.quotas()))
            .field("clock", &self.engine.clock)
            .finish_non_exhaustive()
    }
}
