//! [`JointStatus`]: a decision on several keys, with the permits left of each quota.

use core::cmp::Reverse;
use core::time::Duration;

use super::answer::{Admission, Decision};
use super::left::{Left, PerQuota};
use super::quota_status::QuotaStatus;

/// A decision on several keys, one for each dimension, with the permits left of each of their
/// quotas.
///
/// An admission takes the permits of all keys at one instant. The keys of a denial, or of a peek,
/// are looked at one after the other: each key's numbers are those of one instant.
///
/// Dimensions without a key are not listed. [`Status`](crate::Status) describes the numbers for a
/// key that found no place.
///
/// The first sixteen quotas are kept inline, so most requests allocate nothing. More quotas take an
/// allocation.
///
/// Waits are counted from the clock reading for each key. The permits of an admission are stamped
/// after these readings. So they may expire later than these numbers say, by the time between.
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
/// assert!(status.is_admitted() && !status.is_denied() && status.decision().is_admitted());
/// assert_eq!((status.retry_after(), status.retry_after_secs()), (None, None));
/// let remaining: Vec<u32> = status.quotas().map(|item| item.remaining()).collect();
/// assert_eq!(remaining, [3, 8, 98]);
/// assert_eq!(status.tightest().map(|item| item.dimension()), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct JointStatus {
    pub(crate) decision: Decision,
    first: [QuotaStatus; INLINE],
    count: usize,
    /// The quotas after the first [`INLINE`].
    others: Vec<QuotaStatus>,
}

/// The number of quotas kept inline. Three dimensions of two quotas are common; eight of eight are
/// possible.
const INLINE: usize = 16;

impl JointStatus {
    /// An admission without quotas.
    pub(crate) const fn new() -> Self {
        let none = QuotaStatus { dimension: 0, quota: 0, is_violated: false, left: Left::all(0) };
        Self { decision: Decision::Admitted(Admission::UNCOUNTED), first: [none; INLINE], count: 0, others: Vec::new() }
    }

    /// The same numbers under another decision.
    pub(crate) fn with_decision(self, decision: Decision) -> Self {
        Self { decision, ..self }
    }

    /// Removes all quotas.
    pub(crate) fn clear(&mut self) {
        (self.decision, self.count) = (Decision::Admitted(Admission::UNCOUNTED), 0);
        self.others.clear();
    }

    /// Adds the quotas of a dimension. If `cost` is given, the request was denied, and each quota
    /// with fewer permits left is violated.
    pub(crate) fn push(&mut self, dimension: usize, left: &PerQuota, cost: Option<u32>) {
        let dimension = u8::try_from(dimension).unwrap_or(u8::MAX);
        for (place, left) in (0..).zip(left.iter()) {
            let is_violated = cost.is_some_and(|cost| left.remaining < cost);
            let item = QuotaStatus { dimension, quota: place, is_violated, left };
            match self.first.get_mut(self.count) {
                Some(next) => *next = item,
                None => self.others.push(item),
            }
            self.count += 1;
        }
    }

    /// The key of a dimension is blocked: no permits are left until the block ends.
    pub(crate) fn block(&mut self, dimension: usize, wait_ns: u64) {
        self.change(dimension, |quota| quota.blocked_for(wait_ns));
    }

    /// Changes the numbers of a dimension.
    fn change(&mut self, dimension: usize, change: impl Fn(QuotaStatus) -> QuotaStatus) {
        let inline = self.count.min(INLINE);
        let quotas = self.first[..inline].iter_mut().chain(&mut self.others);
        for quota in quotas.filter(|quota| quota.dimension() == dimension) {
            *quota = change(*quota);
        }
    }

    /// The decision.
    pub const fn decision(&self) -> Decision {
        self.decision
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

    /// The permits left of each quota: dimension by dimension, and within each in the given order.
    pub fn quotas(&self) -> impl Iterator<Item = QuotaStatus> + Clone + '_ {
        self.first[..self.count.min(INLINE)].iter().chain(&self.others).copied()
    }

    /// The quota with the fewest permits left. Of several such quotas, the one with the longest
    /// wait for more, and of these the first. `None` when no dimension was asked.
    #[must_use]
    pub fn tightest(&self) -> Option<QuotaStatus> {
        self.quotas().min_by_key(|item| (item.remaining(), Reverse(item.next_after())))
    }
}

impl PartialEq for JointStatus {
    fn eq(&self, other: &Self) -> bool {
        self.decision == other.decision && self.quotas().eq(other.quotas())
    }
}

impl Eq for JointStatus {}

impl core::fmt::Debug for JointStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let quotas: Vec<_> = self.quotas().collect();
        f.debug_struct("JointStatus").field("decision", &self.decision).field("quotas", &quotas).finish()
    }
}
