//! [`DirectLimiter`]: one quota and no keys. [`DirectLimiterBuilder`]: its options.

use core::fmt;
use core::hash::Hash;
#[cfg(feature = "snapshot")]
use core::time::Duration;
use std::sync::Arc;

use crate::clock::{Clock, MonotonicClock};
use crate::counts::Counts;
use crate::decision::{Decision, Status};
use crate::draft::{Draft, Kind, setters};
use crate::engine::Engine;
use crate::error::{BuildError, CostExceedsLimit};
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::observer::{Observer, Unasked};
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Shown;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::state::request::Ask;
use crate::state::table::{Refundable, THE_KEY};

/// A rate limiter without keys, for a service or an outgoing connection as a whole.
///
/// Otherwise it is as [`Limiter`](crate::Limiter): exact, lock-free, and shared by reference or
/// `Arc`. It is a value of about 0.6 KB.
///
/// ```
/// use tollgate::{DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_second(2))?;
/// assert!(limiter.try_acquire().is_admitted());
/// assert!(limiter.try_acquire_n(2)?.is_denied());
/// assert!(limiter.try_acquire_n(3).is_err(), "more than the limit can never succeed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DirectLimiter<C = MonotonicClock> {
    pub(crate) engine: Engine<C, OneKey>,
}

/// A fingerprinter that gives every value the same fingerprint, that of the only key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneKey;

impl Fingerprinter for OneKey {
    fn fingerprint<Q: Hash + ?Sized>(&self, _: &Q) -> Fingerprint {
        THE_KEY
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// Takes one permit now, or denies the request.
    ///
    /// ```
    /// use tollgate::{Decision, DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_second(1))?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// match limiter.try_acquire() {
    ///     Decision::Admitted(_) => println!("go on"),
    ///     Decision::Denied(denial) => println!("wait {:?}", denial.retry_after()),
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "check", alias = "tryConsume", alias = "Allow")]
    pub fn try_acquire(&self) -> Decision {
        self.decide(1)
    }

    /// Takes `cost` permits now, all of them or none. A cost of zero charges nothing and is always
    /// admitted.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n(4)?.is_admitted());
    /// assert!(limiter.try_acquire_n(2)?.is_denied(), "one is left");
    /// assert!(limiter.try_acquire_n(6).is_err(), "more than the limit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit: no wait would help. There is no
    /// such error in [shadow mode](crate::DirectLimiterBuilder::shadow).
    pub fn try_acquire_n(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        let decision = self.decide(cost);
        self.engine.fits(&[Some(THE_KEY)], cost, decision).map(|()| decision)
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
        self.engine.decide_status_or_ask(THE_KEY, 1, |ask| self.ask(ask, None))
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
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_status(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        let status = self.engine.decide_status_or_ask(THE_KEY, cost, |ask| self.ask(ask, None));
        self.engine.fits(&[Some(THE_KEY)], cost, status.decision).map(|()| status)
    }

    /// Returns the answer that [`try_acquire_status`](Self::try_acquire_status) would give now.
    /// Charges nothing and writes nothing.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.peek().is_admitted());
    /// assert_eq!(limiter.peek().remaining(), 5);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "estimateAbilityToConsume")]
    pub fn peek(&self) -> Status {
        self.engine.peek(&[Some(THE_KEY)], Ask::acquire(1))
    }

    /// Returns the answer that [`try_acquire_n_status`](Self::try_acquire_n_status) would give now.
    /// Charges nothing and writes nothing.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n(3)?.is_admitted());
    /// assert!(limiter.peek_n(2)?.is_admitted());
    /// assert!(limiter.peek_n(3)?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_n(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.engine.peek_within_limits(&[Some(THE_KEY)], Ask::acquire(cost))
    }

    /// Restores the full quota, and ends a [penalty](crate::Penalty).
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(1))?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// assert!(limiter.try_acquire().is_denied());
    /// limiter.clear();
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "reset")]
    pub fn clear(&self) {
        self.engine.forget(THE_KEY);
    }

    /// Returns the memory and decisions of the limiter, which counts as a
    /// [`Limiter`](crate::Limiter) with one key.
    ///
    /// ```
    /// use tollgate::{DecisionCounts, DirectLimiter, Quota};
    ///
    /// let builder = DirectLimiter::builder(Quota::per_hour(1)).count_decisions(true);
    /// let limiter = builder.build()?;
    /// let _ = (limiter.try_acquire(), limiter.try_acquire());
    /// let decisions = DecisionCounts { admitted: 1, denied: 1 };
    /// assert_eq!(limiter.counts().decisions, Some(decisions));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// Copies the live permits, to be restored after a restart; see [`Snapshot`].
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
    #[cfg(feature = "snapshot")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// The quotas, in the given order.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_second(10))?;
    /// assert_eq!(*limiter.quotas(), [Quota::per_second(10)]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn quotas(&self) -> Arc<[Quota]> {
        self.engine.quotas(0)
    }

    /// Tells the observers of a request that was answered without this limiter. The layers for HTTP
    /// call it.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota, Unasked};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
    /// limiter.observe_unasked(Unasked::Skipped);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn observe_unasked(&self, request: Unasked) {
        self.engine.observers.tell_unasked(request);
    }

    /// The clock of the limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new())?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// limiter.clock().advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }

    #[inline(always)]
    fn decide(&self, cost: u32) -> Decision {
        if self.engine.is_plain() { self.engine.decide_single(cost) } else { self.decide_with_more(cost) }
    }

    /// Of a limiter that is not plain.
    #[cold]
    fn decide_with_more(&self, cost: u32) -> Decision {
        if self.engine.is_observed() {
            self.ask(Ask::acquire(cost), None).decision
        } else {
            self.engine.decide(THE_KEY, cost)
        }
    }

    /// Decides a request, and tells the observers.
    #[cold]
    pub(crate) fn ask(&self, ask: Ask, refundable: Option<&mut Vec<Refundable>>) -> Status {
        self.engine.ask(&[Some(THE_KEY)], ask, refundable, None)
    }
}

impl<C: Clock + fmt::Debug> fmt::Debug for DirectLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectLimiter")
            .field("quotas", &Shown(&self.quotas()))
            .field("clock", &self.engine.clock)
            .finish_non_exhaustive()
    }
}

/// Makes a [`DirectLimiter`]. Start from [`DirectLimiter::builder`].
///
/// ```
/// use tollgate::{DirectLimiter, MockClock, Quota};
///
/// let limiter = DirectLimiter::builder(Quota::per_second(10))
///     .and(Quota::per_minute(100))
///     .clock(MockClock::new())
///     .count_decisions(true)
///     .build()?;
/// assert!(limiter.try_acquire().is_admitted());
/// assert_eq!(limiter.counts().decisions.map(|decisions| decisions.admitted), Some(1));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DirectLimiterBuilder<C = MonotonicClock> {
    draft: Draft<C, OneKey>,
}

impl DirectLimiter {
    /// A limiter with the default clock.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_second(10))?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// assert!(DirectLimiter::new(Quota::per_second(0)).is_err());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota is not [valid](Quota::validate).
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::builder(quota).build()
    }

    /// Starts a limiter with several quotas, another clock, or another setting of
    /// [`DirectLimiterBuilder`].
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let builder = DirectLimiter::builder(Quota::per_second(10));
    /// let limiter = builder.and(Quota::per_minute(100)).build()?;
    /// assert_eq!(*limiter.quotas(), [Quota::per_second(10), Quota::per_minute(100)]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder(quota: Quota) -> DirectLimiterBuilder {
        DirectLimiterBuilder::new(vec![quota], MonotonicClock::new())
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// A limiter with the given clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), clock.clone())?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// clock.advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota is not [valid](Quota::validate).
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, BuildError> {
        DirectLimiterBuilder::new(vec![quota], clock).build()
    }

    /// A limiter with several quotas and the given clock. A request is admitted if it fits into
    /// every quota.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let quotas = [Quota::per_second(10), Quota::per_minute(12)];
    /// let limiter = DirectLimiter::with_quotas(&quotas, MockClock::new())?;
    /// assert!(limiter.try_acquire_n(10)?.is_admitted());
    /// assert_eq!(limiter.peek().quotas().map(|it| it.remaining()).collect::<Vec<_>>(), [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no quota, when a quota is not [valid](Quota::validate), or when
    /// one of several quotas is not a sliding window log.
    pub fn with_quotas(quotas: &[Quota], clock: C) -> Result<Self, BuildError> {
        DirectLimiterBuilder::new(quotas.to_vec(), clock).build()
    }
}

impl<C: Clock> DirectLimiterBuilder<C> {
    fn new(quotas: Vec<Quota>, clock: C) -> Self {
        Self { draft: Draft::new(Kind::Direct, vec![quotas], clock, OneKey) }
    }

    setters! {
        /// Adds a quota, as [`LimiterBuilder::and`](crate::LimiterBuilder::and).
        pub fn and(quota: Quota) { settings.quotas[0].push(quota) }

        /// Whether to count admitted and denied requests for [`Counts`]; `false` by
        /// default.
        pub fn count_decisions(count_decisions: bool) { settings.count_decisions = count_decisions }

        /// Whether to admit requests that the quotas deny, and report each such denial, as
        /// [`LimiterBuilder::shadow`](crate::LimiterBuilder::shadow); `false` by default.
        ///
        /// ```
        /// use tollgate::{DirectLimiter, Quota};
        ///
        /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).shadow(true).build()?;
        /// assert_eq!(limiter.try_acquire().into_result()?.overruled(), None);
        /// assert!(limiter.try_acquire().into_result()?.overruled().is_some());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn shadow(shadow: bool) { settings.modes.enforced_percent = shadow.then_some(0) }

        /// Denies all requests for a time after too many denials, as
        /// [`LimiterBuilder::penalty`](crate::LimiterBuilder::penalty); no penalty by default.
        ///
        /// ```
        /// use std::time::Duration;
        /// use tollgate::{DirectLimiter, MockClock, Penalty, Quota};
        ///
        /// let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        /// let builder = DirectLimiter::builder(Quota::per_second(1)).clock(MockClock::new());
        /// let limiter = builder.penalty(Penalty::new(1, minute, hour)).build()?;
        /// assert!(limiter.try_acquire().is_admitted());
        /// assert_eq!(limiter.try_acquire().retry_after(), Some(hour));
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn penalty(penalty: Penalty) { settings.modes.penalties = vec![(0, penalty)] }

        /// Calls this observer after each decision, as
        /// [`LimiterBuilder::observer`](crate::LimiterBuilder::observer). See [`Observer`].
        ///
        /// ```
        /// use tollgate::{DirectLimiter, Observation, Quota};
        ///
        /// let observer = |seen: &Observation<'_>| println!("{:?}", seen.result());
        /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(observer).build()?;
        /// assert!(limiter.try_acquire().is_admitted());
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn observer(observer: impl Observer + 'static) { settings.observers.add(observer) }
    }

    /// The clock; [`MonotonicClock`] by default.
    pub fn clock<T: Clock>(self, clock: T) -> DirectLimiterBuilder<T> {
        DirectLimiterBuilder { draft: self.draft.with_clock(clock) }
    }

    /// Makes the limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a quota or the penalty is not valid, or when one of several quotas is
    /// not a sliding window log.
    pub fn build(self) -> Result<DirectLimiter<C>, BuildError> {
        Ok(DirectLimiter { engine: self.draft.build()? })
    }

    /// Makes the limiter with the permits of the snapshot that have not expired since; see
    /// [`LimiterBuilder::restore`](crate::LimiterBuilder::restore).
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let before = DirectLimiter::new(Quota::per_day(2))?;
    /// assert!(before.try_acquire().is_admitted());
    ///
    /// let after = DirectLimiter::builder(Quota::per_day(2)).restore(&before.snapshot())?;
    /// assert_eq!(after.peek().remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or does not match the snapshot.
    #[cfg(feature = "snapshot")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<DirectLimiter<C>, RestoreError> {
        self.restore_after(snapshot, snapshot.age())
    }

    /// As [`restore`](Self::restore), with the given time since the snapshot was taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let before = DirectLimiter::new(Quota::per_minute(1))?;
    /// assert!(before.try_acquire().is_admitted());
    ///
    /// let builder = DirectLimiter::builder(Quota::per_minute(1));
    /// let after = builder.restore_after(&before.snapshot(), Duration::from_secs(60))?;
    /// assert!(after.try_acquire().is_admitted(), "the permit has expired");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    #[cfg(feature = "snapshot")]
    pub fn restore_after(self, snapshot: &Snapshot, elapsed: Duration) -> Result<DirectLimiter<C>, RestoreError> {
        Ok(DirectLimiter { engine: self.draft.restore(snapshot, elapsed)? })
    }
}
