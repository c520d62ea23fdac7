//! [`Receipt`]: what a refund and a settlement need.

use crate::digest::KeyDigest;

/// The charge of an admitted request, by which [`refund`](crate::RedisLimiter::refund) gives its
/// permits back, and [`settle`](crate::RedisLimiter::settle) charges what it has cost in fact. It
/// cannot be cloned, so no charge is refunded or settled twice.
///
/// ```
/// use tollgate_redis::{RedisLimiter, StoreError};
///
/// async fn undo(limiter: &RedisLimiter) -> Result<(), StoreError> {
///     let decided = limiter.try_acquire_n("alice", 3).await?;
///     let refunded = limiter.refund(decided.into_receipt()).await?;
///     println!("{refunded} of 3 permits are free again");
///     Ok(())
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a receipt that is dropped keeps its charge"]
pub struct Receipt {
    /// The limiter that charged.
    pub(crate) limiter: u64,
    pub(crate) cost: u32,
    pub(crate) charges: Charges,
}

/// The dimension, the key and the time of a charge.
pub(crate) type Charge = (usize, KeyDigest, u64);

/// Those of a request. A single one needs no memory of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Charges {
    One(Charge),
    Several(Vec<Charge>),
}

impl Charges {
    pub(crate) fn as_slice(&self) -> &[Charge] {
        match self {
            Self::One(charge) => std::slice::from_ref(charge),
            Self::Several(charges) => charges,
        }
    }
}

impl Receipt {
    /// The number of permits that were charged.
    ///
    /// ```
    /// use tollgate_redis::{RedisLimiter, StoreError};
    ///
    /// async fn charged(limiter: &RedisLimiter) -> Result<u32, StoreError> {
    ///     // Zero if it was denied.
    ///     Ok(limiter.try_acquire_n("alice", 3).await?.into_receipt().cost())
    /// }
    /// ```
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Of a request that the store was not asked to charge, or did not: there is nothing to refund
    /// or to settle.
    pub(crate) fn nothing() -> Self {
        Self { limiter: 0, cost: 0, charges: Charges::Several(vec![]) }
    }
}
