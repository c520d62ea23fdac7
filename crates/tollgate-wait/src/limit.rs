//! The limiters that requests can wait for.

use core::hash::{Hash, Hasher};
use core::time::Duration;

use tollgate::{
    Admission, Algorithm, AsKey, Clock, Decision, Dimensions, Fingerprinter, JointLimiter, Key, Keys, Limiter, Quota,
    QuotaStatus, Status, Tier,
};

use crate::error::WaitError;

/// A limiter that requests with a key of type `A` can wait for: a [`Limiter`], a
/// [`DirectLimiter`](tollgate::DirectLimiter),
/// a [`JointLimiter`], or what you make of one.
///
/// A request passes its key in each form that `try_acquire` of the limiter takes: see [`AsKey`] and
/// [`Keys`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{DirectLimiter, Quota};
/// use tollgate_wait::Limit;
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// assert!(limiter.look(&(), 1).is_ok_and(|decision| decision.is_admitted()));
/// assert!(limiter.decide(&(), 1).is_ok_and(|granted| granted.is_ok()));
/// // Two permits more are at least a window away.
/// assert!(limiter.earliest(&(), 2) > Duration::from_secs(60));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Limit<A> {
    /// What an admitted request gets.
    type Grant;

    /// Feeds the hasher with the key, in whatever form it is. Requests whose keys hash alike wait in
    /// one line.
    fn hash_key<H: Hasher>(&self, key: &A, state: &mut H);

    /// The decision on a request, without a charge.
    ///
    /// # Errors
    ///
    /// If no wait would help.
    fn look(&self, key: &A, cost: u32) -> Result<Decision, WaitError>;

    /// Decides a request, and charges it if it is admitted. If it is denied, tells the wait:
    /// [`Duration::MAX`] if none is known, and then [`look`](Self::look) tells why.
    ///
    /// # Errors
    ///
    /// If no wait would help.
    fn decide(&self, key: &A, cost: u32) -> Result<Result<Self::Grant, Duration>, WaitError>;

    /// A time before which the key cannot have been granted so many permits from now on. Zero where
    /// none is known: in several dimensions, and by a sliding counter.
    fn earliest(&self, key: &A, permits: u64) -> Duration;

    /// The nanoseconds of the limiter's clock.
    fn reading(&self) -> u64;
}

/// A `DirectLimiter` takes `()` for a key.
impl<K: Key + ?Sized, A: AsKey<K>, C: Clock, F: Fingerprinter> Limit<A> for Limiter<K, C, F> {
    type Grant = Admission;

    fn hash_key<H: Hasher>(&self, key: &A, state: &mut H) {
        key.tier().hash(state);
        key.hash_key(state);
    }

    fn look(&self, key: &A, cost: u32) -> Result<Decision, WaitError> {
        Ok(self.peek_by(Lent(key), cost)?.decision())
    }

    fn decide(&self, key: &A, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.acquire_by(Lent(key), cost)?))
    }

    fn earliest(&self, key: &A, permits: u64) -> Duration {
        // A cost of 1 is within each limit.
        self.peek_by(Lent(key), 1).map_or(Duration::ZERO, |status| earliest(&status, &self.quotas(), permits))
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }
}

/// A form of a key, which is asked with more than once.
pub(crate) struct Lent<'a, A>(pub(crate) &'a A);

impl<K: ?Sized, A: AsKey<K>> AsKey<K> for Lent<'_, A> {
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.0.hash_key(state);
    }

    fn tier(&self) -> Tier {
        self.0.tier()
    }
}

impl<D: Dimensions + ?Sized, A: Keys<D>, C: Clock, F: Fingerprinter> Limit<A> for JointLimiter<D, C, F> {
    type Grant = Admission;

    fn hash_key<H: Hasher>(&self, keys: &A, state: &mut H) {
        keys.hash_keys(state);
    }

    fn look(&self, keys: &A, cost: u32) -> Result<Decision, WaitError> {
        Ok(self.peek_n(keys, cost)?.decision())
    }

    fn decide(&self, keys: &A, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.try_acquire_n(keys, cost)?))
    }

    fn earliest(&self, _: &A, _: u64) -> Duration {
        Duration::ZERO
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }
}

fn granted(decision: Decision) -> Result<Admission, Duration> {
    match decision {
        Decision::Admitted(admission) => Ok(admission),
        Decision::Denied(denial) => Err(denial.retry_after()),
    }
}

/// The latest of the times that the quotas tell.
fn earliest(status: &Status, quotas: &[Quota], permits: u64) -> Duration {
    // A key may have quotas of its own. A request in flight may end at any time.
    let is_known = |(left, quota): &(QuotaStatus, &Quota)| left.limit() == quota.limit() && !left.counts_requests();
    let each = status.quotas().zip(quotas).filter(is_known);
    let time = |(left, quota): (QuotaStatus, &Quota)| {
        let missing = permits.saturating_sub(left.remaining().into());
        let Some(later) = missing.checked_sub(1) else { return Duration::ZERO };
        left.next_after().saturating_add(at_least(quota, later))
    };
    each.map(time).max().unwrap_or_default()
}

/// The time between a permit and the last of so many later ones, at least. For a [`Limit`] of your
/// own. Windows of the calendar differ in length: of them nothing is told.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Calendar, Quota, Zone};
///
/// assert_eq!(tollgate_wait::at_least(&Quota::per_second(10), 25), Duration::from_secs(2));
/// let month = Quota::calendar(10, Calendar::Month, Zone::UTC);
/// assert_eq!(tollgate_wait::at_least(&month, 25), Duration::ZERO);
/// ```
#[must_use]
pub fn at_least(quota: &Quota, later: u64) -> Duration {
    let (window, limit) = (quota.window().as_nanos(), u128::from(quota.limit()));
    let later = u128::from(later);
    let nanos = match quota.algorithm() {
        // This is the longest window, and others are shorter.
        _ if quota.calendar_window().is_some() => 0,
        // The window is rounded up to a nanosecond.
        Algorithm::TokenBucket | Algorithm::LeakyBucket => (window.saturating_sub(1) * later) / limit,
        Algorithm::SlidingWindowLog | Algorithm::FixedWindow => later / limit * window,
        _ => 0,
    };
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}
