//! Why a request in several dimensions was not decided.

use super::cost::CostExceedsLimit;
use crate::texts::{texts, wraps};

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

texts! { JointError {
    WrongNumberOfKeys { keys, dimensions } => "{keys} keys for {dimensions} dimensions: give one for each, or `None` \
        where there is none";
    NoKeys => "no key in any dimension: give at least one, or decide such requests without the limiter";
    Cost(error) => "{error}";
} }

wraps! { JointError { Cost(CostExceedsLimit) } }
