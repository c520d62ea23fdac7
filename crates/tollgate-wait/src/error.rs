//! Why a wait ends without permits.

use core::fmt;
use core::time::Duration;

use tollgate::{CostExceedsLimit, Denial, JointError};

/// Why a request got no permits. It was charged nothing.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
/// use tollgate_wait::{WaitError, WaitingLimiter};
///
/// let limiter = WaitingLimiter::new(Arc::new(Limiter::<u64>::new(Quota::per_hour(1))?));
/// assert!(limiter.acquire(7).block_within(Duration::ZERO).is_ok());
/// // The next permit is an hour away, so this fails at once.
/// let error = limiter.acquire(7).block_within(Duration::from_secs(60)).unwrap_err();
/// let WaitError::TooLong { wait } = error else { panic!("{error}") };
/// assert!(wait > Duration::from_secs(3000));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The wait would be longer than the request accepts. This is known as soon as it comes, or once
    /// others have taken the permits that it waited for.
    TooLong {
        /// The wait from now on, at least.
        wait: Duration,
    },
    /// The time that the request accepts passed while others were before it.
    Elapsed,
    /// As many requests as allowed wait for this key.
    TooManyWaiters {
        /// The bound, which [`max_waiters`](crate::WaitingLimiter::max_waiters) sets.
        most: usize,
    },
    /// As many requests as allowed wait for all keys together.
    TooManyWaitersOfAll {
        /// The bound, which [`max_waiters`](crate::WaitingLimiter::max_waiters) sets.
        most: usize,
    },
    /// The key is on the deny list: no wait would help.
    Denied(Denial),
    /// The request asks for more permits than the limit: no wait would help.
    Cost(CostExceedsLimit),
    /// The keys are not those of the dimensions.
    Keys(JointError),
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { wait } => write!(f, "permits are {wait:?} away, longer than the request may wait"),
            Self::Elapsed => f.write_str("others were before the request for as long as it may wait"),
            Self::TooManyWaiters { most } => write!(f, "{most} requests wait for the key, as many as may"),
            Self::TooManyWaitersOfAll { most } => write!(f, "{most} requests wait for all keys, as many as may"),
            Self::Denied(denial) => write!(f, "{denial}"),
            Self::Cost(error) => write!(f, "{error}"),
            Self::Keys(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for WaitError {}

impl From<CostExceedsLimit> for WaitError {
    fn from(error: CostExceedsLimit) -> Self {
        Self::Cost(error)
    }
}

impl From<JointError> for WaitError {
    fn from(error: JointError) -> Self {
        match error {
            JointError::Cost(error) => Self::Cost(error),
            error => Self::Keys(error),
        }
    }
}
