//! [`Polite`]: a limiter that keeps to what the servers of its keys ask for.

use core::hash::{BuildHasher as _, Hasher};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tollgate::Decision;
use tollgate_wait::{Limit, WaitError};

use crate::pause::Pause;

/// The most keys whose requests are held back.
const MOST_KEYS: usize = 10_000;

/// For how many windows of a server's quota its pace holds, and for how long at least.
const WINDOWS: u32 = 10;
const AT_LEAST: Duration = Duration::from_secs(60);

/// How often it is looked whether the request that tries a server again has its answer.
const LOOK: Duration = Duration::from_millis(200);

/// A limiter that grants no permit of a key while its server has asked for a pause, and then grants
/// them at the pace of the server. (Feature `client`.)
pub struct Polite<L> {
    limiter: Arc<L>,
    /// By the hashes of the keys.
    held: Mutex<HashMap<u64, Held>>,
    hashes: RandomState,
}

/// How the requests of a key are held back.
#[derive(Debug)]
struct Held {
    /// The end of the pause.
    ends: Instant,
    /// Before this, no request is sent.
    next: Instant,
    /// The time between two requests.
    every: Duration,
    /// Whether an answer ends it, because the pace of the server is not known.
    is_trial: bool,
    /// From then on, requests are not held back.
    until: Instant,
}

impl Held {
    fn new(pause: Pause, longest: Duration, sent: Instant, now: Instant) -> Option<Self> {
        let wait = pause.wait().min(longest);
        let (every, window) = match pause.quota() {
            // Of two requests, the later may be faster on its way. So a window is taken to be longer,
            // by the time that a request and its answer take.
            Some((quota, window)) => {
                let way = now.saturating_duration_since(sent).min(window);
                (window.saturating_add(way) / quota, window)
            }
            None => (wait, wait),
        };
        let ends = now.checked_add(wait)?;
        let until = ends.checked_add(window.min(longest).saturating_mul(WINDOWS).max(AT_LEAST)).unwrap_or(ends);
        Some(Self { ends, next: ends, every: every.min(longest), is_trial: pause.quota().is_none(), until })
    }

    /// The time until a request may be sent.
    fn left(&self, now: Instant) -> Duration {
        let left = self.next.min(self.until).saturating_duration_since(now);
        // The answer to the trial may end it.
        if self.is_trial && now >= self.ends { left.min(LOOK) } else { left }
    }

    /// A time before which so many requests cannot have been sent.
    fn earliest(&self, now: Instant, requests: u64) -> Duration {
        let later = u32::try_from(requests.saturating_sub(1)).unwrap_or(u32::MAX);
        let paced = if self.is_trial { Duration::ZERO } else { self.every.saturating_mul(later) };
        self.left(now).saturating_add(paced).min(self.until.saturating_duration_since(now))
    }
}

impl<L> Polite<L> {
    /// The limiter, while no server has asked for anything.
    #[must_use]
    pub fn new(limiter: Arc<L>) -> Self {
        Self { limiter, held: Mutex::default(), hashes: RandomState::new() }
    }

    fn hash<Q>(&self, key: &Q) -> u64
    where
        L: Limit<Q>,
    {
        let mut state = self.hashes.build_hasher();
        self.limiter.hash_key(key, &mut state);
        state.finish()
    }

    /// The server of the key has answered a request that was sent then, and asks for a pause. Times
    /// are cut at the longest.
    pub fn pause<Q>(&self, key: &Q, pause: Pause, longest: Duration, sent: Instant)
    where
        L: Limit<Q>,
    {
        let key = self.hash(key);
        let now = Instant::now();
        let Some(mut new) = Held::new(pause, longest, sent, now) else { return };
        let mut held = self.held();
        if held.len() >= MOST_KEYS && !held.contains_key(&key) {
            // A pause comes before a pace.
            held.retain(|_, held| held.ends > now);
            if held.len() >= MOST_KEYS {
                return;
            }
        }
        if let Some(known) = held.get(&key) {
            new.ends = new.ends.max(known.ends);
            new.next = new.next.max(known.next);
            new.until = new.until.max(known.until);
        }
        held.insert(key, new);
    }

    /// The server of the key has answered a request that was sent then, and asks for nothing.
    pub fn answered<Q>(&self, key: &Q, sent: Instant)
    where
        L: Limit<Q>,
    {
        let key = self.hash(key);
        let mut held = self.held();
        if held.get(&key).is_some_and(|held| held.is_trial && held.ends <= sent) {
            held.remove(&key);
        }
    }

    /// The map is whole after each change, so a panic elsewhere does no harm to it.
    fn held(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Limit<Q>, Q> Limit<Q> for Polite<L> {
    type Grant = L::Grant;

    fn hash_key<H: Hasher>(&self, key: &Q, state: &mut H) {
        self.limiter.hash_key(key, state);
    }

    fn look(&self, key: &Q, cost: u32) -> Result<Decision, WaitError> {
        self.limiter.look(key, cost)
    }

    fn decide(&self, key: &Q, cost: u32) -> Result<Result<L::Grant, Duration>, WaitError> {
        let (hash, now) = (self.hash(key), Instant::now());
        let mut all = self.held();
        if all.get(&hash).is_some_and(|held| held.until <= now) {
            all.remove(&hash);
        }
        let Some(held) = all.get_mut(&hash) else {
            drop(all);
            return self.limiter.decide(key, cost);
        };
        let left = held.left(now);
        if !left.is_zero() {
            return Ok(Err(left));
        }
        let decided = self.limiter.decide(key, cost)?;
        if decided.is_ok() {
            held.next = now.checked_add(held.every).unwrap_or(now);
        }
        Ok(decided)
    }

    fn earliest(&self, key: &Q, permits: u64) -> Duration {
        let (hash, now) = (self.hash(key), Instant::now());
        let held = self.held().get(&hash).map_or(Duration::ZERO, |held| held.earliest(now, permits));
        self.limiter.earliest(key, permits).max(held)
    }

    fn reading(&self) -> u64 {
        self.limiter.reading()
    }
}
