//! [`Status`]: a decision with the permits left of each quota.

use core::cmp::Reverse;
use core::time::Duration;

use super::answer::{Admission, Decision};
use super::denial::Denial;
use super::left::{Left, PerQuota};
use super::quota_status::QuotaStatus;
use crate::quota::Quota;

/// A decision with the permits left at the same instant, as response headers show them.
///
/// [`quotas`](Self::quotas) lists every quota of the key. [`limit`](Self::limit),
/// [`remaining`](Self::remaining), [`next_after`](Self::next_after) and
/// [`reset_after`](Self::reset_after) are those of one quota, the [tightest](Self::tightest). Times
/// are counted from the clock reading of the decision. A status allocates nothing, because a key
/// has at most eight quotas.
///
/// Where the key's own permits did not decide, the numbers are these:
///
/// - Without a place, under [`AtKeyCap::Deny`](crate::AtKeyCap::Deny): none are left, and all are
///   free after the wait of the denial.
/// - Without a place, under [`AtKeyCap::Admit`](crate::AtKeyCap::Admit), and on the [allow
///   list](crate::Limiter::allow): all are left.
/// - On the [deny list](crate::Limiter::deny): none are left, for ever ([`Duration::MAX`]).
/// - Blocked under a [`Penalty`](crate::Penalty): none are left until the block ends.
/// - In [shadow mode](crate::LimiterBuilder::shadow): those of the overruled decision.
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

    /// A decision by a list or at the key cap. `left` returns the permits left of a quota by its
    /// limit.
    pub(crate) fn by_other(decision: Decision, quotas: &[Quota], left: impl Fn(u32) -> Left) -> Self {
        Self { decision, left: PerQuota::of(quotas.iter().map(|quota| left(quota.limit()))).to_ask(1) }
    }

    /// The decision.
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    fn quota(&self, place: u8, left: Left) -> QuotaStatus {
        let is_denied = match self.decision {
            Decision::Admitted(admission) => admission.overruled().is_some(),
            Decision::Denied(_) => true,
        };
        QuotaStatus { dimension: 0, quota: place, is_violated: is_denied && left.remaining < self.left.cost, left }
    }

    /// The denial, if the request was denied.
    pub(crate) fn denial(&self) -> Option<Denial> {
        match self.decision {
            Decision::Admitted(_) => None,
            Decision::Denied(denial) => Some(denial),
        }
    }

    /// Whether the request was admitted; for a peek, whether it would be.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        self.decision.is_admitted()
    }

    /// Whether the request was denied; for a peek, whether it would be.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.decision.is_denied()
    }

    /// The wait after which the same request succeeds; `None` when it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// The wait in whole seconds, as [`Decision::retry_after_secs`].
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        self.decision.retry_after_secs()
    }

    /// The permits left of each quota of the key, in the given order; at least one. Quotas that
    /// another quota implies are listed, too.
    #[must_use]
    pub fn quotas(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone + use<> {
        let status = *self;
        (0..status.left.count()).map(move |place| status.quota(place, status.left.at(place)))
    }

    /// The quota with the fewest permits left. Of several such quotas, the one with the longest
    /// wait for more, and of these the first.
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
        self.quota(tightest.0, tightest.1)
    }

    /// The limit of the [tightest](Self::tightest) quota.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.tightest().limit()
    }

    /// The permits left of the [tightest](Self::tightest) quota after the decision. A request of
    /// this cost would be admitted now, and none of a larger cost.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.tightest().remaining()
    }

    /// The time until the [tightest](Self::tightest) quota has more permits left: see
    /// [`QuotaStatus::next_after`].
    #[must_use]
    pub fn next_after(&self) -> Duration {
        self.tightest().next_after()
    }

    /// The time until all permits of the [tightest](Self::tightest) quota are free: see
    /// [`QuotaStatus::reset_after`]. Another quota of the key may take longer.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        self.tightest().reset_after()
    }
}
