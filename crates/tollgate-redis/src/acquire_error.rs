//! [`AcquireError`]: a request that a [`PolicyLimiter`](crate::PolicyLimiter) did not admit.

use core::fmt;
use core::time::Duration;

use tollgate::{Denial, JointError};

use crate::error::StoreError;

/// A [`PolicyLimiter`](crate::PolicyLimiter) did not admit a request. (Feature `policy`.)
///
/// ```
/// use tollgate_redis::AcquireError;
///
/// fn http_status(error: &AcquireError) -> u16 {
///     match error {
///         AcquireError::Store(_) => 503,
///         _ => 429,
///     }
/// }
/// # let _ = http_status;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// It was denied: in process, on the store, or while the store is away.
    Denied(Denial),
    /// It was not decided in process: it can never be admitted, or has no key.
    InProcess(JointError),
    /// It was not decided on the store: it can never be admitted, or the store is away.
    Store(StoreError),
}

impl AcquireError {
    /// The wait after which the same request succeeds; `None` if the request was not denied, or no
    /// wait helps.
    ///
    /// ```
    /// use tollgate_redis::{AcquireError, StoreError};
    ///
    /// let error = AcquireError::from(StoreError::CostExceedsLimit { cost: 7, limit: 5 });
    /// assert_eq!((error.retry_after(), error.retry_after_secs()), (None, None));
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Denied(denial) => Some(denial.retry_after()).filter(|wait| *wait < Duration::MAX),
            Self::InProcess(_) | Self::Store(_) => None,
        }
    }

    /// The [wait](Self::retry_after) in whole seconds, rounded up and at least 1: the value of a
    /// `Retry-After` header.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::Denied(denial) => denial.retry_after_secs(),
            Self::InProcess(_) | Self::Store(_) => None,
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => write!(f, "{denial}"),
            Self::InProcess(error) => write!(f, "{error}"),
            Self::Store(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for AcquireError {}

macro_rules! wraps {
    ($($variant:ident($inner:ty)),+) => {
        $(impl From<$inner> for AcquireError {
            fn from(inner: $inner) -> Self {
                Self::$variant(inner)
            }
        })+
    };
}

wraps!(Denied(Denial), InProcess(JointError), Store(StoreError));
