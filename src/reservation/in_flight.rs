//! Requests in flight: [`InFlight`], and the methods that make it.

use core::fmt;
use core::hash::Hash;
use core::ops::Deref;
use std::sync::Arc;

use super::{Lender, Receipt, Reservation, ReserveError, leave};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial};
use crate::dimensions::{Dimensions, Keys};
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::AsKey;
use crate::limiter::Limiter;
use crate::no_key::{Key, NoKey};
use crate::state::request::Request;
use crate::state::table::{Charges, Entries};

/// An admitted request, which is in flight until this is dropped.
///
/// [`Limiter::try_enter`] and [`JointLimiter::try_enter`] make it, and [`Reservation::enter`]. While
/// it lasts, the request counts in each [concurrency limit](crate::Quota::concurrent) that it was asked
/// of. The permits of other quotas stay charged. `P` is the pointer to the limiter, as of a
/// [`Reservation`].
///
/// ```
/// use tollgate::{DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::concurrent(1))?;
/// {
///     let _in_flight = limiter.try_enter()?;
///     assert!(limiter.try_enter().is_err());
/// }
/// assert!(limiter.try_enter().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A guard that is forgotten ([`core::mem::forget`]) counts for ever. [`forget`](Limiter::forget) and
/// [`clear`](Limiter::clear) forget the requests in flight of a key: it may have as many again, and
/// the guards of the forgotten ones do nothing.
#[must_use = "a request is over as soon as this is dropped"]
pub struct InFlight<P: Deref<Target: Lender>> {
    limiter: P,
    entries: Entries,
    admission: Admission,
}

impl<P: Deref<Target: Lender>> InFlight<P> {
    fn new(limiter: P, (admission, entries): (Admission, Entries)) -> Self {
        Self { limiter, entries, admission }
    }

    /// The admission of the request: whether it has to wait, for example.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let queue = Quota::leaky_queue(1, Duration::from_secs(1), Duration::from_secs(5));
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("calls", [queue])
    ///     .dimension("in flight", [Quota::concurrent(9)])
    ///     .build()?;
    /// let first = limiter.try_enter(("alice", "alice"))?;
    /// assert_eq!(first.admission().delay(), Duration::ZERO);
    /// let second = limiter.try_enter(("alice", "alice"))?;
    /// assert!(second.admission().delay() > Duration::ZERO);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// Whether the request counts in a concurrency limit. It does not where none is asked, for an
    /// allowed key, at the key cap, and where shadow mode has admitted it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let streams = DirectLimiter::new(Quota::concurrent(2))?;
    /// assert!(streams.try_enter()?.counts());
    /// let calls = DirectLimiter::new(Quota::new(2, Duration::from_secs(60)))?;
    /// assert!(!calls.try_enter()?.counts());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn counts(&self) -> bool {
        !matches!(self.entries, Entries::None)
    }
}

impl<P: Deref<Target: Lender>> Drop for InFlight<P> {
    #[inline]
    fn drop(&mut self) {
        leave(&*self.limiter, &mut self.entries);
    }
}

impl<P: Deref<Target: Lender>> fmt::Debug for InFlight<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("admission", &self.admission).finish_non_exhaustive()
    }
}

impl<P: Deref<Target: Lender>> Reservation<P> {
    /// Keeps the permits charged, and the request in flight until the guard is dropped. The receipt can
    /// be settled or refunded meanwhile or later, or be dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let tokens = Quota::token_bucket(1000, 1000, Duration::from_secs(60));
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("tokens", [tokens])
    ///     .dimension("streams", [Quota::concurrent(1)])
    ///     .build()?;
    /// let (stream, estimated) = limiter.reserve(("alice", "alice"), 300)?.enter();
    /// assert!(limiter.reserve(("alice", "alice"), 300).is_err(), "one stream is open");
    /// limiter.settle(estimated, 120)?;
    /// drop(stream);
    /// assert!(limiter.reserve(("alice", "alice"), 300).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter(mut self) -> (InFlight<P>, Receipt)
    where
        P: Clone,
    {
        let admission = self.status.decision.into_result().unwrap_or(Admission::UNCOUNTED);
        let entries = self.receipt.as_mut().map(|receipt| core::mem::take(&mut receipt.entries)).unwrap_or_default();
        (InFlight::new(self.limiter.clone(), (admission, entries)), self.commit())
    }
}

impl<L: Lender> Reservation<&L> {
    /// As [`enter`](Self::enter), for a guard that holds this `Arc` of the limiter.
    ///
    /// # Panics
    ///
    /// If it is another limiter.
    #[doc(hidden)]
    pub fn enter_owned(self, limiter: &Arc<L>) -> (InFlight<Arc<L>>, Receipt) {
        assert!(core::ptr::eq(self.limiter, Arc::as_ptr(limiter)), "the reservation is of another limiter");
        let (mut lent, receipt) = self.enter();
        let entries = core::mem::take(&mut lent.entries);
        (InFlight::new(Arc::clone(limiter), (lent.admission, entries)), receipt)
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Takes one permit for `key`, as [`try_acquire`](Self::try_acquire) does, for a request that is
    /// in flight until the guard is dropped: see [`Quota::concurrent`](crate::Quota::concurrent).
    ///
    /// For a known key with a concurrency limit this costs one hash, one look-up and one swap, and
    /// so does the drop. Nothing is allocated.
    ///
    /// ```
    /// use tollgate::{Denial, DenialReason, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::concurrent(2))?;
    /// let export = |user: &str| {
    ///     let _in_flight = limiter.try_enter(user)?;
    ///     // Work that takes a while.
    ///     Ok::<_, Denial>("a report")
    /// };
    /// assert!(export("alice").is_ok() && export("alice").is_ok() && export("alice").is_ok());
    ///
    /// let (_first, _second) = (limiter.try_enter("bob")?, limiter.try_enter("bob")?);
    /// let denial = export("bob").unwrap_err();
    /// assert_eq!((denial.reason(), denial.retry_after_secs()), (DenialReason::InFlight, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denial`] when the request is denied.
    #[doc(alias = "semaphore", alias = "permit")]
    pub fn try_enter(&self, key: impl AsKey<K>) -> Result<InFlight<&Self>, Denial> {
        Ok(InFlight::new(self, self.enter_by(key)?))
    }

    /// As [`try_enter`](Self::try_enter), for a guard that can go to another thread or task: it holds
    /// an `Arc` of the limiter.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Arc::new(Limiter::<String>::new(Quota::concurrent(1))?);
    /// let in_flight = limiter.try_enter_owned("alice")?;
    /// assert!(limiter.try_enter_owned("alice").is_err());
    /// std::thread::spawn(move || drop(in_flight)).join().unwrap();
    /// assert!(limiter.try_enter_owned("alice").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_enter`](Self::try_enter).
    pub fn try_enter_owned(self: &Arc<Self>, key: impl AsKey<K>) -> Result<InFlight<Arc<Self>>, Denial> {
        self.enter_owned_by(key)
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    #[doc(hidden)]
    pub fn enter_owned_by(self: &Arc<Self>, key: impl AsKey<K>) -> Result<InFlight<Arc<Self>>, Denial> {
        Ok(InFlight::new(Arc::clone(self), self.enter_by(key)?))
    }

    #[inline]
    fn enter_by(&self, key: impl AsKey<K>) -> Result<(Admission, Entries), Denial> {
        let fingerprint = self.fingerprint(&key);
        if self.engine.is_plain() {
            match self.engine.table.enter(fingerprint, &self.engine.clock) {
                Some(Ok(entry)) => return Ok((Admission::delayed(0), Entries::One(entry))),
                Some(Err(denied)) => {
                    return Decision::from(denied).into_result().map(|admission| (admission, Entries::default()));
                }
                // It is new, or moves, or has another algorithm, or another thread was faster.
                None => {}
            }
        }
        let mut charges = Charges::default();
        let status = self.decide_observed(key, fingerprint, Request::acquire(1), Some(&mut charges));
        Ok((status.decision.into_result()?, charges.entries))
    }
}

impl<C: Clock> Limiter<NoKey, C, NoKey> {
    /// Takes one permit for a request that is in flight until the guard is dropped, as
    /// [`Limiter::try_enter`] does.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::concurrent(2))?;
    /// let (first, _second) = (limiter.try_enter()?, limiter.try_enter()?);
    /// assert!(limiter.try_enter().is_err());
    /// drop(first);
    /// assert!(limiter.try_enter().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::try_enter`].
    pub fn try_enter(&self) -> Result<InFlight<&Self>, Denial> {
        Ok(InFlight::new(self, self.enter_by(())?))
    }

    /// As [`try_enter`](Self::try_enter), for a guard that holds an `Arc` of the limiter, as by
    /// [`Limiter::try_enter_owned`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::concurrent(1))?);
    /// let in_flight = limiter.try_enter_owned()?;
    /// std::thread::spawn(move || drop(in_flight)).join().unwrap();
    /// assert!(limiter.try_enter_owned().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::try_enter`].
    pub fn try_enter_owned(self: &Arc<Self>) -> Result<InFlight<Arc<Self>>, Denial> {
        self.enter_owned_by(())
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Takes one permit for each of the keys, all of them or none, for a request that is in flight
    /// until the guard is dropped: see [`Quota::concurrent`](crate::Quota::concurrent).
    ///
    /// For another cost, [`reserve`](Self::reserve) and [`enter`](Reservation::enter).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("rate", [Quota::per_minute(100)])
    ///     .dimension("in flight", [Quota::concurrent(1)])
    ///     .build()?;
    /// let in_flight = limiter.try_enter(("alice", "alice"))?;
    /// assert!(limiter.try_enter(("alice", "alice")).is_err());
    /// drop(in_flight);
    /// assert!(limiter.try_enter(("alice", "alice")).is_ok());
    /// // The denied request was charged nothing.
    /// assert_eq!(limiter.peek(("alice", "alice"))?.quotas().next().unwrap().remaining(), 98);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReserveError`] when the request is denied, and when there is no key or, for a slice, another
    /// number of keys than dimensions.
    #[doc(alias = "semaphore", alias = "permit")]
    pub fn try_enter(&self, keys: impl Keys<D>) -> Result<InFlight<&Self>, ReserveError> {
        Ok(InFlight::new(self, self.enter_together(keys)?))
    }

    /// As [`try_enter`](Self::try_enter), for a guard that holds an `Arc` of the limiter, as by
    /// [`Limiter::try_enter_owned`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String,)>::builder().dimension("user", [Quota::concurrent(1)]).build()?;
    /// let limiter = Arc::new(limiter);
    /// let in_flight = limiter.try_enter_owned(("alice",))?;
    /// std::thread::spawn(move || drop(in_flight)).join().unwrap();
    /// assert!(limiter.try_enter_owned(("alice",)).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_enter`](Self::try_enter).
    pub fn try_enter_owned(self: &Arc<Self>, keys: impl Keys<D>) -> Result<InFlight<Arc<Self>>, ReserveError> {
        Ok(InFlight::new(Arc::clone(self), self.enter_together(keys)?))
    }

    fn enter_together(&self, keys: impl Keys<D>) -> Result<(Admission, Entries), ReserveError> {
        let fingerprints = self.fingerprints(&keys)?;
        let mut charges = Charges::default();
        let status = self.decide_observed(keys, &fingerprints, Request::acquire(1), Some(&mut charges));
        Ok((status.decision.into_result()?, charges.entries))
    }
}
