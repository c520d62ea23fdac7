//! Changes of quotas while the limiter is in use: [`Limiter::set_quotas`] and its like.

use core::hash::Hash;

use crate::cell::{Scope, Unchanged, Versions};
use crate::clock::Clock;
use crate::direct::DirectLimiter;
use crate::engine::{Change, Engine};
use crate::error::{BuildError, JointError};
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::{AsKey, Dimensions, Keys};
use crate::limiter::Limiter;
use crate::quota::{Algorithm, Quota};
use crate::quotas::validate;
use crate::texts::texts;

/// Why quotas were not changed. The old ones stay in force.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ChangeError, Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
/// let bucket = Quota::token_bucket(10, 1, Duration::from_secs(1));
/// let error = limiter.set_quotas(&[bucket]).unwrap_err();
/// assert!(matches!(error, ChangeError::OtherAlgorithm { .. }));
/// assert_eq!(limiter.quotas(), [Quota::per_minute(2)]);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The quotas can't be used, nor could a limiter be built with them.
    Quotas(BuildError),
    /// The quotas are of another algorithm. Permits of one algorithm can't be counted by another:
    /// build another limiter.
    OtherAlgorithm {
        /// The algorithm that the limiter was built with.
        is: Algorithm,
        /// The algorithm of the new quotas.
        asked: Algorithm,
    },
    /// A key's account has no room for so many permits: build the limiter with the largest quota
    /// that it may come to have.
    TooLarge {
        /// The new quota.
        quota: Quota,
    },
    /// The quotas have been changed as often as they can be: build another limiter, from a snapshot
    /// if keys are to keep their permits.
    TooManyChanges {
        /// The most changes.
        most: u64,
    },
    /// Of the new and the present quotas, one list [counts refused
    /// requests](Quota::counting_refused) and the other does not. Build another limiter.
    OtherRefused,
    /// The window or the resolution of a quantised log is another: permits that were counted in
    /// steps can't be counted in others.
    OtherSteps {
        /// The quota that there is.
        is: Quota,
    },
    /// The limiter was built without [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas).
    NoneOfItsOwn,
    /// The keys are not those of the limiter's dimensions.
    Keys(JointError),
    /// There is no such dimension.
    NoSuchDimension {
        /// The one that was asked for.
        dimension: usize,
        /// How many there are.
        dimensions: usize,
    },
}

impl ChangeError {
    pub(crate) fn of(unchanged: Unchanged, is: &[Quota], asked: &[Quota]) -> Self {
        match unchanged {
            Unchanged::OtherAlgorithm => Self::OtherAlgorithm { is: is[0].algorithm(), asked: asked[0].algorithm() },
            Unchanged::TooLarge => Self::TooLarge { quota: asked[0] },
            Unchanged::OtherRefused => Self::OtherRefused,
            Unchanged::OtherSteps => Self::OtherSteps { is: is[0] },
            Unchanged::NoneOfItsOwn => Self::NoneOfItsOwn,
            Unchanged::TooOften => Self::TooManyChanges { most: Versions::MOST },
        }
    }
}

texts! { ChangeError {
    Quotas(error) => "{error}";
    Keys(error) => "{error}";
    OtherAlgorithm { is, asked } => "a {is} can't become a {asked}: build another limiter for it";
    TooLarge { quota } => "the accounts have no room for {quota}: build the limiter with the largest quota it may come \
        to have";
    TooManyChanges { most } => "the quotas have been changed {most} times: build another limiter, from a snapshot to \
        keep what keys have";
    OtherRefused => "whether refused requests count can't change: build another limiter for quotas that count them \
        differently";
    OtherSteps { is } => "of a quantised log ({is}) only the limit can change: build another limiter for other steps";
    NoneOfItsOwn => "no key may have quotas of its own: say on the builder how many may, with `keys_with_quotas`";
    NoSuchDimension { dimension, dimensions } => "there is no dimension {dimension}: there are {dimensions}, counted \
        from zero";
} }

impl core::error::Error for ChangeError {}

impl<C: Clock, F> Engine<C, F> {
    /// Changes the quotas of a dimension; dimension 0 if there are no dimensions.
    fn set_quotas(&self, dimension: usize, scope: Scope, quotas: &[Quota]) -> Result<(), ChangeError> {
        validate(quotas).map_err(ChangeError::Quotas)?;
        let changed = self.change(&[Change { dimension, scope, quotas }]);
        changed.map_err(|(_, unchanged)| ChangeError::of(unchanged, self.quotas(dimension), quotas))
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Changes the quotas of all keys, from now on, while requests come.
    ///
    /// Keys keep the permits that they have been granted. No request waits, and the keys are not
    /// touched, so the cost is the same for one key and for a million. Changes wait for one
    /// another. A request that is halfway is decided by the old quotas or by the new ones.
    ///
    /// The permits that a key has been granted count as follows:
    ///
    /// - **Sliding window log**: a permit counts for as long as the new windows say. Under a
    ///   smaller limit a key waits until few enough are live. Permits that have left the widest of
    ///   the old windows do not come back under a longer one.
    /// - **Token bucket, leaky bucket**: as much is missing from the new bucket as was from the old
    ///   one, rounded up to a whole permit and at most all of it. Permits that are reserved ahead
    ///   stay owed, up to the new capacity. The bucket flows at the new rate from now on.
    /// - **Leaky queue**: places that were given stay. The next place leaves when it would have, or
    ///   less than one interval of the new rate later, if the queue can be as long.
    /// - **Quantised log**: the limit changes as that of a sliding window log. The window can't
    ///   change.
    /// - **Fixed window**: permits of an open window still count in it. The window keeps its start
    ///   and takes the new length. An aligned window becomes the new aligned window that contains
    ///   its start. If only the [phase](Quota::aligned) is another, the permits count in the aligned
    ///   window of the change. A window that is over stays over.
    /// - **Sliding counter**: both counts are kept. The window changes as a fixed window does. If
    ///   only the phase is another, no count weighs less than before.
    ///
    /// Permits that were charged under earlier quotas can still be refunded to logs and windows,
    /// unless the phase is another. They can't be refunded to buckets and queues.
    ///
    /// Each change takes some 400 bytes, which are freed with the limiter. There can be 1,048,575
    /// changes. A call with the quotas that there are changes nothing and costs nothing.
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
    /// [`ChangeError`] when the quotas can't be used, are of another algorithm, count refused
    /// requests where the present ones do not (or the other way round), or have changed too often.
    /// The old ones stay in force.
    pub fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.set_quotas(0, Scope::All, quotas)
    }

    /// Gives one key quotas of its own, from now on, in place of those of all keys or of its own,
    /// as [`set_quotas`](Self::set_quotas) does for all.
    ///
    /// It is for few keys that change rarely: a customer pays for more. Call it when the quotas
    /// change, not in each request. Each change to other quotas takes some 400 bytes, for each key,
    /// which are freed with the limiter, and counts towards the 1,048,575 changes of all keys
    /// together. A call with the quotas that the key has of its own changes nothing and costs
    /// nothing. For tiers of many keys, give a [`JointLimiter`] a dimension for each tier: a request
    /// has a key in the dimension of its tier, and is [`Absent`](crate::Absent) in the others.
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
        self.engine.set_quotas(0, Scope::Key(self.fingerprint(key)), quotas)
    }

    /// The quotas that a key has: its own, or those of all keys.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(2));
    /// let limiter = builder.keys_with_quotas(1000).build()?;
    /// limiter.set_quotas_of("alice", &[Quota::per_minute(10)])?;
    /// assert_eq!(limiter.quotas_of("alice"), [Quota::per_minute(10)]);
    /// assert_eq!(limiter.quotas_of("bob"), [Quota::per_minute(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quotas_of(&self, key: impl AsKey<K>) -> &[Quota] {
        &self.engine.table.version_for(self.fingerprint(key)).quotas
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// Changes the quotas, from now on, as [`Limiter::set_quotas`] does.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_minute(2))?;
    /// assert!(limiter.try_acquire_n(2)?.is_admitted());
    /// limiter.set_quotas(&[Quota::per_minute(3)])?;
    /// assert_eq!(limiter.peek().remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::set_quotas`].
    pub fn set_quotas(&self, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.set_quotas(0, Scope::All, quotas)
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
        let dimensions = self.dimensions().len();
        if dimension >= dimensions {
            return Err(ChangeError::NoSuchDimension { dimension, dimensions });
        }
        self.engine.set_quotas(dimension, Scope::All, quotas)
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
        let keys = self.fingerprints(keys, 0).map_err(ChangeError::Keys)?;
        let given = keys.iter().enumerate().filter_map(|(dimension, key)| Some((dimension, (*key)?)));
        let change = |(dimension, key)| Change { dimension, scope: Scope::Key(key), quotas };
        self.change(&given.map(change).collect::<Vec<_>>()).map_err(|(_, error)| *error)
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
    /// assert_eq!(quotas, [Some(&[Quota::per_minute(1)][..]), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn quotas_of(&self, keys: impl Keys<D>) -> Result<Vec<Option<&[Quota]>>, JointError> {
        let keys = self.fingerprints(keys, 0)?;
        let quotas = |key| &*self.engine.table.version_for(key).quotas;
        Ok(keys[..self.dimensions().len()].iter().map(|key| key.map(quotas)).collect())
    }

    /// Whether keys may have quotas of their own: whether the limiter was built with
    /// [`keys_with_quotas`](crate::JointLimiterBuilder::keys_with_quotas).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_minute(2)]);
    /// assert!(!builder().build()?.keys_may_have_quotas());
    /// assert!(builder().keys_with_quotas(1000).build()?.keys_may_have_quotas());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn keys_may_have_quotas(&self) -> bool {
        self.engine.table.cells.versions(0).may_have_own()
    }

    /// Makes all of these changes, or none. An error has the dimension.
    pub(crate) fn change(&self, changes: &[Change<'_>]) -> Result<(), (usize, Box<ChangeError>)> {
        self.engine.change(changes).map_err(|(at, unchanged)| {
            let Change { dimension, quotas, .. } = changes[at];
            (dimension, Box::new(ChangeError::of(unchanged, self.engine.quotas(dimension), quotas)))
        })
    }
}

fn validate_joint(quotas: &[Quota]) -> Result<(), ChangeError> {
    let counting = quotas.iter().any(Quota::is_counting_refused);
    let valid = validate(quotas).and(if counting { Err(BuildError::CountingRefusedAlone) } else { Ok(()) });
    valid.map_err(ChangeError::Quotas)
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use crate::Limiter;

    #[test]
    fn there_is_an_end_to_changes_and_the_last_one_stays() {
        let limiter = Limiter::<String>::new(Quota::per_hour(3)).unwrap();
        assert!(limiter.try_acquire("alice").is_admitted());
        for change in 1..=Versions::MOST {
            let limit = 4 + u32::from(change % 2 == 1);
            assert_eq!(limiter.set_quotas(&[Quota::per_hour(limit)]), Ok(()), "change {change}");
        }
        let most = Versions::MOST;
        assert_eq!(limiter.set_quotas(&[Quota::per_hour(9)]), Err(ChangeError::TooManyChanges { most }));
        assert_eq!((limiter.quotas(), limiter.peek("alice").remaining()), (&[Quota::per_hour(5)][..], 4));
    }
}
