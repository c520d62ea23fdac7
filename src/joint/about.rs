//! What a limiter in several dimensions tells of itself.

use std::sync::Arc;

use super::limiter::JointLimiter;
use crate::clock::Clock;
use crate::counts::Counts;
use crate::fingerprint::Fingerprinter;
use crate::keys::Dimensions;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;
use crate::tier::Tier;

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Counts keys, memory and decisions of all dimensions together. The time is proportional to
    /// the number of cells.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(10)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// assert!(limiter.try_acquire(("bob", 7))?.is_admitted());
    /// assert_eq!(limiter.counts().live_keys, 3, "two users and a tenant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// Copies the live permits of all keys, to be restored after a restart; see [`Snapshot`].
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota, Snapshot};
    ///
    /// let quotas = [Quota::per_day(1)];
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", quotas);
    /// let before = builder().build()?;
    /// assert!(before.try_acquire(("alice",))?.is_admitted());
    /// let bytes = before.snapshot().to_bytes();
    ///
    /// let after = builder().restore(&Snapshot::from_bytes(&bytes)?)?;
    /// assert!(after.try_acquire(("alice",))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "snapshot")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// The name of the dimension at this place, counted from zero.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(1)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// assert_eq!(limiter.dimension(0), "user");
    /// assert_eq!(limiter.dimension(1), "tenant");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the limiter has no dimension at this place.
    #[must_use]
    pub fn dimension(&self, place: usize) -> &str {
        &self.engine.names[place]
    }

    /// The dimensions in order, each with its name and the quotas of its keys.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.build()?;
    /// for (name, quotas) in limiter.dimensions() {
    ///     assert_eq!((name, &*quotas), ("user", &[Quota::per_hour(1)][..]));
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, Arc<[Quota]>)> {
        self.engine.names.iter().enumerate().map(|(dimension, name)| (&**name, self.engine.quotas(dimension)))
    }

    /// The tier with this name in a dimension; `None` if there is none.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(60)])
    ///     .dimension("tenant", [Quota::per_minute(1000)])
    ///     .tier(0, "premium", [Quota::per_minute(600)])
    ///     .build()?;
    /// let premium = limiter.tier(0, "premium").unwrap();
    /// assert!(limiter.try_acquire_n((premium.key("alice"), 7), 600)?.is_admitted());
    /// assert!(limiter.try_acquire_n(("bob", 7), 61).is_err(), "more than the limit");
    /// assert!(limiter.tier(1, "premium").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tier(&self, dimension: usize, name: &str) -> Option<Tier> {
        self.engine.tiers.named(dimension, name)
    }

    /// The clock of the limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, MockClock, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// limiter.clock().advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }
}
