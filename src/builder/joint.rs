//! [`JointLimiterBuilder`]: the dimensions of a limiter, and its other options.

use core::marker::PhantomData;
#[cfg(feature = "snapshot")]
use core::time::Duration;

use crate::caps::AtKeyCap;
#[cfg(doc)]
use crate::caps::MAX_DIMENSIONS;
use crate::clock::{Clock, MonotonicClock};
#[cfg(doc)]
use crate::counts::Counts;
#[cfg(doc)]
use crate::decision::Admission;
use crate::dimensions::Dimensions;
use crate::draft::{Draft, Kind, Settings, setters};
use crate::error::BuildError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};
use crate::joint::JointLimiter;
use crate::observer::Observer;
use crate::penalty::Penalty;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::state::table::Table;

/// Makes a [`JointLimiter`]. Start from [`JointLimiter::builder`].
///
/// ```
/// use tollgate::{AtKeyCap, JointLimiter, MockClock, Quota};
///
/// let limiter = JointLimiter::<(String, u64)>::builder()
///     .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
///     .dimension("tenant", [Quota::per_minute(1000)])
///     .key_cap(100_000)
///     .at_key_cap(AtKeyCap::Admit)
///     .expected_keys(10_000)
///     .clock(MockClock::new())
///     .count_decisions(true)
///     .build()?;
/// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
/// assert_eq!(limiter.counts().live_keys, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct JointLimiterBuilder<D: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    draft: Draft<C, F>,
    keys: PhantomData<fn(&D)>,
}

impl<D: Dimensions + ?Sized> JointLimiter<D> {
    /// Starts a limiter. Add its dimensions with [`dimension`](JointLimiterBuilder::dimension), in
    /// the order of their keys in `D`.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(10)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_minute(100)]).build()?;
    /// assert_eq!(limiter.dimension(1), "tenant");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder() -> JointLimiterBuilder<D> {
        let (clock, fingerprinter) = (MonotonicClock::new(), DefaultFingerprinter::new());
        let check = |settings: &Settings| settings.check_dimensions(D::COUNT);
        let kind = Kind::Joint { check, table: Table::for_joint };
        let draft = Draft::new(kind, Vec::new(), clock, fingerprinter);
        JointLimiterBuilder { draft, keys: PhantomData }
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiterBuilder<D, C, F> {
    setters! {
        /// Adds a dimension, with the quotas of each of its keys: one quota, or several sliding
        /// window logs. The name is for messages, and no other dimension may have it.
        pub fn dimension(name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) {
            settings.add_dimension(name, quotas)
        }

        /// Adds a tier of a dimension, counted from zero: other quotas, for keys that requests put
        /// into it. See [`Tier`](crate::Tier).
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(60)]);
        /// let limiter = builder.tier(0, "premium", [Quota::per_minute(600)]).build()?;
        /// let premium = limiter.tier(0, "premium").unwrap();
        /// assert!(limiter.try_acquire_n((premium.key("alice"),), 600)?.is_admitted());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn tier(dimension: usize, name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) {
            settings.add_tier(dimension, name, quotas)
        }

        /// The most keys held at once, of all dimensions together; 1,048,576 by default.
        pub fn key_cap(key_cap: usize) { settings.key_cap = Some(key_cap) }

        /// The answer to a request with a new key at the cap; [`AtKeyCap::Deny`] by default. With
        /// [`AtKeyCap::Admit`] only the other keys of the request decide. The new keys of a request
        /// take places in the order of their dimensions, up to the first key that denies the
        /// request or finds none. A denial by quotas names these alone.
        pub fn at_key_cap(at_key_cap: AtKeyCap) { settings.at_key_cap = at_key_cap }

        /// The number of keys that the table has room for from the start; zero by default.
        pub fn expected_keys(expected_keys: usize) { settings.expected_keys = expected_keys }

        /// Whether to count admitted and denied requests for [`Counts`]; `false` by default.
        pub fn count_decisions(count_decisions: bool) { settings.count_decisions = count_decisions }

        /// Whether to admit requests that a quota denies, and report each such denial
        /// ([`Admission::overruled`], [`Counts::overruled`]), as
        /// [`LimiterBuilder::shadow`](crate::LimiterBuilder::shadow); `false` by default.
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
        /// let limiter = builder.shadow(true).build()?;
        /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
        /// let overruled = limiter.try_acquire(("alice",))?.into_result()?.overruled();
        /// assert_eq!(overruled.map(|denial| denial.dimension()), Some(0));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn shadow(shadow: bool) { settings.modes().enforced_percent = shadow.then_some(0) }

        /// Enforces the limits for this percentage of the keys of each dimension, 0 to 100, as
        /// [`LimiterBuilder::enforced_percent`](crate::LimiterBuilder::enforced_percent); 100 by
        /// default. A request is denied if one of the keys that deny it is among them, and its wait is
        /// that of these.
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
        /// let limiter = builder.enforced_percent(0).build()?;
        /// let decisions = limiter.try_acquire_many([("alice",), ("alice",)]);
        /// assert!(decisions[1]?.is_admitted(), "shadow mode");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn enforced_percent(percent: u8) { settings.modes().enforced_percent = Some(percent) }

        /// Puts this dimension in shadow mode: a request that only such dimensions deny is admitted, and
        /// the other dimensions charge it. So a new limit is tried out beside those in force.
        ///
        /// A dimension that denies is not charged. Its denial is
        /// [`Admission::overruled`](crate::Admission::overruled), unless a leaky queue delays the
        /// request, and counts in [`Counts::overruled`](crate::Counts::overruled).
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(&str, &str)>::builder().dimension("tenant", [Quota::per_minute(3)]);
        /// let builder = builder.dimension("new: by user", [Quota::per_minute(1)]).shadow_dimension(1);
        /// let limiter = builder.build()?;
        /// let overruled = || limiter.try_acquire(("acme", "alice")).map(|decision| decision.into_result());
        /// assert_eq!(overruled()?.map(|admission| admission.overruled()), Ok(None));
        /// for _ in 0..2 {
        ///     let admission = overruled()??;
        ///     assert_eq!(admission.overruled().map(|denial| denial.dimension()), Some(1));
        ///     assert!(admission.is_counted(), "by the tenant");
        /// }
        /// assert!(overruled()?.is_err(), "the tenant has had three");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn shadow_dimension(dimension: usize) { settings.modes().shadow_dimensions.push(dimension) }

        /// Blocks keys of this dimension for a time after too many denials; no penalty by default.
        /// Dimensions are counted from zero, in the order in which they were added. [`Penalty`] has
        /// the rules and the cost. With several dimensions:
        ///
        /// - A denied request counts for each of its keys whose own quota denies it
        ///   ([`Denial::violated`](crate::Denial::violated)), and for no other key.
        /// - A request with a blocked key is denied and counts for none of its keys.
        /// - The denial has the longest of all waits, and the dimension with that wait.
        ///
        /// ```
        /// use std::time::Duration;
        /// use tollgate::{DenialReason, JointLimiter, MockClock, Penalty, Quota};
        ///
        /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        /// let limiter = JointLimiter::<(String, String)>::builder()
        ///     .dimension("user", [Quota::per_second(1)])
        ///     .dimension("endpoint", [Quota::per_second(100)])
        ///     .penalty(0, Penalty::new(1, minute, minute))
        ///     .clock(MockClock::new())
        ///     .build()?;
        /// assert!(limiter.try_acquire(("mallory", "/login"))?.is_admitted());
        /// let denial = limiter.try_acquire(("mallory", "/login"))?.into_result().unwrap_err();
        /// assert_eq!((denial.reason(), denial.retry_after()), (DenialReason::Penalty, minute));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn penalty(dimension: usize, penalty: Penalty) { settings.modes().penalties.push((dimension, penalty)) }

        /// Gives the limiter an allow list and a deny list, with room for this many keys of both
        /// lists and all dimensions together; no lists by default. See
        /// [`LimiterBuilder::list_cap`](crate::LimiterBuilder::list_cap), [`JointLimiter::allow`]
        /// and [`JointLimiter::deny`].
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
        /// let limiter = builder.list_cap(1).build()?;
        /// assert!(limiter.deny(("mallory",))?);
        /// assert!(limiter.deny(("trudy",)).is_err(), "the lists are full");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn list_cap(list_cap: usize) { settings.modes().list_cap = Some(list_cap) }

        /// The number of keys in each dimension that may get [quotas of their
        /// own](JointLimiter::set_quotas_of), as
        /// [`LimiterBuilder::keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas); zero by
        /// default.
        ///
        /// ```
        /// use tollgate::{JointLimiter, Quota};
        ///
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
        /// let limiter = builder.keys_with_quotas(1000).build()?;
        /// limiter.set_quotas_of(("alice",), &[Quota::per_minute(10)])?;
        /// assert!(limiter.try_acquire_n(("alice",), 10)?.is_admitted());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn keys_with_quotas(keys_with_quotas: usize) { settings.keys_with_quotas = keys_with_quotas }

        /// Calls this observer after each decision, as
        /// [`LimiterBuilder::observer`](crate::LimiterBuilder::observer). See [`Observer`].
        ///
        /// ```
        /// use tollgate::{JointLimiter, Observation, Quota};
        ///
        /// let observer = |seen: &Observation<'_>| println!("{:?}", seen.result());
        /// let builder = JointLimiter::<(String,)>::builder();
        /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
        /// let limiter = builder.observer(observer).build()?;
        /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn observer(observer: impl Observer + 'static) { settings.observers.add(observer) }
    }

    /// The clock; [`MonotonicClock`] by default.
    pub fn clock<T: Clock>(self, clock: T) -> JointLimiterBuilder<D, T, F> {
        JointLimiterBuilder { draft: self.draft.with_clock(clock), keys: self.keys }
    }

    /// The fingerprinter; [`DefaultFingerprinter`] by default.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use tollgate::{HashTwice, JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.fingerprinter(HashTwice::new(RandomState::new())).build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fingerprinter<G: Fingerprinter>(self, fingerprinter: G) -> JointLimiterBuilder<D, C, G> {
        JointLimiterBuilder { draft: self.draft.with_fingerprinter(fingerprinter), keys: self.keys }
    }

    /// Makes the limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] in these cases:
    ///
    /// - There are no dimensions, more than [`MAX_DIMENSIONS`], or another number than in `D`.
    /// - A name is empty, or two dimensions have the same name.
    /// - A quota is not [valid](Quota::validate) or counts denied requests.
    /// - A dimension has no quota, more than eight, or several of which one is not a sliding window
    ///   log.
    /// - A penalty is not valid, or its dimension, that of a tier, or one in shadow mode does not exist.
    /// - There are more than 16 dimensions and tiers, two tiers of a dimension have one name, or a name
    ///   is empty.
    /// - The key cap or the list cap is zero or too large.
    /// - More keys are expected, or may have quotas of their own, than the key cap allows.
    pub fn build(self) -> Result<JointLimiter<D, C, F>, BuildError> {
        Ok(JointLimiter { engine: self.draft.build()?, keys: self.keys })
    }

    /// Makes the limiter with the permits of the snapshot that have not expired since; see
    /// [`Snapshot`].
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let quotas = [Quota::per_day(1)];
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", quotas);
    /// let before = builder().build()?;
    /// assert!(before.try_acquire(("alice",))?.is_admitted());
    ///
    /// let after = builder().restore(&before.snapshot())?;
    /// assert!(after.try_acquire(("alice",))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or does not match the snapshot.
    #[cfg(feature = "snapshot")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<JointLimiter<D, C, F>, RestoreError> {
        self.restore_after(snapshot, snapshot.age())
    }

    /// As [`restore`](Self::restore), with the given time since the snapshot was taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let quotas = [Quota::per_minute(1)];
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", quotas);
    /// let before = builder().build()?;
    /// assert!(before.try_acquire(("alice",))?.is_admitted());
    ///
    /// let after = builder().restore_after(&before.snapshot(), Duration::from_secs(60))?;
    /// assert!(after.try_acquire(("alice",))?.is_admitted(), "the permit has expired");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    #[cfg(feature = "snapshot")]
    pub fn restore_after(self, snapshot: &Snapshot, elapsed: Duration) -> Result<JointLimiter<D, C, F>, RestoreError> {
        Ok(JointLimiter { engine: self.draft.restore(snapshot, elapsed)?, keys: self.keys })
    }
}
