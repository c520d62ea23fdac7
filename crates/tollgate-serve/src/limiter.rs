//! [`Limiter`]: the limiter of a policy, in process or on a store.

use std::sync::Arc;

use tollgate::{AnyClock, JointLimiter};
use tollgate_policy::Key;

/// The limiter of a policy.
#[cfg(feature = "redis")]
pub(crate) type Limiter = tollgate_redis::PolicyLimiter<[Key], AnyClock>;
#[cfg(not(feature = "redis"))]
pub(crate) type Limiter = InProcess;

/// A limiter in process.
pub(crate) type InProcess = JointLimiter<[Key], AnyClock>;

/// The limiter, if it decides in process.
#[cfg(feature = "redis")]
pub(crate) fn in_process(limiter: &Limiter) -> Option<&InProcess> {
    limiter.in_process().map(|limiter| &**limiter)
}

/// The limiter, to be shared, if it decides in process.
#[cfg(feature = "redis")]
pub(crate) fn shared(limiter: &Arc<Limiter>) -> Option<&Arc<InProcess>> {
    limiter.in_process()
}
#[cfg(not(feature = "redis"))]
pub(crate) fn shared(limiter: &Arc<Limiter>) -> Option<&Arc<InProcess>> {
    Some(limiter)
}

#[cfg(not(feature = "redis"))]
pub(crate) fn in_process(limiter: &Limiter) -> Option<&InProcess> {
    Some(limiter)
}
