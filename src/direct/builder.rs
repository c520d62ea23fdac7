//! [`DirectLimiterBuilder`]: everything about a limiter without keys.

use super::limiter::{DirectLimiter, OneKey};
use crate::clock::{Clock, MonotonicClock};
use crate::engine::Settings;
use crate::error::BuildError;
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Quotas;
#[cfg(feature = "serde")]
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
    /// # Errors
    ///
    /// [`BuildError`] when the quota can't be used: its limit or window is zero or past the stated
    /// maxima.
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::builder(quota).build()
    }

    /// Starts a limiter with several quotas, another clock, and the like.
    pub fn builder(quota: Quota) -> DirectLimiterBuilder {
        DirectLimiterBuilder::new(vec![quota], MonotonicClock::new())
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// A limiter with a clock of the caller's choice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota can't be used.
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, BuildError> {
        DirectLimiterBuilder::new(vec![quota], clock).build()
    }

    /// A limiter with several quotas, each of which every request must fit into, and a clock of the
    /// caller's choice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no quota, one can't be used, or there are several and not all
    /// of them are sliding window logs.
    pub fn with_quotas(quotas: &[Quota], clock: C) -> Result<Self, BuildError> {
        DirectLimiterBuilder::new(quotas.to_vec(), clock).build()
    }
}

impl<C: Clock> DirectLimiterBuilder<C> {
    pub(super) fn new(quotas: Vec<Quota>, clock: C) -> Self {
        Self { quotas, settings: Settings::default(), clock }
    }

    /// One more quota, as [`LimiterBuilder::and`](crate::LimiterBuilder::and).
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Whether to count admitted and denied requests for [`Counts`](crate::Counts); not unless
    /// said.
    pub fn count_decisions(mut self, count_decisions: bool) -> Self {
        self.settings.count_decisions = count_decisions;
        self
    }

    /// Whether to admit what would be denied, and tell so; not unless said. As
    /// [`LimiterBuilder::shadow`](crate::LimiterBuilder::shadow).
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.settings.modes.shadow = shadow;
        self
    }

    /// After too many denials everything is denied for a while; never unless said. As
    /// [`LimiterBuilder::penalty`](crate::LimiterBuilder::penalty).
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.settings.modes.penalties = vec![(0, penalty)];
        self
    }

    /// The clock; [`MonotonicClock`] unless said.
    pub fn clock<T: Clock>(self, clock: T) -> DirectLimiterBuilder<T> {
        let Self { quotas, settings, .. } = self;
        DirectLimiterBuilder { quotas, settings, clock }
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a quota or the penalty can't be used, or there are several quotas and
    /// not all of them are sliding window logs.
    pub fn build(self) -> Result<DirectLimiter<C>, BuildError> {
        let Self { quotas, settings, clock } = self;
        Ok(DirectLimiter::of(settings.direct(&Quotas::new(&quotas)?, clock, OneKey)?))
    }

    /// The limiter, with what another held when the snapshot was taken; see
    /// [`LimiterBuilder::restore`](crate::LimiterBuilder::restore).
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or the snapshot is of another.
    #[cfg(feature = "serde")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<DirectLimiter<C>, RestoreError> {
        let elapsed = snapshot.age();
        self.restore_after(snapshot, elapsed)
    }

    /// As [`restore`](Self::restore), by so much time since the snapshot was taken.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    #[cfg(feature = "serde")]
    pub fn restore_after(
        self,
        snapshot: &Snapshot,
        elapsed: core::time::Duration,
    ) -> Result<DirectLimiter<C>, RestoreError> {
        snapshot.check_quotas(&[&self.quotas])?;
        snapshot.fingerprinter(OneKey)?;
        let limiter = self.build()?;
        limiter.engine.put_back(snapshot, elapsed)?;
        Ok(limiter)
    }
}
