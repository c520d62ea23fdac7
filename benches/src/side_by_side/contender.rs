//! The limiters that are compared, behind one small trait, each set up as its own documentation
//! advises.
//!
//! The two designs that are no crate are written here as one would write them by hand. They read
//! tollgate's monotonic clock, so that what differs is the design and not the clock, and they read
//! it under the lock: a reading taken before queueing for a lock may be older than the newest
//! stamp. They only say yes or no, where the crates also work out how long to wait; that favours
//! them.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use rate_net::{Algorithm, Eviction};
use tollgate::{Clock, CoarseClock, DirectLimiter, Limiter, MonotonicClock};

use crate::side_by_side::keys::Key;

/// How finely the coarse clock ticks.
const COARSE_RESOLUTION: Duration = Duration::from_millis(1);

/// A limiter of keys.
pub trait Contender<K>: Sync {
    /// Whether one permit for `key` was granted.
    #[inline]
    fn try_acquire(&self, key: &K) -> bool {
        self.try_acquire_n(key, 1)
    }

    /// Whether `cost` permits were, all of them.
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool;
}

/// Who is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// This crate: the sliding window log.
    Tollgate,
    /// This crate's token bucket: what governor decides, by our means.
    Bucket,
    /// The crate `governor`: GCRA in one word a key.
    Governor,
    /// The crate `rate-net`, with its exact log.
    RateNet,
    /// Deques of stamps in a sharded map.
    ShardedDeques,
    /// Deques of stamps in a map under one lock.
    OneLock,
}

impl Name {
    /// Everyone, tollgate first.
    pub const ALL: [Self; 6] =
        [Self::Tollgate, Self::Bucket, Self::Governor, Self::RateNet, Self::ShardedDeques, Self::OneLock];

    /// Those who are not us.
    pub const PEERS: [Self; 4] = [Self::Governor, Self::RateNet, Self::ShardedDeques, Self::OneLock];

    /// As shown in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::Bucket => "tollgate, bucket",
            Self::Governor => "governor",
            Self::RateNet => "rate-net",
            Self::ShardedDeques => "dashmap + deque",
            Self::OneLock => "one lock + deque",
        }
    }

    /// Whether it admits exactly `limit` in any window. GCRA and a token bucket are those that do
    /// not: they admit a burst of `limit` and besides one more for each `window / limit` that
    /// passes.
    #[must_use]
    pub const fn is_exact_log(self) -> bool {
        !matches!(self, Self::Governor | Self::Bucket)
    }
}

/// What every contender is asked to enforce.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Permits per window of each key.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// How many keys there will be, for limiters that must not run out of room. Nobody reserves
    /// memory for them.
    pub keys: usize,
    /// Whether there are to be no more keys than that, for limiters that can be told.
    pub cap: bool,
}

/// tollgate as it comes: the default hasher and growth, and the default key cap where that is
/// enough.
pub struct Tollgate<K, C = MonotonicClock>(Limiter<K, C>);

/// The algorithm that tollgate is to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The sliding window log.
    Log,
    /// The token bucket that is governor's quota: a capacity of the limit, and as much a window.
    Bucket,
}

impl<K: Key> Tollgate<K> {
    /// On the default clock.
    #[must_use]
    pub fn new(by: By, setup: Setup) -> Self {
        Self::with_clock(by, setup, MonotonicClock::new())
    }
}

impl<K: Key> Tollgate<K, CoarseClock> {
    /// On the coarse clock.
    ///
    /// # Panics
    ///
    /// When the operating system cannot start the clock's thread.
    #[must_use]
    pub fn coarse(by: By, setup: Setup) -> Self {
        Self::with_clock(by, setup, CoarseClock::new(COARSE_RESOLUTION).expect("a thread for the coarse clock"))
    }
}

impl<K: Key, C: Clock> Tollgate<K, C> {
    fn with_clock(by: By, setup: Setup, clock: C) -> Self {
        let builder = Limiter::builder(quota_of(by, setup)).clock(clock);
        let builder = if setup.keys > DEFAULT_KEY_CAP || setup.cap { builder.key_cap(setup.keys) } else { builder };
        Self(builder.build().expect("a usable quota"))
    }
}

fn quota_of(by: By, setup: Setup) -> tollgate::Quota {
    match by {
        By::Log => tollgate::Quota::new(setup.limit, setup.window),
        By::Bucket => tollgate::Quota::token_bucket(setup.limit, setup.limit, setup.window),
    }
}

/// tollgate's limiter without keys.
pub struct OneForAll(DirectLimiter);

impl OneForAll {
    /// On the default clock.
    ///
    /// # Panics
    ///
    /// When the quota can't be used.
    #[must_use]
    pub fn new(by: By, setup: Setup) -> Self {
        Self(DirectLimiter::new(quota_of(by, setup)).expect("a usable quota"))
    }
}

impl Contender<u64> for OneForAll {
    #[inline]
    fn try_acquire(&self, _: &u64) -> bool {
        self.0.try_acquire().is_admitted()
    }

    #[inline]
    fn try_acquire_n(&self, _: &u64, cost: u32) -> bool {
        self.0.try_acquire_n(cost).expect("a cost within the limit").is_admitted()
    }
}

/// What tollgate's documentation says.
const DEFAULT_KEY_CAP: usize = 1 << 20;

impl<K: Key, C: Clock + Sync> Contender<K> for Tollgate<K, C> {
    #[inline]
    fn try_acquire(&self, key: &K) -> bool {
        self.0.try_acquire(key).is_admitted()
    }

    #[inline]
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool {
        self.0.try_acquire_n(key, cost).expect("a cost within the limit").is_admitted()
    }
}

/// governor's keyed limiter as it comes: its default store (`DashMap`), hasher and clock.
///
/// Its quota is a burst of `limit`, replenished at one permit each `window / limit`: the nearest to
/// "`limit` per window".
pub struct Governor<K: Key>(governor::RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock>);

impl<K: Key> Governor<K> {
    /// governor for this setup.
    ///
    /// # Panics
    ///
    /// When the limit or the window is zero, or a permit takes less than a nanosecond to come back.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self(governor::RateLimiter::keyed(governor_quota(setup)))
    }
}

fn governor_quota(setup: Setup) -> governor::Quota {
    let burst = NonZeroU32::new(setup.limit).expect("a limit above zero");
    let quota = governor::Quota::with_period(setup.window / setup.limit).expect("a rate governor can express");
    quota.allow_burst(burst)
}

/// governor's limiter without keys.
pub struct GovernorForAll(governor::DefaultDirectRateLimiter);

impl GovernorForAll {
    /// governor for this setup.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self(governor::RateLimiter::direct(governor_quota(setup)))
    }
}

impl Contender<u64> for GovernorForAll {
    #[inline]
    fn try_acquire(&self, _: &u64) -> bool {
        self.0.check().is_ok()
    }

    #[inline]
    fn try_acquire_n(&self, _: &u64, cost: u32) -> bool {
        let cost = NonZeroU32::new(cost).expect("a cost above zero");
        self.0.check_n(cost).expect("a cost within the burst").is_ok()
    }
}

impl<K: Key> Contender<K> for Governor<K> {
    #[inline]
    fn try_acquire(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }

    #[inline]
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool {
        let cost = NonZeroU32::new(cost).expect("a cost above zero");
        self.0.check_key_n(key, cost).expect("a cost within the burst").is_ok()
    }
}

/// rate-net's keyed limiter with the exact log; its default shards, clock and hasher.
///
/// Keys go in by `check_bytes`, its documented hot path (no owned key is built). The key cap has
/// twice the room that is needed: it is divided evenly over shards while keys are not, so at a
/// tight cap a full shard would evict live keys, which the others do not have to do.
pub struct RateNet(rate_net::RateLimiter);

impl RateNet {
    /// rate-net for this setup.
    ///
    /// Built by `build` and not by `try_build`, which refuses limits above 65,536 for the log; up
    /// to there they make the same limiter.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let room = if setup.cap { setup.keys } else { rate_net::DEFAULT_MAX_KEYS.max(2 * setup.keys) };
        let builder = rate_net::RateLimiter::builder().algorithm(Algorithm::SlidingWindowLog);
        Self(builder.quota(setup.limit, setup.window).eviction(Eviction::capacity(room)).build())
    }
}

impl<K: Key> Contender<K> for RateNet {
    #[inline]
    fn try_acquire(&self, key: &K) -> bool {
        self.0.check_bytes(key.bytes()).is_allow()
    }

    #[inline]
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool {
        self.0.check_n_bytes(key.bytes(), cost).is_allow()
    }
}

/// Stamps of granted permits, oldest first, of one key.
#[derive(Default)]
struct Deque(VecDeque<u64>);

impl Deque {
    #[inline]
    fn try_acquire(&mut self, quota: DequeQuota, cost: usize, now: u64) -> bool {
        while self.0.front().is_some_and(|&oldest| now.saturating_sub(oldest) >= quota.window_ns) {
            self.0.pop_front();
        }
        let admitted = self.0.len() + cost <= quota.limit;
        if admitted {
            self.0.extend(std::iter::repeat_n(now, cost));
        }
        admitted
    }
}

#[derive(Clone, Copy)]
struct DequeQuota {
    limit: usize,
    window_ns: u64,
}

impl DequeQuota {
    fn new(setup: Setup) -> Self {
        Self {
            limit: usize::try_from(setup.limit).expect("a limit that a deque can hold"),
            window_ns: u64::try_from(setup.window.as_nanos()).expect("a window of less than 584 years"),
        }
    }
}

/// The design most often written by hand in Rust: `DashMap<K, VecDeque<u64>>`, the shard locked for
/// the decision.
pub struct ShardedDeques<K> {
    quota: DequeQuota,
    clock: MonotonicClock,
    deques: DashMap<K, Deque>,
}

impl<K: Key> ShardedDeques<K> {
    /// The design for this setup.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self { quota: DequeQuota::new(setup), clock: MonotonicClock::new(), deques: DashMap::new() }
    }
}

impl<K: Key> Contender<K> for ShardedDeques<K> {
    #[inline]
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool {
        let cost = cost as usize;
        // A key that is known, the common case, is neither cloned nor looked up twice.
        if let Some(mut deque) = self.deques.get_mut(key) {
            return deque.try_acquire(self.quota, cost, self.clock.now());
        }
        let mut deque = self.deques.entry(key.clone()).or_default();
        deque.try_acquire(self.quota, cost, self.clock.now())
    }
}

/// The classic of textbooks (in Java a map of linked lists under `synchronized`): one lock around
/// everything.
pub struct OneLock<K> {
    quota: DequeQuota,
    clock: MonotonicClock,
    deques: Mutex<HashMap<K, Deque>>,
}

impl<K: Key> OneLock<K> {
    /// The design for this setup.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self { quota: DequeQuota::new(setup), clock: MonotonicClock::new(), deques: Mutex::default() }
    }
}

impl<K: Key> Contender<K> for OneLock<K> {
    #[inline]
    fn try_acquire_n(&self, key: &K, cost: u32) -> bool {
        let cost = cost as usize;
        let mut deques = self.deques.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if let Some(deque) = deques.get_mut(key) {
            return deque.try_acquire(self.quota, cost, now);
        }
        deques.entry(key.clone()).or_default().try_acquire(self.quota, cost, now)
    }
}
