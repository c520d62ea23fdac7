//! [`JointLimiter`]: several dimensions, each with quotas of its own, decided as one.

use core::fmt;
use core::marker::PhantomData;

use crate::caps::MAX_DIMENSIONS;
use crate::cell::MAX_CELLS;
use crate::clock::{Clock, MonotonicClock};
use crate::counts::Counts;
use crate::decision::{Decision, JointStatus};
use crate::engine::{Engine, Together};
use crate::error::JointError;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};
use crate::keys::{Dimensions, Keys};
#[cfg(doc)]
use crate::penalty::Penalty;
use crate::quota::Quota;
use crate::quotas::Shown;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;

/// A rate limiter in several dimensions (user, address, endpoint): a request is admitted if every
/// one of its keys has room for it, and is charged to all of them or to none.
///
/// `D` names the types of the keys, one for each dimension, in a tuple of up to eight. Keys that
/// are swapped or of another type do not compile. Each is passed in any form that
/// [`AsKey`](crate::AsKey) allows, as an `Option` of one, or as [`Absent`](crate::Absent): a
/// dimension without a key is not asked. For a number of dimensions that is known at run time only,
/// `D` is a slice: `JointLimiter<[String]>`.
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
/// The decision is atomic, whatever other threads do: no dimension is ever over its quota, a denied
/// request leaves no trace, and no request is denied for permits that another request took and then
/// gave back. No thread waits for another: a thread that finds an unfinished request finishes it.
/// The crate's `cell/joint.rs` names the sources.
///
/// A limiter is a value of about 1.9 KB.
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
/// // A request without a user is asked in the other dimensions only.
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
    names: Box<[Box<str>]>,
    keys: PhantomData<fn(&D)>,
}

const _: () = assert!(MAX_DIMENSIONS == MAX_CELLS);

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    pub(super) fn of(engine: Engine<C, F>, names: Box<[Box<str>]>) -> Self {
        Self { engine, names, keys: PhantomData }
    }

    /// Takes one permit of each of the keys now, or denies the request.
    ///
    /// Peeks at each key. If none denies, it looks each up again and claims all of them as one. A
    /// denial writes nothing, with two exceptions. It finishes an unfinished request that it finds.
    /// And a token bucket that does not [start full](Quota::starting_with) begins to fill with the
    /// key's first request, also if the bucket denies that.
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn try_acquire(&self, keys: impl Keys<D>) -> Result<Decision, JointError> {
        self.try_acquire_n(keys, 1)
    }

    /// Takes `cost` permits of each of the keys, all of them now or none. A cost of zero charges
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
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions; and
    /// when `cost` is more than a limit of one that is asked: no wait would ever be long enough.
    pub fn try_acquire_n(&self, keys: impl Keys<D>, cost: u32) -> Result<Decision, JointError> {
        Ok(self.engine.decide_together(&self.fingerprints(keys, cost)?, cost, None))
    }

    /// Takes one permit of each of the keys of each request, as calls of
    /// [`try_acquire`](Self::try_acquire) in this order would: each request is decided on its own.
    ///
    /// The memory that the keys need is fetched for several requests at the same time, as by
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
        let requests = requests.into_iter().map(|keys| self.fingerprints(keys, 1));
        self.engine.decide_many_together(requests, self.names.len())
    }

    /// As [`try_acquire`](Self::try_acquire), with the permits left of every quota of every key, as
    /// of the same instant.
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
    /// let left = status.items().map(|item| (item.dimension(), item.remaining()));
    /// assert_eq!(left.collect::<Vec<_>>(), [(0, 9), (0, 99), (1, 49)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_status(&self, keys: impl Keys<D>) -> Result<JointStatus, JointError> {
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
    pub fn try_acquire_n_status(&self, keys: impl Keys<D>, cost: u32) -> Result<JointStatus, JointError> {
        Ok(self.engine.decide_together_in_full(&self.fingerprints(keys, cost)?, cost, None))
    }

    /// The answer that [`try_acquire_status`](Self::try_acquire_status) would give now. Charges
    /// nothing; see [`peek_n`](Self::peek_n).
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
    pub fn peek(&self, keys: impl Keys<D>) -> Result<JointStatus, JointError> {
        self.peek_n(keys, 1)
    }

    /// The answer that [`try_acquire_n_status`](Self::try_acquire_n_status) would give now. Charges
    /// nothing. The delay is that of the longest queue. At the key cap the answer for a new key is
    /// that of [`at_key_cap`](crate::JointLimiterBuilder::at_key_cap).
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
    pub fn peek_n(&self, keys: impl Keys<D>, cost: u32) -> Result<JointStatus, JointError> {
        Ok(self.engine.peek_together(&self.fingerprints(keys, cost)?, cost))
    }

    /// Gives each of these keys its full quota back, in its own dimension. Returns whether the
    /// limiter held anything for one of them. Ends their [penalties](Penalty) too, and changes no
    /// list.
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
    /// [`JointError`] when there is no key, or, for a slice, not as many keys as dimensions.
    pub fn forget(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(keys, 0)?;
        let held = keys.iter().flatten().map(|&key| self.engine.forget(key));
        Ok(held.fold(false, |any, held| any | held))
    }

    /// Forgets every key of every dimension, as [`forget`](Self::forget) forgets one.
    pub fn clear(&self) {
        self.engine.clear();
    }

    /// The figures of the limiter, of all dimensions together. Takes time in proportion to the
    /// cells.
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
        let names = self.names.iter().map(|name| size_of::<Box<str>>() + name.len());
        self.engine.counts(size_of::<Self>() + names.sum::<usize>())
    }

    /// The live permits of all keys, to restore after a restart; see [`Snapshot`].
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
        self.engine.snapshot(self.names.len())
    }

    /// The name of a dimension, by its place.
    ///
    /// # Panics
    ///
    /// When the limiter has no dimension at this place.
    #[must_use]
    pub fn dimension(&self, place: usize) -> &str {
        &self.names[place]
    }

    /// The dimensions, in order: their names, and the quotas that each of their keys has.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.build()?;
    /// for (name, quotas) in limiter.dimensions() {
    ///     assert_eq!((name, quotas), ("user", &[Quota::per_hour(1)][..]));
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, &[Quota])> {
        self.names.iter().enumerate().map(|(dimension, name)| (&**name, self.engine.quotas(dimension)))
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

    /// The keys of a request of this cost.
    pub(crate) fn fingerprints(&self, keys: impl Keys<D>, cost: u32) -> Result<Together, JointError> {
        let mut fingerprints: Together = [None; MAX_DIMENSIONS];
        let (mut given, mut any, mut checked) = (0, false, Ok(()));
        let dimensions = self.names.len();
        keys.each(&self.engine.fingerprinter, |key| {
            if let Some(key) = key.filter(|_| given < dimensions) {
                let key = key.in_dimension(given);
                fingerprints[given] = Some(key);
                any = true;
                // No limit is below one.
                if cost > 1 {
                    checked = checked.and(self.engine.checked(key, cost).map(drop));
                }
            }
            given += 1;
        });
        if given != dimensions {
            return Err(JointError::WrongNumberOfKeys { keys: given, dimensions });
        }
        if !any {
            return Err(JointError::NoKeys);
        }
        checked?;
        Ok(fingerprints)
    }
}

impl<D: ?Sized, C: fmt::Debug, F> fmt::Debug for JointLimiter<D, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limiter = f.debug_struct("JointLimiter");
        for (dimension, name) in self.names.iter().enumerate() {
            limiter.field(name, &Shown(&self.engine.table.version(dimension).quotas));
        }
        limiter.field("clock", &self.engine.clock).field("at_key_cap", &self.engine.at_cap).finish_non_exhaustive()
    }
}
