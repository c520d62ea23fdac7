//! [`DirectLimiterBuilder`]: the options of a limiter without keys.

#[cfg(feature = "snapshot")]
use core::time::Duration;

use super::limiter::{DirectLimiter, OneKey};
use crate::clock::{Clock, MonotonicClock};
use crate::engine::Settings;
use crate::error::BuildError;
use crate::observer::Observer;
use crate::penalty::Penalty;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};

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
    quotas: Vec<Quota>,
    settings: Settings,
    clock: C,
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
    pub(super) fn new(quotas: Vec<Quota>, clock: C) -> Self {
        Self { quotas, settings: Settings::default(), clock }
    }

    /// Adds a quota, as [`LimiterBuilder::and`](crate::LimiterBuilder::and).
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Whether to count admitted and denied requests for [`Counts`](crate::Counts); `false` by
    /// default.
    pub fn count_decisions(mut self, count_decisions: bool) -> Self {
        self.settings.count_decisions = count_decisions;
        self
    }

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
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.settings.modes.enforced_percent = shadow.then_some(0);
        self
    }

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
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.settings.modes.penalties = vec![(0, penalty)];
        self
    }

    /// Calls this observer after each decision, as [`LimiterBuilder::observer`](crate::LimiterBuilder::observer). See [`Observer`].
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Quota};
    ///
    /// let observer = |seen: &Observation<'_>| println!("{:?}", seen.result());
    /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(observer).build()?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.settings.observers.add(observer);
        self
    }

    /// The clock; [`MonotonicClock`] by default.
    pub fn clock<T: Clock>(self, clock: T) -> DirectLimiterBuilder<T> {
        let Self { quotas, settings, .. } = self;
        DirectLimiterBuilder { quotas, settings, clock }
    }

    /// Makes the limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a quota or the penalty is not valid, or when one of several quotas is
    /// not a sliding window log.
    pub fn build(self) -> Result<DirectLimiter<C>, BuildError> {
        let Self { quotas, settings, clock } = self;
        Ok(DirectLimiter { engine: settings.direct(&quotas, clock, OneKey)? })
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
        snapshot.check_quotas(&[&self.quotas])?;
        snapshot.fingerprinter(OneKey)?;
        let mut limiter = self.build()?;
        limiter.engine.import(snapshot, elapsed)?;
        Ok(limiter)
    }
}
