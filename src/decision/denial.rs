//! [`Denial`]: why a request was denied, and how long to wait.

use core::time::Duration;

use crate::caps::MAX_DIMENSIONS;
use crate::clock::nanos;

/// The dimensions whose keys are in shadow mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shadowed(u8);

impl Shadowed {
    /// Those of the first eight dimensions for which it is so.
    pub(crate) fn of(is_shadowed: impl Fn(usize) -> bool) -> Self {
        Self((0..8).filter(|&dimension| is_shadowed(dimension)).fold(0, |all, dimension| all | 1 << dimension))
    }

    pub(crate) fn has(self, dimension: usize) -> bool {
        self.0 & (1 << dimension) != 0
    }
}

/// A denied request: the reason, and the time to wait.
///
/// Its `Display` has the wait in whole seconds, rounded up.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{DirectLimiter, MockClock, Quota};
///
/// let clock = MockClock::new();
/// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), clock.clone())?;
/// assert!(limiter.try_acquire().is_admitted());
/// clock.advance(Duration::from_micros(1));
/// let denial = limiter.try_acquire().into_result().unwrap_err();
/// assert_eq!(denial.retry_after(), Duration::from_nanos(59_999_999_000));
/// assert_eq!(denial.retry_after_secs(), Some(60));
/// assert_eq!(denial.to_string(), "too many requests: try again in 60 s");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Denial {
    // In nanoseconds, because a `Duration` costs a division and few callers read it.
    retry_after_ns: u64,
    reason: DenialReason,
    /// The index of the quota; of a penalty, the number of the block.
    number: u8,
    dimension: u8,
    /// A bit for each dimension that denies.
    violated: u8,
    /// A bit for each of these dimensions whose quota denies for a time.
    by_quota: u8,
    /// Whether it is overruled, and other dimensions have charged.
    is_beside_a_charge: bool,
    /// The number of the [`NamedQuotas`](super::NamedQuotas), from one on.
    pub(super) named: u16,
}

impl Denial {
    /// The wait of a request that can never succeed. Other waits are less than 2^62.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// In place of the number of a quota: it is a concurrency limit.
    pub(crate) const IN_FLIGHT: u8 = u8::MAX;

    /// The same denial, where other dimensions have charged.
    pub(crate) const fn beside_a_charge(self) -> Self {
        Self { is_beside_a_charge: true, ..self }
    }

    pub(crate) const fn is_beside_a_charge(self) -> bool {
        self.is_beside_a_charge
    }

    /// The number is the index of the quota or, of a penalty, that of the block.
    pub(crate) const fn new(retry_after_ns: u64, reason: DenialReason, number: u8) -> Self {
        let by_quota = matches!(reason, DenialReason::Quota) as u8;
        let (dimension, violated, is_beside_a_charge, named) = (0, 1, false, 0);
        Self { retry_after_ns, reason, number, dimension, violated, by_quota, is_beside_a_charge, named }
    }

    /// A denial by quotas: for limiters that decide elsewhere, such as on a store. This quota of this
    /// dimension decides the wait, and these dimensions deny the request.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Denial;
    ///
    /// let denial = Denial::by_quotas(Duration::from_secs(7), (1, 0), [0, 1]);
    /// assert_eq!((denial.retry_after_secs(), denial.dimension(), denial.quota()), (Some(7), 1, 0));
    /// assert_eq!(denial.violated().collect::<Vec<_>>(), [0, 1]);
    /// ```
    #[must_use]
    pub fn by_quotas(
        wait: Duration,
        (dimension, quota): (usize, usize),
        violated: impl IntoIterator<Item = usize>,
    ) -> Self {
        let violated =
            violated.into_iter().filter(|dimension| *dimension < MAX_DIMENSIONS).fold(0, |bits, one| bits | (1 << one));
        let denial = Self::new(nanos(wait), DenialReason::Quota, octet(quota).min(Self::IN_FLIGHT - 1));
        Self { dimension: octet(dimension), violated, by_quota: violated, ..denial }
    }

    /// A denial because too many requests are in flight: for limiters that decide elsewhere. This
    /// dimension is the first of those that deny the request.
    ///
    /// ```
    /// use tollgate::{Denial, DenialReason};
    ///
    /// let denial = Denial::in_flight(1, [1]);
    /// assert_eq!((denial.reason(), denial.retry_after_secs()), (DenialReason::InFlight, None));
    /// assert_eq!((denial.dimension(), denial.quota()), (1, 0));
    /// ```
    #[must_use]
    pub fn in_flight(dimension: usize, violated: impl IntoIterator<Item = usize>) -> Self {
        let denial = Self::by_quotas(Duration::ZERO, (dimension, 0), violated);
        Self { number: Self::IN_FLIGHT, ..denial.after(Self::NEVER) }
    }

    /// The same denial, by this dimension of several.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let dimension = octet(dimension);
        let violated = 1_u8.checked_shl(dimension.into()).unwrap_or(0);
        let is_for_a_time = self.by_quota > 0 && !self.never_fits();
        Self { dimension, violated, by_quota: if is_for_a_time { violated } else { 0 }, ..self }
    }

    /// The denial of a request that is denied for both reasons. It has the longer wait with its
    /// reason, and both dimensions. A wait of a key in shadow mode counts only beside others such:
    /// once the others are over, the request is admitted. That requests are in flight is told if
    /// nothing else denies the request: a wait that is known helps more than none.
    pub(crate) fn and(self, other: Self, shadowed: Shadowed) -> Self {
        let violated = self.violated | other.violated;
        let wait = |denial: Self| if denial.reason() == DenialReason::InFlight { 0 } else { denial.retry_after_ns };
        let rank = |denial: Self| (!shadowed.has(denial.dimension()), wait(denial));
        let longer = if rank(other) > rank(self) { other } else { self };
        Self { violated, by_quota: self.by_quota | other.by_quota, ..longer }
    }

    /// The wait after which the same request succeeds, and not a nanosecond sooner, if no other
    /// permits are granted until then.
    ///
    /// There are exceptions. At the key cap ([`DenialReason::KeyCap`]) it is the time until a
    /// place may be free: no place is free sooner, unless a key is forgotten or refunded, or quotas
    /// change. After the wait there may be no place either, and then the denial has another wait:
    /// the keys that hold the places may have been granted more permits, or other new keys were
    /// faster. A wait for another reason tells nothing of places: after it, a new key of the request
    /// may find none, or one in which a bucket that [starts](crate::Quota::starting_with) low begins to
    /// fill. On the deny list ([`DenialReason::DenyList`]) no wait helps, and while too many requests
    /// are in flight ([`DenialReason::InFlight`]) none is known: it is [`Duration::MAX`]. Note that
    /// `Instant::now() + Duration::MAX` panics.
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        duration(self.retry_after_ns)
    }

    /// The [wait](Self::retry_after) in whole seconds, rounded up and at least 1: the value of a
    /// `Retry-After` header. `None` if no wait helps, or none is known: then leave the header out.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self.retry_after_ns {
            Self::NEVER => None,
            0 => Some(1),
            ns => Some(ns.div_ceil(1_000_000_000)),
        }
    }

    /// The same denial, of a function with these quotas.
    #[cfg(feature = "macros")]
    pub(crate) const fn with_named(self, named: u16) -> Self {
        Self { named, ..self }
    }

    /// The same denial with another wait.
    pub(crate) const fn after(self, retry_after_ns: u64) -> Self {
        Self { retry_after_ns, ..self }
    }

    /// Whether the cost is above a limit, so that no wait helps.
    #[inline]
    pub(crate) fn never_fits(self) -> bool {
        self.retry_after_ns == Self::NEVER && matches!(self.reason(), DenialReason::Quota)
    }

    /// The dimensions that deny by their quotas, for a time.
    pub(crate) fn violated_quotas(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |dimension| self.by_quota & (1 << dimension) != 0)
    }

    /// The wait in nanoseconds.
    pub(crate) const fn wait_ns(&self) -> u64 {
        self.retry_after_ns
    }

    /// Why the request was denied.
    ///
    /// ```
    /// use tollgate::{DenialReason, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(5)).list_cap(10).build()?;
    /// limiter.deny("mallory")?;
    /// let denial = limiter.try_acquire("mallory").into_result().unwrap_err();
    /// assert_eq!(denial.reason(), DenialReason::DenyList);
    /// assert_eq!(denial.retry_after_secs(), None, "no wait helps");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn reason(&self) -> DenialReason {
        // Told apart here, so that a plain denial need not.
        match self.reason {
            DenialReason::Quota if self.number == Self::IN_FLIGHT => DenialReason::InFlight,
            reason => reason,
        }
    }

    /// The dimension of a [`JointLimiter`](crate::JointLimiter) that decides the wait, counted from
    /// zero. It is zero for other limiters.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(1)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// let denial = limiter.try_acquire(("bob", 7))?.into_result().unwrap_err();
    /// assert_eq!(limiter.dimension(denial.dimension()), "tenant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    /// The dimensions of a [`JointLimiter`](crate::JointLimiter) that deny the request, in order.
    /// For other limiters, zero is the only item.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(1)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// let denial = limiter.try_acquire(("alice", 7))?.into_result().unwrap_err();
    /// assert_eq!(denial.violated().collect::<Vec<_>>(), [0, 1]);
    /// let denial = limiter.try_acquire(("bob", 7))?.into_result().unwrap_err();
    /// assert_eq!(denial.violated().collect::<Vec<_>>(), [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn violated(&self) -> impl Iterator<Item = usize> + use<> {
        let violated = self.violated;
        (0..8).filter(move |dimension| violated & (1 << dimension) != 0)
    }

    /// The index of the quota that decides the wait among the quotas of the key, counted from zero
    /// in the given order. Of quotas with the same wait it is the one with the most permits.
    ///
    /// It is zero if no quota is the [reason](Self::reason).
    ///
    /// A quota that another quota implies never decides. For example, 10 per second implies 100 per
    /// second.
    ///
    /// ```
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_second(2)).and(Quota::per_minute(3));
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// let denial = limiter.try_acquire("alice").into_result().unwrap_err();
    /// assert_eq!(limiter.quotas()[denial.quota()], Quota::per_second(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn quota(&self) -> usize {
        match self.reason {
            DenialReason::Penalty => 0,
            // A concurrency limit is the only one of its key.
            _ if self.number == Self::IN_FLIGHT => 0,
            _ => self.number as usize,
        }
    }

    /// The number of the block, if a [`Penalty`](crate::Penalty) denies the request: how many times the
    /// key has been blocked since it was last quiet. It is always 1 if blocks do not
    /// [grow](crate::Penalty::growing). 255 stands for any larger number.
    ///
    /// A peek tells it, too: for logs and metrics, and for programs that report a client that does not
    /// learn.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Penalty, Quota};
    ///
    /// let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
    /// let penalty = Penalty::new(2, hour, hour).growing(2, day, day);
    /// let limiter = Limiter::<String>::builder(Quota::per_hour(1)).penalty(penalty).build()?;
    /// let _ = [(); 3].map(|()| limiter.try_acquire("mallory"));
    /// let block = |key: &str| limiter.peek(key).decision().into_result().err()?.block();
    /// assert_eq!((block("mallory"), block("alice")), (Some(1), None));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn block(&self) -> Option<u8> {
        if let DenialReason::Penalty = self.reason { Some(self.number) } else { None }
    }
}

/// A time, or [`Duration::MAX`] for never.
pub(super) const fn duration(ns: u64) -> Duration {
    if ns == Denial::NEVER { Duration::MAX } else { Duration::from_nanos(ns) }
}

/// The index of a dimension or a quota: there are at most eight.
pub(super) fn octet(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

impl core::fmt::Display for Denial {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.reason() {
            DenialReason::Quota => "too many requests",
            DenialReason::KeyCap => "the limiter is at its key cap",
            DenialReason::Penalty => "blocked after too many denied requests",
            DenialReason::DenyList => "on the deny list",
            DenialReason::InFlight => return f.write_str("too many requests in flight: try again when one has ended"),
        })?;
        match self.retry_after_secs() {
            Some(seconds) => write!(f, ": try again in {seconds} s"),
            None => f.write_str(": trying again does not help"),
        }
    }
}

impl core::error::Error for Denial {}

/// Why a request was denied.
///
/// ```
/// use tollgate::{Denial, DenialReason, DirectLimiter, Quota};
///
/// fn http_status(denial: &Denial) -> u16 {
///     match denial.reason() {
///         DenialReason::KeyCap => 503,
///         DenialReason::DenyList => 403,
///         _ => 429,
///     }
/// }
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire().is_admitted());
/// let denial = limiter.try_acquire().into_result().unwrap_err();
/// assert_eq!(http_status(&denial), 429);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DenialReason {
    /// The key has too many live permits.
    Quota,
    /// The key is new, and the limiter holds as many keys as its cap allows. The
    /// [wait](Denial::retry_after) is the time until a place may be free.
    KeyCap,
    /// The key is blocked after too many denials; see [`Penalty`](crate::Penalty). The denial that
    /// begins the block has this reason, too.
    Penalty,
    /// The key is on the [deny list](crate::Limiter::deny).
    DenyList,
    /// The key has too many requests in flight: see [`Quota::concurrent`](crate::Quota::concurrent).
    /// No [wait](Denial::retry_after) is known. A request that is denied for another reason, too, has
    /// that one.
    InFlight,
}
