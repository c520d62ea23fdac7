//! Requests that wait until fewer are in flight.

use core::fmt;
use core::hash::Hasher;
use core::time::Duration;
use std::sync::Arc;

use tollgate::{
    AsKey, Clock, Decision, Dimensions, Fingerprinter, InFlight, JointLimiter, Key, Keys, Limiter, ReserveError,
};

use crate::blocking::{ThreadTimer, block_on};
use crate::error::WaitError;
use crate::limit::{Lent, Limit};
use crate::timer::Timer;
use crate::waiting::WaitingLimiter;

/// A limiter that requests can wait to enter: a [`Limiter`], a
/// [`DirectLimiter`](tollgate::DirectLimiter), or a [`JointLimiter`].
///
/// This trait is sealed. It is for functions over any such limiter:
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{InFlight, Lender, Limiter, Quota};
/// use tollgate_wait::{Enters, WaitError, WaitingLimiter};
///
/// fn enter<L: Enters<u64> + Lender>(limiter: &WaitingLimiter<L>) -> Result<InFlight<Arc<L>>, WaitError> {
///     limiter.enter(7).block_within(Duration::from_secs(1))
/// }
///
/// let limiter = WaitingLimiter::new(Arc::new(Limiter::<u64>::new(Quota::concurrent(2))?));
/// assert!(enter(&limiter).is_ok());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Enters<A>: Limit<A> + Sized + sealed::Enters<A> {}

impl<A, L: Limit<A> + sealed::Enters<A>> Enters<A> for L {}

mod sealed {
    use super::{Arc, Duration, InFlight, WaitError};

    pub trait Enters<A>: tollgate::Lender + Sized {
        fn enter(this: &Arc<Self>, key: &A) -> Result<Result<InFlight<Arc<Self>>, Duration>, WaitError>;
    }
}

fn entered<L: tollgate::Lender>(
    result: Result<InFlight<Arc<L>>, ReserveError>,
) -> Result<Result<InFlight<Arc<L>>, Duration>, WaitError> {
    match result {
        Ok(in_flight) => Ok(Ok(in_flight)),
        Err(ReserveError::Denied(denial)) => Ok(Err(denial.retry_after())),
        Err(ReserveError::CostExceedsLimit(error)) => Err(error.into()),
        Err(ReserveError::Joint(error)) => Err(error.into()),
        // It is a denial of a kind that is not known here.
        Err(_) => Ok(Err(Duration::MAX)),
    }
}

impl<K: Key + ?Sized, A: AsKey<K>, C: Clock, F: Fingerprinter> sealed::Enters<A> for Limiter<K, C, F> {
    fn enter(this: &Arc<Self>, key: &A) -> Result<Result<InFlight<Arc<Self>>, Duration>, WaitError> {
        entered(this.enter_owned_by(Lent(key)).map_err(ReserveError::Denied))
    }
}

impl<D: Dimensions + ?Sized, A: Keys<D>, C: Clock, F: Fingerprinter> sealed::Enters<A> for JointLimiter<D, C, F> {
    fn enter(this: &Arc<Self>, keys: &A) -> Result<Result<InFlight<Arc<Self>>, Duration>, WaitError> {
        entered(this.try_enter_owned(keys))
    }
}

/// The limiter, as requests see it that enter.
struct Entrance<'a, L>(&'a Arc<L>);

impl<A, L: Enters<A>> Limit<A> for Entrance<'_, L> {
    type Grant = InFlight<Arc<L>>;

    fn hash_key<H: Hasher>(&self, key: &A, state: &mut H) {
        self.0.hash_key(key, state);
    }

    fn look(&self, key: &A, cost: u32) -> Result<Decision, WaitError> {
        self.0.look(key, cost)
    }

    fn decide(&self, key: &A, _: u32) -> Result<Result<Self::Grant, Duration>, WaitError> {
        sealed::Enters::enter(self.0, key)
    }

    fn earliest(&self, key: &A, permits: u64) -> Duration {
        self.0.earliest(key, permits)
    }

    fn reading(&self) -> u64 {
        self.0.reading()
    }
}

/// A request that is about to wait to enter. [`WaitingLimiter::enter`] makes it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
/// use tollgate_wait::{Enter, WaitingLimiter};
///
/// let limiter = WaitingLimiter::new(Arc::new(Limiter::<String>::new(Quota::concurrent(2))?));
/// let request: Enter<'_, _, _, _> = limiter.enter("alice");
/// assert!(request.block_within(Duration::from_secs(1)).is_ok());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[must_use = "a request waits by `within` or `block_within`"]
pub struct Enter<'a, L, T, A> {
    of: &'a WaitingLimiter<L, T>,
    key: A,
}

impl<L, T> WaitingLimiter<L, T> {
    /// A request of one permit, which is in flight until its guard is dropped: see
    /// [`Quota::concurrent`](tollgate::Quota::concurrent). It waits in the same line as the requests of
    /// [`acquire`](Self::acquire). It does nothing until it is told how long it may wait.
    ///
    /// Nothing tells when a request in flight will end. So while too many are, the first request of a
    /// line looks every [`LOOK_EVERY`](Self::LOOK_EVERY) whether one has ended, wherever its guard was
    /// dropped.
    ///
    /// ```
    /// # #[cfg(feature = "tokio")]
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota, TokioClock};
    /// use tollgate_wait::{TokioTimer, WaitingLimiter};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::concurrent(1)).clock(TokioClock::new()).build()?;
    /// let limiter = WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer);
    /// let in_flight = limiter.enter("alice").within(Duration::ZERO).await?;
    /// tokio::spawn(async move {
    ///     tokio::time::sleep(Duration::from_secs(5)).await;
    ///     drop(in_flight);
    /// });
    /// let start = tokio::time::Instant::now();
    /// let _in_flight = limiter.enter("alice").within(Duration::from_secs(60)).await?;
    /// assert_eq!(start.elapsed().as_secs(), 5);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    #[must_use = "a request waits by `within` or `block_within`"]
    pub const fn enter<A>(&self, key: A) -> Enter<'_, L, T, A>
    where
        L: Enters<A>,
    {
        Enter { of: self, key }
    }
}

impl<L: Enters<A>, T, A> Enter<'_, L, T, A> {
    /// Waits at most so long. The thread sleeps meanwhile, so this is not for tasks.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    /// use tollgate_wait::WaitingLimiter;
    ///
    /// let limiter = WaitingLimiter::new(Arc::new(DirectLimiter::new(Quota::concurrent(1))?));
    /// let in_flight = limiter.enter(()).block_within(Duration::ZERO)?;
    /// let other = std::thread::spawn(move || drop(in_flight));
    /// assert!(limiter.enter(()).block_within(Duration::from_secs(60)).is_ok());
    /// # other.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why the request did not enter. Nothing was charged.
    pub fn block_within(self, within: Duration) -> Result<InFlight<Arc<L>>, WaitError> {
        let (limiter, lines) = self.of.parts();
        block_on(lines.wait(&Entrance(limiter), &self.key, 1, within, &ThreadTimer))
    }
}

impl<L: Enters<A>, T: Timer, A> Enter<'_, L, T, A> {
    /// Waits at most so long. A future that is dropped leaves the line, as that of
    /// [`Acquire::within`](crate::Acquire::within) does.
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why the request did not enter. Nothing was charged.
    pub async fn within(self, within: Duration) -> Result<InFlight<Arc<L>>, WaitError> {
        let (limiter, lines) = self.of.parts();
        lines.wait(&Entrance(limiter), &self.key, 1, within, self.of.its_timer()).await
    }
}

impl<L, T, A: fmt::Debug> fmt::Debug for Enter<'_, L, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").field("key", &self.key).finish_non_exhaustive()
    }
}
