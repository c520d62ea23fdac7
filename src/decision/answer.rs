//! [`Decision`] and [`Admission`].

use core::num::NonZeroU64;
use core::time::Duration;

use super::denial::{Denial, DenialReason};

/// Admitted, or denied with the time to wait.
///
/// ```
/// use tollgate::{Decision, DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire().is_admitted());
/// match limiter.try_acquire() {
///     Decision::Admitted(_) => unreachable!("one a minute"),
///     Decision::Denied(denial) => println!("429: {denial}"),
/// }
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that is not looked at limits nothing"]
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

    /// The wait in whole seconds, rounded up and at least 1: the value of a `Retry-After` header. `None` when the request was
    /// admitted, and when no wait helps. See [`Denial::retry_after_secs`].
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::Admitted(_) => None,
            Self::Denied(denial) => denial.retry_after_secs(),
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

impl core::fmt::Display for Decision {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Admitted(admission) => admission.fmt(f),
            Self::Denied(denial) => denial.fmt(f),
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

impl core::fmt::Display for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            How::Charged { delay_ns: 0 } => f.write_str("admitted"),
            How::Charged { .. } => write!(f, "admitted after a delay of {:?}", self.delay()),
            How::Uncharged => f.write_str("admitted without a charge"),
            How::Overruled(denial) => write!(f, "admitted in shadow mode in place of a denial ({denial})"),
        }
    }
}
