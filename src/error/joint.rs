//! Why a request in several dimensions was not decided.

use core::fmt;

use super::cost::CostExceedsLimit;

/// Why a request in several dimensions was not decided.
///
/// ```
/// use tollgate::{Absent, JointError, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<[String]>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("endpoint", [Quota::per_minute(2)])
///     .build()?;
/// let error = limiter.try_acquire(["alice"]).unwrap_err();
/// assert_eq!(error, JointError::WrongNumberOfKeys { keys: 1, dimensions: 2 });
/// let error = limiter.try_acquire([Absent, Absent]).unwrap_err();
/// assert_eq!(error, JointError::NoKeys);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JointError {
    /// The request has another number of keys than the limiter has dimensions.
    WrongNumberOfKeys {
        /// The number of given keys.
        keys: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// The request has no key in any dimension, so no dimension is asked.
    NoKeys,
    /// The request asks for more permits than a limit.
    Cost(CostExceedsLimit),
}

impl fmt::Display for JointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongNumberOfKeys { keys, dimensions } => {
                write!(f, "{keys} keys for {dimensions} dimensions: give one for each, or `None` where there is none")
            }
            Self::NoKeys => {
                f.write_str("no key in any dimension: give at least one, or decide such requests without the limiter")
            }
            Self::Cost(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for JointError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::WrongNumberOfKeys { .. } | Self::NoKeys => None,
            Self::Cost(error) => Some(error),
        }
    }
}

impl From<CostExceedsLimit> for JointError {
    fn from(error: CostExceedsLimit) -> Self {
        Self::Cost(error)
    }
}
