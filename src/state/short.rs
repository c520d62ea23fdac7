//! The short way: a request of a key with permits, from the table to the swap of its word, by one
//! attempt. What it does not answer goes the way of new keys, which has all cases
//! (`Table::acquire`).
//!
//! It is compiled into each caller, but for the decisions of most algorithms. Nothing in it can panic
//! but the clock, so there is little code to unwind.

use std::sync::Arc;

use super::algorithms::decide;
use super::arena::Arena;
use super::cell::{Cell, Key, Word, time_of};
use super::code::Numbers;
use super::plan::{Plan, Plans, Version};
use super::request::{CellRef, Seen};
use super::shard::{Shard, back_off};
use super::table::{THE_KEY, Table};
use crate::clock::Clock;
use crate::decision::{FastDecision, PerQuota};
use crate::fingerprint::Fingerprint;

impl Table {
    /// Decides a request for at least one permit of a key that has some, and writes the permits left
    /// to `left`. `None` if it takes [`acquire`](Self::acquire).
    #[inline(always)]
    pub(crate) fn decide(
        &self,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &dyn Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let key = Key::of(fingerprint);
        let shard = &self.shared.shards.get(key.shard(self.shard_bits))?.0;
        self.decide_in(shard, key, cost, |arena| arena.cells.known(key), clock, left)
    }

    /// The same for the key of a table that has no other.
    #[inline(always)]
    pub(crate) fn decide_single(&self, cost: u32, clock: &dyn Clock) -> Option<FastDecision> {
        let (key, shard) = (Key::of(THE_KEY), &self.shared.shards.first()?.0);
        self.decide_in(shard, key, cost, |arena| arena.cells.first(key), clock, None)
    }

    #[inline(always)]
    fn decide_in(
        &self,
        shard: &Shard,
        key: Key,
        cost: u32,
        find: impl FnOnce(&Arena) -> Option<&Cell>,
        clock: &dyn Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let (decided, is_due) = shard.decide(key, cost, find, || time_of(clock.now()), left);
        if is_due {
            self.keep_up(key, clock);
        }
        decided
    }

    /// Begins a rebuild of the key's shard if one is due, or helps with it. Its arguments stay in
    /// registers.
    #[cold]
    #[inline(never)]
    fn keep_up(&self, key: Key, clock: &dyn Clock) {
        self.with(key, clock).keep_up(&self.shard(key).root());
    }
}

impl Shard {
    /// Decides a request by one attempt, and writes the permits left to `left`. If the answer is `None`,
    /// nothing is charged. Also returns whether a rebuild is due: the caller keeps up with it
    /// afterwards, because that may freeze the word. `find` finds the key's cell.
    #[inline(always)]
    pub(super) fn decide(
        &self,
        key: Key,
        cost: u32,
        find: impl FnOnce(&Arena) -> Option<&Cell>,
        now: impl FnOnce() -> u64,
        left: Option<&mut PerQuota>,
    ) -> (Option<FastDecision>, bool) {
        let root = self.root.load();
        // A new key needs a place and a cell first.
        let Some(cell) = find(&root) else { return (None, false) };
        let Some(version) = root.plans.get(key) else { return (None, false) };
        // An algorithm decides no cost above the limit: no wait helps.
        if cost > version.most {
            return (None, false);
        }
        let word = cell.word.load();
        // The key has no permits, or moves to another arena, or a joint claim is to be finished first.
        if !word.is_open() {
            return (None, false);
        }
        let cell = CellRef { word: &cell.word, hint: &cell.hint, rings: &root.rings };
        let decided = version.plan.decide(cell, word, now(), cost, left);
        // Another thread swapped the word. The retry finds the key anew, because it may move.
        if decided.is_none() {
            back_off_once();
        }
        (decided, decided.is_some() && root.rings.are_due())
    }
}

#[cold]
#[inline(never)]
fn back_off_once() {
    back_off(&mut 0);
}

impl Plans {
    /// The version that is the key's own.
    #[inline(always)]
    pub(super) fn own_of(&self, key: Key) -> Option<&Arc<Version>> {
        self.own.as_ref()?.get(&key)
    }

    /// The version for a key. There is always one.
    #[inline(always)]
    pub(super) fn get(&self, key: Key) -> Option<&Arc<Version>> {
        self.own_of(key).or_else(|| self.all.get(key.group()))
    }
}

impl Plan {
    /// Decides a request on an open word, and swaps it. Writes the permits left to `left`. `None` if
    /// another thread was faster.
    #[inline(always)]
    fn decide(
        &self,
        cell: CellRef<'_>,
        word: Word,
        now: u64,
        cost: u32,
        mut left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        // The bucket and the hints are compiled into each caller. The rest is in this crate, once.
        match (&self.numbers, self.code.decide_shortly) {
            (Numbers::Bucket(bucket), _) if left.is_none() => decide(bucket, cell.word, word, now, cost),
            (numbers, Some(decide)) if left.is_none() => decide(numbers, cell.word, word, now, cost),
            (Numbers::Log(log), _) => {
                // Made where it is needed: what a call gets by reference is in memory.
                let seen = || Seen { cell, word, now };
                let hint = if cost == 1 { log.denied_by_hint(seen(), left.as_deref_mut()) } else { None };
                match (hint, left) {
                    (Some((wait_ns, quota)), _) => Some(FastDecision::denied(wait_ns, quota)),
                    (None, None) => log.decide_shortly(seen(), cost),
                    (None, left) => log.decide_generally(seen(), cost, left),
                }
            }
            _ => (self.code.decide)(&self.numbers, Seen { cell, word, now }, cost, left),
        }
    }

    /// The wait of a request for one permit that a hint denies, and the number of the quota. Saves the
    /// look at the ring.
    #[inline(always)]
    pub(super) fn denied_by_hint(&self, seen: Seen<'_>, left: Option<&mut PerQuota>) -> Option<(u64, u8)> {
        match &self.numbers {
            Numbers::Log(log) => log.denied_by_hint(seen, left),
            Numbers::QuantisedLog(log) => log.denied_by_hint(seen, left),
            _ => None,
        }
    }
}
