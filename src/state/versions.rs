//! The quotas that the keys of a table have and have had.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use once_cell::race::OnceBox;

use super::key::Key;
use super::plan::{Ask, Place, Plan, Proposal};
use super::root::ARC;
use super::word::Word;
use crate::decision::{Denial, FastDecision, PerQuota};
use crate::quota::Quota;
use crate::sync::plain::{AtomicBool, AtomicU64, Ordering};

/// The quotas of some keys.
#[derive(Debug)]
pub(crate) struct Version {
    /// Its number in the list of its table.
    pub(crate) number: u64,
    pub(crate) quotas: Box<[Quota]>,
    pub(crate) plan: Plan,
    /// The most permits that one request can get.
    pub(crate) most: u32,
}

/// All versions of a table, and the current ones. They last as long as the table.
#[derive(Debug)]
pub(crate) struct Versions {
    /// The first, then the next two, then four, and so on.
    chunks: [OnceBox<Chunk>; 32],
    /// The numbers of the current versions, by slot.
    current: Box<[AtomicU64]>,
    /// Whether a key has ever had quotas of its own.
    any_own: AtomicBool,
    /// The numbers of all versions, and the turn of changes.
    numbers: Mutex<HashMap<Box<[Quota]>, u64>>,
}

type Chunk = Box<[OnceBox<Arc<Version>>]>;

/// The versions that decide for the keys of an arena.
#[derive(Clone, Debug)]
pub(super) struct Plans {
    /// By the slot of the key.
    pub(super) all: Box<[Arc<Version>]>,
    /// Those of single keys, if there are any.
    pub(super) own: Option<Box<OwnPlans>>,
}

pub(super) type OwnPlans = HashMap<Key, Arc<Version>, BuildHasherDefault<TagHasher>>;

/// A tag is a hash already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key has one number");
    }

    fn write_u64(&mut self, tag: u64) {
        self.0 = tag.rotate_right(4);
    }
}

impl Version {
    /// The answer to a request, or that no wait helps, if the cost is above the limit. Writes what is
    /// left to `left`. `None` if the word changed meanwhile.
    pub(super) fn peek(
        &self,
        place: Place<'_>,
        word: Word,
        now: u64,
        ask: Ask,
        left: &mut PerQuota,
    ) -> Option<FastDecision> {
        let fits = ask.cost <= self.most;
        let cost = if fits { ask.cost } else { 0 };
        match self.plan.propose(place, word, now, Ask { cost, ..ask.peek() }, Some(left)) {
            Proposal::Admit { .. } if !fits => {
                let quota = (0..).zip(&self.quotas).find(|(_, quota)| ask.cost > quota.limit());
                Some(FastDecision::denied(Denial::NEVER, quota.map_or(0, |(place, _)| place)))
            }
            Proposal::Admit { delay_ns, .. } => Some(FastDecision::admitted(delay_ns)),
            Proposal::Deny { wait_ns, quota, .. } => Some(FastDecision::denied(wait_ns, quota)),
            Proposal::Lost | Proposal::NoRoom => None,
        }
    }
}

impl Versions {
    /// The first versions: one for each slot, of validated quotas.
    pub(super) fn new(slots: &[&[Quota]]) -> Self {
        let versions = Self {
            chunks: [const { OnceBox::new() }; 32],
            current: slots.iter().map(|_| AtomicU64::new(0)).collect(),
            any_own: AtomicBool::new(false),
            numbers: Mutex::default(),
        };
        for (slot, quotas) in slots.iter().enumerate() {
            let version = versions.turn().version(quotas);
            versions.set(slot, &version);
        }
        versions
    }

    /// The current version of a slot.
    #[inline]
    pub(crate) fn current(&self, slot: usize) -> &Arc<Version> {
        self.number(self.current[slot].load(Ordering::Acquire))
    }

    /// The number of slots.
    #[cfg(feature = "snapshot")]
    pub(super) fn slots(&self) -> usize {
        self.current.len()
    }

    /// Makes a version current.
    pub(super) fn set(&self, slot: usize, version: &Version) {
        self.current[slot].store(version.number, Ordering::Release);
    }

    /// The version of this number, which was made.
    pub(super) fn number(&self, number: u64) -> &Arc<Version> {
        self.entry(number).get().expect("a version is there before its number is")
    }

    fn entry(&self, number: u64) -> &OnceBox<Arc<Version>> {
        let chunk = (number + 1).ilog2();
        let make = || Box::new(core::iter::repeat_with(OnceBox::new).take(1 << chunk).collect());
        let place = usize::try_from(number + 1 - (1 << chunk)).expect("a chunk fits in memory");
        &self.chunks[chunk as usize].get_or_init(make)[place]
    }

    /// Whether a key may have quotas of its own.
    #[inline]
    pub(super) fn may_have_own(&self) -> bool {
        self.any_own.load(Ordering::Acquire)
    }

    /// A key gets quotas of its own.
    pub(super) fn have_own(&self) {
        self.any_own.store(true, Ordering::Release);
    }

    /// Waits for the turn to change quotas. No decision does.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { versions: self, numbers: self.numbers.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The versions that the keys of a new arena are decided by.
    pub(super) fn plans(&self) -> Arc<Plans> {
        let all = (0..self.current.len()).map(|slot| Arc::clone(self.current(slot))).collect();
        Arc::new(Plans { all, own: None })
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter_map(OnceBox::get);
        let versions = chunks.clone().flatten().filter_map(OnceBox::get);
        // Each list of quotas is in its version and in the numbers.
        let version = |version: &Arc<Version>| {
            ARC + size_of_val(version)
                + size_of_val(&**version)
                + version.plan.bytes()
                + 2 * size_of_val(&*version.quotas)
        };
        size_of_val(&*self.current)
            + chunks.map(|chunk| size_of_val(chunk) + size_of_val(&**chunk)).sum::<usize>()
            + versions.map(version).sum::<usize>()
            + bytes_of_map(&self.turn().numbers)
    }
}

/// The turn to change quotas.
pub(super) struct Turn<'a> {
    versions: &'a Versions,
    numbers: MutexGuard<'a, HashMap<Box<[Quota]>, u64>>,
}

/// The bytes on the heap of a map with so many entries: a power of two of them, seven eighths of
/// which are its capacity, and a byte of control each.
fn bytes_of_map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    match map.capacity() {
        0 => 0,
        capacity => (capacity * 8 / 7).next_power_of_two() * (size_of::<(K, V)>() + 1) + 16,
    }
}

impl Turn<'_> {
    /// The version of validated quotas. Equal quotas have one version.
    pub(super) fn version(&mut self, quotas: &[Quota]) -> Arc<Version> {
        if let Some(&number) = self.numbers.get(quotas) {
            return Arc::clone(self.versions.number(number));
        }
        let number = self.numbers.len() as u64;
        let most = quotas.iter().map(Quota::limit).min().unwrap_or(0);
        let version = Arc::new(Version { number, quotas: quotas.into(), plan: Plan::new(quotas), most });
        let _ = self.versions.entry(number).set(Box::new(Arc::clone(&version)));
        self.numbers.insert(quotas.into(), number);
        version
    }
}

impl Plans {
    /// Bytes on the heap, with its own and those of its `Arc`.
    pub(super) fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| size_of_val(&**own) + bytes_of_map(own));
        ARC + size_of_val(self) + size_of_val(&*self.all) + own
    }

    /// The version for a key.
    #[inline(always)]
    pub(super) fn of(&self, key: Key) -> &Arc<Version> {
        if let Some(own) = &self.own {
            if let Some(version) = own.get(&key) {
                return version;
            }
        }
        &self.all[key.slot()]
    }

    /// The same with another version for a slot.
    pub(super) fn with(&self, slot: usize, version: &Arc<Version>) -> Self {
        let mut plans = self.clone();
        plans.all[slot] = Arc::clone(version);
        plans
    }

    /// The same with another version for a key, or with none of its own.
    pub(super) fn with_own(&self, key: Key, version: Option<&Arc<Version>>) -> Self {
        let mut plans = self.clone();
        let own = plans.own.get_or_insert_default();
        match version {
            Some(version) => own.insert(key, Arc::clone(version)),
            None => own.remove(&key),
        };
        plans.own = plans.own.filter(|own| !own.is_empty());
        plans
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
