//! The limiters that requests can wait for.

use core::hash::Hash;
use core::time::Duration;

use tollgate::{
    Admission, Algorithm, AsKey, Clock, Decision, DirectLimiter, Fingerprinter, JointLimiter, Limiter, Quota,
    QuotaStatus, Status,
};

use crate::error::WaitError;

/// A limiter that requests can wait for: a [`Limiter`], a [`DirectLimiter`], a [`JointLimiter`]
/// over a tuple of keys, or what you make of one.
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
pub trait Limit {
    /// The key of a request. Requests with equal keys wait in one line.
    type Key: Clone + Eq + Hash;

    /// What an admitted request gets.
    type Grant;

    /// The decision on a request, without a charge.
    ///
    /// # Errors
    ///
    /// If no wait would help.
    fn look(&self, key: &Self::Key, cost: u32) -> Result<Decision, WaitError>;

    /// Decides a request, and charges it if it is admitted. If it is denied, tells the wait.
    ///
    /// # Errors
    ///
    /// If no wait would help.
    fn decide(&self, key: &Self::Key, cost: u32) -> Result<Result<Self::Grant, Duration>, WaitError>;

    /// A time before which the key cannot have been granted so many permits from now on. Zero where
    /// none is known: in several dimensions, and by a sliding counter.
    fn earliest(&self, key: &Self::Key, permits: u64) -> Duration;

    /// The nanoseconds of the limiter's clock.
    fn reading(&self) -> u64;
}

impl<K: Clone + Eq + Hash, C: Clock, F: Fingerprinter> Limit for Limiter<K, C, F>
where
    for<'a> &'a K: AsKey<K>,
{
    type Key = K;
    type Grant = Admission;

    fn look(&self, key: &K, cost: u32) -> Result<Decision, WaitError> {
        Ok(self.peek_n(key, cost)?.decision())
    }

    fn decide(&self, key: &K, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.try_acquire_n(key, cost)?))
    }

    fn earliest(&self, key: &K, permits: u64) -> Duration {
        earliest(&self.peek(key), &self.quotas(), permits)
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }
}

impl<C: Clock> Limit for DirectLimiter<C> {
    type Key = ();
    type Grant = Admission;

    fn look(&self, (): &(), cost: u32) -> Result<Decision, WaitError> {
        Ok(self.peek_n(cost)?.decision())
    }

    fn decide(&self, (): &(), cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.try_acquire_n(cost)?))
    }

    fn earliest(&self, (): &(), permits: u64) -> Duration {
        earliest(&self.peek(), &self.quotas(), permits)
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }
}

/// Dimensions of these keys.
macro_rules! dimensions {
    ($($key:ident $name:ident),+) => {
        impl<$($key: Clone + Eq + Hash,)+ C: Clock, F: Fingerprinter> Limit for JointLimiter<($($key,)+), C, F> {
            type Key = ($($key,)+);
            type Grant = Admission;

            fn look(&self, ($($name,)+): &Self::Key, cost: u32) -> Result<Decision, WaitError> {
                Ok(self.peek_n(($($name,)+), cost)?.decision())
            }

            fn decide(&self, ($($name,)+): &Self::Key, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
                Ok(granted(self.try_acquire_n(($($name,)+), cost)?))
            }

            fn earliest(&self, _: &Self::Key, _: u64) -> Duration {
                Duration::ZERO
            }

            fn reading(&self) -> u64 {
                self.clock().now()
            }
        }
    };
}

dimensions!(A a);
dimensions!(A a, B b);
dimensions!(A a, B b, D d);
dimensions!(A a, B b, D d, E e);
dimensions!(A a, B b, D d, E e, G g);
dimensions!(A a, B b, D d, E e, G g, H h);
dimensions!(A a, B b, D d, E e, G g, H h, I i);
dimensions!(A a, B b, D d, E e, G g, H h, I i, J j);

pub(crate) fn granted(decision: Decision) -> Result<Admission, Duration> {
    match decision {
        Decision::Admitted(admission) => Ok(admission),
        Decision::Denied(denial) => Err(denial.retry_after()),
    }
}

/// The latest of the times that the quotas tell.
pub(crate) fn earliest(status: &Status, quotas: &[Quota], permits: u64) -> Duration {
    // A key may have quotas of its own.
    let each = status.quotas().zip(quotas).filter(|(left, quota)| left.limit() == quota.limit());
    let time = |(left, quota): (QuotaStatus, &Quota)| {
        let missing = permits.saturating_sub(left.remaining().into());
        let Some(later) = missing.checked_sub(1) else { return Duration::ZERO };
        left.next_after().saturating_add(at_least(quota, later))
    };
    each.map(time).max().unwrap_or_default()
}

/// The time between a permit and the last of so many later ones, at least. For a [`Limit`] of your
/// own.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// assert_eq!(tollgate_wait::at_least(&Quota::per_second(10), 25), Duration::from_secs(2));
/// ```
#[must_use]
pub fn at_least(quota: &Quota, later: u64) -> Duration {
    let (window, limit) = (quota.window().as_nanos(), u128::from(quota.limit()));
    let later = u128::from(later);
    let nanos = match quota.algorithm() {
        // The window is rounded up to a nanosecond.
        Algorithm::TokenBucket | Algorithm::LeakyBucket => (window.saturating_sub(1) * later) / limit,
        Algorithm::SlidingWindowLog | Algorithm::FixedWindow => later / limit * window,
        _ => 0,
    };
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}
