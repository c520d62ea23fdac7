//! [`Decision`], [`Admission`] and [`Denial`]: the words of `tollgate`, decided by a store.

use core::fmt;
use core::time::Duration;

use crate::receipt::Receipt;

/// The answer to a request: admitted, or denied with the time to wait.
///
/// ```
/// use tollgate_redis::{Decision, RedisLimiter, StoreError};
///
/// async fn status(limiter: &RedisLimiter, user: &str) -> Result<u16, StoreError> {
///     Ok(match limiter.try_acquire(user).await? {
///         Decision::Admitted(_) => 200,
///         Decision::Denied(denial) => {
///             println!("429: {denial}, {}", denial.retry_after_secs());
///             429
///         }
///     })
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a decision that is not looked at limits nothing"]
pub enum Decision {
    /// The permits were granted and charged.
    Admitted(Admission),
    /// No permits were charged, and nothing was written.
    Denied(Denial),
}

impl Decision {
    /// Whether the request was admitted.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// Whether the request was denied.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// The wait after which the same request succeeds; `None` if it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Admitted(_) => None,
            Self::Denied(denial) => Some(denial.retry_after()),
        }
    }

    /// The decision as a `Result`, for use with `?`.
    ///
    /// # Errors
    ///
    /// The [`Denial`], if the request was denied.
    pub fn into_result(self) -> Result<Admission, Denial> {
        match self {
            Self::Admitted(admission) => Ok(admission),
            Self::Denied(denial) => Err(denial),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted(admission) => write!(f, "{admission}"),
            Self::Denied(denial) => write!(f, "{denial}"),
        }
    }
}

/// An admission, with the receipt by which its permits can be refunded.
///
/// ```
/// use tollgate_redis::{Admission, RedisLimiter, StoreError};
///
/// /// Only failed log-ins count: the attempt is charged first.
/// async fn succeeded(limiter: &RedisLimiter, attempt: Admission) -> Result<(), StoreError> {
///     limiter.refund(attempt.into_receipt()).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Admission {
    receipt: Receipt,
    delay: Duration,
    by: DecidedBy,
}

impl Admission {
    pub(crate) fn new(receipt: Receipt, delay: Duration, by: DecidedBy) -> Self {
        Self { receipt, delay, by }
    }

    /// Whether the permits were charged: in the store, or by the limiter in this process. If not,
    /// the store was away, and the limiter [admits](crate::OnFailure::Admit) then.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        !matches!(self.by, DecidedBy::Nobody)
    }

    /// What decided the request.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.by
    }

    /// The time after which the request may go on. Only a
    /// [leaky queue](tollgate::Quota::leaky_queue) delays requests.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// The receipt of the charge. If the store did not charge it, it has nothing to refund.
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.delay {
            _ if !self.is_counted() => f.write_str("admitted without a charge, because the store is away"),
            Duration::ZERO => f.write_str("admitted"),
            delay => write!(f, "admitted after a delay of {delay:?}"),
        }
    }
}

/// A denied request, and the time to wait.
///
/// ```
/// use tollgate_redis::{RedisLimiter, StoreError};
///
/// async fn retry_after(limiter: &RedisLimiter, user: &str) -> Result<Option<u64>, StoreError> {
///     let denied = limiter.try_acquire(user).await?.into_result().err();
///     Ok(denied.map(|denial| denial.retry_after_secs()))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Denial {
    pub(crate) wait: Duration,
    pub(crate) dimension: usize,
    pub(crate) quota: usize,
    pub(crate) violated: u8,
    pub(crate) by: DecidedBy,
}

impl Denial {
    /// The wait after which the same request succeeds, if no other permits are granted until then.
    ///
    /// It is exact by the server's clock, in whole microseconds, from the moment of the decision.
    /// That moment was before the answer came, so a caller that waits so long waits a little longer
    /// than necessary, by at most the way back.
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.wait
    }

    /// The wait in whole seconds, rounded up and at least 1: the value of a `Retry-After` header.
    #[must_use]
    pub const fn retry_after_secs(&self) -> u64 {
        let seconds = self.wait.as_secs() + (self.wait.subsec_nanos() > 0) as u64;
        if seconds == 0 { 1 } else { seconds }
    }

    /// The dimension that decides the wait, counted from zero. It is zero for a limiter of one.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension
    }

    /// The place of the quota that decides the wait among those of its dimension, counted from zero.
    #[must_use]
    pub const fn quota(&self) -> usize {
        self.quota
    }

    /// What decided the request.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.by
    }

    /// The dimensions that deny the request, in order.
    pub fn violated(&self) -> impl Iterator<Item = usize> + use<> {
        let violated = self.violated;
        (0..8).filter(move |dimension| violated & (1 << dimension) != 0)
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many requests: try again in {} s", self.retry_after_secs())
    }
}

impl core::error::Error for Denial {}

/// What decided a request.
///
/// ```
/// use tollgate_redis::{Admission, DecidedBy};
///
/// fn is_shared(admission: &Admission) -> bool {
///     admission.decided_by() == DecidedBy::Store
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The store.
    Store,
    /// An earlier denial by the store, which is certain still.
    CachedDenial,
    /// A lease: the store had charged the permits before.
    Lease,
    /// A limiter in this process, because the store is away.
    Local,
    /// Nobody: the store is away, and the limiter admits then.
    Nobody,
}
