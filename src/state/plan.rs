//! The quotas that the keys of a table have, and the plan to decide by them.

use core::any::Any;
use core::hash::{BuildHasherDefault, Hasher};
use core::ops::Deref;
use std::collections::HashMap;
use std::sync::Arc;

use super::account::blocks::Blocks;
use super::cell::{Key, TIME_ZERO, Word};
use super::code::{Code, Given, Numbers};
use super::request::{Algorithm, Request, Seen};
use super::ring::Rings;
use super::root::ARC;
use crate::decision::{Denial, FastDecision, PerQuota};
use crate::quota::{Kind, Quota};

/// The quotas of a key, with the code of their algorithm.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) numbers: Numbers,
    pub(super) code: Code,
}

impl Plan {
    /// The plan of validated quotas, of a clock that reads zero at `origin`, so many nanoseconds after
    /// the time from which phases count.
    pub(super) fn new(quotas: &[Quota], origin: u64, since_1970: u64) -> Self {
        let given = Given { quotas, origin, since_1970 };
        let code: &dyn Any = *quotas[0].code.0;
        let made = code.downcast_ref().and_then(|code: &Code| Some((*code, (code.numbers)(&given)?)));
        let (code, numbers) = made.expect("a quota has the code of its algorithm");
        Self { numbers, code }
    }

    /// The rest of the block that is running, and its number.
    pub(super) fn block(&self, seen: Seen<'_>) -> Option<(u64, u8)> {
        if let Numbers::Blocks(blocks) = &self.numbers { blocks.running(seen.word.state(), seen.now) } else { None }
    }

    /// A frozen word of a key under these quotas, as it goes on under others in another arena: as
    /// that of a new key, if their algorithm is another.
    pub(super) fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        let (of, under_numbers) = (&self.numbers, &under.numbers);
        let converted = |code: &Code| code.converted?(of, seen, under_numbers);
        let moved = (self.code.moved)(of, seen, under_numbers, to);
        moved.or_else(|| [self.code, under.code].iter().find_map(converted)).unwrap_or(Word::NEW)
    }
}

/// The algorithm of the plan.
impl Deref for Plan {
    type Target = dyn Algorithm;

    #[inline]
    fn deref(&self) -> &Self::Target {
        (self.code.algorithm)(&self.numbers)
    }
}

/// The quotas of some keys.
#[derive(Debug)]
pub(crate) struct Version {
    /// Callers have them, too.
    pub(crate) quotas: Arc<[Quota]>,
    pub(super) plan: Plan,
    /// The most permits that one request can get. A concurrency limit counts any cost as one request.
    pub(crate) most: u32,
}

/// The versions that decide for the keys of an arena.
#[derive(Clone, Debug)]
pub(super) struct Plans {
    /// By the group of the key.
    pub(super) all: Box<[Arc<Version>]>,
    /// Those of single keys, if there are any.
    pub(super) own: Option<Box<OwnPlans>>,
    /// From when phases count to the clock's origin.
    since_1970: u64,
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

/// The version that is the key's own. One function for all but the short way.
#[inline(never)]
fn own_of(own: &OwnPlans, key: Key) -> Option<&Arc<Version>> {
    own.get(&key)
}

impl Version {
    /// The version of validated quotas.
    fn new(quotas: &[Quota], since_1970: u64) -> Self {
        let counts_requests = quotas.iter().any(|quota| matches!(quota.kind(), Kind::Concurrency { .. }));
        let most = if counts_requests { u32::MAX } else { quotas.iter().map(Quota::limit).min().unwrap_or(0) };
        Self { quotas: quotas.into(), plan: Plan::new(quotas, TIME_ZERO, since_1970), most }
    }

    /// That of keys without quotas, whose one permit is a block.
    pub(super) fn of_blocks(blocks: Blocks, code: Code) -> Self {
        Self { quotas: [].into(), plan: Plan { numbers: Numbers::Blocks(blocks), code }, most: 1 }
    }

    /// Bytes on the heap, with its own and those of its `Arc`.
    fn bytes(&self) -> usize {
        2 * ARC + size_of_val(self) + self.plan.bytes() + size_of_val(&*self.quotas)
    }

    /// The answer to a request, or that no wait helps, if the cost is above the limit. Writes what is
    /// left to `left`. `None` if the word changed meanwhile.
    pub(super) fn peek(&self, seen: Seen<'_>, request: Request, left: &mut PerQuota) -> Option<FastDecision> {
        if request.cost <= self.most {
            let (decision, ..) = self.plan.propose(seen, request.peek(), Some(left)).answer()?;
            return Some(decision);
        }
        // Such a request is never granted and never counts, also if something else denies it. So the
        // plan tells only what is left.
        self.plan.propose(seen, Request { cost: 0, ..request.peek() }, Some(left)).answer()?;
        let quota = (0..).zip(&*self.quotas).find(|(_, quota)| request.cost > quota.limit());
        Some(FastDecision::denied(Denial::NEVER, quota.map_or(0, |(index, _)| index)))
    }
}

/// The share of one of those that have a version in its bytes, in 1024ths of a byte: it is often some
/// bytes and a half, and there is one for each key.
pub(super) fn share(version: &Arc<Version>) -> usize {
    (version.bytes() << 10) / Arc::strong_count(version)
}

/// The bytes on the heap of a map with so many entries: a power of two of them, seven eighths of
/// which are its capacity, and a byte of control each.
fn bytes_of_map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    match map.capacity() {
        0 => 0,
        capacity => (capacity * 8 / 7).next_power_of_two() * (size_of::<(K, V)>() + 1) + 16,
    }
}

impl Plans {
    /// Those of an empty table: validated quotas for each group.
    pub(super) fn new(groups: &[&[Quota]], since_1970: u64) -> Self {
        let all = groups.iter().map(|quotas| Arc::new(Version::new(quotas, since_1970))).collect();
        Self { all, own: None, since_1970 }
    }

    /// Bytes on the heap, with its own and those of its `Arc`, and its share of each version.
    pub(super) fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| size_of_val(&**own) + bytes_of_map(own));
        let versions = self.versions().map(share).sum::<usize>() >> 10;
        ARC + size_of_val(self) + size_of_val(&*self.all) + own + versions
    }

    fn versions(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.all.iter().chain(self.own.iter().flat_map(|own| own.values()))
    }

    /// The version of validated quotas: the one that another key has, if there is one.
    pub(super) fn version(&self, quotas: &[Quota]) -> Arc<Version> {
        let there = self.versions().find(|version| *version.quotas == *quotas);
        there.map_or_else(|| Arc::new(Version::new(quotas, self.since_1970)), Arc::clone)
    }

    /// The version of all keys, if they have the same.
    pub(super) fn common(&self) -> Option<&Arc<Version>> {
        if let ([common], None) = (&*self.all, &self.own) { Some(common) } else { None }
    }

    /// The version for a key.
    #[inline]
    pub(super) fn of(&self, key: Key) -> &Arc<Version> {
        if let Some(own) = &self.own {
            if let Some(version) = own_of(own, key) {
                return version;
            }
        }
        &self.all[key.group()]
    }

    /// The same with one more group.
    pub(super) fn and(self, version: Version) -> Self {
        Self { all: self.all.into_iter().chain([Arc::new(version)]).collect(), ..self }
    }

    /// The same with another version for a group.
    pub(super) fn with(&self, group: usize, version: &Arc<Version>) -> Self {
        let mut plans = self.clone();
        plans.all[group] = Arc::clone(version);
        plans
    }

    /// The same with other versions for keys, or with none of their own.
    pub(super) fn with_own<'a>(&self, versions: impl IntoIterator<Item = (Key, Option<&'a Arc<Version>>)>) -> Self {
        let mut plans = self.clone();
        let own = plans.own.get_or_insert_default();
        for (key, version) in versions {
            match version {
                Some(version) => own.insert(key, Arc::clone(version)),
                None => own.remove(&key),
            };
        }
        plans.own = plans.own.filter(|own| !own.is_empty());
        plans
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
