//! [`Status`] and [`QuotaStatus`]: the permits left at the instant of a decision.

use core::cmp::Reverse;
use core::time::Duration;

use crate::decision::Decision;

/// A decision with the permits left of each quota, as response headers show them. All of it is as of
/// one reading of the server's clock.
///
/// ```
/// use tollgate_redis::{RedisLimiter, StoreError};
///
/// async fn headers(limiter: &RedisLimiter, user: &str) -> Result<(), StoreError> {
///     let status = limiter.try_acquire_status(user, 1).await?;
///     let tightest = status.tightest();
///     println!("{} of {} left", tightest.remaining(), tightest.limit());
///     println!("all of them in {:?}", tightest.reset_after());
///     Ok(())
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct Status {
    pub(crate) decision: Decision,
    pub(crate) quotas: Vec<QuotaStatus>,
}

impl Status {
    /// The decision; for a peek, what it would be.
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The decision alone.
    pub fn into_decision(self) -> Decision {
        self.decision
    }

    /// The permits left of each quota of each dimension, in the given order.
    #[must_use]
    pub fn quotas(&self) -> &[QuotaStatus] {
        &self.quotas
    }

    /// The quota with the fewest permits left. Of several such quotas, the one with the longest
    /// wait for more, and of these the first.
    #[must_use]
    pub fn tightest(&self) -> QuotaStatus {
        let tightness = |left: &QuotaStatus| (left.remaining, Reverse(left.next_after));
        let none = QuotaStatus::default();
        self.quotas.iter().min_by_key(|left| tightness(left)).copied().unwrap_or(none)
    }
}

/// The permits left of one quota, and the time until more are free.
///
/// ```
/// use tollgate_redis::{QuotaStatus, Status};
///
/// fn remaining(status: &Status) -> Vec<(usize, usize, u32)> {
///     status.quotas().iter().map(|left| (left.dimension(), left.quota(), left.remaining())).collect()
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct QuotaStatus {
    pub(crate) dimension: usize,
    pub(crate) quota: usize,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) next_after: Duration,
    pub(crate) reset_after: Duration,
}

impl QuotaStatus {
    /// The dimension, counted from zero. It is zero for a limiter of one.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension
    }

    /// The place of the quota among those of its dimension, counted from zero.
    #[must_use]
    pub const fn quota(&self) -> usize {
        self.quota
    }

    /// The most permits that a request can be granted.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The permits left after the decision. This quota would admit a request of this cost now, and
    /// none of a larger cost.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.remaining
    }

    /// The time until [`remaining`](Self::remaining) grows, if no more permits are granted. Zero when
    /// all are left.
    #[must_use]
    pub const fn next_after(&self) -> Duration {
        self.next_after
    }

    /// The time until all permits of this quota are free, if no more are granted. Zero when all are.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        self.reset_after
    }
}
