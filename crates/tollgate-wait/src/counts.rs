//! [`WaitCounts`]: how many wait, and how many may not.

/// The requests of all lines, now and so far.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
/// use tollgate_wait::WaitingLimiter;
///
/// let limiter = Limiter::<u64>::new(Quota::per_hour(1))?;
/// let limiter = WaitingLimiter::new(Arc::new(limiter)).max_waiters(0, 100);
/// assert!(limiter.acquire(7).block_within(Duration::from_secs(1)).is_err());
/// assert_eq!((limiter.counts().waiters, limiter.counts().refused_of_key), (0, 1));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WaitCounts {
    /// The requests that wait now, of all keys.
    pub waiters: usize,
    /// The requests so far for which the line of their key was full:
    /// [`TooManyWaiters`](crate::WaitError::TooManyWaiters).
    pub refused_of_key: u64,
    /// The requests so far that came when as many waited as may in all:
    /// [`TooManyWaitersOfAll`](crate::WaitError::TooManyWaitersOfAll).
    pub refused_of_all: u64,
    /// The requests so far that lost their place, because they were not polled when their time was
    /// over: futures that were kept or forgotten.
    pub overdue: u64,
}
