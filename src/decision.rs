//! What a limiter answers: [`Decision`], and [`Status`] when the numbers for response headers are wanted too.

use core::num::NonZeroU64;
use core::time::Duration;

/// Admitted, or denied with the time to wait.
///
/// ```
/// use tollgate::{Decision, DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire().is_admitted());
/// match limiter.try_acquire() {
///     Decision::Admitted(_) => unreachable!("one a minute"),
///     Decision::Denied(denial) => println!("try again in {:?}", denial.retry_after()),
/// }
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub enum Decision {
    /// The permits were granted and charged; the [`Admission`] tells where they were not charged.
    Admitted(Admission),
    /// Nothing was charged, and nothing was written but where denials are counted ([`Penalty`](crate::Penalty), or by
    /// [`count_decisions`](crate::LimiterBuilder::count_decisions)).
    Denied(Denial),
}

impl Decision {
    /// Whether the request may go on.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// Whether the request was turned away.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// The same decision, admitted: what shadow mode makes of a denial.
    pub(crate) const fn overrule(self) -> Self {
        match self {
            Self::Admitted(_) => self,
            Self::Denied(denial) => Self::Admitted(Admission(How::Overruled(denial))),
        }
    }

    /// How long to wait before the same request can succeed; `None` when it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Admitted(_) => None,
            Self::Denied(denial) => Some(denial.retry_after()),
        }
    }

    /// The decision as a `Result`, for use with `?`.
    ///
    /// # Errors
    ///
    /// The [`Denial`], when the request was denied.
    pub const fn into_result(self) -> Result<Admission, Denial> {
        match self {
            Self::Admitted(admission) => Ok(admission),
            Self::Denied(denial) => Err(denial),
        }
    }
}

/// A decision that took nothing out of the ordinary. Two words, `None` included, so that it stays in registers: a decision that is written
/// and read again on its way makes the next one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AtOnce {
    /// [`ADMITTED`](Self::ADMITTED), or the number of the quota that denied, and one.
    by: NonZeroU64,
    /// The delay, or the wait.
    ns: u64,
}

impl AtOnce {
    const ADMITTED: NonZeroU64 = NonZeroU64::MAX;

    #[inline]
    pub(crate) fn admitted(delay_ns: u64) -> Self {
        Self { by: Self::ADMITTED, ns: delay_ns }
    }

    #[inline]
    pub(crate) fn denied(wait_ns: u64, quota: u8) -> Self {
        Self { by: NonZeroU64::MIN.saturating_add(quota.into()), ns: wait_ns }
    }

    #[inline]
    pub(crate) fn is_admitted(self) -> bool {
        self.by == Self::ADMITTED
    }
}

impl From<AtOnce> for Decision {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it came from an octet")]
    fn from(AtOnce { by, ns }: AtOnce) -> Self {
        if by == AtOnce::ADMITTED {
            Self::Admitted(Admission::delayed(ns))
        } else {
            Self::Denied(Denial::new(ns, DenialReason::Quota, (by.get() - 1) as u8))
        }
    }
}

/// A granted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Admission(How);

/// How a request came to be admitted. As large as a denial, so that a decision is no larger for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum How {
    Charged { delay_ns: u64 },
    Uncharged,
    Overruled(Denial),
}

impl Admission {
    pub(crate) const COUNTED: Self = Self::delayed(0);
    pub(crate) const UNCOUNTED: Self = Self(How::Uncharged);

    #[inline]
    pub(crate) const fn delayed(delay_ns: u64) -> Self {
        Self(How::Charged { delay_ns })
    }

    /// The admission of a request that was granted both.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (How::Charged { delay_ns }, How::Charged { delay_ns: another }) => Self::delayed(delay_ns.max(another)),
            _ => self,
        }
    }

    /// How long to wait before going on: the place in the queue of [`Quota::leaky_queue`](crate::Quota::leaky_queue), and zero
    /// for every other algorithm.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        match self.0 {
            How::Charged { delay_ns } => Duration::from_nanos(delay_ns),
            How::Uncharged | How::Overruled(_) => Duration::ZERO,
        }
    }

    /// Whether the permits were charged to the key. Not charged is what the policy [`AtKeyCap::Admit`](crate::AtKeyCap::Admit)
    /// admits, a key on the [allow list](crate::Limiter::allow), and what [shadow mode](crate::LimiterBuilder::shadow) admits in
    /// place of a denial.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        matches!(self.0, How::Charged { .. })
    }

    /// The denial that the request would have met, had the limiter not been in [shadow mode](crate::LimiterBuilder::shadow).
    #[must_use]
    pub const fn overruled(&self) -> Option<Denial> {
        match self.0 {
            How::Overruled(denial) => Some(denial),
            How::Charged { .. } | How::Uncharged => None,
        }
    }
}

/// A refused request: why, and how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Denial {
    // Nanoseconds: few callers ask for it, and a `Duration` costs a division.
    retry_after_ns: u64,
    reason: DenialReason,
    quota: u8,
    dimension: u8,
    /// A bit for each dimension that is in the way.
    violated: u16,
}

impl Denial {
    /// In place of a wait: none would be long enough. (Waits are less than 2^62.)
    pub(crate) const NEVER: u64 = u64::MAX;

    pub(crate) const fn new(retry_after_ns: u64, reason: DenialReason, quota: u8) -> Self {
        Self { retry_after_ns, reason, quota, dimension: 0, violated: 1 }
    }

    /// The same denial, by that dimension of several.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let dimension = u8::try_from(dimension).unwrap_or(u8::MAX);
        Self { dimension, violated: 1_u16.checked_shl(dimension.into()).unwrap_or(0), ..self }
    }

    /// The denial of a request that is denied for both reasons: the one with the longer wait, and both dimensions.
    pub(crate) fn and(self, other: Self) -> Self {
        let violated = self.violated | other.violated;
        let longer = if other.retry_after_ns > self.retry_after_ns { other } else { self };
        Self { violated, ..longer }
    }

    /// With no other traffic the same request succeeds after exactly this long, and not a nanosecond sooner.
    ///
    /// A denial at the key cap ([`DenialReason::KeyCap`]) can only give the earliest moment at which a place may be free. Where no
    /// wait helps ([`DenialReason::DenyList`]) it is [`Duration::MAX`], which no `Instant` can be moved by.
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        if self.retry_after_ns == Self::NEVER { Duration::MAX } else { Duration::from_nanos(self.retry_after_ns) }
    }

    /// The wait in nanoseconds.
    pub(crate) const fn wait_ns(&self) -> u64 {
        self.retry_after_ns
    }

    /// What stood in the way.
    #[must_use]
    pub const fn reason(&self) -> DenialReason {
        self.reason
    }

    /// Which dimension of a [`JointLimiter`](crate::JointLimiter) decides the wait, counted from zero; zero for other limiters.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    /// All the dimensions of a [`JointLimiter`](crate::JointLimiter) that are in the way, in order. Other limiters have one.
    pub fn violated(&self) -> impl Iterator<Item = usize> + use<> {
        let violated = self.violated;
        (0..16).filter(move |dimension| violated & (1 << dimension) != 0)
    }

    /// Which of several quotas on the key decides the wait, counted from zero in the order in which they were given. (One that
    /// another quota implies is never named.)
    #[must_use]
    pub const fn quota(&self) -> usize {
        self.quota as usize
    }
}

impl core::fmt::Display for Denial {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.reason {
            DenialReason::Quota => write!(f, "too many requests: try again in {:?}", self.retry_after()),
            DenialReason::KeyCap => {
                write!(f, "the limiter holds as many keys as it may: try again in {:?}", self.retry_after())
            }
            DenialReason::Penalty => {
                write!(f, "blocked after too many denied requests: try again in {:?}", self.retry_after())
            }
            DenialReason::DenyList => f.write_str("on the deny list: trying again does not help"),
        }
    }
}

impl core::error::Error for Denial {}

/// What stood in the way of a denied request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialReason {
    /// The key has too many live permits.
    Quota,
    /// The key is new and the limiter already holds as many keys as its cap allows.
    KeyCap,
    /// The key is blocked for having been denied too often, also by this very denial; see [`Penalty`](crate::Penalty).
    Penalty,
    /// The key is on the [deny list](crate::Limiter::deny).
    DenyList,
}

/// A decision with the numbers that response headers show, taken at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct Status {
    pub(crate) decision: Decision,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) reset_after_ns: u64,
}

impl Status {
    /// A decision that asked nobody for the numbers.
    pub(crate) const fn bare(decision: Decision) -> Self {
        Self { decision, limit: 0, remaining: 0, reset_after_ns: 0 }
    }

    /// The decision itself.
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// The denial, if it is one.
    pub(crate) fn denial(&self) -> Option<Denial> {
        match self.decision {
            Decision::Admitted(_) => None,
            Decision::Denied(denial) => Some(denial),
        }
    }

    /// Whether the request may go on (of a peek: whether it could).
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        self.decision.is_admitted()
    }

    /// How long to wait before the same request can succeed; `None` when it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// Permits per window.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Permits that are still free after this decision.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.remaining
    }

    /// How long until every permit is free again if nothing else is granted; zero when all are free. A key that is blocked has
    /// none before its block has ended, and one on the deny list never: [`Duration::MAX`].
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        if self.reset_after_ns == Denial::NEVER { Duration::MAX } else { Duration::from_nanos(self.reset_after_ns) }
    }
}
