//! [`Limiter`]: one quota, many keys.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;
use std::sync::PoisonError;

use super::wants::Wants;
use crate::caps::AtKeyCap;
use crate::cell::{Revision, Unchanged, Whose};
use crate::clock::{Clock, MonotonicClock};
use crate::counts::{Counts, Tally};
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter};
use crate::keys::{AsKey, fingerprint_of};
use crate::lists::Lists;
use crate::modes::{Modes, Shadow};
use crate::penalty::Penalties;
use crate::quota::Quota;
use crate::reservation::LimiterId;
use crate::single::Single;
#[cfg(feature = "serde")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::sync::Mutex;
use crate::table::{Placed, TOGETHER, Table};

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
    pub(super) table: Table,
    pub(super) clock: C,
    pub(super) fingerprinter: F,
    pub(super) at_key_cap: AtKeyCap,
    /// What keys that found no place share, under [`AtKeyCap::Share`].
    pub(super) overflow: Option<Box<Single>>,
    /// Held while quotas change, so that the keys and what they share go through the same changes
    /// in the same order.
    pub(super) changes: Mutex<()>,
    pub(super) tally: Option<Tally>,
    pub(super) id: LimiterId,
    /// What it does beside deciding by quota, if anything.
    pub(super) modes: Option<Box<Modes>>,
    pub(super) key: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    pub(crate) fn from_parts(
        table: Table,
        clock: C,
        fingerprinter: F,
        at_key_cap: AtKeyCap,
        overflow: Option<Box<Single>>,
        tally: Option<Tally>,
    ) -> Self {
        let (changes, id, modes) = (Mutex::new(()), LimiterId::new(), None);
        Self { table, clock, fingerprinter, at_key_cap, overflow, changes, tally, id, modes, key: PhantomData }
    }

    pub(crate) fn in_modes(self, modes: Option<Box<Modes>>) -> Self {
        Self { modes, ..self }
    }

    /// One permit for `key`, now or not at all.
    ///
    /// Costs one hash, one clock reading and one look-up. A denial writes nothing, unless denials are counted
    /// (see [`Decision::Denied`]) or the quota has changed and its algorithm is not the log: then the first request of a key writes that down.
    pub fn try_acquire(&self, key: impl AsKey<K>) -> Decision {
        self.decide_for(self.fingerprint(key), 1)
    }

    /// `cost` permits for `key`, all of them now or none. A cost of zero charges nothing and is always admitted.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit: no wait would ever be long enough.
    pub fn try_acquire_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Decision, CostExceedsLimit> {
        let fingerprint = self.checked(key, cost)?;
        Ok(self.decide_for(fingerprint, cost))
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
    #[must_use = "decisions that nobody looks at limit nothing"]
    pub fn try_acquire_many(&self, keys: impl IntoIterator<Item: AsKey<K>>) -> Vec<Decision> {
        let mut keys = keys.into_iter().map(|key| self.fingerprint(key));
        let mut decisions = Vec::with_capacity(keys.size_hint().0);
        let mut together = [Fingerprint::new(0, 0); TOGETHER];
        loop {
            let mut count = 0;
            for (place, key) in together.iter_mut().zip(keys.by_ref()) {
                *place = key;
                count += 1;
            }
            self.table.touch(&together[..count]);
            decisions.extend(together[..count].iter().map(|&key| self.decide_for(key, 1)));
            if count < TOGETHER {
                return decisions;
            }
        }
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), and tells what remains and when all of it is free again, as of the
    /// same instant and without another look-up. Counting what remains costs O(log limit) loads.
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn try_acquire_status(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        let fingerprint = self.checked(key, cost)?;
        Ok(if cost == 0 { self.look_up(fingerprint, 0) } else { self.decide_in_full(fingerprint, cost) })
    }

    /// What [`try_acquire`](Self::try_acquire) would answer now, and what remains. Charges nothing.
    ///
    /// At the key cap, a look at a new key sweeps out expired keys as its request would.
    pub fn peek(&self, key: impl AsKey<K>) -> Status {
        self.look_up(self.fingerprint(key), 1)
    }

    /// What [`try_acquire_n`](Self::try_acquire_n) would answer now. Charges nothing, as [`peek`](Self::peek).
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        let fingerprint = self.checked(key, cost)?;
        Ok(self.look_up(fingerprint, cost))
    }

    /// Gives the key its full quota back, as if it had never been seen. Says whether the limiter held anything for it,
    /// which may have been permits that had all expired. Ends a [penalty](crate::Penalty) too, and changes no list.
    pub fn forget(&self, key: impl AsKey<K>) -> bool {
        let fingerprint = self.fingerprint(key);
        let penalised = self.penalties().is_some_and(|penalties| penalties.forget(fingerprint, &self.clock));
        self.table.forget(fingerprint, &self.clock) | penalised
    }

    /// Forgets every key, its penalties, and what keys that found no place were charged together. Changes no list.
    ///
    /// Each key is forgotten at some moment during the call, not all of them at one. Takes time in proportion to the cells.
    pub fn clear(&self) {
        self.table.clear(&self.clock);
        if let Some(penalties) = self.penalties() {
            penalties.clear(&self.clock);
        }
        if let Some(overflow) = &self.overflow {
            overflow.clear(&self.clock);
        }
    }

    /// What the limiter holds and has done. Takes time in proportion to the cells, to count the live keys.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let held = self.table.held(&self.clock);
        let modes = self.modes.as_deref();
        Counts {
            live_keys: held.live_keys,
            cells: held.cells,
            bytes: size_of::<Self>()
                + held.bytes
                + self.overflow.as_ref().map_or(0, |overflow| size_of::<Single>() + overflow.bytes())
                + self.tally.as_ref().map_or(0, Tally::bytes)
                + modes.map_or(0, Modes::bytes),
            decisions: self.tally.as_ref().map(Tally::totals),
            refused_at_cap: held.refused_at_cap,
            overruled: modes.and_then(|modes| modes.shadow.as_ref()).map_or(0, Shadow::overruled),
            penalties: self.penalties().map_or(0, Penalties::begun),
            penalties_refused: self.penalties().map_or(0, Penalties::refused),
            listed: modes.and_then(|modes| modes.lists.as_ref()).map_or(0, Lists::count),
        }
    }

    /// What the limiter holds, to be restored after a restart; see [`Snapshot`]. Takes time in proportion to the
    /// cells, and nobody's turn.
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.table, &[self.quotas()], &self.fingerprinter, &self.clock)
    }

    #[cfg(feature = "serde")]
    pub(crate) fn put_back(&self, snapshot: &Snapshot, elapsed: core::time::Duration) -> Result<(), RestoreError> {
        snapshot.restore(&self.table, elapsed, &self.clock)
    }

    /// The quotas that each key has, in the order in which they were given.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.revision().quotas
    }

    /// The clock that decisions are taken by.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    #[inline]
    pub(super) fn revision(&self) -> &Revision {
        self.table.revision(0)
    }

    /// Changes the quotas of one key, which goes on with what it has been granted.
    pub(crate) fn change_for(
        &self,
        key: impl AsKey<K>,
        whose: fn(Fingerprint) -> Whose,
        quotas: &[Quota],
    ) -> Result<(), Unchanged> {
        self.table.change(0, whose(self.fingerprint(key)), quotas, &self.clock)
    }

    /// How a key is limited now.
    #[inline]
    pub(crate) fn revision_for(&self, key: impl AsKey<K>) -> &Revision {
        self.table.revision_for(self.fingerprint(key))
    }

    /// Changes the quotas of all keys, which go on with what they have been granted.
    pub(crate) fn change(&self, quotas: &[Quota]) -> Result<(), Unchanged> {
        let _turn = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.table.change(0, Whose::All, quotas, &self.clock)?;
        self.overflow.as_ref().map_or(Ok(()), |overflow| overflow.change(quotas, &self.clock))
    }

    pub(super) fn penalties(&self) -> Option<&Penalties> {
        self.modes.as_ref()?.penalties.as_ref()
    }

    #[inline]
    pub(super) fn fingerprint(&self, key: impl AsKey<K>) -> Fingerprint {
        fingerprint_of(&self.fingerprinter, key).of_plan(0)
    }

    /// The fingerprint of a key that may ask for so much.
    #[inline]
    pub(super) fn checked(&self, key: impl AsKey<K>, cost: u32) -> Result<Fingerprint, CostExceedsLimit> {
        let fingerprint = self.fingerprint(key);
        self.table.revision_for(fingerprint).check_cost(cost)?;
        Ok(fingerprint)
    }

    #[inline(always)]
    pub(super) fn decide_for(&self, fingerprint: Fingerprint, cost: u32) -> Decision {
        if cost == 0 {
            return self.look_up(fingerprint, 0).decision;
        }
        if let Some(modes) = &self.modes {
            return self.decide_in_modes(modes, fingerprint, cost, &mut Wants::Decision).decision;
        }
        match self.table.decide_at_once(fingerprint, cost, &self.clock) {
            Some(at_once) => {
                self.count(at_once.is_admitted());
                at_once.into()
            }
            None => self.decide_in_full(fingerprint, cost).decision,
        }
    }

    /// Decides whatever it takes, and says what remains.
    pub(super) fn decide_in_full(&self, fingerprint: Fingerprint, cost: u32) -> Status {
        if let Some(modes) = &self.modes {
            return self.decide_in_modes(modes, fingerprint, cost, &mut Wants::Numbers);
        }
        let (status, _) = self.ask_quota(fingerprint, cost, &self.clock);
        self.count(status.is_admitted());
        status
    }

    /// What the quota says, whatever it takes, and whether it is the key's own that says so.
    pub(super) fn ask_quota(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> (Status, bool) {
        match self.table.acquire(fingerprint, cost, clock) {
            Placed::Decided(status) => (status, true),
            Placed::NoRoom { retry_after_ns } => {
                let shared = |overflow: &Single| overflow.acquire(cost, clock);
                (self.decide_at_cap(cost, retry_after_ns, shared), false)
            }
        }
    }

    /// What the quota would say, whatever it takes.
    pub(super) fn preview_quota(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        match self.table.preview(fingerprint, cost, clock) {
            Placed::Decided(status) => status,
            Placed::NoRoom { retry_after_ns } => {
                self.decide_at_cap(cost, retry_after_ns, |overflow| overflow.peek(cost, clock))
            }
        }
    }

    #[inline]
    pub(super) fn count(&self, is_admitted: bool) {
        if let Some(tally) = &self.tally {
            tally.count(is_admitted);
        }
    }

    /// What a new key is told that finds no place. What keys without a place share is asked by
    /// `shared`, if it can ever admit so much: a key's own quota may allow more.
    #[cold]
    pub(super) fn decide_at_cap(
        &self,
        cost: u32,
        retry_after_ns: u64,
        shared: impl FnOnce(&Single) -> Status,
    ) -> Status {
        let limit = self.revision().most;
        let without_a_place = |decision, remaining| Status { decision, limit, remaining, reset_after_ns: 0 };
        match (self.at_key_cap, &self.overflow) {
            (AtKeyCap::Share, Some(overflow)) if overflow.revision().check_cost(cost).is_ok() => shared(overflow),
            (AtKeyCap::Admit, _) => without_a_place(Decision::Admitted(Admission::UNCOUNTED), limit),
            _ => without_a_place(Decision::Denied(Denial::new(retry_after_ns, DenialReason::KeyCap, 0)), 0),
        }
    }

    pub(crate) fn id(&self) -> LimiterId {
        self.id
    }

    pub(super) fn look_up(&self, fingerprint: Fingerprint, cost: u32) -> Status {
        match &self.modes {
            // A request for nothing is admitted whatever happens.
            Some(modes) if cost > 0 => self.look_in_modes(modes, fingerprint, cost),
            _ if cost > 0 => self.preview_quota(fingerprint, cost, &self.clock),
            _ => self.table.peek(fingerprint, 0, &self.clock),
        }
    }
}

impl<K: ?Sized, C: fmt::Debug, F> fmt::Debug for Limiter<K, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("quotas", &self.table.revision(0).quotas)
            .field("clock", &self.clock)
            .field("at_key_cap", &self.at_key_cap)
            .finish_non_exhaustive()
    }
}
