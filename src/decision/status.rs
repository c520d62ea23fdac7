//! [`Status`]: a decision with the permits left of each quota.

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use super::answer::{Admission, Decision};
use super::denial::Denial;
use super::left::Left;
use super::per_quota::PerQuota;
use super::quota_status::{QuotaStatus, duration};

/// A decision with the permits left at the same instant, as response headers show them.
///
/// [`quotas`](Self::quotas) lists every quota of the key. [`limit`](Self::limit),
/// [`remaining`](Self::remaining), [`next_after`](Self::next_after) and
/// [`reset_after`](Self::reset_after) are those of one quota, the [tightest](Self::tightest). Times
/// are counted from the clock reading of the decision. A status of up to six quotas allocates nothing.
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
/// assert_eq!(status.tightest().map(|quota| quota.quota()), Some(0));
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
///
/// # Several keys
/// A joint request has the quotas of each key, by dimension. An admission takes the permits of all
/// keys at one instant. The keys of a denial, or of a peek, are looked at one after the other: each
/// key's numbers are those of one instant. Dimensions without a key are not listed. Waits are counted
/// from the clock reading for each key. The permits of an admission are stamped after these
/// readings. So they may expire later than these numbers say, by the time between.
///
/// ```
/// use tollgate::{JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, String)>::builder()
///     .dimension("user", [Quota::per_minute(5)])
///     .dimension("address", [Quota::per_second(10), Quota::per_minute(100)])
///     .build()?;
/// let reservation = limiter.reserve(("alice", "192.0.2.7"), 2)?;
/// let status = reservation.status();
/// let remaining: Vec<u32> = status.quotas().map(|item| item.remaining()).collect();
/// assert_eq!(remaining, [3, 8, 98]);
/// assert_eq!(status.tightest().map(|item| item.dimension()), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
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

    /// The decision on a request of this cost for one key.
    #[inline]
    pub(crate) fn decided(mut self, decision: Decision, cost: u32) -> Self {
        self.decision = decision;
        self.left.denied = if decision.is_denied() { cost } else { 0 };
        self
    }

    /// The decision.
    pub const fn decision(&self) -> Decision {
        self.decision
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

    /// The permits left of each quota, in the order of dimensions, and in the given order of the
    /// quotas of each. Quotas that another quota implies are listed, too. Of one key there is at
    /// least one. A joint request may have none, if lists alone decide it.
    #[must_use]
    pub fn quotas(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone {
        self.left.iter()
    }

    /// The quota with the fewest permits left. Of several such quotas, the one with the longest
    /// wait for more, and of these the first. `None` if no quota was asked.
    #[must_use]
    pub fn tightest(&self) -> Option<QuotaStatus> {
        self.quotas().min_by_key(|quota| (quota.left.remaining, Reverse(quota.left.next_after_ns)))
    }

    fn of_tightest(&self) -> Left {
        self.tightest().map_or(Left::all(0), |quota| quota.left)
    }

    /// The limit of the [tightest](Self::tightest) quota; zero if there is none.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.of_tightest().limit
    }

    /// The permits left of the [tightest](Self::tightest) quota after the decision. A request of
    /// this cost would be admitted now, and none of a larger cost. Zero if no quota was asked.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.of_tightest().remaining
    }

    /// The time until the [tightest](Self::tightest) quota has more permits left: see
    /// [`QuotaStatus::next_after`].
    #[must_use]
    pub fn next_after(&self) -> Duration {
        duration(self.of_tightest().next_after_ns)
    }

    /// The time until all permits of the [tightest](Self::tightest) quota are free: see
    /// [`QuotaStatus::reset_after`]. Another quota of the key may take longer.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        duration(self.of_tightest().reset_after_ns)
    }
}

impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        self.decision == other.decision && self.quotas().eq(other.quotas())
    }
}

impl Eq for Status {}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quotas: Vec<_> = self.quotas().collect();
        f.debug_struct("Status").field("decision", &self.decision).field("quotas", &quotas).finish()
    }
}
