//! [`Observation`]: one decision, as an observer sees it. [`ObservedKey`]: a key of its request.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::dimensions::Keys;
use crate::error::CostExceedsLimit;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::quota::Quota;

/// One decision of a limiter, as an [`Observer`](crate::Observer) sees it.
///
/// ```
/// use tollgate::{JointLimiter, Observation, Quota};
///
/// let print = |seen: &Observation<'_>| {
///     if let (Some(denial), Some(quota)) = (seen.denial(), seen.quota()) {
///         let dimension = seen.dimension(denial.dimension()).unwrap_or_default();
///         println!("{dimension} has {quota}, overruled: {}", seen.is_overruled());
/// #       assert_eq!((dimension, *quota), ("user", Quota::per_minute(1)));
///     }
/// };
/// let limiter = JointLimiter::<(String, u64)>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("tenant", [Quota::per_minute(100)])
///     .observer(print)
///     .build()?;
/// let _ = limiter.try_acquire_many([("alice", 7), ("alice", 7)]);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct Observation<'a> {
    result: Result<Decision, CostExceedsLimit>,
    status: Option<&'a Status>,
    quota: Option<Quota>,
    request: &'a ObservedRequest<'a>,
}

/// A request, before it is decided.
pub(crate) struct ObservedRequest<'a> {
    /// `None` of a limiter without keys.
    pub(crate) shown: Option<&'a dyn Feed>,
    /// By dimension; `None` where there is no key.
    pub(crate) keys: &'a [Option<Fingerprint>],
    /// A limiter of one dimension has none.
    pub(crate) names: &'a [Box<str>],
    pub(crate) cost: u32,
}

impl<'a> Observation<'a> {
    /// The request with this answer. `quota` has the quota of a denial.
    pub(super) fn new(
        request: &'a ObservedRequest<'a>,
        answer: Result<&'a Status, CostExceedsLimit>,
        quota: impl FnOnce(Denial) -> Option<Quota>,
    ) -> Self {
        let seen = Self { result: answer.map(|status| status.decision), status: answer.ok(), quota: None, request };
        let is_by_quota = |denial: &Denial| matches!(denial.reason(), DenialReason::Quota | DenialReason::InFlight);
        let quota = seen.denial().filter(is_by_quota).and_then(quota);
        Self { quota, ..seen }
    }

    /// The decision that the caller gets, or the error in its place.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Quota};
    ///
    /// let check = |seen: &Observation<'_>| assert!(seen.result().is_err(), "more than the limit");
    /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(check).build()?;
    /// assert!(limiter.try_acquire_n(2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when the request got that error.
    pub const fn result(&self) -> Result<Decision, CostExceedsLimit> {
        self.result
    }

    /// The denial, also one that [shadow mode](crate::LimiterBuilder::shadow) replaced by an
    /// admission.
    #[must_use]
    pub fn denial(&self) -> Option<Denial> {
        match self.result.ok()? {
            Decision::Admitted(admission) => admission.overruled(),
            Decision::Denied(denial) => Some(denial),
        }
    }

    /// Whether [shadow mode](crate::LimiterBuilder::shadow) admitted the request in place of a
    /// denial.
    #[must_use]
    pub fn is_overruled(&self) -> bool {
        self.admission().is_some_and(|admission| admission.overruled().is_some())
    }

    /// The admission; `None` if the caller gets a denial or an error.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Quota};
    ///
    /// let check = |seen: &Observation<'_>| assert!(seen.admission().is_some_and(|it| it.is_counted()));
    /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(check).build()?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn admission(&self) -> Option<Admission> {
        self.result.ok()?.into_result().ok()
    }

    /// The permits that the request asks for, of each of its keys.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Quota};
    ///
    /// let check = |seen: &Observation<'_>| assert_eq!(seen.cost(), 3);
    /// let limiter = DirectLimiter::builder(Quota::per_minute(5)).observer(check).build()?;
    /// assert!(limiter.try_acquire_n(3)?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.request.cost
    }

    /// The quota that denies the request, also a [limit on requests in flight](Quota::concurrent); of
    /// several, the one with the longest wait. `None` if the request is admitted, or denied for
    /// another [reason](Denial::reason).
    ///
    /// If the quotas change at this moment, it is the quota that took its place, or `None`.
    #[must_use]
    pub const fn quota(&self) -> Option<&Quota> {
        self.quota.as_ref()
    }

    /// The name of this dimension of a [`JointLimiter`](crate::JointLimiter), counted from zero.
    /// `None` for other limiters.
    #[must_use]
    pub fn dimension(&self, dimension: usize) -> Option<&str> {
        self.request.names.get(dimension).map(|name| &**name)
    }

    /// The key in this dimension, counted from zero. `None` if the request has no key there, and
    /// for a [`DirectLimiter`](crate::DirectLimiter). A [`Limiter`](crate::Limiter) has dimension
    /// zero.
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Observation, Quota};
    ///
    /// let check = |seen: &Observation<'_>| {
    ///     assert!(seen.key(0).is_none());
    ///     assert!(seen.key(1).is_some());
    /// };
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(1)]);
    /// let builder = builder.dimension("tenant", [Quota::per_minute(100)]);
    /// assert!(builder.observer(check).build()?.try_acquire((Absent, 7))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn key(&self, dimension: usize) -> Option<ObservedKey<'_>> {
        let fingerprint = (*self.request.keys.get(dimension)?)?;
        Some(ObservedKey { keys: self.request.shown?, dimension, fingerprint })
    }

    /// The permits left of each quota. `None` if the cost is above the limit.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Quota};
    ///
    /// let check = |seen: &Observation<'_>| assert_eq!(seen.status().map(|it| it.remaining()), Some(4));
    /// let limiter = DirectLimiter::builder(Quota::per_minute(5)).observer(check).build()?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn status(&self) -> Option<&Status> {
        self.status
    }
}

/// Shows no key.
impl fmt::Debug for Observation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = f.debug_struct("Observation");
        seen.field("result", &self.result).field("cost", &self.cost()).field("quota", &self.quota());
        seen.finish_non_exhaustive()
    }
}

/// The key of an [`Observation`], in whatever form the caller passed it.
///
/// A limiter hashes keys and does not know their text. So an observer gets the number that stands
/// for the key, and can hash the key with a hasher of its own. The crate `tollgate-observe` reads
/// the text of common keys by such a hasher.
///
/// ```
/// use std::hash::{DefaultHasher, Hash, Hasher};
/// use tollgate::{Limiter, Observation, Quota};
///
/// let check = |seen: &Observation<'_>| {
///     let (mut own, mut of_key) = (DefaultHasher::new(), DefaultHasher::new());
///     "alice".hash(&mut own);
///     seen.key(0).expect("a limiter with keys").hash_into(&mut of_key);
///     assert_eq!(of_key.finish(), own.finish());
/// };
/// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).observer(check).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ObservedKey<'a> {
    keys: &'a dyn Feed,
    dimension: usize,
    fingerprint: Fingerprint,
}

impl ObservedKey<'_> {
    /// The number that stands for the key in this limiter: its fingerprint.
    ///
    /// The default fingerprinter is seeded at random. So the number does not tell the key, and is
    /// another one after a restart without a snapshot.
    ///
    /// ```
    /// use tollgate::{Limiter, Observation, Quota};
    ///
    /// let log = |seen: &Observation<'_>| {
    ///     let id = seen.key(0).map(|key| key.id());
    ///     println!("{id:032x?}: {:?}", seen.result());
    /// };
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).observer(log).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u128 {
        u128::from(self.fingerprint.high) << 64 | u128::from(self.fingerprint.low)
    }

    /// Feeds the hasher exactly as the key's own [`Hash`] does.
    pub fn hash_into(&self, state: &mut dyn Hasher) {
        (self.keys)(self.dimension, state);
    }
}

/// Shows the [number](Self::id), and not the key.
impl fmt::Debug for ObservedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.id())
    }
}

/// The keys of a request, whatever their types: feeds a hasher as the key of a dimension does.
pub(crate) trait Feed: Fn(usize, &mut dyn Hasher) {}

impl<T: Fn(usize, &mut dyn Hasher)> Feed for T {}

/// Feeds a hasher as the key of this dimension does.
pub(crate) fn feed_one<D: ?Sized>(keys: &impl Keys<D>, dimension: usize, state: &mut dyn Hasher) {
    let feeder = Feeder { left: Cell::new(dimension), state: RefCell::new(state) };
    // A key is hashed before it is counted.
    keys.each(&feeder, |_| feeder.left.set(feeder.left.get().wrapping_sub(1)));
}

/// Gives one of several keys to a hasher.
struct Feeder<'a> {
    /// The number of keys before it.
    left: Cell<usize>,
    state: RefCell<&'a mut dyn Hasher>,
}

impl Fingerprinter for Feeder<'_> {
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
        if self.left.get() == 0 {
            key.hash(&mut *self.state.borrow_mut());
        }
        Fingerprint::new(0, 0)
    }
}
