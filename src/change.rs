//! Changes of quotas while the limiter is in use: [`Limiter::set_quotas`] and its like.

use core::hash::Hash;
use std::sync::Arc;

use crate::clock::Clock;
use crate::dimensions::{Dimensions, Keys};
use crate::engine::Engine;
use crate::error::{BuildError, JointError};
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::AsKey;
use crate::keys::Tier;
use crate::limiter::Limiter;
use crate::no_key::Key;
use crate::quota::Quota;
use crate::quotas::ChangeError;
use crate::state::table::Scope;

impl<C: Clock, F> Engine<C, F> {
    /// Changes the quotas of a tier. Panics if there is none such.
    pub(crate) fn set_quotas_of_tier(&self, tier: Tier, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.tiers.check(tier.group(), None);
        self.set_quotas(tier.group(), Scope::All, quotas)
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Changes the quotas of all keys, from now on, while requests come.
    ///
    /// Keys keep the permits that they have been granted. The call moves all keys to new tables, so
    /// its time grows with their number. No request waits for it; one that comes meanwhile moves its
    /// own key and a few others. Changes wait for one another. A request that is halfway is decided
    /// by the old quotas or by the new ones.
    ///
    /// The permits that a key has been granted count as follows:
    ///
    /// - **Sliding window log**: a permit counts for as long as the new windows say. Under a
    ///   smaller limit a key waits until few enough are live. Permits that have left the widest of
    ///   the old windows do not come back under a longer one.
    /// - **Token bucket, leaky bucket**: as much is missing from the new bucket as was from the old
    ///   one. Beyond the new capacity it is **debt**: requests wait until it has flowed in, or the key
    ///   is [forgotten](Self::forget). The bucket flows at the new rate from now on. A key whose bucket
    ///   is full is as new: it gets what [new keys](Quota::starting_with) start with.
    /// - **Leaky queue, warm-up**: the line is free when it would have been, also if that is later than
    ///   the new quota lets a request wait.
    /// - **Quantised log**: the limit changes as that of a sliding window log. The window can't
    ///   change.
    /// - **Fixed window**: permits of an open window still count in it. The window keeps its start
    ///   and takes the new length; it may be over by that. If that is no aligned window, and the new
    ///   ones are [aligned](Quota::aligned), the permits count in the aligned window of the change. A
    ///   window that is over stays over.
    /// - **Sliding counter**: both counts are kept. The window changes as a fixed window does. If
    ///   only the phase is another, no count weighs less at the change than it did before.
    ///
    /// So **changes mint no permits**: a sequence of changes at one instant leaves no more than its last
    /// quotas alone would have. There is one exception: permits that expire under a shorter window
    /// do not come back under a longer one.
    ///
    /// Permits that were charged under earlier quotas can still be refunded to logs and windows,
    /// unless they count in another window. They can't be refunded to buckets and queues.
    ///
    /// The old quotas take no memory after the change. A call with the quotas that there are changes
    /// nothing and costs nothing. Another [name](Quota::named) alone changes no permits.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// limiter.set_quotas(&[Quota::per_minute(3)])?;
    /// assert_eq!(limiter.peek("alice").remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when the quotas can't be used, are of another algorithm, or count refused
    /// requests where the present ones do not (or the other way round). The old ones stay in force.
    pub fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.set_quotas(0, Scope::All, quotas)
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Changes the quotas of a tier, as [`set_quotas`](Self::set_quotas) changes those of the keys
    /// that name none.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<str>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier("premium").unwrap();
    /// assert!(limiter.try_acquire(premium.key("alice")).is_admitted());
    /// limiter.set_quotas_of_tier(premium, &[Quota::per_minute(900)])?;
    /// assert_eq!(limiter.peek(premium.key("alice")).remaining(), 899);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set_quotas`](Self::set_quotas).
    ///
    /// # Panics
    ///
    /// If the limiter has no such tier.
    pub fn set_quotas_of_tier(&self, tier: Tier, quotas: &[Quota]) -> Result<(), ChangeError> {
        if tier == Tier::default() { self.set_quotas(quotas) } else { self.engine.set_quotas_of_tier(tier, quotas) }
    }

    /// Gives one key quotas of its own, from now on, in place of those of all keys or of its own,
    /// as [`set_quotas`](Self::set_quotas) does for all.
    ///
    /// It is for few keys that change rarely: a customer pays for more. Call it when the quotas
    /// change, not in each request. A change to other quotas moves the keys of the key's part of the
    /// table, a 16th of a large one. Keys of one part with equal quotas share the memory that these
    /// take. A call with the quotas that the key has of its own changes nothing and costs nothing.
    /// For many keys with the same quotas there are [tiers](Tier).
    ///
    /// The limiter has to be built for it, with
    /// [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas). Then each decision looks
    /// whether its key is one of them. They last as long as the limiter, whatever becomes of the
    /// key or of the quotas of all keys, and are in a snapshot.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(2));
    /// let limiter = builder.keys_with_quotas(1000).build()?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// limiter.set_quotas_of("alice", &[Quota::per_minute(10)])?;
    /// assert_eq!(limiter.peek("alice").remaining(), 8);
    /// assert_eq!(limiter.peek("bob").remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set_quotas`](Self::set_quotas), and when the limiter was not built for it.
    pub fn set_quotas_of(&self, key: impl AsKey<K>, quotas: &[Quota]) -> Result<(), ChangeError> {
        let key = self.fingerprint(&key);
        self.engine.set_quotas(key.group(), Scope::Key(key), quotas)
    }

    /// Takes the own quotas of a key away: it has those of all keys from now on, and keeps its
    /// permits. Returns whether it had any of its own.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(2));
    /// let limiter = builder.keys_with_quotas(1000).build()?;
    /// limiter.set_quotas_of("alice", &[Quota::per_minute(10)])?;
    /// assert!(limiter.unset_quotas_of("alice"));
    /// assert_eq!(*limiter.quotas_of("alice"), [Quota::per_minute(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unset_quotas_of(&self, key: impl AsKey<K>) -> bool {
        self.engine.table.unset(self.fingerprint(&key), &self.engine.clock)
    }

    /// The quotas that a key has: its own, or those of all keys.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(2));
    /// let limiter = builder.keys_with_quotas(1000).build()?;
    /// limiter.set_quotas_of("alice", &[Quota::per_minute(10)])?;
    /// assert_eq!(*limiter.quotas_of("alice"), [Quota::per_minute(10)]);
    /// assert_eq!(*limiter.quotas_of("bob"), [Quota::per_minute(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quotas_of(&self, key: impl AsKey<K>) -> Arc<[Quota]> {
        self.engine.table.quotas_for(self.fingerprint(&key))
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Changes the quotas of all keys of one dimension, as [`Limiter::set_quotas`] does.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(2)])
    ///     .dimension("tenant", [Quota::per_minute(1)])
    ///     .build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// limiter.set_quotas(1, &[Quota::per_minute(100)])?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::set_quotas`], and when there is no such dimension.
    pub fn set_quotas(&self, dimension: usize, quotas: &[Quota]) -> Result<(), ChangeError> {
        validate_joint(quotas)?;
        self.settings().set_quotas(dimension, quotas)
    }

    /// Changes the quotas of a tier, as [`Limiter::set_quotas_of_tier`] does.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_minute(60)]);
    /// let limiter = builder.tier(0, "premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier(0, "premium").unwrap();
    /// limiter.set_quotas_of_tier(premium, &[Quota::per_minute(900)])?;
    /// assert!(limiter.try_acquire_n((premium.key("alice"),), 900)?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::set_quotas`].
    ///
    /// # Panics
    ///
    /// If the limiter has no such tier, or it is `Tier::default()`, which is of no dimension.
    pub fn set_quotas_of_tier(&self, tier: Tier, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.set_quotas_of_tier(tier, quotas)
    }

    /// Gives each of these keys quotas of its own in its dimension, from now on, in place of those
    /// of all keys or of its own: all of them or none.
    ///
    /// As [`Limiter::set_quotas_of`]. The limiter has to be built for it, with
    /// [`keys_with_quotas`](crate::JointLimiterBuilder::keys_with_quotas).
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("tenant", [Quota::per_minute(100)])
    ///     .keys_with_quotas(1000)
    ///     .build()?;
    /// limiter.set_quotas_of(("alice", Absent), &[Quota::per_minute(10)])?;
    /// assert!(limiter.try_acquire_n(("alice", 7), 10)?.is_admitted());
    /// assert!(limiter.try_acquire_n(("bob", 7), 10).is_err(), "more than the limit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::set_quotas_of`], and [`ChangeError::Keys`] when there is no key, or, for a
    /// slice, not as many keys as dimensions.
    pub fn set_quotas_of(&self, keys: impl Keys<D>, quotas: &[Quota]) -> Result<(), ChangeError> {
        validate_joint(quotas)?;
        let keys = self.fingerprints(&keys).map_err(ChangeError::Keys)?;
        let mut changes = keys.iter().flatten().map(|&key| (key.group(), Scope::Key(key)));
        changes.clone().try_for_each(|(group, scope)| self.engine.can_change(group, scope, quotas))?;
        changes.try_for_each(|(group, scope)| self.engine.set_quotas(group, scope, quotas))
    }

    /// Takes the own quotas of these keys away, as [`Limiter::unset_quotas_of`] does. Returns whether
    /// one of them had any.
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder().keys_with_quotas(1000);
    /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_minute(100)]).build()?;
    /// limiter.set_quotas_of(("alice", Absent), &[Quota::per_minute(10)])?;
    /// assert!(limiter.unset_quotas_of(("alice", Absent))?);
    /// assert!(!limiter.unset_quotas_of(("alice", 7))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    pub fn unset_quotas_of(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(&keys)?;
        let unset = |any, &key| any | self.engine.table.unset(key, &self.engine.clock);
        Ok(keys.iter().flatten().fold(false, unset))
    }

    /// The quotas that these keys have, by dimension: their own, or those of all keys. `None` where
    /// there is no key.
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("tenant", [Quota::per_minute(100)])
    ///     .build()?;
    /// let quotas = limiter.quotas_of(("alice", Absent))?;
    /// assert_eq!(quotas, [Some([Quota::per_minute(1)].into()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn quotas_of(&self, keys: impl Keys<D>) -> Result<Vec<Option<Arc<[Quota]>>>, JointError> {
        let keys = self.fingerprints(&keys)?;
        let quotas = |key| self.engine.table.quotas_for(key);
        Ok(keys[..self.dimensions().len()].iter().map(|key| key.map(quotas)).collect())
    }

    /// Whether keys may have other quotas than those of their dimension: whether the limiter was built
    /// with [`keys_with_quotas`](crate::JointLimiterBuilder::keys_with_quotas) or a
    /// [`tier`](crate::JointLimiterBuilder::tier).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_minute(2)]);
    /// assert!(!builder().build()?.keys_may_have_quotas());
    /// assert!(builder().keys_with_quotas(1000).build()?.keys_may_have_quotas());
    /// assert!(builder().tier(0, "pro", [Quota::per_minute(9)]).build()?.keys_may_have_quotas());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn keys_may_have_quotas(&self) -> bool {
        self.engine.keys_differ()
    }
}

fn validate_joint(quotas: &[Quota]) -> Result<(), ChangeError> {
    let counting = quotas.iter().any(Quota::is_counting_refused);
    let valid = Quota::validate_all(quotas).and(if counting { Err(BuildError::CountingRefusedAlone) } else { Ok(()) });
    valid.map_err(ChangeError::Unusable)
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
