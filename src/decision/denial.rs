//! [`Denial`]: why a request was denied, and for how long.

use core::time::Duration;

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
    violated: u8,
    /// Of these, those whose own quota is in the way.
    by_quota: u8,
}

impl Denial {
    /// In place of a wait: none would be long enough. (Waits are less than 2^62.)
    pub(crate) const NEVER: u64 = u64::MAX;

    pub(crate) const fn new(retry_after_ns: u64, reason: DenialReason, quota: u8) -> Self {
        let by_quota = matches!(reason, DenialReason::Quota) as u8;
        Self { retry_after_ns, reason, quota, dimension: 0, violated: 1, by_quota }
    }

    /// The same denial, by that dimension of several.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let dimension = u8::try_from(dimension).unwrap_or(u8::MAX);
        let violated = 1_u8.checked_shl(dimension.into()).unwrap_or(0);
        Self { dimension, violated, by_quota: if self.by_quota == 0 { 0 } else { violated }, ..self }
    }

    /// The denial of a request that is denied for both reasons: the one with the longer wait, and both dimensions.
    pub(crate) fn and(self, other: Self) -> Self {
        let violated = self.violated | other.violated;
        let longer = if other.retry_after_ns > self.retry_after_ns { other } else { self };
        Self { violated, by_quota: self.by_quota | other.by_quota, ..longer }
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
    /// The same denial with another wait.
    pub(crate) const fn after(self, retry_after_ns: u64) -> Self {
        Self { retry_after_ns, ..self }
    }

    /// The dimensions whose own quota is in the way.
    pub(crate) fn violated_quotas(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |dimension| self.by_quota & (1 << dimension) != 0)
    }

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
        (0..8).filter(move |dimension| violated & (1 << dimension) != 0)
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
