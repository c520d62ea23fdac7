//! Reserving and refunding, by each kind of limiter.

use core::hash::Hash;
use core::time::Duration;
use std::sync::Arc;

use super::sealed::Refund;
use super::{Charges, OtherLimiter, Receipt, Reservation, ReserveError, nanoseconds};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, JointStatus, Status};
use crate::direct::DirectLimiter;
use crate::engine::Engine;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::joint::JointLimiter;
use crate::keys::{AsKey, Dimensions, Keys};
use crate::limiter::Limiter;
use crate::single::Single;

/// Charges permits of one key. Returns the receipt, the delay and the status.
fn charge<C: Clock, F>(
    engine: &Engine<C, F>,
    key: Fingerprint,
    cost: u32,
    within: Duration,
) -> Result<(Receipt, u64, Status), ReserveError> {
    let (status, charges) = engine.acquire_within(key, cost, nanoseconds(within))?;
    Ok((Receipt::new(engine.id(), cost, charges), delay_ns(status.decision)?, status))
}

/// The delay of an admission.
fn delay_ns(decision: Decision) -> Result<u64, ReserveError> {
    let admission: Admission = decision.into_result()?;
    Ok(nanoseconds(admission.delay()))
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Charges `cost` permits of `key` that can be refunded, as of now or `within` this time: all
    /// of them, or none.
    ///
    /// Permits that do not fit now are taken as of the moment at which they do, and
    /// [`delay`](Reservation::delay) is the time until then. **No request overtakes a
    /// reservation**: until its moment has come, the key's other requests are denied, or reserved
    /// for later.
    ///
    /// - A sliding window log reserves up to one window ahead; no window ever holds more than its
    ///   limit.
    /// - A token bucket, or a leaky bucket, reserves as far ahead as it takes to fill.
    /// - A [leaky queue](crate::Quota::leaky_queue) gives places with a delay anyhow; here none is
    ///   longer than `within`.
    /// - A fixed window and a sliding counter have no window but the one that runs: they reserve
    ///   nothing ahead. Nor does a [quantised log](crate::Quota::quantised_log), nor a quota that
    ///   [counts refused requests](crate::Quota::counting_refused).
    ///
    /// A reservation as of now costs as much as [`try_acquire_n`](Self::try_acquire_n). For one as
    /// of a later moment, and for a refund, a log copies the key's live stamps. A cost of zero
    /// reserves nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::new(2, Duration::from_secs(10)));
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// let ahead = limiter.reserve("alice", 1, Duration::from_secs(60))?;
    /// assert_eq!(ahead.delay(), Duration::from_secs(10));
    /// assert_eq!(ahead.cancel(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReserveError`] when the request is denied, with the time after which the same reservation
    /// succeeds, or `cost` is more than the limit.
    pub fn reserve(&self, key: impl AsKey<K>, cost: u32, within: Duration) -> Result<Reservation<&Self>, ReserveError> {
        let (receipt, delay_ns, status) = charge(&self.engine, self.fingerprint(key), cost, within)?;
        Ok(Reservation::new(self, receipt, delay_ns, status))
    }

    /// As [`reserve`](Self::reserve), and the reservation owns its share of the limiter, so it can
    /// go to another thread or task.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(3))?);
    /// let reserved = limiter.reserve_owned("alice", 1, Duration::ZERO)?;
    /// let task = std::thread::spawn(move || {
    ///     let is_done = false;
    ///     if is_done { reserved.commit().cost() } else { 0 }
    /// });
    /// assert_eq!(task.join().unwrap(), 0);
    /// assert_eq!(limiter.peek("alice").remaining(), 3, "given back");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn reserve_owned(
        self: &Arc<Self>,
        key: impl AsKey<K>,
        cost: u32,
        within: Duration,
    ) -> Result<Reservation<Arc<Self>>, ReserveError> {
        let (receipt, delay_ns, status) = charge(&self.engine, self.fingerprint(key), cost, within)?;
        Ok(Reservation::new(Arc::clone(self), receipt, delay_ns, status))
    }

    /// Gives back the permits of a receipt, and returns how many came back: all, or fewer. They are
    /// free at once.
    ///
    /// Permits that no longer count do not come back: their window is over, the bucket has been
    /// full since, or the key was forgotten.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// let receipt = limiter.reserve("alice", 1, Duration::ZERO)?.commit();
    /// assert!(limiter.try_acquire("alice").is_denied());
    /// // The upload failed, so it shall not count.
    /// assert_eq!(limiter.refund(receipt)?, 1);
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// All other permits come back, with these exceptions. In each of them fewer permits are free
    /// than could be, and never more:
    ///
    /// - A queue takes back its last place only. The requests behind any other place know their
    ///   delays.
    /// - A bucket that owes permits to reservations takes back at most its capacity, less the
    ///   permits that it granted after those of the receipt. If other permits have come back since,
    ///   it takes back none.
    /// - A bucket knows a receipt for at least the next 262,144 permits that it grants. Later it
    ///   takes back none.
    /// - Other threads may complete a claim on a log, and replace its ring, before the claimant
    ///   reads the stamp of its permit. Then the oldest permit that could be its own comes back, or
    ///   none if that one has expired.
    /// - If several threads take permits from a bucket, a queue or a counter in the moment in which
    ///   its account opens, and another thread gives permits back, those permits may not come back.
    /// - A limiter rebuilds its index of keys as new keys come. A receipt from 255 rebuilds ago takes
    ///   back none if its key was in constant use since.
    ///
    /// # Errors
    ///
    /// [`OtherLimiter`], with the receipt, when it is of another limiter.
    pub fn refund(&self, receipt: Receipt) -> Result<u32, OtherLimiter> {
        Ok(self.refund_receipt(&receipt.check(self.engine.id())?))
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Refund for Limiter<K, C, F> {
    type Told = Status;

    fn refund_receipt(&self, receipt: &Receipt) -> u32 {
        self.engine.refund(receipt.charges())
    }
}

impl<C: Clock> DirectLimiter<C> {
    /// Takes `cost` permits that may be given back, now or `within` this time, as
    /// [`Limiter::reserve`] does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(3))?;
    /// let reserved = limiter.reserve(2, Duration::ZERO)?;
    /// assert_eq!(limiter.peek().remaining(), 1);
    /// drop(reserved);
    /// assert_eq!(limiter.peek().remaining(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::reserve`].
    pub fn reserve(&self, cost: u32, within: Duration) -> Result<Reservation<&Self>, ReserveError> {
        let (receipt, delay_ns, status) = charge(&self.engine, Single::KEY, cost, within)?;
        Ok(Reservation::new(self, receipt, delay_ns, status))
    }

    /// As [`reserve`](Self::reserve), and the reservation owns its share of the limiter, as by
    /// [`Limiter::reserve_owned`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(3))?);
    /// let reserved = limiter.reserve_owned(2, Duration::ZERO)?;
    /// let task = std::thread::spawn(move || reserved.commit().cost());
    /// assert_eq!(task.join().unwrap(), 2);
    /// assert_eq!(limiter.peek().remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::reserve`].
    pub fn reserve_owned(
        self: &Arc<Self>,
        cost: u32,
        within: Duration,
    ) -> Result<Reservation<Arc<Self>>, ReserveError> {
        let (receipt, delay_ns, status) = charge(&self.engine, Single::KEY, cost, within)?;
        Ok(Reservation::new(Arc::clone(self), receipt, delay_ns, status))
    }

    /// Gives back the permits of a receipt, and returns how many came back: all, or fewer, as
    /// [`Limiter::refund`] does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(1))?;
    /// let receipt = limiter.reserve(1, Duration::ZERO)?.commit();
    /// assert!(limiter.try_acquire().is_denied());
    /// assert_eq!(limiter.refund(receipt)?, 1);
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::refund`].
    pub fn refund(&self, receipt: Receipt) -> Result<u32, OtherLimiter> {
        Ok(self.refund_receipt(&receipt.check(self.engine.id())?))
    }
}

impl<C: Clock> Refund for DirectLimiter<C> {
    type Told = Status;

    fn refund_receipt(&self, receipt: &Receipt) -> u32 {
        self.engine.refund(receipt.charges())
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Takes `cost` permits of each of the keys that may be given back: all of them now, or none.
    ///
    /// Nothing is reserved ahead here: it would block the other keys of all dimensions.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(3)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// let reserved = limiter.reserve(("alice", 7), 2)?;
    /// assert!(limiter.peek_n(("alice", 7), 2)?.is_denied());
    /// drop(reserved);
    /// assert!(limiter.peek_n(("alice", 7), 2)?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReserveError`] when the request is denied, there is no key or, for a slice, not as many as
    /// dimensions, or `cost` is more than a limit.
    pub fn reserve(&self, keys: impl Keys<D>, cost: u32) -> Result<Reservation<&Self>, ReserveError> {
        let (receipt, delay_ns, status) = self.charge(keys, cost)?;
        Ok(Reservation::new(self, receipt, delay_ns, status))
    }

    /// As [`reserve`](Self::reserve), and the reservation owns its share of the limiter, as by
    /// [`Limiter::reserve_owned`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(3)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// let limiter = Arc::new(limiter);
    /// let reserved = limiter.reserve_owned(("alice", 7), 2)?;
    /// let task = std::thread::spawn(move || reserved.commit().cost());
    /// assert_eq!(task.join().unwrap(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn reserve_owned(
        self: &Arc<Self>,
        keys: impl Keys<D>,
        cost: u32,
    ) -> Result<Reservation<Arc<Self>>, ReserveError> {
        let (receipt, delay_ns, status) = self.charge(keys, cost)?;
        Ok(Reservation::new(Arc::clone(self), receipt, delay_ns, status))
    }

    fn charge(&self, keys: impl Keys<D>, cost: u32) -> Result<(Receipt, u64, JointStatus), ReserveError> {
        let (keys, mut charges) = (self.fingerprints(keys, cost)?, Vec::new());
        let status = self.engine.decide_together_in_full(&keys, cost, Some(&mut charges));
        let delay_ns = delay_ns(status.decision())?;
        Ok((Receipt::new(self.engine.id(), cost, Charges::Several(charges.into())), delay_ns, status))
    }

    /// Gives back the permits of a receipt in each dimension, one after the other.
    ///
    /// Returns the largest number of permits that came back in one dimension: all, or fewer. See
    /// [`Limiter::refund`] for those that do not come back.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(3)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// let receipt = limiter.reserve(("alice", 7), 3)?.commit();
    /// assert!(limiter.try_acquire(("alice", 7))?.is_denied());
    /// assert_eq!(limiter.refund(receipt)?, 3);
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OtherLimiter`], with the receipt, when it is of another limiter.
    pub fn refund(&self, receipt: Receipt) -> Result<u32, OtherLimiter> {
        Ok(self.refund_receipt(&receipt.check(self.engine.id())?))
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> Refund for JointLimiter<D, C, F> {
    type Told = JointStatus;

    fn refund_receipt(&self, receipt: &Receipt) -> u32 {
        self.engine.refund(receipt.charges())
    }
}
