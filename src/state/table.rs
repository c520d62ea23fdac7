//! The table: the shards of a limiter, its quotas, and its places.

#[cfg(feature = "snapshot")]
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::account::blocks::Blocks;
use super::algorithms::BLOCKS;
use super::cell::{Key, MOST_SHARD_BITS, time_of};
use super::claims::{Claims, Part};
use super::code::Numbers;
use super::concurrency::Entry;
use super::places::Places;
use super::plan::{Plans, Version};
use super::request::{KeyedRequest, Seen};
use super::shard::{Change, Charged, Context, Full, Shard, Shared};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Decision, PerQuota};
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::sync::CachePadded;
use crate::sync::plain::{AtomicU64, Ordering};

/// A table with fewer keys for each shard has fewer shards: a request at the cap looks at all cells
/// of a small table.
const KEYS_A_SHARD: usize = 64;

/// At a cap of at most so many keys, a new key looks at all cells to find one whose permits have
/// expired. At a larger one it looks at so many cells, in turn.
const SMALL_CAP: u64 = 1024;
const COLLECTED: usize = 64;

/// The keys that are prefetched together: enough to keep the memory busy, few enough to stay in the
/// nearest cache.
pub(crate) const TOGETHER: usize = 32;

/// The keys of a limiter.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) shared: Shared,
    pub(super) shard_bits: u32,
    /// The turn to change quotas. No decision takes it.
    turn: Mutex<()>,
    /// Where the next collection at the cap begins.
    cursor: AtomicU64,
    refused_at_cap: CachePadded<AtomicU64>,
    /// By a pointer: only a program with a joint limiter has the code for several keys.
    pub(super) attempt: Attempt,
}

/// One attempt of [`Table::acquire`].
pub(super) type Attempt = fn(
    &Table,
    &KeyedRequest<'_>,
    bool,
    &dyn Clock,
    Option<&mut PerQuota>,
    Option<&mut Charges>,
) -> Result<Option<Decision>, Full>;

/// The counts of a table.
pub(crate) struct TableCounts {
    pub(crate) live_keys: usize,
    pub(crate) cells: usize,
}

/// The keys whose quotas change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Key(Fingerprint),
}

/// A charge of a key that can be refunded or settled.
#[derive(Debug)]
pub(crate) struct Refundable {
    pub(super) key: Key,
    pub(super) cost: u32,
    pub(super) charged: Charged,
}

impl Refundable {
    /// A charge of no permits, which can be settled.
    pub(crate) fn of_none(fingerprint: Fingerprint) -> Self {
        Self { key: Key::of(fingerprint), cost: 0, charged: Charged::default() }
    }
}

/// The charges of a request that can be given back.
#[derive(Debug, Default)]
pub(crate) struct Charges {
    pub(crate) refundable: Vec<Refundable>,
    pub(crate) entries: Entries,
}

impl Charges {
    pub(super) fn push(&mut self, key: Key, cost: u32, charged: Charged) {
        match Entry::of(key, charged.mark) {
            Some(entry) => self.entries.push(entry),
            None => self.refundable.push(Refundable { key, cost, charged }),
        }
    }
}

/// The keys by which a request is in flight. For one key, nothing is allocated.
#[derive(Debug, Default)]
pub(crate) enum Entries {
    #[default]
    None,
    One(Entry),
    Several(Vec<Entry>),
}

impl Entries {
    fn push(&mut self, entry: Entry) {
        *self = match core::mem::take(self) {
            Self::None => Self::One(entry),
            Self::One(first) => Self::Several(vec![first, entry]),
            Self::Several(mut all) => {
                all.push(entry);
                Self::Several(all)
            }
        };
    }

    /// Takes them, to let each leave.
    #[inline]
    pub(crate) fn take(&mut self, leave: impl Fn(Entry)) {
        match core::mem::take(self) {
            Self::None => {}
            Self::One(entry) => leave(entry),
            Self::Several(all) => all.into_iter().for_each(leave),
        }
    }
}

/// The key of a table for one. Its search begins at the first cell, whatever the size.
pub(crate) const THE_KEY: Fingerprint = Fingerprint::new(0, 0);

impl Table {
    /// A table for up to `key_cap` keys, with room for `expected_keys`. Each group has validated
    /// quotas; the fingerprint of a key has its group.
    ///
    /// Phases count from a time so many nanoseconds before the clock's origin.
    pub(crate) fn new(groups: &[&[Quota]], since_1970: u64, key_cap: usize, expected_keys: usize) -> Self {
        Self::of(Plans::new(groups, since_1970), key_cap, expected_keys)
    }

    /// A table for the denials of keys, and in another group for the blocks that they begin.
    pub(crate) fn with_blocks(denials: Quota, blocks: Blocks, key_cap: usize, expected_keys: usize) -> Self {
        let plans = Plans::new(&[&[denials]], 0).and(Version::of_blocks(blocks, BLOCKS));
        Self::of(plans, key_cap, expected_keys)
    }

    fn of(plans: Plans, key_cap: usize, expected_keys: usize) -> Self {
        let shard_bits = (key_cap / KEYS_A_SHARD).checked_ilog2().unwrap_or(0).min(MOST_SHARD_BITS);
        Self::with_shards(plans, shard_bits, key_cap, expected_keys)
    }

    /// A table for one key, which always has a place.
    pub(crate) fn single(quotas: &[Quota], since_1970: u64) -> Self {
        Self::with_shards(Plans::new(&[quotas], since_1970), 0, usize::MAX, 1)
    }

    pub(super) fn with_shards(plans: Plans, shard_bits: u32, key_cap: usize, expected_keys: usize) -> Self {
        let plans = Arc::new(plans);
        let shard = || CachePadded(Shard::new(Arc::clone(&plans), expected_keys.div_ceil(1 << shard_bits)));
        Self {
            shared: Shared {
                shards: core::iter::repeat_with(shard).take(1 << shard_bits).collect(),
                places: Places::new(key_cap),
                claims: Claims::new(),
            },
            shard_bits,
            turn: Mutex::new(()),
            cursor: AtomicU64::new(0),
            refused_at_cap: CachePadded(AtomicU64::new(0)),
            attempt: Self::attempt_one,
        }
    }

    /// The same table for requests of several keys.
    pub(crate) fn for_joint(self) -> Self {
        Self { attempt: Self::attempt_all, ..self }
    }

    #[inline(always)]
    pub(super) fn shard(&self, key: Key) -> &Shard {
        &self.shards()[self.shard_of(key)]
    }

    /// The number of a key's shard.
    #[inline(always)]
    pub(super) fn shard_of(&self, key: Key) -> usize {
        key.shard(self.shard_bits)
    }

    /// The shard of a key, for a request.
    #[inline(always)]
    pub(super) fn with<'a>(&'a self, key: Key, clock: &'a dyn Clock) -> Context<'a> {
        self.with_shard(self.shard(key), clock)
    }

    #[inline(always)]
    pub(super) fn with_shard<'a>(&'a self, shard: &'a Shard, clock: &'a dyn Clock) -> Context<'a> {
        Context { shard, shared: &self.shared, clock }
    }

    #[inline(always)]
    pub(super) fn shards(&self) -> &[CachePadded<Shard>] {
        &self.shared.shards
    }

    /// Swaps the words of all changes, or of none. Returns whether it did: then the keys keep their
    /// places.
    pub(super) fn commit(&self, changes: &mut [Option<Change<'_>>]) -> bool {
        let claim = |parts: &mut [Part<'_>]| self.shared.claims.claim(&self.shared, parts);
        let mut all = changes.iter_mut().flatten();
        match (all.next(), all.next()) {
            (None, _) => return true,
            // A swap does not notice another life.
            (Some(only), None) if only.life.is_some() => return claim(&mut [only.part(self.shard_of(only.key))]),
            (Some(only), None) => return only.swap(),
            _ => {}
        }
        let part = |change| Change::part(change, self.shard_of(change.key));
        let Some(first) = changes.iter().flatten().next() else { return true };
        let (mut parts, mut count) = ([part(first); MAX_DIMENSIONS], 0);
        for (place, change) in parts.iter_mut().zip(changes.iter().flatten()) {
            *place = part(change);
            count += 1;
        }
        let is_granted = claim(&mut parts[..count]);
        if is_granted {
            changes.iter_mut().flatten().for_each(Change::keep_place);
        }
        is_granted
    }

    /// The plans of the last shard, which a change comes to when all others have it.
    pub(super) fn plans(&self) -> Arc<Plans> {
        self.shards()[self.shards().len() - 1].plans()
    }

    /// The current version of a group.
    pub(crate) fn version(&self, group: usize) -> Arc<Version> {
        Arc::clone(&self.plans().all[group])
    }

    /// Reads the current version for a key.
    pub(crate) fn version_for<T>(&self, fingerprint: Fingerprint, read: impl FnOnce(&Version) -> T) -> T {
        let key = Key::of(fingerprint);
        read(self.shard(key).root().version(key))
    }

    /// The current quotas for a key.
    pub(crate) fn quotas_for(&self, fingerprint: Fingerprint) -> Arc<[Quota]> {
        self.version_for(fingerprint, |version| Arc::clone(&version.quotas))
    }

    #[cold]
    pub(super) fn count_refused(&self) {
        self.refused_at_cap.fetch_add(1, Ordering::Relaxed);
    }

    /// Collects keys whose permits have expired, until so many places are free. If it finds too few,
    /// the error says when there may be another.
    #[cold]
    pub(super) fn make_room(&self, places: u64, clock: &dyn Clock) -> Result<(), u64> {
        let (shards, cells) = if self.shared.places.cap <= SMALL_CAP {
            (0..self.shards().len(), 0..usize::MAX)
        } else {
            let turn = usize::try_from(self.cursor.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
            let (shard, start) = (turn % self.shards().len(), turn / self.shards().len() * COLLECTED);
            (shard..shard + 1, start..start + COLLECTED)
        };
        let mut now = time_of(clock.now());
        loop {
            let (takes, mut earliest) = (self.shared.places.takes(), None);
            for shard in &self.shards()[shards.clone()] {
                while self.shared.places.free() < places {
                    if let Err(over_at) = self.with_shard(shard, clock).collect(cells.clone(), now) {
                        earliest = over_at.into_iter().chain(earliest).min();
                        break;
                    }
                }
            }
            // Others give places back meanwhile, so this counts what is free, not what it freed.
            if self.shared.places.free() >= places {
                return Ok(());
            }
            // By a clock that goes back, a key that has expired stays so.
            now = now.max(time_of(clock.now()));
            match earliest {
                Some(over_at) if over_at > now => return Err(over_at - now),
                // It has expired during the look, which goes on with it.
                Some(_) => {}
                // It has met no live key. If no request has got a place meanwhile, requests under way
                // have them all, and there may be one at once. Otherwise that one's key is live.
                None if self.shared.places.takes() == takes => return Err(1),
                None => {}
            }
        }
    }

    /// Forgets a key's permits. Returns whether it had any, which may have expired.
    pub(crate) fn forget(&self, fingerprint: Fingerprint, clock: &dyn Clock) -> bool {
        let key = Key::of(fingerprint);
        self.with(key, clock).forget(key)
    }

    /// Forgets every key.
    pub(crate) fn clear(&self, clock: &dyn Clock) {
        for (with, key) in self.keys(clock) {
            with.forget(key);
        }
    }

    pub(crate) fn counts(&self, clock: &dyn Clock) -> TableCounts {
        let mut counts = TableCounts { live_keys: 0, cells: 0 };
        for (with, key) in self.keys(clock) {
            let is_live = |version: &Version, seen: Seen<'_>| version.plan.over_at(seen.cell, seen.word) > seen.now;
            let live = with.look(key, |version, seen| Some(is_live(version, seen)));
            counts.cells += usize::from(live.is_some());
            counts.live_keys += usize::from(live == Some(true));
        }
        counts
    }

    /// The keys that have a cell, each with its shard.
    pub(super) fn keys<'a>(&'a self, clock: &'a dyn Clock) -> impl Iterator<Item = (Context<'a>, Key)> {
        let shards = self.shards().iter().map(move |shard| self.with_shard(shard, clock));
        shards.flat_map(|with| with.shard.keys().into_iter().map(move |key| (with, key)))
    }

    /// The requests of new keys that were refused for want of a place.
    pub(crate) fn refused_at_cap(&self) -> u64 {
        self.refused_at_cap.load(Ordering::Relaxed)
    }

    /// The most keys that the table holds.
    pub(crate) fn key_cap(&self) -> usize {
        usize::try_from(self.shared.places.cap).unwrap_or(usize::MAX)
    }

    /// The places that are free.
    pub(super) fn free_places(&self) -> u64 {
        self.shared.places.free()
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.shards())
            + self.shards().iter().map(|shard| shard.bytes()).sum::<usize>()
            + self.shared.claims.bytes()
    }

    /// Reads the cells that decisions on these keys will read, and decides nothing. These reads do not
    /// wait for each other, because a root is loaded without a locked instruction; those of one decision
    /// after the other do.
    pub(crate) fn prefetch(&self, fingerprints: &[Fingerprint]) {
        let tag = |key| self.shard(key).root().likely(key);
        core::hint::black_box(fingerprints.iter().fold(0, |seen, &fingerprint| seen ^ tag(Key::of(fingerprint))));
    }

    /// Waits for the turn to change quotas: none change until it is dropped.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the quotas of a group, or of one key, to validated ones of the same algorithm. Keys keep
    /// their permits. Each request that begins afterwards is decided by them.
    ///
    /// A change to the quotas that there are costs nothing.
    pub(crate) fn change(&self, group: usize, scope: Scope, quotas: &[Quota], clock: &dyn Clock) {
        if let Scope::Key(fingerprint) = scope {
            self.change_own(Key::of(fingerprint), Some(quotas), clock);
            return;
        }
        let _turn = self.turn();
        let plans = self.plans();
        if *plans.all[group].quotas != *quotas {
            self.set_version(group, &plans.version(quotas), clock);
        }
    }

    /// Sets the blocks of a group of blocks. Keys keep theirs, and those that are over stay so.
    pub(crate) fn change_blocks(&self, group: usize, to: Blocks, clock: &dyn Clock) {
        let _turn = self.turn();
        if !matches!(self.plans().all[group].plan.numbers, Numbers::Blocks(blocks) if blocks == to) {
            self.set_version(group, &Arc::new(Version::of_blocks(to, BLOCKS)), clock);
        }
    }

    /// By the thread that has the turn.
    fn set_version(&self, group: usize, version: &Arc<Version>, clock: &dyn Clock) {
        for shard in self.shards() {
            self.with_shard(shard, clock).set_plans(|plans| plans.with(group, version));
        }
    }

    /// Sets the own quotas of a key, or takes them away. Returns whether they were others.
    pub(super) fn change_own(&self, key: Key, quotas: Option<&[Quota]>, clock: &dyn Clock) -> bool {
        let _turn = self.turn();
        let plans = self.shard(key).plans();
        let is_other = plans.own_of(key).map(|own| &*own.quotas) != quotas;
        if is_other {
            let version = quotas.map(|quotas| plans.version(quotas));
            self.with(key, clock).set_plans(|plans| plans.with_own([(key, version.as_ref())]));
        }
        is_other
    }

    /// Sets the own quotas of keys to validated ones. Each shard has one rebuild.
    #[cfg(feature = "snapshot")]
    pub(super) fn set_own(&self, own: &HashMap<Key, &[Quota]>, clock: &dyn Clock) {
        let _turn = self.turn();
        let (plans, mut versions) = (self.plans(), HashMap::new());
        let mut of_shards = vec![Vec::new(); self.shards().len()];
        for (&key, &quotas) in own {
            let version = versions.entry(quotas).or_insert_with(|| plans.version(quotas));
            of_shards[self.shard_of(key)].push((key, Arc::clone(version)));
        }
        for (shard, own) in self.shards().iter().zip(of_shards).filter(|(_, own)| !own.is_empty()) {
            let own = || own.iter().map(|(key, version)| (*key, Some(version)));
            self.with_shard(shard, clock).set_plans(|plans| plans.with_own(own()));
        }
    }

    /// Takes the own quotas of a key away, so that it has those of its group. Returns whether it had
    /// any.
    pub(crate) fn unset(&self, fingerprint: Fingerprint, clock: &dyn Clock) -> bool {
        self.change_own(Key::of(fingerprint), None, clock)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
