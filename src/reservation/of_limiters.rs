//! The methods that reserve and refund, of each limiter.

use core::hash::Hash;
use core::time::Duration;
use std::sync::Arc;

use super::sealed::Settle;
use super::{OtherLimiter, Receipt, Reservation, ReserveError};
use crate::clock::Clock;
use crate::clock::nanos;
use crate::decision::Status;
use crate::dimensions::{Dimensions, Keys};
use crate::error::{CostExceedsLimit, JointError};
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::AsKey;
use crate::limiter::Limiter;
use crate::no_key::{Key, NoKey};
use crate::state::concurrency::Entry;
use crate::state::request::Request;

/// A request for permits that may be so far ahead.
fn reserve(cost: u32, within: Duration) -> Request {
    Request::reserve(cost, nanos(within))
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Charges `cost` refundable permits to `key`: all of them, or none. They are for now, or for a
    /// later time `within` the given duration.
    ///
    /// **A reservation that is dropped gives its permits back**, also when a client hangs up and the
    /// server drops the future that holds it. Where the attempt itself must count, such as a check
    /// of a password, [`commit`](Reservation::commit) at once and [`refund`](Self::refund) on
    /// success: [`Reservation`] has an example.
    ///
    /// Permits that do not fit now are reserved for the earliest time at which they fit.
    /// [`delay`](Reservation::delay) is the wait until then. **No request overtakes a
    /// reservation**: until its time has come, the key's other requests are denied, or reserved for
    /// later.
    ///
    /// - A sliding window log reserves up to one window ahead. No window ever holds more than its
    ///   limit.
    /// - A token bucket reserves as far ahead as it takes to fill, a leaky bucket as far as it
    ///   takes to empty.
    /// - A [leaky queue](crate::Quota::leaky_queue) gives delays in any case. Here no delay is
    ///   longer than `within`.
    /// - A fixed window, a sliding window counter, a [quantised log](crate::Quota::quantised_log)
    ///   and a quota that [counts denied requests](crate::Quota::counting_refused) reserve only for
    ///   now.
    ///
    /// A reservation for now does what [`try_acquire_n_status`](Self::try_acquire_n_status) does, and
    /// allocates the list of its charges. For a reservation for later, and for a refund, a log
    /// copies the key's live stamps. A cost of zero reserves no permits, and can be
    /// [settled](Reservation::settle).
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
    /// [`ReserveError`] when the request is denied, with the wait after which the same reservation
    /// succeeds, or when `cost` is more than the limit.
    #[doc(alias = "until_ready", alias = "Wait")]
    pub fn reserve(&self, key: impl AsKey<K>, cost: u32, within: Duration) -> Result<Reservation<&Self>, ReserveError> {
        self.reserve_by(key, cost, within)
    }

    /// Returns the answer that [`reserve`](Self::reserve) would give now. Charges nothing. Its
    /// numbers are those of requests that wait no longer than `within`: while a request in front of
    /// a [leaky queue](crate::Quota::leaky_queue) would have to wait longer, no permits are left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let queue = Quota::leaky_queue(1, Duration::from_secs(1), Duration::from_secs(5));
    /// let limiter = Limiter::<String>::builder(queue).clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert_eq!(limiter.peek_reserve("alice", 1, Duration::from_secs(5))?.remaining(), 6);
    /// assert_eq!(limiter.peek_reserve("alice", 1, Duration::ZERO)?.remaining(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_reserve(&self, key: impl AsKey<K>, cost: u32, within: Duration) -> Result<Status, CostExceedsLimit> {
        self.peek_reserve_by(key, cost, within)
    }

    /// As [`reserve`](Self::reserve), for a reservation that can go to another thread or task: it
    /// holds an `Arc` of the limiter.
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
        Reservation::new(Arc::clone(self), self.charge(key, cost, within)?)
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Refunds the permits of a receipt, which are free at once. Returns the number of refunded
    /// permits: all, or fewer.
    ///
    /// Permits that no longer count are not refunded: their window is over, the bucket has been
    /// full since, or the key was forgotten.
    ///
    /// What has flowed into a bucket since the charge stays there. So the bound of a bucket holds
    /// for a time that has the charge and the refund in it. One that begins between them may be
    /// granted as many permits more as are refunded, less those that the bucket lacks as it begins.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// let receipt = limiter.reserve("alice", 1, Duration::ZERO)?.commit();
    /// assert!(limiter.try_acquire("alice").is_denied());
    /// // The upload failed, so it does not count.
    /// assert_eq!(limiter.refund(receipt)?, 1);
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// All other permits are refunded, with these exceptions:
    ///
    /// - A queue refunds only its last place. The requests behind any other place have been given
    ///   their delays.
    /// - A bucket that owes permits to reservations, which wait for them, refunds at most its
    ///   capacity, less the permits that it granted after those of the receipt. If it has refunded
    ///   other permits since, it refunds none.
    /// - A window or a counter refunds none after a [change of quotas](Self::set_quotas) has moved its
    ///   window, and a bucket or a queue none after one that changed it.
    /// - A log that [counts refused requests](crate::Quota::counting_refused) does not tell permits
    ///   and refused requests of one stamp apart: it may take off either.
    ///
    /// # Errors
    ///
    /// [`OtherLimiter`], with the receipt, when it is of another limiter.
    #[doc(alias = "restore")]
    pub fn refund(&self, receipt: Receipt) -> Result<u32, OtherLimiter> {
        Ok(self.engine.refund(&receipt.check(self.engine.id)?))
    }

    /// Charges what a request has cost in fact, and not what its receipt was charged. Returns the
    /// permits that are charged then.
    ///
    /// If it cost less, the rest is refunded, as [`refund`](Self::refund) does: all of it, or less,
    /// and with the same bound for a bucket. If it cost more, the rest is charged as of now, also if
    /// that is more than there is, and more than the limit: it is *debt*, and requests wait until
    /// there are permits again. Either is one step, so no request takes permits in between. The
    /// receipt is spent.
    ///
    /// A receipt of no permits is always to be had, so this charges work that cannot be refused,
    /// too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let tokens = Quota::token_bucket(1000, 1000, Duration::from_secs(60));
    /// let limiter = Limiter::<String>::builder(tokens).clock(MockClock::new()).build()?;
    /// let estimated = limiter.reserve("alice", 1000, Duration::ZERO)?.commit();
    /// // The model has answered, in more tokens than there are.
    /// assert_eq!(limiter.settle(estimated, 1900)?, 1900);
    /// // The debt of 900, and one for the request, flow in at 1000 a minute.
    /// let wait = limiter.try_acquire("alice").retry_after();
    /// assert_eq!(wait, Some(Duration::from_millis(54_060)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// How long debt lasts:
    ///
    /// - A bucket, a leaky queue and a warm-up pay it at their rate, for up to 73 years.
    /// - A sliding window log, exact or quantised, counts it as of now, so for one window: a debt
    ///   of more than the limit denies requests for that long, and no longer. It keeps up to 2^21
    ///   permits of a key, a quantised log 2^31.
    /// - A fixed window counts it in the current window, and a sliding window counter in the
    ///   current and the next one. They count up to 2^31 permits, and up to 2^20.
    ///
    /// The key is charged also if it was forgotten since. If its permits have all expired, and it
    /// finds no place at the key cap, it is not charged more, which the return value tells.
    ///
    /// # Errors
    ///
    /// [`OtherLimiter`], with the receipt, when it is of another limiter.
    #[doc(alias = "adjust")]
    pub fn settle(&self, receipt: Receipt, actual: u32) -> Result<u32, OtherLimiter> {
        Ok(self.engine.settle(&receipt.check(self.engine.id)?, actual))
    }

    #[doc(hidden)]
    pub fn reserve_by(
        &self,
        key: impl AsKey<K>,
        cost: u32,
        within: Duration,
    ) -> Result<Reservation<&Self>, ReserveError> {
        Reservation::new(self, self.charge(key, cost, within)?)
    }

    #[doc(hidden)]
    pub fn peek_reserve_by(&self, key: impl AsKey<K>, cost: u32, within: Duration) -> Result<Status, CostExceedsLimit> {
        self.engine.peek_within_limits(&[Some(self.fingerprint(&key))], reserve(cost, within))
    }

    fn charge(&self, key: impl AsKey<K>, cost: u32, within: Duration) -> Result<(Status, Receipt), CostExceedsLimit> {
        let fingerprint = self.fingerprint(&key);
        let request = reserve(cost, within);
        self.engine.charge(&[Some(fingerprint)], cost, |charges| {
            self.decide_observed(key, fingerprint, request, Some(charges))
        })
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Settle for Limiter<K, C, F> {
    fn settle_receipt(&self, receipt: &Receipt, actual: u32) -> u32 {
        self.engine.settle(receipt, actual)
    }

    #[inline]
    fn leave(&self, entry: [u64; 2]) {
        self.engine.table.leave(&Entry::of_numbers(entry), &self.engine.clock);
    }
}

impl<C: Clock> Limiter<NoKey, C, NoKey> {
    /// Charges `cost` refundable permits, for now or for a later time `within` the given duration,
    /// as [`Limiter::reserve`] does.
    ///
    /// A reservation that is dropped gives its permits back, also when a client hangs up. Where the
    /// attempt itself must count, [`commit`](Reservation::commit) at once and
    /// [`refund`](Self::refund) on success: see [`Reservation`].
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
    #[doc(alias = "until_ready", alias = "Wait")]
    pub fn reserve(&self, cost: u32, within: Duration) -> Result<Reservation<&Self>, ReserveError> {
        self.reserve_by((), cost, within)
    }

    /// Returns the answer that [`reserve`](Self::reserve) would give now, as
    /// [`Limiter::peek_reserve`] does. Charges nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(3))?;
    /// assert!(limiter.try_acquire_n(2)?.is_admitted());
    /// assert!(limiter.peek_reserve(2, Duration::ZERO)?.is_denied());
    /// assert!(limiter.peek_reserve(2, Duration::from_secs(3600))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit.
    pub fn peek_reserve(&self, cost: u32, within: Duration) -> Result<Status, CostExceedsLimit> {
        self.peek_reserve_by((), cost, within)
    }

    /// As [`reserve`](Self::reserve), for a reservation that holds an `Arc` of the limiter, as by
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
        Reservation::new(Arc::clone(self), self.charge((), cost, within)?)
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Charges `cost` refundable permits to each of the keys: all of them now, or none.
    ///
    /// A reservation that is dropped gives its permits back, also when a client hangs up. Where the
    /// attempt itself must count, [`commit`](Reservation::commit) at once and
    /// [`refund`](Self::refund) on success: see [`Reservation`].
    ///
    /// No permits are reserved for later: they would block the other keys of all dimensions. A
    /// request that would have to wait in a queue is denied, with the wait until the queue is empty.
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
    /// [`ReserveError`] when the request is denied, when there is no key or, for a slice, another
    /// number of keys than dimensions, or when `cost` is more than a limit.
    #[doc(alias = "until_ready", alias = "Wait")]
    pub fn reserve(&self, keys: impl Keys<D>, cost: u32) -> Result<Reservation<&Self>, ReserveError> {
        Reservation::new(self, self.charge(keys, cost)?)
    }

    /// Returns the answer that [`reserve`](Self::reserve) would give now. Charges nothing. While a
    /// request would have to wait in a [leaky queue](crate::Quota::leaky_queue), the queue has no
    /// permits left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let queue = Quota::leaky_queue(1, Duration::from_secs(60), Duration::from_secs(300));
    /// let limiter = JointLimiter::<(String,)>::builder().dimension("user", [queue]).build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// assert!(limiter.peek(("alice",))?.is_admitted());
    /// assert!(limiter.peek_reserve(("alice",), 1)?.decision().is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_reserve(&self, keys: impl Keys<D>, cost: u32) -> Result<Status, JointError> {
        self.peek_as(keys, Request::reserve(cost, 0))
    }

    /// As [`reserve`](Self::reserve), for a reservation that holds an `Arc` of the limiter, as by
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
        Reservation::new(Arc::clone(self), self.charge(keys, cost)?)
    }

    fn charge(&self, keys: impl Keys<D>, cost: u32) -> Result<(Status, Receipt), JointError> {
        let fingerprints = self.fingerprints(&keys)?;
        // For now: a queue refunds only its last place.
        let request = Request::reserve(cost, 0);
        Ok(self
            .engine
            .charge(&fingerprints, cost, |charges| self.decide_observed(keys, &fingerprints, request, Some(charges)))?)
    }

    /// Refunds the permits of a receipt in all dimensions at once.
    ///
    /// Returns the largest number of permits that were refunded in one dimension: all, or fewer.
    /// See [`Limiter::refund`] for those that are not refunded.
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
    #[doc(alias = "restore")]
    pub fn refund(&self, receipt: Receipt) -> Result<u32, OtherLimiter> {
        Ok(self.engine.refund(&receipt.check(self.engine.id)?))
    }

    /// Charges each of the keys what a request has cost in fact, and not what its receipt was
    /// charged. All of them change at once.
    ///
    /// Returns the permits that are charged then, in the dimension with the fewest. See
    /// [`Limiter::settle`].
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(3)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// let receipt = limiter.reserve(("alice", 7), 1)?.commit();
    /// assert_eq!(limiter.settle(receipt, 5)?, 5);
    /// assert!(limiter.try_acquire(("alice", 7))?.is_denied());
    /// assert!(limiter.peek_n(("bob", 7), 3)?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OtherLimiter`], with the receipt, when it is of another limiter.
    pub fn settle(&self, receipt: Receipt, actual: u32) -> Result<u32, OtherLimiter> {
        Ok(self.engine.settle(&receipt.check(self.engine.id)?, actual))
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> Settle for JointLimiter<D, C, F> {
    fn settle_receipt(&self, receipt: &Receipt, actual: u32) -> u32 {
        self.engine.settle(receipt, actual)
    }

    #[inline]
    fn leave(&self, entry: [u64; 2]) {
        self.engine.table.leave(&Entry::of_numbers(entry), &self.engine.clock);
    }
}
