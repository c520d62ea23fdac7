//! [`LimiterBuilder`]: everything about a limiter that is not its quota.

use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use crate::caps::AtKeyCap;
use crate::clock::{Clock, MonotonicClock};
use crate::engine::Settings;
use crate::error::BuildError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter, HashTwice};
use crate::limiter::Limiter;
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Quotas;
#[cfg(feature = "serde")]
use crate::snapshot::{RestoreError, Snapshot};

/// Makes a [`Limiter`]. Start from [`Limiter::builder`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AtKeyCap, Limiter, Quota};
///
/// let limiter = Limiter::<String>::builder(Quota::new(5, Duration::from_secs(10)))
///     .key_cap(100_000)
///     .at_key_cap(AtKeyCap::Share)
///     .expected_keys(10_000)
///     .build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct LimiterBuilder<K: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    quotas: Vec<Quota>,
    settings: Settings,
    clock: C,
    fingerprinter: F,
    key: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized> Limiter<K> {
    /// A limiter with the default clock, hasher and key cap.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota can't be used: its limit or window is zero or past the stated maxima.
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::builder(quota).build()
    }

    /// Starts a limiter whose key cap, clock, hasher and the like are not the defaults.
    pub fn builder(quota: Quota) -> LimiterBuilder<K> {
        LimiterBuilder::new(quota)
    }
}

impl<K: Hash + ?Sized> LimiterBuilder<K> {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quotas: vec![quota],
            settings: Settings::default(),
            clock: MonotonicClock::new(),
            fingerprinter: DefaultFingerprinter::new(),
            key: PhantomData,
        }
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> LimiterBuilder<K, C, F> {
    /// One more quota that each key has: a request is admitted if it fits into all of them, and is charged to all or to none.
    /// It costs one look at one more stamp. Quotas that share a key have to be sliding window logs.
    ///
    /// ```
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_second(2)).and(Quota::per_minute(3)).build()?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// match limiter.try_acquire("alice") {
    ///     Decision::Denied(denial) => assert_eq!(denial.quota(), 0, "two a second"),
    ///     Decision::Admitted(_) => unreachable!(),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// The most keys held at once; 1,048,576 unless said. Memory is taken as keys come, not for the cap.
    pub fn key_cap(mut self, key_cap: usize) -> Self {
        self.settings.key_cap = key_cap;
        self
    }

    /// What a new key is told at the cap; [`AtKeyCap::Deny`] unless said.
    pub fn at_key_cap(mut self, at_key_cap: AtKeyCap) -> Self {
        self.settings.at_key_cap = at_key_cap;
        self
    }

    /// How many keys to make room for from the start, so that the table does not have to grow to them; none unless said.
    pub fn expected_keys(mut self, expected_keys: usize) -> Self {
        self.settings.expected_keys = expected_keys;
        self
    }

    /// Whether to count admitted and denied requests for [`Counts`](crate::Counts); not unless said.
    ///
    /// Counting costs a write a decision (to one of several counters, chosen by thread), where a denial otherwise
    /// writes nothing.
    pub fn count_decisions(mut self, count_decisions: bool) -> Self {
        self.settings.count_decisions = count_decisions;
        self
    }

    /// Whether to admit what would be denied, to see what a limit would do before it does it; not unless said.
    ///
    /// All is decided, charged, penalised and counted as ever, and then nobody is denied: an admission in place of a denial says
    /// [which](crate::Admission::overruled), charges nothing, and is counted in [`Counts::overruled`](crate::Counts::overruled) (a
    /// write for each, to one of several counters).
    ///
    /// ```
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).shadow(true).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// match limiter.try_acquire("alice") {
    ///     Decision::Admitted(admission) => assert!(admission.overruled().is_some(), "one a minute"),
    ///     Decision::Denied(_) => unreachable!("nobody is denied"),
    /// }
    /// assert_eq!(limiter.counts().overruled, 1);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.settings.modes.shadow = shadow;
        self
    }

    /// Keys that are denied too often are blocked for a while; none unless said. [`Penalty`] says what counts and what it costs.
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.settings.modes.penalties = vec![(0, penalty)];
        self
    }

    /// Makes the limiter one with lists, of keys that are always admitted and keys that never are, with room for so many listed
    /// keys (of both lists together); without lists unless said. Keys are listed at run time: [`Limiter::allow`],
    /// [`Limiter::deny`], [`Limiter::unlist`].
    ///
    /// Each decision then looks its key up in the lists first, which are a small table of their own: two look-ups more. Memory is
    /// taken as keys are listed.
    pub fn list_cap(mut self, list_cap: usize) -> Self {
        self.settings.modes.list_cap = Some(list_cap);
        self
    }

    /// How many keys may come to have [quotas of their own](Limiter::set_quotas_of), at most as many as the key cap allows; none
    /// unless said. That takes 8 to 16 bytes for each of them from the start, and each decision one look whether its key is one. More can be given
    /// quotas, and are found more slowly.
    pub fn keys_with_quotas(mut self, keys_with_quotas: usize) -> Self {
        self.settings.keys_with_quotas = keys_with_quotas;
        self
    }

    /// The clock; [`MonotonicClock`] unless said.
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<K, D, F> {
        let Self { quotas, settings, fingerprinter, key, .. } = self;
        LimiterBuilder { quotas, settings, clock, fingerprinter, key }
    }

    /// A standard hasher to make fingerprints with, in place of the default; see [`HashTwice`].
    pub fn hasher<S: BuildHasher>(self, hasher: S) -> LimiterBuilder<K, C, HashTwice<S>> {
        self.fingerprinter(HashTwice::new(hasher))
    }

    /// Another way to make fingerprints, in place of [`DefaultFingerprinter`].
    pub fn fingerprinter<G: Fingerprinter>(self, fingerprinter: G) -> LimiterBuilder<K, C, G> {
        let Self { quotas, settings, clock, key, .. } = self;
        LimiterBuilder { quotas, settings, clock, fingerprinter, key }
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the quota or the penalty can't be used, a cap is zero or more than [`MAX_KEY_CAP`](crate::MAX_KEY_CAP), or more keys are
    /// expected than the cap allows.
    pub fn build(self) -> Result<Limiter<K, C, F>, BuildError> {
        let Self { quotas, settings, clock, fingerprinter, .. } = self;
        Ok(Limiter::of(settings.keyed(&Quotas::new(&quotas)?, clock, fingerprinter)?))
    }

    /// The limiter, with what another held when the snapshot was taken; see [`Snapshot`]. What has expired since, by
    /// the clock on the wall, is left out. What keys shared that found no place at the key cap is not in a snapshot.
    ///
    /// The limits and windows of sliding window logs may be others than they were: of what was live then, as much is remembered as
    /// the new ones ask for.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] when the limiter can't be built, or the snapshot is of another.
    #[cfg(feature = "serde")]
    pub fn restore(self, snapshot: &Snapshot) -> Result<Limiter<K, C, F>, RestoreError> {
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
    ) -> Result<Limiter<K, C, F>, RestoreError> {
        snapshot.check_quotas(&[&self.quotas])?;
        let fingerprinter = snapshot.fingerprinter(self.fingerprinter)?;
        let limiter = Self { fingerprinter, ..self }.build()?;
        limiter.engine.put_back(snapshot, elapsed)?;
        Ok(limiter)
    }
}
