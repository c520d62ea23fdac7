//! [`CostExceedsLimit`]: a request that can never succeed.

use core::fmt;

/// A request asked for more permits than the limit, so no wait would help.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(5))?;
/// let error = limiter.try_acquire_n("alice", 6).unwrap_err();
/// assert_eq!((error.cost(), error.limit()), (6, 5));
/// assert!(error.to_string().ends_with("ask for at most 5"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CostExceedsLimit {
    cost: u32,
    limit: u32,
}

impl CostExceedsLimit {
    pub(crate) const fn new(cost: u32, limit: u32) -> Self {
        Self { cost, limit }
    }

    /// The cost of the request.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// The most permits that a request can be granted.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }
}

impl fmt::Display for CostExceedsLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cost, limit } = self;
        write!(f, "a request of cost {cost} can never be admitted under a limit of {limit}: ask for at most {limit}")
    }
}

impl core::error::Error for CostExceedsLimit {}

#[cfg(test)]
mod tests;
