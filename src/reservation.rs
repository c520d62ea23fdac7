//! Permits that can be refunded: [`Reservation`] and [`Receipt`].

mod of_limiters;

use core::fmt;
use core::hash::BuildHasher;
use core::ops::Deref;
use core::time::Duration;
use std::hash::RandomState;

use crate::decision::Denial;
use crate::error::{CostExceedsLimit, JointError};
use crate::table::Refundable;

/// A number that identifies a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimiterId(u64);

impl LimiterId {
    /// A random number. Two limiters of a process share one with a probability of 2^-64.
    pub(crate) fn new() -> Self {
        Self(RandomState::new().hash_one(()))
    }
}

/// A limiter that reserves permits and takes them back: [`Limiter`](crate::Limiter),
/// [`DirectLimiter`](crate::DirectLimiter) and [`JointLimiter`](crate::JointLimiter).
///
/// This trait is not meant to be implemented elsewhere. It is for functions that take a reservation
/// of any limiter:
///
/// ```
/// use std::ops::Deref;
/// use std::time::Duration;
/// use tollgate::{Lender, Limiter, Quota, Reservation};
///
/// fn finish<P: Deref<Target: Lender>>(reserved: Reservation<P>, is_used: bool) -> u32 {
///     if is_used { reserved.commit().cost() } else { 0 }
/// }
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
/// assert_eq!(finish(limiter.reserve("alice", 2, Duration::ZERO)?, true), 2);
/// assert_eq!(finish(limiter.reserve("alice", 1, Duration::ZERO)?, false), 0);
/// assert_eq!(limiter.peek("alice").remaining(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Lender: sealed::Refund {
    /// The type of [`Reservation::status`]: [`Status`](crate::Status), or
    /// [`JointStatus`](crate::JointStatus).
    type Status;
}

impl<L: sealed::Refund> Lender for L {
    type Status = L::Told;
}

pub(crate) mod sealed {
    /// Implemented by the limiters of this crate only.
    pub trait Refund {
        /// The type of the status of a decision.
        type Told;

        /// Refunds the permits of a receipt of this limiter that still count, and returns how many.
        fn refund_receipt(&self, receipt: &super::Receipt) -> u32;
    }
}

/// Permits that are charged until the caller knows whether they are used.
///
/// Made by [`Limiter::reserve`](crate::Limiter::reserve) and its like, as of now or of a later
/// moment. **If it is dropped, its permits are refunded.** [`commit`](Self::commit) keeps them
/// charged. `P` is the pointer to its limiter: a reference, or an [`Arc`](std::sync::Arc) for a
/// reservation that goes to another thread or task
/// ([`reserve_owned`](crate::Limiter::reserve_owned)).
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
///
/// // Failed log-ins count, those that succeed do not.
/// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
/// let logs_in = |password: &str| {
///     let attempt = limiter.reserve("alice", 1, Duration::ZERO)?;
///     let is_right = password == "open sesame";
///     if !is_right {
///         attempt.commit();
///     }
///     Ok::<bool, tollgate::ReserveError>(is_right)
/// };
/// assert!(!logs_in("123456")?);
/// for _ in 0..10 {
///     assert!(logs_in("open sesame")?);
/// }
/// assert!(!logs_in("qwerty")?);
/// assert!(!logs_in("letmein")?);
/// assert!(logs_in("open sesame").is_err(), "three have failed within a minute");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a reservation that is dropped gives its permits back"]
pub struct Reservation<P: Deref<Target: Lender>> {
    limiter: P,
    receipt: Option<Receipt>,
    delay_ns: u64,
    status: <P::Target as Lender>::Status,
}

impl<P: Deref<Target: Lender>> Reservation<P> {
    pub(crate) fn new(limiter: P, receipt: Receipt, delay_ns: u64, status: <P::Target as Lender>::Status) -> Self {
        Self { limiter, receipt: Some(receipt), delay_ns, status }
    }

    /// How long to wait before going on; zero if the permits are for now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new())?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// let reserved = limiter.reserve(1, Duration::MAX)?;
    /// assert_eq!(reserved.delay(), Duration::from_secs(60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns)
    }

    /// The permits left when these were reserved, and the time until more are free: a
    /// [`Status`](crate::Status), or of a [`JointLimiter`](crate::JointLimiter) a
    /// [`JointStatus`](crate::JointStatus).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
    /// let reservation = limiter.reserve("alice", 1, Duration::ZERO)?;
    /// assert_eq!(reservation.status().remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn status(&self) -> &<P::Target as Lender>::Status {
        &self.status
    }

    /// Keeps the permits. The receipt can give them back later, and can be dropped.
    pub fn commit(mut self) -> Receipt {
        self.receipt.take().unwrap_or_else(Receipt::of_nothing)
    }

    /// Gives the permits back, as dropping the reservation does. Returns how many came back: all, or
    /// fewer. See [`refund`](crate::Limiter::refund).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(3))?;
    /// assert_eq!(limiter.reserve("alice", 2, Duration::ZERO)?.cancel(), 2);
    /// assert_eq!(limiter.peek("alice").remaining(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(mut self) -> u32 {
        self.refund()
    }

    fn refund(&mut self) -> u32 {
        self.receipt.take().map_or(0, |receipt| sealed::Refund::refund_receipt(&*self.limiter, &receipt))
    }
}

impl<P: Deref<Target: Lender>> Drop for Reservation<P> {
    fn drop(&mut self) {
        self.refund();
    }
}

impl<P: Deref<Target: Lender>> fmt::Debug for Reservation<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("receipt", &self.receipt).field("delay", &self.delay()).finish()
    }
}

/// Permits that were granted and can be refunded once, by
/// [`Limiter::refund`](crate::Limiter::refund) and its like.
///
/// If it is dropped, the permits stay charged.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota, Receipt};
///
/// let limiter = Limiter::<String>::new(Quota::per_hour(3))?;
/// let receipt: Receipt = limiter.reserve("alice", 2, Duration::ZERO)?.commit();
/// assert_eq!(receipt.cost(), 2);
/// assert_eq!(limiter.refund(receipt)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Receipt {
    limiter: Option<LimiterId>,
    cost: u32,
    charges: Charges,
}

/// The permits of a receipt.
#[derive(Debug)]
pub(crate) enum Charges {
    /// No permit was charged.
    Nothing,
    One(Refundable),
    /// Permits of the quota that keys without a place share.
    Overflow(Refundable),
    Several(Box<[Refundable]>),
}

impl Receipt {
    pub(crate) fn new(limiter: LimiterId, cost: u32, charges: Charges) -> Self {
        Self { limiter: Some(limiter), cost, charges }
    }

    fn of_nothing() -> Self {
        Self { limiter: None, cost: 0, charges: Charges::Nothing }
    }

    /// The number of permits that were granted.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    pub(crate) fn charges(&self) -> &Charges {
        &self.charges
    }

    /// The receipt, if it is of this limiter.
    pub(crate) fn check(self, limiter: LimiterId) -> Result<Self, OtherLimiter> {
        let is_of_it = self.limiter.is_none_or(|own| own == limiter);
        if is_of_it { Ok(self) } else { Err(OtherLimiter { receipt: self }) }
    }
}

/// A receipt was given to a limiter that did not write it.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{DirectLimiter, OtherLimiter, Quota};
///
/// let uploads = DirectLimiter::new(Quota::per_hour(3))?;
/// let downloads = DirectLimiter::new(Quota::per_hour(3))?;
/// let receipt = uploads.reserve(1, Duration::ZERO)?.commit();
/// let error: OtherLimiter = downloads.refund(receipt).unwrap_err();
/// assert_eq!(uploads.refund(error.into_receipt())?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OtherLimiter {
    receipt: Receipt,
}

impl OtherLimiter {
    /// The receipt, for the limiter that wrote it.
    #[must_use]
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

impl fmt::Display for OtherLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receipt is of another limiter: give the permits back to the one that granted them")
    }
}

impl core::error::Error for OtherLimiter {}

/// Why nothing was reserved.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, MockClock, Quota, ReserveError};
///
/// let builder = Limiter::<String>::builder(Quota::per_minute(1));
/// let limiter = builder.clock(MockClock::new()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// let error = limiter.reserve("alice", 1, Duration::ZERO).unwrap_err();
/// assert_eq!(error.denial().map(|denial| denial.retry_after()), Some(Duration::from_secs(60)));
/// let error = limiter.reserve("alice", 2, Duration::ZERO).unwrap_err();
/// assert!(matches!(error, ReserveError::CostExceedsLimit(_)));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// The request is denied. The denial has the wait after which the same request succeeds.
    Denied(Denial),
    /// The cost is more than the limit, so the request could never pass.
    CostExceedsLimit(CostExceedsLimit),
    /// The keys are not those of the limiter's dimensions, or the cost is more than a limit.
    Joint(JointError),
}

impl ReserveError {
    /// The denial, if it is one.
    #[must_use]
    pub const fn denial(&self) -> Option<Denial> {
        match self {
            Self::Denied(denial) => Some(*denial),
            _ => None,
        }
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => denial.fmt(f),
            Self::CostExceedsLimit(error) => error.fmt(f),
            Self::Joint(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReserveError {}

impl From<Denial> for ReserveError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<CostExceedsLimit> for ReserveError {
    fn from(error: CostExceedsLimit) -> Self {
        Self::CostExceedsLimit(error)
    }
}

impl From<JointError> for ReserveError {
    fn from(error: JointError) -> Self {
        Self::Joint(error)
    }
}

/// The duration in nanoseconds; `u64::MAX` if it is longer.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
