//! [`Decided`]: an answer in the words of `tollgate`, and who decided it.

use core::ops::Deref;

use tollgate::{Admission, Decision};

use crate::in_flight::InFlight;
use crate::receipt::Receipt;

/// A [`Decision`], or a [`Status`](tollgate::Status), with who decided it, and the receipt of its
/// charge.
///
/// It has the methods of the decision. `*decided` is the decision itself.
///
/// A wait is exact by the server's clock, in whole microseconds, from the moment of the decision.
/// That moment was before the answer came, so a caller that waits so long waits a little longer than
/// necessary, by at most the way back.
///
/// ```
/// use tollgate::Decision;
/// use tollgate_redis::{DecidedBy, RedisLimiter, StoreError};
///
/// async fn status(limiter: &RedisLimiter, user: &str) -> Result<u16, StoreError> {
///     let decided = limiter.try_acquire(user).await?;
///     if decided.decided_by() == DecidedBy::Nobody {
///         println!("not counted: the store is away");
///     }
///     Ok(match *decided {
///         Decision::Admitted(_) => 200,
///         Decision::Denied(denial) => {
///             println!("429: {denial}");
///             429
///         }
///     })
/// }
/// ```
#[derive(Debug)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct Decided<T> {
    answer: T,
    by: DecidedBy,
    receipt: Receipt,
    /// Boxed, because few requests are in flight.
    in_flight: Option<Box<InFlight>>,
}

impl<T> Decided<T> {
    pub(crate) fn new(answer: T, by: DecidedBy, receipt: Receipt) -> Self {
        Self { answer, by, receipt, in_flight: None }
    }

    /// Of an answer that charges nothing in the store.
    pub(crate) fn uncharged(answer: T, by: DecidedBy) -> Self {
        Self::new(answer, by, Receipt::nothing())
    }

    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> Decided<U> {
        let Self { answer, by, receipt, in_flight } = self;
        Decided { answer: with(answer), by, receipt, in_flight }
    }

    /// The same of a request that is in flight.
    pub(crate) fn in_flight(self, in_flight: Option<InFlight>) -> Self {
        Self { in_flight: in_flight.map(Box::new), ..self }
    }

    /// What decided the request.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.by
    }

    /// The receipt of the charge. If the store charged nothing, it has nothing to refund.
    ///
    /// ```
    /// use tollgate::Decision;
    /// use tollgate_redis::{Decided, RedisLimiter, StoreError};
    ///
    /// /// Only failed log-ins count: the attempt is charged first.
    /// async fn succeeded(limiter: &RedisLimiter, attempt: Decided<Decision>) -> Result<(), StoreError> {
    ///     limiter.refund(attempt.into_receipt()).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }

    /// The guard of a request that was decided by
    /// [`try_enter`](crate::RedisLimiter::try_enter), and the receipt of its charge in other quotas.
    /// The request is in flight until the guard is dropped. Until this is called, it is in flight as
    /// long as the decision lasts.
    ///
    /// The guard of a request that was denied, or that no concurrency limit counts, does nothing.
    ///
    /// ```
    /// use tollgate_redis::{RedisJointLimiter, StoreError};
    ///
    /// /// The limiter has tokens a minute in one dimension, and streams at a time in the other.
    /// async fn stream(limiter: &RedisJointLimiter, user: &[u8]) -> Result<(), StoreError> {
    ///     let decided = limiter.try_enter_n(&[Some(user), Some(user)], 300).await?;
    ///     if decided.is_admitted() {
    ///         let (in_flight, estimated) = decided.enter();
    ///         let tokens = 1_900; // The stream has ended.
    ///         drop(in_flight);
    ///         limiter.settle(estimated, tokens).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn enter(self) -> (InFlight, Receipt) {
        (self.in_flight.map_or_else(InFlight::nowhere, |in_flight| *in_flight), self.receipt)
    }
}

impl Decided<Decision> {
    /// An admission by a lease.
    pub(crate) fn by_lease(receipt: Receipt) -> Self {
        Self::new(Decision::Admitted(Admission::after(core::time::Duration::ZERO)), DecidedBy::Lease, receipt)
    }
}

impl<T> Deref for Decided<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.answer
    }
}

/// What decided a request.
///
/// ```
/// use tollgate::Status;
/// use tollgate_redis::{Decided, DecidedBy};
///
/// fn is_shared(status: &Decided<Status>) -> bool {
///     status.decided_by() == DecidedBy::Store
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
    /// Nobody: the store is away, and the limiter [admits](crate::OnFailure::Admit) then, without a
    /// charge.
    Nobody,
}
