//! [`Decision`] and [`Admission`].

use core::num::NonZeroU64;
use core::time::Duration;

use super::denial::{Denial, DenialReason};
use crate::clock::nanos;
use crate::texts::texts;

/// The answer to a request: admitted, or denied with the time to wait.
///
/// A serde format (feature `serde`) has it as `{"admitted": …}` or `{"denied": …}`.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire("alice").is_admitted());
///
/// let decision = limiter.try_acquire("alice");
/// assert!(decision.is_denied());
/// match decision {
///     Decision::Admitted(_) => println!("200"),
///     Decision::Denied(denial) => println!("429: {denial}"),
/// }
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[must_use = "a decision that is not looked at limits nothing"]
pub enum Decision {
    /// The permits were granted and charged. [`Admission::is_counted`] tells the exceptions, which
    /// are not charged.
    Admitted(Admission),
    /// No permits were charged, and nothing was written, unless the limiter counts denials
    /// ([`Penalty`](crate::Penalty), [`counting_refused`](crate::Quota::counting_refused),
    /// [`count_decisions`](crate::LimiterBuilder::count_decisions)).
    Denied(Denial),
}

impl Decision {
    /// Whether the request was admitted.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// Whether the request was denied.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// The decision in shadow mode: a denial becomes an admission.
    pub(crate) const fn overrule(self) -> Self {
        match self {
            Self::Admitted(_) => self,
            Self::Denied(denial) => Self::Admitted(Admission(AdmissionKind::Overruled(denial))),
        }
    }

    /// The wait after which the same request succeeds, if the key is granted no other permits until
    /// then; `None` when the request was admitted. See [`Denial::retry_after`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), clock.clone())?;
    /// assert_eq!(limiter.try_acquire().retry_after(), None);
    /// clock.advance(Duration::from_secs(20));
    /// assert_eq!(limiter.try_acquire().retry_after(), Some(Duration::from_secs(40)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        if let Self::Denied(denial) = self { Some(denial.retry_after()) } else { None }
    }

    /// The wait in whole seconds, rounded up and at least 1: the value of a `Retry-After` header.
    ///
    /// `None` when the request was admitted, and when no wait helps. See
    /// [`Denial::retry_after_secs`].
    ///
    /// ```
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new())?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// if let Some(seconds) = limiter.try_acquire().retry_after_secs() {
    ///     println!("Retry-After: {seconds}");
    ///     assert_eq!(seconds, 60);
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        if let Self::Denied(denial) = self { denial.retry_after_secs() } else { None }
    }

    /// The decision as a `Result`, for use with `?`.
    ///
    /// ```
    /// use tollgate::{Denial, Limiter, Quota};
    ///
    /// fn greet(limiter: &Limiter<String>, user: &str) -> Result<String, Denial> {
    ///     limiter.try_acquire(user).into_result()?;
    ///     Ok(format!("hello, {user}"))
    /// }
    ///
    /// let limiter = Limiter::new(Quota::per_minute(1))?;
    /// assert!(greet(&limiter, "alice").is_ok());
    /// assert!(greet(&limiter, "alice").is_err());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
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

texts! { Decision {
    Admitted(admission) => "{admission}";
    Denied(denial) => "{denial}";
} }

/// A decision of the fast path, by a quota of the key. An `Option` of it has two words, so it stays
/// in registers: a decision that goes through memory delays the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FastDecision {
    /// [`ADMITTED`](Self::ADMITTED), or one plus the number of the quota that denied.
    by: NonZeroU64,
    /// The delay of an admission, or the wait of a denial.
    ns: u64,
}

impl FastDecision {
    const ADMITTED: NonZeroU64 = NonZeroU64::MAX;

    #[inline]
    pub(crate) fn admitted(delay_ns: u64) -> Self {
        Self { by: Self::ADMITTED, ns: delay_ns }
    }

    #[inline]
    pub(crate) fn denied(wait_ns: u64, quota: u8) -> Self {
        Self { by: NonZeroU64::MIN.saturating_add(quota.into()), ns: wait_ns }
    }

    /// The wait of a denial.
    #[cfg(test)]
    pub(crate) fn wait_ns(self) -> u64 {
        self.ns
    }

    #[cfg(test)]
    pub(crate) fn is_admitted(self) -> bool {
        self.by == Self::ADMITTED
    }
}

impl From<FastDecision> for Decision {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it came from an octet")]
    fn from(FastDecision { by, ns }: FastDecision) -> Self {
        if by == FastDecision::ADMITTED {
            Self::Admitted(Admission::delayed(ns))
        } else {
            Self::Denied(Denial::new(ns, DenialReason::Quota, (by.get() - 1) as u8))
        }
    }
}

/// An admission: whether the request was charged, and whether it has to wait.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Decision, DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// let Decision::Admitted(admission) = limiter.try_acquire() else { panic!("the first request") };
/// assert!(admission.is_counted());
/// assert_eq!(admission.delay(), Duration::ZERO);
/// assert_eq!(admission.to_string(), "admitted");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Admission(AdmissionKind);

/// The kinds of admission. The type is no larger than a denial, so that a decision is no larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AdmissionKind {
    Charge { delay_ns: u64 },
    Uncharged,
    Overruled(Denial),
}

impl Admission {
    /// An admission without a charge.
    ///
    /// ```
    /// use tollgate::Admission;
    ///
    /// assert!(!Admission::UNCOUNTED.is_counted());
    /// ```
    pub const UNCOUNTED: Self = Self(AdmissionKind::Uncharged);

    /// An admission with a charge, of a request that may go on after this time: for limiters that
    /// decide elsewhere, such as on a store.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Admission;
    ///
    /// let admission = Admission::after(Duration::from_secs(2));
    /// assert_eq!((admission.is_counted(), admission.delay()), (true, Duration::from_secs(2)));
    /// ```
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self::delayed(nanos(delay))
    }

    #[inline]
    pub(crate) const fn delayed(delay_ns: u64) -> Self {
        Self(AdmissionKind::Charge { delay_ns })
    }

    /// The admission of a request that two dimensions have admitted.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (AdmissionKind::Charge { delay_ns }, AdmissionKind::Charge { delay_ns: another }) => {
                Self::delayed(delay_ns.max(another))
            }
            _ => self,
        }
    }

    /// This admission by some dimensions, where others deny that are in shadow mode. A delay matters
    /// more than that denial.
    pub(crate) const fn beside(self, denial: Denial) -> Self {
        match self.0 {
            AdmissionKind::Charge { delay_ns: 0 } => Self(AdmissionKind::Overruled(denial.beside_a_charge())),
            AdmissionKind::Uncharged => Self(AdmissionKind::Overruled(denial)),
            AdmissionKind::Charge { .. } | AdmissionKind::Overruled(_) => self,
        }
    }

    /// The time after which the request may go on. Only a [leaky queue](crate::Quota::leaky_queue)
    /// delays requests; for every other algorithm it is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// // One call every 100 ms. A call waits up to a second.
    /// let quota = Quota::leaky_queue(10, Duration::from_secs(1), Duration::from_secs(1));
    /// let limiter = DirectLimiter::with_clock(quota, MockClock::new())?;
    /// assert_eq!(limiter.try_acquire().into_result()?.delay(), Duration::ZERO);
    /// let admission = limiter.try_acquire().into_result()?;
    /// std::thread::sleep(admission.delay());
    /// assert_eq!(admission.delay(), Duration::from_millis(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn delay(&self) -> Duration {
        match self.0 {
            AdmissionKind::Charge { delay_ns } => Duration::from_nanos(delay_ns),
            AdmissionKind::Uncharged | AdmissionKind::Overruled(_) => Duration::ZERO,
        }
    }

    /// Whether the permits were charged to the key.
    ///
    /// Limiters in process admit requests without a charge in three cases: at the key cap under
    /// [`AtKeyCap::Admit`](crate::AtKeyCap::Admit), with a key on the [allow
    /// list](crate::Limiter::allow), and in place of a denial in [shadow
    /// mode](crate::LimiterBuilder::shadow). In place of a denial by a [dimension in shadow
    /// mode](crate::JointLimiterBuilder::shadow_dimension) the other dimensions charge.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(5)).list_cap(10).build()?;
    /// limiter.allow("health check")?;
    /// assert!(!limiter.try_acquire("health check").into_result()?.is_counted());
    /// assert!(limiter.try_acquire("alice").into_result()?.is_counted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        match self.0 {
            AdmissionKind::Charge { .. } => true,
            AdmissionKind::Overruled(denial) => denial.is_beside_a_charge(),
            AdmissionKind::Uncharged => false,
        }
    }

    /// The denial that [shadow mode](crate::LimiterBuilder::shadow) replaced by this admission.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).shadow(true).build()?;
    /// assert_eq!(limiter.try_acquire("alice").into_result()?.overruled(), None);
    /// if let Some(denial) = limiter.try_acquire("alice").into_result()?.overruled() {
    ///     println!("would be denied: {denial}");
    /// }
    /// assert_eq!(limiter.counts().overruled, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn overruled(&self) -> Option<Denial> {
        if let AdmissionKind::Overruled(denial) = self.0 { Some(denial) } else { None }
    }
}

impl core::fmt::Display for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            AdmissionKind::Charge { delay_ns: 0 } => f.write_str("admitted"),
            AdmissionKind::Charge { .. } => write!(f, "admitted after a delay of {:?}", self.delay()),
            AdmissionKind::Uncharged => f.write_str("admitted without a charge"),
            AdmissionKind::Overruled(denial) => write!(f, "admitted in shadow mode in place of a denial ({denial})"),
        }
    }
}
