//! The quotas that the keys of a table have, and the plan to decide by them.

use core::hash::{BuildHasherDefault, Hasher};
use core::ops::Deref;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use super::account::blocks::Blocks;
use super::account::bucket::Bucket;
use super::account::calendar::CalendarWindow;
use super::account::line::{Queue, WarmUp};
use super::account::windows::{Counter, Window};
use super::cell::{Key, TIME_ZERO, Word};
use super::concurrency::Concurrency;
use super::log::steps::Steps;
use super::log::{LogPlan, Permits};
use super::request::{Algorithm, Request, Seen};
use super::ring::Rings;
use super::root::ARC;
use crate::clock::nanos;
use crate::decision::{Denial, FastDecision, PerQuota};
use crate::quota::{Kind, Quota};

/// The quotas of a key, by their algorithm.
#[derive(Debug)]
pub(super) enum Plan {
    Log(LogPlan<Permits>),
    QuantisedLog(LogPlan<Steps>),
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
    WarmUp(WarmUp),
    Calendar(CalendarWindow),
    Concurrency(Concurrency),
    /// No quota, but the blocks of a penalty.
    Blocks(Blocks),
}

/// An expression of the algorithm of a plan, compiled for each.
macro_rules! with_algorithm {
    ($plan:expr, $algorithm:ident => $answer:expr) => {
        match $plan {
            Plan::Log($algorithm) => $answer,
            Plan::QuantisedLog($algorithm) => $answer,
            Plan::Bucket($algorithm) => $answer,
            Plan::Queue($algorithm) => $answer,
            Plan::Window($algorithm) => $answer,
            Plan::Counter($algorithm) => $answer,
            Plan::WarmUp($algorithm) => $answer,
            Plan::Calendar($algorithm) => $answer,
            Plan::Concurrency($algorithm) => $answer,
            Plan::Blocks($algorithm) => $answer,
        }
    };
}
pub(super) use with_algorithm;

impl Plan {
    /// The plan of validated quotas, of a clock that reads zero at `origin`, so many nanoseconds after
    /// the time from which phases count.
    pub(super) fn new(quotas: &[Quota], origin: u64, since_1970: u64) -> Self {
        let (quota, limit) = (&quotas[0], quotas[0].limit());
        let boundary = |phase: Duration, window: u64| {
            // A phase may be longer than every clock.
            let (window, since_1970) = (u128::from(window.max(1)), u128::from(since_1970));
            let first = (phase.as_nanos() % window + window - since_1970 % window) % window;
            origin.saturating_add(u64::try_from(first).unwrap_or_default())
        };
        match quota.kind() {
            Kind::Log => Self::Log(LogPlan::<Permits>::new(quotas)),
            Kind::QuantisedLog { window, resolution } => {
                Self::QuantisedLog(LogPlan::<Steps>::new(quota, nanos(window), nanos(resolution)))
            }
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                Self::Bucket(Bucket::new(limit, permits, nanos(per), quota.start().unwrap_or(limit)))
            }
            Kind::LeakyQueue { leak, per, max_delay } => {
                Self::Queue(Queue::new(limit, leak, nanos(per), nanos(max_delay)))
            }
            Kind::WarmUp { rate, per, warm_up } => Self::WarmUp(WarmUp::new(limit, rate, nanos(per), nanos(warm_up))),
            Kind::FixedWindow => {
                let window = quota.window_ns();
                Self::Window(Window::new(limit, window, quota.phase().map(|phase| boundary(phase, window))))
            }
            Kind::Calendar { per, zone } => Self::Calendar(CalendarWindow::new(limit, per, zone, origin, since_1970)),
            Kind::Concurrency { .. } => Self::Concurrency(Concurrency { limit }),
            Kind::SlidingCounter { window } => {
                let window = nanos(window);
                Self::Counter(Counter::new(limit, window, Some(boundary(quota.phase().unwrap_or_default(), window))))
            }
        }
    }

    /// The rest of the block that is running, and its number.
    pub(super) fn block(&self, seen: Seen<'_>) -> Option<(u64, u8)> {
        if let Self::Blocks(blocks) = self { blocks.running(seen.word.state(), seen.now) } else { None }
    }

    /// A frozen word of a key under these quotas, as it goes on under others in another arena: as
    /// that of a new key, if their algorithm is another.
    pub(super) fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        match (self, under) {
            (Self::Log(of), Self::Log(under)) => of.moved(seen, under, to),
            (Self::QuantisedLog(of), Self::QuantisedLog(under)) => of.moved(seen, under, to),
            (Self::Bucket(of), Self::Bucket(under)) => of.moved(seen, under, to),
            (Self::Queue(of), Self::Queue(under)) => of.moved(seen, under, to),
            (Self::Window(of), Self::Window(under)) => of.moved(seen, under, to),
            (Self::Counter(of), Self::Counter(under)) => of.moved(seen, under, to),
            (Self::WarmUp(of), Self::WarmUp(under)) => of.moved(seen, under, to),
            (Self::Calendar(of), Self::Calendar(under)) => of.moved(seen, under, to),
            (Self::Concurrency(of), Self::Concurrency(under)) => of.moved(seen, under, to),
            (Self::Blocks(of), Self::Blocks(under)) => of.moved(seen, under, to),
            // Both are fixed windows.
            (Self::Window(of), Self::Calendar(under)) => {
                Word::of(under.converted_from(of, seen.word.state(), seen.now))
            }
            (Self::Calendar(of), Self::Window(under)) => Word::of(of.converted_to(under, seen.word.state(), seen.now)),
            // Each is named, so that a new one is not forgotten here.
            (Self::Log(_) | Self::QuantisedLog(_) | Self::Bucket(_) | Self::Queue(_), _)
            | (Self::Window(_) | Self::Counter(_) | Self::WarmUp(_) | Self::Calendar(_), _)
            | (Self::Concurrency(_) | Self::Blocks(_), _) => Word::NEW,
        }
    }
}

/// The algorithm of the plan.
impl Deref for Plan {
    type Target = dyn Algorithm;

    fn deref(&self) -> &Self::Target {
        with_algorithm!(self, algorithm => algorithm)
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

impl Version {
    /// The version of validated quotas.
    fn new(quotas: &[Quota], since_1970: u64) -> Self {
        let counts_requests = quotas.iter().any(|quota| matches!(quota.kind(), Kind::Concurrency { .. }));
        let most = if counts_requests { u32::MAX } else { quotas.iter().map(Quota::limit).min().unwrap_or(0) };
        Self { quotas: quotas.into(), plan: Plan::new(quotas, TIME_ZERO, since_1970), most }
    }

    /// That of keys without quotas, whose one permit is a block.
    pub(super) fn of_blocks(blocks: Blocks) -> Self {
        Self { quotas: [].into(), plan: Plan::Blocks(blocks), most: 1 }
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
    #[inline(always)]
    pub(super) fn of(&self, key: Key) -> &Arc<Version> {
        self.get(key).expect("each group has quotas")
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
