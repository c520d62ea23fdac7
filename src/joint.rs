//! [`JointLimiter`]: several dimensions, each with quotas of its own, decided as one.

use core::fmt;
use core::hash::Hasher;
use core::marker::PhantomData;
use std::sync::Arc;

use crate::caps::MAX_DIMENSIONS;
use crate::clock::{Clock, MonotonicClock};
use crate::counts::Counts;
use crate::decision::{Decision, Status};
use crate::dimensions::{Dimensions, Keys};
use crate::engine::Engine;

use crate::error::JointError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};
use crate::keys::Tier;
use crate::lists::{List, ListError};
use crate::observer::{Unasked, feed_one};
#[cfg(doc)]
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Shown;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;
use crate::state::joint::Together;
use crate::state::request::Request;
use crate::state::table::Charges;

/// A rate limiter in several dimensions, such as user, address and endpoint.
///
/// A request has one key for each dimension. It is admitted if it fits into the quotas of every
/// key. It is charged to all of its keys or to none.
///
/// `D` is a tuple of up to eight types, one for the keys of each dimension. A key of a wrong type
/// does not compile, nor do swapped keys of different types. A request passes each key in any form
/// that [`AsKey`](crate::AsKey) allows, or as an `Option` of a form, or as
/// [`Absent`](crate::Absent). A dimension without a key is not asked. If the number of dimensions
/// is known only at run time, `D` is a slice: `JointLimiter<[String]>`.
///
/// ```compile_fail,E0277
/// # use std::net::IpAddr;
/// # use tollgate::{JointLimiter, Quota};
/// # let builder = JointLimiter::<(String, IpAddr)>::builder();
/// # let builder = builder.dimension("user", [Quota::per_minute(5)]);
/// # let limiter = builder.dimension("address", [Quota::per_minute(5)]).build().unwrap();
/// let address: IpAddr = [192, 0, 2, 7].into();
/// limiter.try_acquire((address, "alice"));
/// ```
///
/// ```compile_fail,E0277
/// # use std::net::IpAddr;
/// # use tollgate::{JointLimiter, Quota};
/// # let builder = JointLimiter::<(String, IpAddr)>::builder();
/// # let builder = builder.dimension("user", [Quota::per_minute(5)]);
/// # let limiter = builder.dimension("address", [Quota::per_minute(5)]).build().unwrap();
/// limiter.try_acquire(("alice",));
/// ```
///
/// The decision is atomic. No key is ever over a quota of its dimension. A denied request takes no
/// permit from any key. No request is denied because of permits that another request took and gave
/// back. No thread waits for another: a thread that finds an unfinished request finishes it.
/// [`design::internals`](crate::design::internals) tells how.
///
/// A limiter is a value of about 0.8 KB.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::Duration;
/// use tollgate::{Absent, Decision, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, IpAddr, String)>::builder()
///     .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
///     .dimension("address", [Quota::per_minute(2)])
///     .dimension("endpoint", [Quota::token_bucket(1000, 100, Duration::from_secs(1))])
///     .build()?;
///
/// let address: IpAddr = [192, 0, 2, 7].into();
/// assert!(limiter.try_acquire(("alice", address, "/login"))?.is_admitted());
/// // Without a user, only the other dimensions are asked.
/// assert!(limiter.try_acquire((Absent, address, "/login"))?.is_admitted());
/// match limiter.try_acquire(("bob", address, "/login"))? {
///     Decision::Denied(denial) => assert_eq!(limiter.dimension(denial.dimension()), "address"),
///     Decision::Admitted(_) => unreachable!("two a minute"),
/// }
/// limiter.clear();
/// assert!(limiter.try_acquire(("bob", address, "/login"))?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JointLimiter<D: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    pub(crate) engine: Engine<C, F>,
    pub(crate) keys: PhantomData<fn(&D)>,
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Takes one permit for each of the keys now, or denies the request.
    ///
    /// ```
    /// use tollgate::{Decision, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("tenant", [Quota::per_minute(100)])
    ///     .build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// match limiter.try_acquire(("alice", 7))? {
    ///     Decision::Admitted(_) => println!("go on"),
    ///     Decision::Denied(denial) => {
    ///         let dimension = limiter.dimension(denial.dimension());
    ///         println!("limited by {dimension}: wait {:?}", denial.retry_after());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It claims the permits of all keys in one step. If a key denies the request, it looks at each
    /// key, and tells the longest wait. A denial charges nothing. A token bucket that does not
    /// [start full](Quota::starting_with) begins to fill with the key's first request, even if it
    /// denies that request.
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    #[doc(alias = "check_key", alias = "tryConsume", alias = "Allow")]
    pub fn try_acquire(&self, keys: impl Keys<D>) -> Result<Decision, JointError> {
        self.try_acquire_n(keys, 1)
    }

    /// Takes `cost` permits for each of the keys now, all of them or none. A cost of zero charges
    /// nothing and is always admitted.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.build()?;
    /// assert!(limiter.try_acquire_n(("alice",), 4)?.is_admitted());
    /// assert!(limiter.try_acquire_n(("alice",), 2)?.is_denied(), "one is left");
    /// assert!(limiter.try_acquire_n(("alice",), 6).is_err(), "more than the limit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    /// Also when `cost` is more than a limit of a dimension that is asked: no wait would help.
    /// There is no such error if a key is on the [deny list](Self::deny), nor in [shadow
    /// mode](crate::JointLimiterBuilder::shadow).
    pub fn try_acquire_n(&self, keys: impl Keys<D>, cost: u32) -> Result<Decision, JointError> {
        let fingerprints = self.fingerprints(&keys)?;
        let decision = if self.engine.is_observed() {
            self.decide_observed(keys, &fingerprints, Request::acquire(cost), None).decision
        } else {
            self.engine.decide_together(&fingerprints, cost)
        };
        self.engine.fits(&fingerprints, cost, decision)?;
        Ok(decision)
    }

    /// Decides each request on its own, as calls of [`try_acquire`](Self::try_acquire) in this
    /// order would.
    ///
    /// The memory of several requests is prefetched together, as by
    /// [`Limiter::try_acquire_many`](crate::Limiter::try_acquire_many).
    ///
    /// ```
    /// use tollgate::{JointError, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("tenant", [Quota::per_minute(2)])
    ///     .build()?;
    /// let decisions = limiter.try_acquire_many([("alice", 7), ("alice", 7), ("bob", 7)]);
    /// let admitted: Result<Vec<_>, JointError> =
    ///     decisions.into_iter().map(|decision| Ok(decision?.is_admitted())).collect();
    /// assert_eq!(admitted?, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// For each request as [`try_acquire`](Self::try_acquire).
    #[must_use = "decisions that are not looked at limit nothing"]
    pub fn try_acquire_many(&self, requests: impl IntoIterator<Item: Keys<D>>) -> Vec<Result<Decision, JointError>> {
        if self.engine.is_observed() {
            return requests.into_iter().map(|keys| self.try_acquire(keys)).collect();
        }
        let requests = requests.into_iter().map(|keys| self.fingerprints(&keys));
        self.engine.decide_many_together(requests, self.engine.names.len())
    }

    /// As [`try_acquire`](Self::try_acquire), with the permits left of every quota of every key. Beside
    /// an admission they are all of one instant.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_second(10), Quota::per_hour(100)])
    ///     .dimension("tenant", [Quota::per_hour(50)])
    ///     .build()?;
    /// let status = limiter.try_acquire_status(("alice", 7))?;
    /// assert!(status.is_admitted());
    /// let left = status.quotas().map(|item| (item.dimension(), item.remaining()));
    /// assert_eq!(left.collect::<Vec<_>>(), [(0, 9), (0, 99), (1, 49)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_status(&self, keys: impl Keys<D>) -> Result<Status, JointError> {
        self.try_acquire_n_status(keys, 1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), with the permits left: see
    /// [`try_acquire_status`](Self::try_acquire_status).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.build()?;
    /// let status = limiter.try_acquire_n_status(("alice",), 3)?;
    /// assert_eq!(status.tightest().map(|item| item.remaining()), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_status(&self, keys: impl Keys<D>, cost: u32) -> Result<Status, JointError> {
        let fingerprints = self.fingerprints(&keys)?;
        let status = self.decide_observed(keys, &fingerprints, Request::acquire(cost), None);
        self.engine.fits(&fingerprints, cost, status.decision)?;
        Ok(status)
    }

    /// Returns the answer that [`try_acquire_status`](Self::try_acquire_status) would give now.
    /// Charges nothing; see [`peek_n`](Self::peek_n).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.build()?;
    /// let status = limiter.peek(("alice",))?;
    /// assert_eq!(status.tightest().map(|item| item.remaining()), Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[doc(alias = "estimateAbilityToConsume")]
    pub fn peek(&self, keys: impl Keys<D>) -> Result<Status, JointError> {
        self.peek_n(keys, 1)
    }

    /// Returns the answer that [`try_acquire_n_status`](Self::try_acquire_n_status) would give now.
    /// Charges nothing. The delay is the longest of all queues. At the key cap, a new key gets the
    /// answer of [`at_key_cap`](crate::JointLimiterBuilder::at_key_cap).
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.build()?;
    /// assert!(limiter.try_acquire_n(("alice",), 3)?.is_admitted());
    /// assert!(limiter.peek_n(("alice",), 2)?.is_admitted());
    /// assert!(limiter.peek_n(("alice",), 3)?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_n(&self, keys: impl Keys<D>, cost: u32) -> Result<Status, JointError> {
        self.peek_as(keys, Request::acquire(cost))
    }

    /// Restores the full quota of each of these keys, in its own dimension, and ends its
    /// [penalty](Penalty). Changes no list. Returns whether the limiter held permits or a penalty of
    /// one of them.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// assert!(limiter.forget(("alice",))?);
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    #[doc(alias = "reset")]
    pub fn forget(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(&keys)?;
        Ok(keys.iter().flatten().fold(false, |any, &key| any | self.engine.forget(key)))
    }

    /// Forgets every key of every dimension, as [`forget`](Self::forget) forgets one.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// limiter.clear();
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "reset")]
    pub fn clear(&self) {
        self.engine.clear();
    }

    /// Puts each of these keys on the allow list of its own dimension. Returns whether one of the
    /// keys was not on this list before.
    ///
    /// From then until a key is [taken off](Self::unlist), its dimension is not asked: neither its
    /// quota nor a [`Penalty`] applies. If all keys of a request are on the list,
    /// the request is admitted without a charge ([`is_counted`](crate::Admission::is_counted) is
    /// `false`). Only the deny list takes precedence.
    ///
    /// Otherwise as [`Limiter::allow`](crate::Limiter::allow).
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, IpAddr)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("address", [Quota::per_minute(10)])
    ///     .list_cap(100)
    ///     .build()?;
    /// let address: IpAddr = [192, 0, 2, 7].into();
    /// // The user is not limited, and the address is.
    /// limiter.allow(("health check", Absent))?;
    /// for _ in 0..10 {
    ///     assert!(limiter.try_acquire(("health check", address))?.is_admitted());
    /// }
    /// assert!(limiter.try_acquire(("health check", address))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::allow`](crate::Limiter::allow), and [`ListError::Keys`] when there is no key
    /// or, for a slice, another number of keys than dimensions. Keys are listed in the order of
    /// their dimensions. If a key finds no place, the keys before it stay listed.
    pub fn allow(&self, keys: impl Keys<D>) -> Result<bool, ListError> {
        self.list(List::Allow, keys)
    }

    /// Puts each of these keys on the deny list of its own dimension. Returns whether one of the
    /// keys was not on this list before.
    ///
    /// From then until a key is [taken off](Self::unlist), all requests with it are denied, as by
    /// [`Limiter::deny`](crate::Limiter::deny).
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(50)]).list_cap(10).build()?;
    /// limiter.deny(("mallory", Absent))?;
    /// assert!(limiter.try_acquire(("mallory", 7))?.is_denied());
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`allow`](Self::allow).
    pub fn deny(&self, keys: impl Keys<D>) -> Result<bool, ListError> {
        self.list(List::Deny, keys)
    }

    /// Takes each of these keys off both lists of its own dimension. Returns whether one of the
    /// keys was on a list.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.list_cap(10).build()?;
    /// limiter.deny(("mallory",))?;
    /// assert!(limiter.unlist(("mallory",))?);
    /// assert!(limiter.try_acquire(("mallory",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    pub fn unlist(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(&keys)?;
        Ok(keys.iter().flatten().fold(false, |any, &key| any | self.engine.take_off_lists(key)))
    }

    /// Counts keys, memory and decisions of all dimensions together. The time is proportional to
    /// the number of cells.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(10)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// assert!(limiter.try_acquire(("bob", 7))?.is_admitted());
    /// assert_eq!(limiter.counts().live_keys, 3, "two users and a tenant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// Copies the live permits of all keys, to be restored after a restart; see [`Snapshot`].
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota, Snapshot};
    ///
    /// let quotas = [Quota::per_day(1)];
    /// let builder = || JointLimiter::<(String,)>::builder().dimension("user", quotas);
    /// let before = builder().build()?;
    /// assert!(before.try_acquire(("alice",))?.is_admitted());
    /// let bytes = before.snapshot().to_bytes();
    ///
    /// let after = builder().restore(&Snapshot::from_bytes(&bytes)?)?;
    /// assert!(after.try_acquire(("alice",))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "snapshot")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// The name of the dimension with this number, counted from zero.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_hour(1)])
    ///     .dimension("tenant", [Quota::per_hour(100)])
    ///     .build()?;
    /// assert_eq!(limiter.dimension(0), "user");
    /// assert_eq!(limiter.dimension(1), "tenant");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the limiter has no dimension with this number.
    #[must_use]
    pub fn dimension(&self, dimension: usize) -> &str {
        &self.engine.names[dimension]
    }

    /// The dimensions in order, each with its name and the quotas of its keys.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.build()?;
    /// for (name, quotas) in limiter.dimensions() {
    ///     assert_eq!((name, &*quotas), ("user", &[Quota::per_hour(1)][..]));
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, Arc<[Quota]>)> {
        self.engine.names.iter().enumerate().map(|(dimension, name)| (&**name, self.engine.quotas(dimension)))
    }

    /// The tier with this name in a dimension; `None` if there is none.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(60)])
    ///     .dimension("tenant", [Quota::per_minute(1000)])
    ///     .tier(0, "premium", [Quota::per_minute(600)])
    ///     .build()?;
    /// let premium = limiter.tier(0, "premium").unwrap();
    /// assert!(limiter.try_acquire_n((premium.key("alice"), 7), 600)?.is_admitted());
    /// assert!(limiter.try_acquire_n(("bob", 7), 61).is_err(), "more than the limit");
    /// assert!(limiter.tier(1, "premium").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tier(&self, dimension: usize, name: &str) -> Option<Tier> {
        self.engine.tiers.named(dimension, name)
    }

    /// Tells the observers of a request that was answered without this limiter. The layers for HTTP
    /// call it.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota, Unasked};
    ///
    /// let builder = JointLimiter::<(String,)>::builder();
    /// let limiter = builder.dimension("user", [Quota::per_minute(1)]).build()?;
    /// limiter.observe_unasked(Unasked::Skipped);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn observe_unasked(&self, request: Unasked) {
        self.engine.observers.tell_unasked(request);
    }

    /// The clock of the limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, MockClock, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// limiter.clock().advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }

    fn list(&self, list: List, keys: impl Keys<D>) -> Result<bool, ListError> {
        let keys = self.fingerprints(&keys).map_err(ListError::Keys)?;
        keys.iter().flatten().try_fold(false, |any, &key| Ok(any | self.engine.put_on(list, key)?))
    }

    /// The fingerprints of the keys of a request.
    #[inline(always)]
    pub(crate) fn fingerprints(&self, keys: &impl Keys<D>) -> Result<Together, JointError> {
        let mut fingerprints: Together = [None; MAX_DIMENSIONS];
        let (mut given, dimensions) = (0, self.engine.names.len());
        keys.each(&self.engine.fingerprinter, |key| {
            if let Some(fingerprint) = fingerprints[..dimensions].get_mut(given) {
                *fingerprint = key.map(|key| self.engine.with_group(key, given));
            }
            given += 1;
        });
        if given != dimensions {
            return Err(JointError::WrongNumberOfKeys { keys: given, dimensions });
        }
        if fingerprints.iter().all(Option::is_none) {
            return Err(JointError::NoKeys);
        }
        Ok(fingerprints)
    }

    /// Decides a request, and tells the observers.
    pub(crate) fn decide_observed(
        &self,
        keys: impl Keys<D>,
        fingerprints: &Together,
        request: Request,
        charges: Option<&mut Charges>,
    ) -> Status {
        let shown = |dimension, state: &mut dyn Hasher| feed_one(&keys, dimension, state);
        self.engine.decide_observed(fingerprints, request, charges, Some(&shown))
    }

    /// Takes more permits, now or not at all, for a request that may be in flight: it needs no place in a
    /// concurrency limit. The layers for HTTP call it.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    #[doc(hidden)]
    pub fn try_acquire_more(&self, keys: impl Keys<D>, cost: u32) -> Result<Status, JointError> {
        let fingerprints = self.fingerprints(&keys)?;
        let status = self.decide_observed(keys, &fingerprints, Request::more(cost), None);
        self.engine.fits(&fingerprints, cost, status.decision)?;
        Ok(status)
    }

    pub(crate) fn peek_as(&self, keys: impl Keys<D>, request: Request) -> Result<Status, JointError> {
        Ok(self.engine.peek_within_limits(&self.fingerprints(&keys)?, request)?)
    }
}

impl<D: ?Sized, C: fmt::Debug, F> fmt::Debug for JointLimiter<D, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limiter = f.debug_struct("JointLimiter");
        for (dimension, name) in self.engine.names.iter().enumerate() {
            limiter.field(name, &Shown(&self.engine.table.version(dimension).quotas));
        }
        limiter
            .field("clock", &self.engine.clock)
            .field("at_key_cap", &self.engine.at_key_cap())
            .finish_non_exhaustive()
    }
}
