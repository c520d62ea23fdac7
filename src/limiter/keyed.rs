//! [`Limiter`]: one quota, many keys.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

use crate::cell::Whose;
use crate::clock::{Clock, MonotonicClock};
use crate::counts::Counts;
use crate::decision::{Decision, Status};
use crate::engine::{Change, Engine};
use crate::error::CostExceedsLimit;
use crate::fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter};
use crate::keys::{AsKey, fingerprint_of};
use crate::quota::Quota;
use crate::quotas::Shown;
#[cfg(feature = "serde")]
use crate::snapshot::Snapshot;

/// A rate limiter for many keys, each with a quota of its own: exact, lock-free, shared by reference or `Arc`.
///
/// `K` is the type of the keys. Requests take the key in any form that hashes as `K` does: `&str` for
/// `String`, `7` for `u64`, `(7, "x")` for `(u64, String)`; see [`AsKey`]. They hash it once, and
/// allocate nothing for a key that is known.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_denied());
/// assert!(limiter.try_acquire("bob").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct Limiter<K: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    pub(crate) engine: Engine<C, F>,
    key: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    pub(crate) fn of(engine: Engine<C, F>) -> Self {
        Self { engine, key: PhantomData }
    }

    /// One permit for `key`, now or not at all.
    ///
    /// Costs one hash, one clock reading and one look-up. A denial writes nothing, unless denials are counted
    /// (see [`Decision::Denied`]) or the quota has changed and its algorithm is not the log: then the first request of a key writes that down.
    pub fn try_acquire(&self, key: impl AsKey<K>) -> Decision {
        self.engine.decide(self.fingerprint(key), 1)
    }

    /// `cost` permits for `key`, all of them now or none. A cost of zero charges nothing and is always admitted.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit: no wait would ever be long enough.
    pub fn try_acquire_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Decision, CostExceedsLimit> {
        let key = self.engine.checked(self.fingerprint(key), cost)?;
        Ok(self.engine.decide(key, cost))
    }

    /// One permit for each of these keys, as so many calls of [`try_acquire`](Self::try_acquire) one after the other: each is decided on
    /// its own, in order. A key may come more than once.
    ///
    /// The memory that the keys need is fetched for a few dozen of them at the same time, so where keys are many and far apart it takes a
    /// fraction of the time; see `BENCHMARKS.md`.
    ///
    /// ```
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
    /// let decisions = limiter.try_acquire_many(["alice", "bob", "alice"]);
    /// assert_eq!(decisions.iter().map(Decision::is_admitted).collect::<Vec<_>>(), [true, true, false]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use = "decisions that are not looked at limit nothing"]
    pub fn try_acquire_many(&self, keys: impl IntoIterator<Item: AsKey<K>>) -> Vec<Decision> {
        self.engine.decide_many(keys.into_iter().map(|key| self.fingerprint(key)))
    }

    /// As [`try_acquire`](Self::try_acquire), and tells what is left of each quota and when more is, as of the same instant and
    /// without another look-up. Counting what is left costs O(log limit) loads for each quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(5)).clock(MockClock::new()).build()?;
    /// let status = limiter.try_acquire_status("alice");
    /// assert!(status.is_admitted());
    /// assert_eq!((status.limit(), status.remaining(), status.next_after()), (5, 4, Duration::from_secs(60)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_status(&self, key: impl AsKey<K>) -> Status {
        self.engine.decide_in_full(self.fingerprint(key), 1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), and tells what is left: see [`try_acquire_status`](Self::try_acquire_status).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert_eq!(limiter.try_acquire_n_status("alice", 3)?.remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_n_status(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        let key = self.engine.checked(self.fingerprint(key), cost)?;
        Ok(self.engine.decide_in_full(key, cost))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer now, and what remains. Charges nothing.
    ///
    /// At the key cap, a look at a new key sweeps out expired keys as its request would.
    pub fn peek(&self, key: impl AsKey<K>) -> Status {
        self.engine.look(self.fingerprint(key), 1)
    }

    /// What [`try_acquire_n`](Self::try_acquire_n) would answer now. Charges nothing, as [`peek`](Self::peek).
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        let key = self.engine.checked(self.fingerprint(key), cost)?;
        Ok(self.engine.look(key, cost))
    }

    /// Gives the key its full quota back, as if it had never been seen. Says whether the limiter held anything for it,
    /// which may have been permits that had all expired. Ends a [penalty](crate::Penalty) too, and changes no list.
    pub fn forget(&self, key: impl AsKey<K>) -> bool {
        self.engine.forget(self.fingerprint(key))
    }

    /// Forgets every key, its penalties, and what keys that found no place were charged together. Changes no list.
    ///
    /// Each key is forgotten at some moment during the call, not all of them at one. Takes time in proportion to the cells.
    pub fn clear(&self) {
        self.engine.clear();
    }

    /// What the limiter holds and has done. Takes time in proportion to the cells, to count the live keys.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// What the limiter holds, to be restored after a restart; see [`Snapshot`]. Takes time in proportion to the
    /// cells, and nobody's turn.
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(1)
    }

    /// The quotas that each key has, in the order in which they were given.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        self.engine.quotas(0)
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }

    /// A change of the quotas of one key.
    pub(crate) fn change_of<'q>(&self, key: impl AsKey<K>, quotas: &'q [Quota]) -> Change<'q> {
        Change { dimension: 0, whose: Whose::Key(self.fingerprint(key)), quotas }
    }

    #[inline]
    pub(crate) fn fingerprint(&self, key: impl AsKey<K>) -> Fingerprint {
        fingerprint_of(&self.engine.fingerprinter, key).of_plan(0)
    }
}

impl<K: ?Sized, C: fmt::Debug, F> fmt::Debug for Limiter<K, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("quotas", &Shown(&self.engine.table.revision(0).quotas))
            .field("clock", &self.engine.clock)
            .field("at_key_cap", &self.engine.at_cap)
            .finish_non_exhaustive()
    }
}
