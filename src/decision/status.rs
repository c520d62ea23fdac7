//! [`Status`]: a decision with the permits left of each quota.

use core::cmp::Reverse;
use core::time::Duration;

use super::answer::{Admission, Decision};
use super::denial::Denial;
use super::left::{Left, PerQuota};
use super::quota_status::QuotaStatus;
use crate::quota::Quota;

/// A decision with the numbers that response headers show, taken at the same instant.
///
/// [`quotas`](Self::quotas) lists every quota of the key. [`limit`](Self::limit),
/// [`remaining`](Self::remaining), [`next_after`](Self::next_after) and
/// [`reset_after`](Self::reset_after) are those of one of them, the [tightest](Self::tightest).
/// Times are counted from the clock reading of the decision. Nothing is allocated: a key has at
/// most eight quotas.
///
/// The numbers are those of the permits that decided:
///
/// - A key that found no place, under [`AtKeyCap::Share`](crate::AtKeyCap::Share): those that such
///   keys share.
/// - Under [`AtKeyCap::Deny`](crate::AtKeyCap::Deny): none remain until the wait of the denial is
///   over, and then all.
/// - Admitted without a charge ([`AtKeyCap::Admit`](crate::AtKeyCap::Admit), the
///   [allow list](crate::Limiter::allow)): all remain.
/// - On the [deny list](crate::Limiter::deny): none remain, for ever ([`Duration::MAX`]).
/// - Blocked by a [`Penalty`](crate::Penalty): none remain before the block has ended.
/// - In [shadow mode](crate::LimiterBuilder::shadow): those of the decision that was overruled.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, MockClock, Quota};
///
/// let builder = Limiter::<str>::builder(Quota::per_second(10)).and(Quota::per_minute(100));
/// let limiter = builder.clock(MockClock::new()).build()?;
/// let status = limiter.try_acquire_status("alice");
/// assert!(status.is_admitted());
/// let remaining: Vec<u32> = status.quotas().map(|quota| quota.remaining()).collect();
/// assert_eq!(remaining, [9, 99]);
/// // All of one quota: ten a second.
/// assert_eq!(status.tightest().quota(), 0);
/// assert_eq!((status.limit(), status.remaining()), (10, 9));
/// let second = Duration::from_secs(1);
/// assert_eq!((status.next_after(), status.reset_after()), (second, second));
///
/// assert!(limiter.try_acquire_n("alice", 9)?.is_admitted());
/// let status = limiter.try_acquire_status("alice");
/// assert!(status.is_denied() && status.decision().is_denied());
/// assert_eq!((status.retry_after(), status.retry_after_secs()), (Some(second), Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct Status {
    pub(crate) decision: Decision,
    pub(crate) left: PerQuota,
}

impl Status {
    /// A placeholder, to be overwritten.
    #[inline]
    pub(crate) const fn nothing() -> Self {
        Self::bare(Decision::Admitted(Admission::UNCOUNTED))
    }

    /// A decision without the permits left.
    pub(crate) const fn bare(decision: Decision) -> Self {
        Self { decision, left: PerQuota::NONE }
    }

    /// A decision by a list or at the key cap. `left` gives the permits left of each quota.
    pub(crate) fn by_other(decision: Decision, quotas: &[Quota], left: impl Fn(u32) -> Left) -> Self {
        Self { decision, left: PerQuota::of(quotas.iter().map(|quota| left(quota.limit()))) }
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

    /// The permits left of each quota of the key, in the order in which they were given. There is
    /// at least one. Quotas that another quota implies are listed too.
    #[must_use]
    pub fn quotas(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone + use<> {
        let left = self.left;
        (0..left.count()).map(move |place| QuotaStatus::new(place, left.at(place)))
    }

    /// The quota with the fewest permits remaining. Of those that leave as many: the one that takes
    /// longest to leave more, and of those the first that was given.
    #[must_use]
    pub fn tightest(&self) -> QuotaStatus {
        let mut tightest = (0, self.left.first());
        for place in 1..self.left.count() {
            let left = self.left.at(place);
            let tightness = |left: Left| (left.remaining, Reverse(left.next_after_ns));
            if tightness(left) < tightness(tightest.1) {
                tightest = (place, left);
            }
        }
        QuotaStatus::new(tightest.0, tightest.1)
    }

    /// The limit of the [tightest](Self::tightest) quota.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.tightest().limit()
    }

    /// Permits that are still free after this decision, of the [tightest](Self::tightest) quota. A
    /// request of that cost would be admitted now, and none of a larger cost.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.tightest().remaining()
    }

    /// How long until the [tightest](Self::tightest) quota leaves at least one permit more: see
    /// [`QuotaStatus::next_after`].
    #[must_use]
    pub fn next_after(&self) -> Duration {
        self.tightest().next_after()
    }

    /// How long until all of the [tightest](Self::tightest) quota is free: see
    /// [`QuotaStatus::reset_after`]. Another quota of the key may take longer.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        self.tightest().reset_after()
    }
}
