//! [`LogObserver`]: denials in the log.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate::{Clock, Denial, MonotonicClock, Observation, Observer, Quota};

use crate::outcome::{Outcome, reason_name};

/// Logs denials by the crate [`tracing`](https://docs.rs/tracing), with the target `tollgate`.
///
/// - **DEBUG**: an event for each request that is denied, that shadow mode admits in its place, or
///   whose cost is above the limit. Its fields are `policy`, `result` (`quota`, `in_flight`, `key_cap`,
///   `penalty`, `deny_list`, `overruled` or `cost`) and `cost`; of a denial also `reason`,
///   `dimension`, `quota`, `retry_after` in seconds, `block`, the [number](Denial::block) of a block,
///   and, if [asked for](Self::key_hash), `key`: a hash.
/// - **WARN**: a summary, at most one a second, with `policy` and the numbers of requests since the
///   last one that were `denied`, `overruled`, and of a `cost` above the limit. The first denial is
///   told at once.
///
/// A summary is written when a request is denied. So the numbers of the last second of an attack
/// wait for the next denial, for a call of [`summarise`](Self::summarise), or for the end of the
/// observer. Each denial is in exactly one summary.
///
/// Several limiters that share an observer, in an `Arc`, share its summaries.
///
/// No event has a key as a client sent it.
///
/// ```
/// use tollgate::{Limiter, Quota};
/// use tollgate_observe::LogObserver;
///
/// let log = LogObserver::new("login").key_hash(*b"secret, 16 bytes");
/// let limiter = Limiter::<String>::builder(Quota::per_minute(5)).observer(log).build()?;
/// // WARN tollgate: requests over the limit policy="login" denied=1 overruled=0 cost=0
/// let _ = limiter.try_acquire_many(["mallory"; 100]);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// # Cost
/// Admitted requests cost nothing here. A request over the limit adds one to a counter and reads a
/// clock. A key is hashed only if something listens to DEBUG. No lock is taken.
pub struct LogObserver<C: Clock = MonotonicClock> {
    policy: String,
    secret: Option<[u8; 16]>,
    clock: C,
    /// The reading from which on the next summary is due.
    due: AtomicU64,
    since: Since,
}

/// The requests since the last summary.
#[derive(Default)]
struct Since {
    denied: AtomicU64,
    overruled: AtomicU64,
    cost: AtomicU64,
}

/// Between summaries: a second.
const PAUSE_NS: u64 = 1_000_000_000;

impl LogObserver {
    /// An observer whose events have this `policy`.
    #[must_use]
    pub fn new(policy: impl Into<String>) -> Self {
        Self {
            policy: policy.into(),
            secret: None,
            clock: MonotonicClock::new(),
            due: AtomicU64::new(0),
            since: Since::default(),
        }
    }
}

impl<C: Clock> LogObserver<C> {
    /// Tells the second between summaries by this clock; [`MonotonicClock`] by default.
    #[must_use]
    pub fn clock<D: Clock>(mut self, clock: D) -> LogObserver<D> {
        let since = core::mem::take(&mut self.since);
        let (policy, secret) = (core::mem::take(&mut self.policy), self.secret);
        LogObserver { policy, secret, clock, due: AtomicU64::new(0), since }
    }

    /// Gives the events at DEBUG a field `key`: a hash of 128 bits by SipHash-1-3 with this secret.
    /// None by default.
    ///
    /// The same key has the same hash in all events, and in all processes with the same secret. Who
    /// knows the secret can try keys out, so keep it as long and as secret as the keys.
    #[must_use]
    pub fn key_hash(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Writes the summary of the requests since the last one, if there are any: call it on a timer,
    /// so that the last ones do not wait for the next denial.
    ///
    /// ```
    /// use tollgate_observe::LogObserver;
    ///
    /// let log = LogObserver::new("login");
    /// log.summarise();
    /// ```
    pub fn summarise(&self) {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let Since { denied, overruled, cost } = &self.since;
        let (denied, overruled, cost) = (take(denied), take(overruled), take(cost));
        if denied + overruled + cost > 0 {
            let policy = &*self.policy;
            tracing::warn!(target: TARGET, policy, denied, overruled, cost, "requests over the limit");
        }
    }

    fn summarise_if_due(&self) {
        let (now, due) = (self.clock.now(), self.due.load(Ordering::Relaxed));
        // Of several threads one writes.
        let swap = |next| self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if now >= due && swap(now.saturating_add(PAUSE_NS)).is_ok() {
            self.summarise();
        }
    }

    fn tell(&self, seen: &Observation<'_>, outcome: Outcome) {
        let denial = seen.denial();
        let place = denial.map(|denial| denial.dimension());
        tracing::debug!(
            target: TARGET,
            policy = &*self.policy,
            result = outcome.name(),
            cost = seen.cost(),
            reason = denial.map(|denial| reason_name(denial.reason())),
            dimension = place.and_then(|place| seen.dimension(place)),
            quota = seen.quota().map(Quota::to_string),
            retry_after = denial.and_then(seconds),
            block = denial.and_then(|denial| denial.block()),
            key = place.and_then(|place| self.hash_of(seen, place)),
            "request over the limit"
        );
    }

    fn hash_of(&self, seen: &Observation<'_>, dimension: usize) -> Option<String> {
        let mut hasher = SipHasher13::new_with_key(self.secret.as_ref()?);
        seen.key(dimension)?.hash_into(&mut hasher);
        Some(format!("{:032x}", hasher.finish128().as_u128()))
    }
}

const TARGET: &str = "tollgate";

fn seconds(denial: Denial) -> Option<f64> {
    denial.retry_after_secs().map(|_| denial.retry_after().as_secs_f64())
}

impl<C: Clock + Send + Sync> Observer for LogObserver<C> {
    fn observe(&self, seen: &Observation<'_>) {
        let outcome = Outcome::of(seen);
        let counter = match outcome {
            Outcome::Admitted | Outcome::Uncounted => return,
            Outcome::Denied(_) => &self.since.denied,
            Outcome::Overruled => &self.since.overruled,
            Outcome::Cost => &self.since.cost,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.tell(seen, outcome);
        self.summarise_if_due();
    }
}

impl<C: Clock> Drop for LogObserver<C> {
    fn drop(&mut self) {
        self.summarise();
    }
}

impl<C: Clock> fmt::Debug for LogObserver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogObserver").field("policy", &self.policy).finish_non_exhaustive()
    }
}
