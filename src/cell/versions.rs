//! Versions of quotas, which change while they are in use, for all keys or for one.
//!
//! The quotas of a dimension are a list of *versions* that only grows; each version has a plan. One
//! word names the current one for all keys; each key with quotas of its own has another. A decision
//! reads them after the cell's head. So no decision waits for a change, and a change waits only for
//! another change. A request in progress is decided by one of the two versions.
//!
//! No permit is given up by outdated quotas. A thread that reads the clock after a change could
//! otherwise find permits expired, or an account over, that are live under the new quotas. So the
//! fast path reads the version after the clock, and the slow path checks after each reading that
//! the version is still current. If it is, the change had not been made at that reading
//! (INV-VERSION).
//!
//! A change does not touch cells. A cell is read under the version that it was written under:
//!
//! - *A log.* Stamps are the same under any quota. A version says from when on they count, because
//!   earlier ones may be gone (INV-VERSION).
//! - *An account.* Its head names its version. Until it is written anew, each request computes its
//!   state under the current version, from the moment at which that began, so its wait is true. The
//!   first request that is not a peek writes the account anew.

use std::sync::PoisonError;

use once_cell::race::OnceBox;

use super::log::loosest::Loosest;
use super::log::plan::LogPlan;
use super::plan::Plan;
use super::unchanged::Unchanged;
use crate::decision::{Denial, DenialReason};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// All versions of a dimension's quotas.
pub(crate) struct Versions {
    pub(super) first: Version,
    /// The later versions: 1, then 2 and 3, then 4 to 7, and so on.
    later: OnceBox<[Chunk; CHUNKS]>,
    /// The number of later versions.
    made: AtomicU64,
    /// The number of the current version for all keys.
    current: AtomicU64,
    /// Held while a version is made.
    pub(super) changes: Mutex<()>,
    /// The loosest of all versions, for a log.
    loosest: Loosest,
    /// Keys with quotas of their own, by some bits of their fingerprints. Empty if no key may have
    /// any.
    own: Box<[OnceBox<Own>]>,
}

/// A million changes; a thousand in this crate's own tests, which reach the end.
const CHUNKS: usize = if cfg!(test) { 10 } else { 20 };

type Chunk = OnceBox<Box<[OnceBox<Version>]>>;

/// A version: the quotas from one change to the next.
pub(crate) struct Version {
    pub(crate) number: u64,
    /// The time at which it began.
    pub(super) since: u64,
    pub(crate) plan: Plan,
    /// The quotas, in the order in which they were given.
    pub(crate) quotas: Box<[Quota]>,
    /// The largest cost of a request.
    pub(crate) most: u32,
    /// The number of the version that it replaced.
    before: u64,
}

/// A key that has quotas of its own.
struct Own {
    key: Fingerprint,
    /// The number of its version.
    current: AtomicU64,
    next: OnceBox<Own>,
}

/// The versions of one key.
#[derive(Clone, Copy)]
pub(super) struct ForKey<'a> {
    pub(super) all: &'a Versions,
    pub(super) current: &'a Version,
}

/// The keys whose quotas change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Key(Fingerprint),
}

impl Version {
    #[inline]
    pub(crate) fn check_cost(&self, cost: u32) -> Result<(), CostExceedsLimit> {
        if cost > self.most { Err(CostExceedsLimit::new(cost, self.most)) } else { Ok(()) }
    }

    /// The denial of a cost that is more than a limit.
    pub(crate) fn denial_of_cost(&self, cost: u32) -> Option<Denial> {
        let quota = (0..=u8::MAX).zip(&self.quotas).find(|(_, quota)| cost > quota.limit());
        quota.map(|(place, _)| Denial::new(Denial::NEVER, DenialReason::Quota, place))
    }

    /// The earliest time at which a key is no different from a new one, after its first request of
    /// `cost` permits at `time`.
    pub(crate) fn first_end(&self, cost: u32, time: u64) -> u64 {
        self.plan.new_keys().first_end(cost, time)
    }

    /// The version of validated quotas after `before`, if it is not the first.
    fn new(quotas: &[Quota], number: u64, since: u64, before: Option<&Self>) -> Self {
        let plan = Plan::new(quotas, before.map(|before| (&before.plan, since)));
        let most = quotas.iter().map(Quota::limit).min().unwrap_or(0);
        Self { number, since, plan, quotas: quotas.into(), most, before: before.map_or(0, |before| before.number) }
    }
}

impl Versions {
    /// The most later versions.
    pub(crate) const MOST: u64 = (1 << CHUNKS) - 1;

    /// The first version, of validated quotas.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        Self::with_own(quotas, 0)
    }

    /// The same; about so many keys may have quotas of their own.
    pub(crate) fn with_own(quotas: &[Quota], keys: usize) -> Self {
        let first = Version::new(quotas, 0, 0, None);
        let buckets = if keys == 0 { 0 } else { keys.next_power_of_two() };
        Self {
            changes: Mutex::new(()),
            loosest: Loosest::of(if let Plan::Log(plan) = &first.plan { Some(plan) } else { None }),
            first,
            later: OnceBox::new(),
            made: AtomicU64::new(0),
            current: AtomicU64::new(0),
            own: core::iter::repeat_with(OnceBox::new).take(buckets).collect(),
        }
    }

    /// The current version for all keys. It is read after the head that it decides on: so it is no
    /// older than the version of the head.
    #[inline]
    pub(crate) fn current(&self) -> &Version {
        self.number(self.current.load(Ordering::Acquire))
    }

    /// The current version for a key, read as [`current`](Self::current) is.
    #[inline(always)]
    pub(super) fn for_key(&self, key: impl FnOnce() -> Fingerprint) -> ForKey<'_> {
        if self.own.is_empty() {
            return ForKey { all: self, current: self.current() };
        }
        self.for_one_of_many(key())
    }

    #[cold]
    fn for_one_of_many(&self, key: Fingerprint) -> ForKey<'_> {
        // Read before the key's own: if the key gets its own version meanwhile, that is the later
        // one.
        let for_all = self.current();
        let own = self.own_of(key).map(|own| self.number(own.current.load(Ordering::Acquire)));
        ForKey { all: self, current: own.unwrap_or(for_all) }
    }

    /// Whether keys may have quotas of their own.
    pub(crate) fn may_have_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The current version for a key.
    pub(crate) fn current_for(&self, key: Fingerprint) -> &Version {
        self.for_key(|| key).current
    }

    fn own_of(&self, key: Fingerprint) -> Option<&Own> {
        let mut own = self.own[self.bucket(key)].get();
        while let Some(found) = own.filter(|own| own.key != key) {
            own = found.next.get();
        }
        own
    }

    fn bucket(&self, key: Fingerprint) -> usize {
        usize::try_from(key.low >> 32).unwrap_or(0) & (self.own.len() - 1)
    }

    #[inline]
    fn number(&self, number: u64) -> &Version {
        if number == 0 { &self.first } else { self.later(number) }
    }

    #[cold]
    fn later(&self, number: u64) -> &Version {
        self.entry(number).get().expect("a version is there before its number is")
    }

    fn entry(&self, number: u64) -> &OnceBox<Version> {
        let chunk = number.ilog2();
        let make = || Box::new(core::iter::repeat_with(OnceBox::new).take(1 << chunk).collect::<Box<[_]>>());
        let index = usize::try_from(number - (1 << chunk)).expect("a chunk fits in memory");
        let chunks = self.later.get_or_init(|| Box::new([const { Chunk::new() }; CHUNKS]));
        &chunks[chunk as usize].get_or_init(make)[index]
    }

    /// Whether these are the current quotas of all keys or, if the key has its own, of this key.
    pub(crate) fn are(&self, scope: Scope, quotas: &[Quota]) -> bool {
        let current = match scope {
            Scope::All => Some(self.current()),
            Scope::Key(_) if self.own.is_empty() => None,
            Scope::Key(key) => self.own_of(key).map(|own| self.number(own.current.load(Ordering::Acquire))),
        };
        current.is_some_and(|current| *current.quotas == *quotas)
    }

    /// Whether such a change can be made, if no other change comes between.
    pub(crate) fn can_change(&self, scope: Scope, quotas: &[Quota], now: impl Fn() -> u64) -> Result<(), Unchanged> {
        let _held = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.next(scope, quotas, now).map(drop)
    }

    /// Makes validated quotas current, from `now` on.
    pub(crate) fn change(&self, scope: Scope, quotas: &[Quota], now: impl Fn() -> u64) -> Result<(), Unchanged> {
        // Changes are serial, so that each knows the version before it. No decision takes this
        // lock.
        let _turn = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.next(scope, quotas, now)?;
        let number = version.number;
        if let Plan::Log(plan) = &version.plan {
            self.loosest.include(plan);
        }
        let _ = self.entry(number).set(Box::new(version));
        self.made.store(number, Ordering::Release);
        match scope {
            Scope::All => self.current.store(number, Ordering::Release),
            Scope::Key(key) => self.set_own(key, number),
        }
        Ok(())
    }

    /// The next version.
    fn next(&self, scope: Scope, quotas: &[Quota], now: impl Fn() -> u64) -> Result<Version, Unchanged> {
        if scope != Scope::All && self.own.is_empty() {
            return Err(Unchanged::NoneOfItsOwn);
        }
        let number = self.made.load(Ordering::Relaxed) + 1;
        if number > Self::MOST {
            return Err(Unchanged::TooOften);
        }
        let before = match scope {
            Scope::All => self.current(),
            Scope::Key(key) => self.current_for(key),
        };
        if quotas[0].algorithm() != before.quotas[0].algorithm() {
            return Err(Unchanged::OtherAlgorithm);
        }
        let counts_refused = |quotas: &[Quota]| quotas.iter().any(Quota::is_counting_refused);
        if counts_refused(quotas) != counts_refused(&before.quotas) {
            return Err(Unchanged::OtherRefused);
        }
        let version = Version::new(quotas, number, now().max(before.since), Some(before));
        match (&version.plan, &self.first.plan) {
            (Plan::Counter(plan), Plan::Counter(first)) if plan.layout > first.layout => {
                return Err(Unchanged::TooLarge);
            }
            (Plan::Quantised(plan), Plan::Quantised(first)) => plan.can_follow(first)?,
            _ => {}
        }
        Ok(version)
    }

    /// The limits that hold for every claim on a log, whichever version it was made under; `None`
    /// if there is one version.
    pub(super) fn loosest(&self) -> Option<LogPlan> {
        // Acquired through the claim that was made under a later version.
        (self.made.load(Ordering::Relaxed) != 0).then(|| self.loosest.plan())
    }

    /// Gives the key a version of its own.
    fn set_own(&self, key: Fingerprint, number: u64) {
        let mut place = &self.own[self.bucket(key)];
        loop {
            let make = || Box::new(Own { key, current: AtomicU64::new(number), next: OnceBox::new() });
            let own = place.get_or_init(make);
            if own.key == key {
                own.current.store(number, Ordering::Release);
                return;
            }
            place = &own.next;
        }
    }

    /// The keys with quotas of their own.
    fn own_keys(&self) -> impl Iterator<Item = &Own> {
        self.own.iter().flat_map(|bucket| core::iter::successors(bucket.get(), |own| own.next.get()))
    }

    /// The keys with quotas of their own, and the current version of each.
    #[cfg(feature = "snapshot")]
    pub(crate) fn of_single_keys(&self) -> impl Iterator<Item = (Fingerprint, &Version)> {
        self.own_keys().map(|own| (own.key, self.number(own.current.load(Ordering::Acquire))))
    }

    /// Bytes, with its own.
    pub(super) fn bytes(&self) -> usize {
        let made = self.made.load(Ordering::Acquire);
        let chunks = self.later.get().into_iter().flatten().filter_map(OnceBox::get);
        let directory = self.later.get().map_or(0, size_of_val);
        let beside = |version: &Version| version.plan.new_keys().bytes() + size_of_val(&*version.quotas);
        size_of::<Self>()
            + size_of_val(&*self.own)
            + directory
            + self.own_keys().count() * size_of::<Own>()
            + chunks.map(|chunk| size_of_val(chunk) + size_of_val(&**chunk)).sum::<usize>()
            + usize::try_from(made).unwrap_or(usize::MAX) * size_of::<Version>()
            + (0..=made).map(|number| beside(self.number(number))).sum::<usize>()
    }
}

impl<'a> ForKey<'a> {
    /// Whether this is still the current version for the key. It is checked after a clock reading
    /// that permits may expire by (INV-VERSION).
    pub(super) fn is_current(&self, key: impl FnOnce() -> Fingerprint) -> bool {
        core::ptr::eq(self.all.for_key(key).current, self.current)
    }

    /// The version before another; the first is before itself.
    pub(super) fn before(&self, version: &'a Version) -> &'a Version {
        self.all.number(version.before)
    }
}
