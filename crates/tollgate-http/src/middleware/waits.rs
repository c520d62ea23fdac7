//! [`Waits`]: requests that wait their turn.

use core::hash::{Hash, Hasher};
use core::time::Duration;

use tollgate::Decision;
use tollgate_wait::{Limit, Lines, TokioTimer, WaitError, at_least};

use super::charge::Charge;
use super::gate::{AskedWith, Item, Items, Refusal, Tell};
use super::limits::{Limits, Outcome};
use super::values::FieldValue;
use crate::limit::Usage;
use crate::problem::DenialKind;

/// The lines in which requests over the limit wait, by timers of tokio. (Feature `wait`.)
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tollgate::BuildError> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use bytes::Bytes;
/// use tollgate::{Limiter, Quota, TokioClock};
/// use tollgate_http::middleware::{Limits, Options, Outcome, Waits};
///
/// let limiter = Limiter::<u64>::builder(Quota::per_second(1)).clock(TokioClock::new()).build()?;
/// let limits = Limits::<_, Bytes>::new(Arc::new(limiter), Options::default());
/// let waits = Waits::default().within(Duration::from_secs(1));
/// for _ in 0..3 {
///     assert!(matches!(waits.decide(&limits, 7, 1).await, Outcome::Admitted(_)));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Waits {
    within: Duration,
    most_of_key: usize,
    most_of_all: usize,
    lines: Lines,
}

/// Requests do not wait. Once they do, at most 100 requests wait for one key, and 10,000 in all.
impl Default for Waits {
    fn default() -> Self {
        Self::new(Duration::ZERO, 100, 10_000)
    }
}

impl Waits {
    fn new(within: Duration, most_of_key: usize, most_of_all: usize) -> Self {
        Self { within, most_of_key, most_of_all, lines: Lines::new(most_of_key, most_of_all) }
    }

    /// Lines in which a request waits at most so long.
    #[must_use]
    pub fn within(&self, within: Duration) -> Self {
        Self::new(within, self.most_of_key, self.most_of_all)
    }

    /// Lines in which at most so many requests wait for one key, and for all keys.
    #[must_use]
    pub fn max_waiters(&self, of_key: usize, of_all: usize) -> Self {
        Self::new(self.within, of_key, of_all)
    }

    /// Whether requests wait.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !self.within.is_zero()
    }

    /// Decides a request of a cost of at least 1 as [`Limits::decide`] does, once its permits are
    /// free and its turn has come. A request whose permits are too far away is denied at once.
    ///
    /// A future that is dropped leaves the line, and is charged nothing.
    pub async fn decide<L, K, V>(&self, limits: &Limits<L, V>, keys: K, cost: u32) -> Outcome<L, K, V>
    where
        L: AskedWith<K>,
        K: Hash + Clone,
        V: FieldValue,
    {
        let asked = Asked { limits };
        let wait = match self.lines.wait(&asked, &keys, cost, self.within, &TokioTimer).await {
            Ok(charge) => return Outcome::Admitted(charge),
            Err(WaitError::TooLong { wait }) => wait,
            // Until a place in the line is free.
            Err(_) => Duration::from_nanos(1),
        };
        let is_behind = self.lines.waiters(&asked, &keys) > 0;
        asked.deny(keys, wait, cost, is_behind)
    }
}

/// A limiter that is waited for.
struct Asked<'a, L, V> {
    limits: &'a Limits<L, V>,
}

impl<L: AskedWith<K>, K: Clone + Hash, V: FieldValue> Limit<K> for Asked<'_, L, V> {
    type Grant = Option<Charge<L, K, V>>;

    fn hash_key<H: Hasher>(&self, keys: &K, state: &mut H) {
        keys.hash(state);
    }

    fn look(&self, keys: &K, cost: u32) -> Result<Decision, WaitError> {
        // A cost above the limit: `deny` tells it.
        self.limits.limiter().look(keys, cost).ok_or(WaitError::TooLong { wait: Duration::MAX })
    }

    fn decide(&self, keys: &K, cost: u32) -> Result<Result<Self::Grant, Duration>, WaitError> {
        Ok(match self.limits.decide(keys.clone(), cost) {
            Outcome::Admitted(charge) => Ok(charge),
            Outcome::Denied(denied) => Err(denied.refusal.wait),
        })
    }

    fn earliest(&self, keys: &K, permits: u64) -> Duration {
        let limiter = self.limits.limiter();
        let Some(left) = limiter.left(keys, Tell::All) else { return Duration::ZERO };
        let (mut dimension, mut latest) = (0, Duration::ZERO);
        limiter.each_quotas(keys, |_, quotas| {
            // A request in flight may end at any time.
            for item in left.iter().filter(|item| item.dimension() == dimension && !item.counts_requests) {
                let quota = quotas.get(item.quota()).filter(|quota| quota.limit() == item.limit);
                let later = permits.saturating_sub(item.usage.remaining.into()).checked_sub(1);
                if let (Some(quota), Some(later)) = (quota, later) {
                    latest = latest.max(item.usage.next_after.saturating_add(at_least(quota, later)));
                }
            }
            dimension += 1;
        });
        latest
    }

    fn reading(&self) -> u64 {
        self.limits.limiter().reading()
    }
}

impl<L, V: FieldValue> Asked<'_, L, V> {
    /// The outcome of a request that cannot wait for its permits, which are this far away at least.
    fn deny<K>(&self, keys: K, wait: Duration, cost: u32, is_behind: bool) -> Outcome<L, K, V>
    where
        L: AskedWith<K>,
        K: Clone,
    {
        let limiter = self.limits.limiter();
        // The permits that are left are for the requests that wait.
        if is_behind && limiter.look(&keys, cost).is_some_and(|decision| decision.is_admitted()) {
            let next_after = |item: &Item| if item.counts_requests { Duration::MAX } else { wait };
            let taken = |item: &Item| item.with(Usage { remaining: 0, next_after: next_after(item) });
            let left = limiter.left(&keys, Tell::Tightest);
            let violated = left.map_or(Items::NONE, |left| left.iter().map(taken).collect());
            let is_for_a_place = !violated.is_empty() && violated.iter().all(|item| item.counts_requests);
            let (kind, wait) =
                if is_for_a_place { (DenialKind::InFlight, Duration::MAX) } else { (DenialKind::Quota, wait) };
            let refusal = Refusal { kind, wait, violated, decides: None };
            return Outcome::Denied(self.limits.deny(&keys, refusal));
        }
        // The limiter counts the denial.
        let mut outcome = self.limits.decide(keys, cost);
        if let Outcome::Denied(denied) = &mut outcome {
            denied.refusal.wait = denied.refusal.wait.max(wait);
        }
        outcome
    }
}
