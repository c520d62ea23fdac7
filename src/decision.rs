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

/// A refused request: why, and how long to wait.
///
/// Its text says the wait in whole seconds, rounded up.
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

    /// The [wait](Self::retry_after) in whole seconds, rounded up and at least 1: the value of a `Retry-After` header. `None` where
    /// no wait helps, and the header is to be left out.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self.retry_after_ns {
            Self::NEVER => None,
            0 => Some(1),
            ns => Some(ns.div_ceil(1_000_000_000)),
        }
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
        f.write_str(match self.reason {
            DenialReason::Quota => "too many requests",
            DenialReason::KeyCap => "the limiter holds as many keys as it may",
            DenialReason::Penalty => "blocked after too many denied requests",
            DenialReason::DenyList => "on the deny list",
        })?;
        match self.retry_after_secs() {
            Some(seconds) => write!(f, ": try again in {seconds} s"),
            None => f.write_str(": trying again does not help"),
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
    /// The key is new and the limiter already holds as many keys as its cap allows. Under
    /// [`AtKeyCap::Share`](crate::AtKeyCap::Share): and what such keys share can never admit so
    /// much at once.
    KeyCap,
    /// The key is blocked for having been denied too often, also by this very denial; see [`Penalty`](crate::Penalty).
    Penalty,
    /// The key is on the [deny list](crate::Limiter::deny).
    DenyList,
}

/// A decision with the numbers that response headers show, taken at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct Status {
    pub(crate) decision: Decision,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) reset_after_ns: u64,
}

impl Status {
    /// An admission that leaves so many permits.
    pub(crate) fn granted(limit: usize, remaining: usize, reset_after_ns: u64) -> Self {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let decision = Decision::Admitted(Admission::COUNTED);
        Self { decision, limit: number(limit), remaining: number(remaining), reset_after_ns }
    }

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

    /// Whether the request was turned away (of a peek: whether it would be).
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.decision.is_denied()
    }

    /// How long to wait before the same request can succeed; `None` when it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// The wait in whole seconds, as [`Decision::retry_after_secs`] says it.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        self.decision.retry_after_secs()
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

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_and_at_least_one_and_do_not_overflow() {
        let secs = |ns| Denial::new(ns, DenialReason::Quota, 0).retry_after_secs();
        let second = 1_000_000_000;
        assert_eq!([0, 1, second - 1, second].map(secs), [Some(1); 4]);
        assert_eq!([second + 1, 2 * second, 2 * second + 1].map(secs), [Some(2), Some(2), Some(3)]);
        assert_eq!(secs(Denial::NEVER - 1), Some(18_446_744_074));
        assert_eq!(secs(Denial::NEVER), None);
        assert_eq!(Decision::Admitted(Admission::COUNTED).retry_after_secs(), None);
    }

    #[test]
    fn a_decision_says_how_it_came_about() {
        let denied = |ns, reason| Decision::Denied(Denial::new(ns, reason, 0));
        let cases = [
            (Decision::Admitted(Admission::COUNTED), "admitted"),
            (Decision::Admitted(Admission::delayed(2_500_000)), "admitted after a delay of 2.5ms"),
            (Decision::Admitted(Admission::UNCOUNTED), "admitted without a charge"),
            (
                denied(1, DenialReason::Quota).overrule(),
                "admitted in shadow mode in place of a denial (too many requests: try again in 1 s)",
            ),
            (denied(59_953_576_428, DenialReason::Quota), "too many requests: try again in 60 s"),
            (denied(1, DenialReason::KeyCap), "the limiter holds as many keys as it may: try again in 1 s"),
            (denied(1, DenialReason::Penalty), "blocked after too many denied requests: try again in 1 s"),
            (denied(Denial::NEVER, DenialReason::DenyList), "on the deny list: trying again does not help"),
        ];
        for (decision, text) in cases {
            assert_eq!(decision.to_string(), text);
        }
    }
}
