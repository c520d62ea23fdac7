//! Permits that can be refunded: [`Reservation`] and [`Receipt`]. Requests that are in flight:
//! [`InFlight`](in_flight::InFlight).

pub(crate) mod in_flight;
mod of_limiters;

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use crate::clock::Clock;
use crate::decision::{Denial, Status};
use crate::engine::{Engine, LimiterId};
use crate::error::{CostExceedsLimit, JointError};
use crate::fingerprint::Fingerprint;
use crate::state::table::{Charges, Entries, Refundable};
use crate::texts::{texts, wraps};
use sealed::Settle;

/// A limiter that reserves and refunds permits: [`Limiter`](crate::Limiter),
/// [`DirectLimiter`](crate::DirectLimiter) or [`JointLimiter`](crate::JointLimiter).
///
/// This trait is sealed. It is for functions that take a reservation of any limiter:
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
pub trait Lender: sealed::Settle {}

impl<L: sealed::Settle> Lender for L {}

pub(crate) mod sealed {
    /// Implemented by the limiters of this crate only.
    pub trait Settle {
        /// Settles a receipt of this limiter. Returns the permits that are charged then.
        fn settle_receipt(&self, receipt: &super::Receipt, actual: u32) -> u32;

        /// A request of this limiter is over: see `Entry::into_numbers`.
        fn leave(&self, entry: [u64; 2]);
    }
}

/// Permits that are charged until the caller knows whether they are used.
///
/// The `reserve` methods of the limiters make it, such as
/// [`Limiter::reserve`](crate::Limiter::reserve). Its permits are for now or for a later time.
/// **Dropping it refunds its permits.** [`commit`](Self::commit) keeps them charged. Until either, the
/// request is in flight ([`Quota::concurrent`](crate::Quota::concurrent)). `P` is the pointer to the
/// limiter: a reference, or an [`Arc`](std::sync::Arc) for a reservation that goes
/// to another thread or task ([`reserve_owned`](crate::Limiter::reserve_owned)).
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
/// let reserved = limiter.reserve("alice", 2, Duration::ZERO)?;
/// assert_eq!(limiter.peek("alice").remaining(), 1);
/// drop(reserved);
/// assert_eq!(limiter.peek("alice").remaining(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Charge first, refund on success
/// A server drops the future of a client that hangs up, and with it a reservation that the future
/// holds across an `.await`. **Hanging up is free then.** Where the attempt itself must count, such
/// as a check of a password, commit at once and refund the [`Receipt`] on success:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
/// # async fn is_right(password: &str) -> bool { password == "open sesame" }
///
/// // Failed log-ins count, and successful ones do not.
/// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
/// let log_in = async |password: &str| {
///     let attempt = limiter.reserve("alice", 1, Duration::ZERO)?.commit();
///     let is_right = is_right(password).await;
///     if is_right {
///         limiter.refund(attempt)?;
///     }
///     Ok::<bool, Box<dyn std::error::Error>>(is_right)
/// };
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// assert!(!log_in("123456").await?);
/// for _ in 0..10 {
///     assert!(log_in("open sesame").await?);
/// }
/// assert!(!log_in("qwerty").await?);
/// assert!(!log_in("letmein").await?);
/// assert!(log_in("open sesame").await.is_err(), "three have failed within a minute");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a reservation that is dropped gives its permits back"]
pub struct Reservation<P: Deref<Target: Lender>> {
    limiter: P,
    receipt: Option<Receipt>,
    delay: Duration,
    status: Status,
}

impl<P: Deref<Target: Lender>> Reservation<P> {
    /// The permits that this request of the limiter was charged, if it was admitted.
    fn new(limiter: P, (status, receipt): (Status, Receipt)) -> Result<Self, ReserveError> {
        let delay = status.decision.into_result()?.delay();
        Ok(Self { limiter, receipt: Some(receipt), delay, status })
    }

    /// The time to wait before the permits may be used; zero if they are for now.
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
        self.delay
    }

    /// The number of permits that were reserved.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(3))?;
    /// assert_eq!(limiter.reserve("alice", 2, Duration::ZERO)?.cost(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cost(&self) -> u32 {
        self.receipt.as_ref().map_or(0, Receipt::cost)
    }

    /// The permits left when these were reserved, and the time until more are free.
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
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Keeps the permits charged. The receipt can refund them later, or be dropped. The request is no
    /// longer in flight: [`enter`](Self::enter) keeps it so.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(3))?;
    /// let receipt = limiter.reserve("alice", 2, Duration::ZERO)?.commit();
    /// assert_eq!((receipt.cost(), limiter.peek("alice").remaining()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit(mut self) -> Receipt {
        let mut receipt = self.receipt.take().unwrap_or(Receipt::NONE);
        leave(&*self.limiter, &mut receipt.entries);
        receipt
    }

    /// Refunds the permits, as dropping the reservation does. Returns the number of refunded
    /// permits: all, or fewer. See [`refund`](crate::Limiter::refund).
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
        let (cost, kept) = self.settle_once(0);
        cost - kept
    }

    /// Charges what the request has cost in fact, and not what was reserved for it. Returns the
    /// permits that are charged then. See [`settle`](crate::Limiter::settle).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::token_bucket(1000, 1000, Duration::from_secs(60)))?;
    /// let estimated = limiter.reserve("alice", 300, Duration::ZERO)?;
    /// // The model has answered, in fewer tokens.
    /// assert_eq!(estimated.settle(120), 120);
    /// assert_eq!(limiter.peek("alice").remaining(), 880);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(mut self, actual: u32) -> u32 {
        self.settle_once(actual).1
    }

    /// Returns the permits that were charged, and those that are charged then.
    fn settle_once(&mut self, actual: u32) -> (u32, u32) {
        let Some(mut receipt) = self.receipt.take() else { return (0, 0) };
        let kept = Settle::settle_receipt(&*self.limiter, &receipt, actual);
        leave(&*self.limiter, &mut receipt.entries);
        (receipt.cost, kept)
    }
}

/// A request is over.
#[inline]
fn leave(limiter: &(impl Settle + ?Sized), entries: &mut Entries) {
    entries.take(|entry| limiter.leave(entry.into_numbers()));
}

impl<P: Deref<Target: Lender>> Drop for Reservation<P> {
    fn drop(&mut self) {
        self.settle_once(0);
    }
}

impl<P: Deref<Target: Lender>> fmt::Debug for Reservation<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("receipt", &self.receipt).field("delay", &self.delay()).finish()
    }
}

/// Granted permits that can be refunded once, for example by
/// [`Limiter::refund`](crate::Limiter::refund).
///
/// If the receipt is dropped, the permits stay charged.
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
    charges: Vec<Refundable>,
    /// None, once the caller has it.
    entries: Entries,
}

impl Receipt {
    const NONE: Self = Self { limiter: None, cost: 0, charges: Vec::new(), entries: Entries::None };

    /// The number of permits that were granted.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Returns the receipt if this limiter wrote it.
    fn check(self, limiter: LimiterId) -> Result<Self, OtherLimiter> {
        let is_of_it = self.limiter.is_none_or(|own| own == limiter);
        if is_of_it { Ok(self) } else { Err(OtherLimiter { receipt: self }) }
    }
}

impl<C: Clock, F> Engine<C, F> {
    /// Charges permits that can be refunded. `asked` asks for them, and adds the charges.
    fn charge(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        asked: impl FnOnce(&mut Charges) -> Status,
    ) -> Result<(Status, Receipt), CostExceedsLimit> {
        let mut charges = Charges::default();
        let status = asked(&mut charges);
        self.fits(keys, cost, status.decision)?;
        if cost == 0 {
            charges.refundable.extend(self.charges_of_none(keys));
        }
        let Charges { refundable, entries } = charges;
        Ok((status, Receipt { limiter: Some(self.id), cost, charges: refundable, entries }))
    }

    /// Settles the charges of a receipt. Returns the permits that are charged then: of several
    /// keys, to the one with the fewest.
    fn settle(&self, receipt: &Receipt, actual: u32) -> u32 {
        self.table.settle(&receipt.charges, actual, &self.clock).unwrap_or(receipt.cost)
    }

    /// Refunds a receipt. Returns how many permits: of several keys, of the one with the most.
    fn refund(&self, receipt: &Receipt) -> u32 {
        receipt.cost - self.settle(receipt, 0)
    }
}

/// The receipt was written by another limiter.
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
    /// Returns the receipt, for the limiter that wrote it.
    #[must_use]
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

impl fmt::Display for OtherLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receipt is of another limiter: refund it to the limiter that granted the permits")
    }
}

impl core::error::Error for OtherLimiter {}

/// Why no permits were reserved.
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
    /// The request was denied. The denial has the wait after which the same request succeeds.
    Denied(Denial),
    /// The cost is more than the limit, so the request can never succeed.
    CostExceedsLimit(CostExceedsLimit),
    /// The keys do not match the dimensions of the limiter, or the cost is more than a limit.
    Joint(JointError),
}

impl ReserveError {
    /// The denial, if the request was denied.
    #[must_use]
    pub const fn denial(&self) -> Option<Denial> {
        if let Self::Denied(denial) = self { Some(*denial) } else { None }
    }
}

texts! { ReserveError {
    Denied(denial) => "{denial}";
    CostExceedsLimit(error) => "{error}";
    Joint(error) => "{error}";
} }

wraps! { ReserveError { Denied(Denial), CostExceedsLimit(CostExceedsLimit), Joint(JointError) } }
