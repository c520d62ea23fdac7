//! [`QuotaStatus`]: the numbers of one quota.

use core::time::Duration;

use super::denial::Denial;
use super::left::Left;

/// The permits left of one quota of a key, and the time until more are free. Part of a
/// [`Status`](crate::Status).
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, MockClock, Quota};
///
/// let clock = MockClock::new();
/// let builder = Limiter::<str>::builder(Quota::per_second(10)).and(Quota::per_minute(100));
/// let limiter = builder.clock(clock.clone()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// clock.advance(Duration::from_millis(400));
///
/// let status = limiter.try_acquire_status("alice");
/// let [second, minute] = [0, 1].map(|place| status.quotas().nth(place).unwrap());
/// assert_eq!((second.limit(), second.remaining()), (10, 8));
/// assert_eq!((minute.limit(), minute.remaining()), (100, 98));
/// // The first permit is free again before the second.
/// assert_eq!(second.next_after(), Duration::from_millis(600));
/// assert_eq!(second.reset_after(), Duration::from_secs(1));
/// assert_eq!(minute.next_after(), Duration::from_millis(59_600));
/// assert_eq!(limiter.quotas()[minute.quota()], Quota::per_minute(100));
/// assert!(!minute.is_violated());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuotaStatus {
    pub(super) dimension: u8,
    pub(super) quota: u8,
    pub(super) is_violated: bool,
    pub(crate) left: Left,
}

impl QuotaStatus {
    /// The dimension of the quota, counted from zero; zero of a limiter without dimensions.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(5)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_second(1), Quota::per_minute(9)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// let status = limiter.peek(("alice", 7))?;
    /// let left = status.quotas().map(|left| (left.dimension(), left.quota(), left.is_violated()));
    /// assert_eq!(left.collect::<Vec<_>>(), [(0, 0, false), (1, 0, true), (1, 1, false)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    /// Whether the request was denied, or would have been but for shadow mode, and this quota had
    /// fewer permits left than the cost.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        self.is_violated
    }

    /// The place of the quota among the quotas of the key, counted from zero in the given order.
    #[must_use]
    pub const fn quota(&self) -> usize {
        self.quota as usize
    }

    /// The most permits that a request can be granted: [`Quota::limit`](crate::Quota::limit).
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.left.limit
    }

    /// The permits left after the decision. This quota would admit a request of this cost now, and
    /// none of a larger cost.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.left.remaining
    }

    /// The time until [`remaining`](Self::remaining) grows, if no more permits are granted, to the
    /// nanosecond. Zero when all permits are left. [`Duration::MAX`] for a key on the [deny
    /// list](crate::Limiter::deny), and for a bucket that [starts](crate::Quota::starting_with) with
    /// less than all: it fills from the key's first request on.
    #[must_use]
    pub const fn next_after(&self) -> Duration {
        duration(self.left.next_after_ns)
    }

    /// The time until all permits of this quota are free, if no more are granted, to the
    /// nanosecond. Zero when all are free. [`Duration::MAX`] as for
    /// [`next_after`](Self::next_after).
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        duration(self.left.reset_after_ns)
    }
}

/// A time, or [`Duration::MAX`] for never.
pub(super) const fn duration(ns: u64) -> Duration {
    if ns == Denial::NEVER { Duration::MAX } else { Duration::from_nanos(ns) }
}
