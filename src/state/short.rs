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
        self.decide_in(shard, fingerprint, cost, |arena| arena.cells.known(key), clock, left)
    }

    /// The same for the key of a table that has no other.
    #[inline(always)]
    pub(crate) fn decide_single(&self, cost: u32, clock: &dyn Clock) -> Option<FastDecision> {
        let shard = &self.shared.shards.first()?.0;
        self.decide_in(shard, THE_KEY, cost, |arena| arena.cells.first(), clock, None)
    }

    #[inline(always)]
    fn decide_in(
        &self,
        shard: &Shard,
        fingerprint: Fingerprint,
        cost: u32,
        find: impl FnOnce(&Arena) -> Option<&Cell>,
        clock: &dyn Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let now = || time_of(clock.now());
        let (decided, is_due) =
            shard.decide(Key::of(fingerprint), cost, find, now, left, || self.shard_again(fingerprint));
        if is_due {
            self.keep_up(fingerprint, clock);
        }
        decided
    }

    #[cold]
    #[inline(never)]
    fn shard_again(&self, fingerprint: Fingerprint) -> &Shard {
        self.shard(Key::of(fingerprint))
    }

    /// Begins a rebuild of the key's shard if one is due, or helps with it. Its arguments stay in
    /// registers.
    #[cold]
    #[inline(never)]
    fn keep_up(&self, fingerprint: Fingerprint, clock: &dyn Clock) {
        let key = Key::of(fingerprint);
        self.with(key, clock).keep_up(&self.shard(key).root());
    }
}

impl Shard {
    /// Decides a request by one attempt, and writes the permits left to `left`. If the answer is `None`,
    /// nothing is charged. Also returns whether a rebuild is due: the caller keeps up with it
    /// afterwards, because that may freeze the word. `find` finds the key's cell, and `again` this
    /// shard, if it is needed again. That is seldom, so it is in no register until then.
    #[inline(always)]
    pub(super) fn decide<'a>(
        &'a self,
        key: Key,
        cost: u32,
        find: impl FnOnce(&Arena) -> Option<&Cell>,
        now: impl FnOnce() -> u64,
        left: Option<&mut PerQuota>,
        again: impl FnOnce() -> &'a Self,
    ) -> (Option<FastDecision>, bool) {
        let root = self.root.load();
        let decided = root.decide(key, cost, find, now, left);
        let is_due = decided.is_some() && root.rings.are_due();
        // Not by a drop, which is a call.
        root.end(|| &again().root);
        (decided, is_due)
    }
}

impl Arena {
    #[inline(always)]
    fn decide(
        &self,
        key: Key,
        cost: u32,
        find: impl FnOnce(&Self) -> Option<&Cell>,
        now: impl FnOnce() -> u64,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        // A new key needs a place and a cell first.
        let cell = find(self)?;
        let version = if let Some(common) = &self.common { common } else { self.plans.get(key)? };
        // `acquire` answers a cost above the limit. A limit is at least one, so one permit needs no look.
        if cost > 1 && cost > version.most {
            return None;
        }
        let word = cell.word.load();
        // The key has no permits, or moves to another arena, or a joint claim is to be finished first.
        if !word.is_open() {
            return None;
        }
        let decided = version.plan.decide(self, cell, word, now(), cost, left);
        // Another thread swapped the word. The retry finds the key anew, because it may move.
        if decided.is_none() {
            back_off_once();
        }
        decided
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

    /// The version for a key. There is always one, but an index would add code to unwind.
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
        arena: &Arena,
        cell: &Cell,
        word: Word,
        now: u64,
        cost: u32,
        mut left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        // Made where it is needed: what a call gets by reference is in memory.
        let seen = || Seen { cell: CellRef { word: &cell.word, hint: &cell.hint, rings: &arena.rings }, word, now };
        // The bucket and the way to a log are compiled into each caller. The rest is in this crate, once.
        match (&self.numbers, &left, self.code.decide_shortly) {
            (Numbers::Bucket(bucket), None, _) => decide(bucket, &cell.word, word, now, cost),
            (Numbers::Log(log), ..) => match log.denied_by_hint(seen(), cost, left.as_deref_mut()) {
                Some((wait_ns, quota)) => Some(FastDecision::denied(wait_ns, quota)),
                None if left.is_none() => log.decide_shortly(seen(), cost),
                None => log.decide_generally(seen(), cost, left),
            },
            (numbers, None, Some(decide)) => decide(numbers, &cell.word, word, now, cost),
            _ => (self.code.decide)(&self.numbers, seen(), cost, left),
        }
    }

    /// The wait of a request that a hint denies, and the number of the quota. Saves the look at the ring.
    #[inline(always)]
    pub(super) fn denied_by_hint(&self, seen: Seen<'_>, cost: u32, left: Option<&mut PerQuota>) -> Option<(u64, u8)> {
        match &self.numbers {
            Numbers::Log(log) => log.denied_by_hint(seen, cost, left),
            Numbers::QuantisedLog(log) => log.denied_by_hint(seen, cost, left),
            _ => None,
        }
    }
}
