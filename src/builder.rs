//! [`LimiterBuilder`]: the quotas and the options of a limiter.

pub(crate) mod joint;

use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
#[cfg(feature = "snapshot")]
use core::time::Duration;

use crate::caps::AtKeyCap;
use crate::clock::{Clock, MonotonicClock};
use crate::draft::{Draft, Kind, setters};
use crate::error::BuildError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter, HashTwice};
use crate::limiter::Limiter;
use crate::no_key::{Key, NoKey};
use crate::observer::Observer;
use crate::penalty::Penalty;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};

/// Makes a [`Limiter`]. Start from [`Limiter::builder`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AtKeyCap, Limiter, Quota};
///
/// let limiter = Limiter::<String>::builder(Quota::new(5, Duration::from_secs(10)))
///     .key_cap(100_000)
///     .at_key_cap(AtKeyCap::Admit)
///     .expected_keys(10_000)
///     .build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct LimiterBuilder<K: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    draft: Draft<C, F>,
    key: PhantomData<fn(&K)>,
}

/// Makes a [`DirectLimiter`](crate::DirectLimiter). Start from [`DirectLimiter::builder`](Limiter::builder).
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
pub type DirectLimiterBuilder<C = MonotonicClock> = LimiterBuilder<NoKey, C, NoKey>;

impl<K: Key + ?Sized> Limiter<K, MonotonicClock, K::Fingerprinter> {
    /// Makes a limiter with the default clock, hasher and key cap.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(Limiter::<String>::new(Quota::per_minute(0)).is_err());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota is not [valid](Quota::validate).
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::builder(quota).build()
    }

    /// Starts a limiter with options: more quotas, another key cap, clock or hasher, and others.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).key_cap(100).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder(quota: Quota) -> LimiterBuilder<K, MonotonicClock, K::Fingerprinter> {
        LimiterBuilder::with_quotas(vec![quota], MonotonicClock::new())
    }
}

impl<C: Clock> Limiter<NoKey, C, NoKey> {
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
        Self::with_quotas(&[quota], clock)
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
        LimiterBuilder::with_quotas(quotas.to_vec(), clock).build()
    }
}

impl<K: Key + ?Sized, C: Clock> LimiterBuilder<K, C, K::Fingerprinter> {
    pub(crate) fn with_quotas(quotas: Vec<Quota>, clock: C) -> Self {
        let kind = if K::IS_NONE { Kind::Direct } else { Kind::Keyed };
        Self { draft: Draft::new(kind, vec![quotas], clock, K::Fingerprinter::default()), key: PhantomData }
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> LimiterBuilder<K, C, F> {
    setters! {
        /// Adds a quota that each key has. A request is admitted if it fits into all quotas. It is
        /// charged to all or to none.
        ///
        /// Each quota costs one more load of a stamp. Several quotas must all be sliding window
        /// logs.
        ///
        /// ```
        /// use tollgate::{Decision, Limiter, Quota};
        ///
        /// let builder = Limiter::<String>::builder(Quota::per_second(2));
        /// let limiter = builder.and(Quota::per_minute(3)).build()?;
        /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
        /// match limiter.try_acquire("alice") {
        ///     Decision::Denied(denial) => assert_eq!(denial.quota(), 0, "two a second"),
        ///     Decision::Admitted(_) => unreachable!(),
        /// }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn and(quota: Quota) { settings.quotas[0].push(quota) }

        /// Whether to count admitted and denied requests for [`Counts`](crate::Counts); `false` by
        /// default.
        ///
        /// Counting costs one write per decision, to one of several counters chosen by thread.
        /// Without counting, no counter is written.
        ///
        /// ```
        /// use tollgate::{DecisionCounts, Limiter, Quota};
        ///
        /// let builder = Limiter::<String>::builder(Quota::per_hour(1));
        /// let limiter = builder.count_decisions(true).build()?;
        /// assert!(limiter.try_acquire("alice").is_admitted());
        /// let counted = DecisionCounts { admitted: 1, denied: 0 };
        /// assert_eq!(limiter.counts().decisions, Some(counted));
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn count_decisions(count_decisions: bool) { settings.count_decisions = count_decisions }

        /// Whether to admit requests that would be denied, to see the effect of a limit before it
        /// is enforced; `false` by default.
        ///
        /// Requests are decided, charged, penalised and counted as without shadow mode, but no
        /// request is denied. An admission in place of a denial [has that
        /// denial](crate::Admission::overruled) and charges nothing.
        /// [`Counts::overruled`](crate::Counts::overruled) counts it, with one write to one of
        /// several counters.
        ///
        /// A cost above the limit is admitted, too, in place of an error
        /// ([`CostExceedsLimit`](crate::CostExceedsLimit)). The denial of its admission has the
        /// reason [`DenialReason::Quota`](crate::DenialReason::Quota) and a wait of
        /// [`Duration::MAX`](core::time::Duration::MAX), because no wait would help. Only
        /// `overruled` counts it.
        ///
        /// ```
        /// use tollgate::{Decision, Limiter, Quota};
        ///
        /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).shadow(true).build()?;
        /// assert!(limiter.try_acquire("alice").is_admitted());
        /// match limiter.try_acquire("alice") {
        ///     Decision::Admitted(admission) => assert!(admission.overruled().is_some()),
        ///     Decision::Denied(_) => unreachable!("no request is denied"),
        /// }
        /// assert_eq!(limiter.counts().overruled, 1);
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn shadow(shadow: bool) { settings.modes().enforced_percent = shadow.then_some(0) }

        /// Blocks keys for a time after too many denials; no penalty by default. [`Penalty`] has
        /// the rules and the cost.
        ///
        /// ```
        /// use std::time::Duration;
        /// use tollgate::{Limiter, MockClock, Penalty, Quota};
        ///
        /// let minute = Duration::from_secs(60);
        /// let builder = Limiter::<String>::builder(Quota::per_second(1)).clock(MockClock::new());
        /// let limiter = builder.penalty(Penalty::new(1, minute, 10 * minute)).build()?;
        /// assert!(limiter.try_acquire("mallory").is_admitted());
        /// assert_eq!(limiter.try_acquire("mallory").retry_after(), Some(10 * minute));
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn penalty(penalty: Penalty) { settings.modes().penalties = vec![(0, penalty)] }

        /// Calls this observer after each decision; none by default. Called again, it adds another.
        /// See [`Observer`].
        ///
        /// ```
        /// use std::sync::Arc;
        /// use std::sync::atomic::{AtomicU32, Ordering};
        /// use tollgate::{Limiter, Observation, Quota};
        ///
        /// let denied = Arc::new(AtomicU32::new(0));
        /// let count = Arc::clone(&denied);
        /// let observer = move |seen: &Observation<'_>| {
        ///     if seen.denial().is_some() {
        ///         count.fetch_add(1, Ordering::Relaxed);
        ///     }
        /// };
        /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
        /// let limiter = builder.observer(observer).build()?;
        /// let _ = limiter.try_acquire_many(["alice", "alice", "alice"]);
        /// assert_eq!(denied.load(Ordering::Relaxed), 2);
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn observer(observer: impl Observer + 'static) { settings.observers.add(observer) }
    }

    /// The clock; [`MonotonicClock`] by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
    /// let limiter = builder.clock(clock.clone()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// clock.advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<K, D, F> {
        LimiterBuilder { draft: self.draft.with_clock(clock), key: self.key }
    }

    /// Makes the limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] in these cases:
    ///
    /// - A quota is not [valid](Quota::validate).
    /// - There are more than eight quotas, or several of which one is not a sliding window log.
    /// - The penalty is not valid.
    /// - There are more than 15 tiers, two have one name, or a name is empty.
    /// - A cap is zero or more than [`MAX_KEY_CAP`](crate::MAX_KEY_CAP).
    /// - More keys are expected, or may have quotas of their own, than the key cap allows.
    pub fn build(self) -> Result<Limiter<K, C, F>, BuildError> {
        Ok(Limiter { engine: self.draft.build()?, key: self.key })
    }

    /// Makes the limiter with the permits of the snapshot that have not expired since; see
    /// [`Snapshot`].
    ///
    /// The system's clock tells which permits have expired. The permits that keys without a place
    /// share are not in a snapshot.
    ///
    /// The limits and windows of sliding window logs may differ from those of the snapshot. The
    /// permits that were live then count for as long as the new windows say. A reserved permit
    /// keeps its time, as with [`set_quotas`](Limiter::set_quotas).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let before = Limiter::<String>::new(Quota::per_hour(3))?;
    /// assert!(before.try_acquire_n("alice", 2)?.is_admitted());
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_hour(5));
    /// let after = builder.restore(&before.snapshot())?;
    /// assert_eq!(after.peek("alice").remaining(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or does not match the snapshot.
    #[cfg(feature = "snapshot")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<Limiter<K, C, F>, RestoreError> {
        self.restore_after(snapshot, snapshot.age())
    }

    /// As [`restore`](Self::restore), with the given time since the snapshot was taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let before = Limiter::<String>::new(Quota::per_hour(1))?;
    /// assert!(before.try_acquire("alice").is_admitted());
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_hour(1));
    /// let after = builder.restore_after(&before.snapshot(), Duration::from_secs(3600))?;
    /// assert!(after.try_acquire("alice").is_admitted(), "an hour later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    #[cfg(feature = "snapshot")]
    pub fn restore_after(self, snapshot: &Snapshot, elapsed: Duration) -> Result<Limiter<K, C, F>, RestoreError> {
        Ok(Limiter { engine: self.draft.restore(snapshot, elapsed)?, key: self.key })
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> LimiterBuilder<K, C, F> {
    setters! {
        /// Adds a tier: other quotas, for keys that requests put into it. See
        /// [`Tier`](crate::Tier).
        ///
        /// ```
        /// use tollgate::{Limiter, Quota};
        ///
        /// let builder = Limiter::<String>::builder(Quota::per_minute(60));
        /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
        /// let premium = limiter.tier("premium").unwrap();
        /// assert_eq!(limiter.peek(premium.key("alice")).remaining(), 600);
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn tier(name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) {
            settings.add_tier(0, name, quotas)
        }

        /// The most keys held at once; 1,048,576 by default. Memory follows the keys, not the cap.
        pub fn key_cap(key_cap: usize) { settings.key_cap = Some(key_cap) }

        /// The answer to a new key at the cap; [`AtKeyCap::Deny`] by default.
        pub fn at_key_cap(at_key_cap: AtKeyCap) { settings.at_key_cap = at_key_cap }

        /// The number of keys that the table has room for from the start, without growing; zero by
        /// default.
        pub fn expected_keys(expected_keys: usize) { settings.expected_keys = expected_keys }

        /// Enforces the limit for this percentage of all keys, 0 to 100, and leaves the others in
        /// [shadow mode](Self::shadow). 100 by default; 0 is shadow mode for all.
        ///
        /// The fingerprint of a key decides: a key stays on its side, and with a larger number more
        /// keys join. A limiter with another seed, as after a restart without a snapshot, has other
        /// keys.
        ///
        /// ```
        /// use tollgate::{Limiter, Quota};
        ///
        /// let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(25);
        /// let limiter = builder.build()?;
        /// let is_denied = |key: &u64| limiter.try_acquire_many([key; 2])[1].is_denied();
        /// println!("{} of 10,000 keys are denied", (0..10_000).filter(is_denied).count());
        /// # Ok::<(), tollgate::BuildError>(())
        /// ```
        pub fn enforced_percent(percent: u8) { settings.modes().enforced_percent = Some(percent) }

        /// Gives the limiter an allow list and a deny list, with room for this many keys on both
        /// together; no lists by default.
        ///
        /// Keys are listed at run time: [`Limiter::allow`], [`Limiter::deny`], [`Limiter::unlist`].
        /// Each decision first looks its key up in both lists, which share a small table of their
        /// own. Memory follows the listed keys.
        ///
        /// ```
        /// use tollgate::{Limiter, Quota};
        ///
        /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).list_cap(1).build()?;
        /// limiter.deny("mallory")?;
        /// assert!(limiter.try_acquire("mallory").is_denied());
        /// assert!(limiter.allow("alice").is_err(), "there is room for one");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn list_cap(list_cap: usize) { settings.modes().list_cap = Some(list_cap) }

        /// Lets keys get [quotas of their own](Limiter::set_quotas_of): about this many, at most
        /// the key cap. Zero, the default, lets no key.
        ///
        /// This takes no memory until keys have quotas of their own. Then each decision checks
        /// whether its key is one of them. More keys than this may get quotas.
        ///
        /// ```
        /// use tollgate::{Limiter, Quota};
        ///
        /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
        /// let limiter = builder.keys_with_quotas(1000).build()?;
        /// limiter.set_quotas_of("alice", &[Quota::per_minute(5)])?;
        /// assert_eq!(limiter.peek("alice").limit(), 5);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn keys_with_quotas(keys_with_quotas: usize) { settings.keys_with_quotas = keys_with_quotas }
    }

    /// A standard hasher to make fingerprints with, in place of the default; see [`HashTwice`].
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
    /// let limiter = builder.hasher(RandomState::new()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn hasher<S: BuildHasher>(self, hasher: S) -> LimiterBuilder<K, C, HashTwice<S>> {
        self.fingerprinter(HashTwice::new(hasher))
    }

    /// The fingerprinter; [`DefaultFingerprinter`] by default.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, SipFingerprinter};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
    /// let limiter = builder.fingerprinter(SipFingerprinter::new()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn fingerprinter<G: Fingerprinter>(self, fingerprinter: G) -> LimiterBuilder<K, C, G> {
        LimiterBuilder { draft: self.draft.with_fingerprinter(fingerprinter), key: self.key }
    }
}
