//! [`Status`]: a decision with the permits left of each quota.

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use super::answer::{Admission, Decision};
use super::denial::{Denial, duration, octet};
use crate::caps::{MAX_DIMENSIONS, MAX_QUOTAS};
use crate::clock::nanos;

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
    /// A decision on a request of this cost, and what these quotas leave: for limiters that decide
    /// elsewhere, such as on a store. Quotas that leave less than the cost are violated, if the
    /// request is denied.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Decision, Denial, QuotaStatus, Status};
    ///
    /// let second = Duration::from_secs(1);
    /// let denied = Decision::Denied(Denial::by_quotas(second, (0, 0), [0]));
    /// let first = QuotaStatus::new((0, 0), (5, 2, second, second * 2));
    /// let other = QuotaStatus::new((0, 1), (9, 8, second, second));
    /// let status = Status::new(denied, 3, [first, other]);
    /// assert_eq!((status.limit(), status.remaining(), status.retry_after()), (5, 2, Some(second)));
    /// assert_eq!(status.quotas().map(|left| left.is_violated()).collect::<Vec<_>>(), [true, false]);
    /// ```
    pub fn new(decision: Decision, cost: u32, quotas: impl IntoIterator<Item = QuotaStatus>) -> Self {
        let mut left = PerQuota::NONE;
        quotas.into_iter().take(MAX_DIMENSIONS * MAX_QUOTAS).for_each(|item| left.push(item));
        Self { decision, left }.decided(decision, cost)
    }

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
        self.decision.into_result().err()
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

/// The permits left of one quota of a key, and the time until more are free. Part of a
/// [`Status`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, MockClock, Quota};
///
/// let clock = MockClock::new();
/// let builder = Limiter::<str>::builder(Quota::per_second(10)).and(Quota::per_minute(100));
/// let limiter = builder.clock(clock.clone()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// clock.advance(Duration::from_millis(400));
///
/// let status = limiter.try_acquire_status("alice");
/// let [second, minute] = [0, 1].map(|index| status.quotas().nth(index).unwrap());
/// assert_eq!((second.limit(), second.remaining()), (10, 8));
/// assert_eq!((minute.limit(), minute.remaining()), (100, 98));
/// // The first permit is free again before the second.
/// assert_eq!(second.next_after(), Duration::from_millis(600));
/// assert_eq!(second.reset_after(), Duration::from_secs(1));
/// assert_eq!(minute.next_after(), Duration::from_millis(59_600));
/// assert_eq!(limiter.quotas()[minute.quota()], Quota::per_minute(100));
/// assert!(!minute.is_violated());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuotaStatus {
    dimension: u8,
    quota: u8,
    is_violated: bool,
    counts_requests: bool,
    pub(crate) left: Left,
}

impl QuotaStatus {
    /// What a quota leaves, of this dimension and index: the limit, the permits, the time until there
    /// are more, and the time until all are free. It is for a [`Status::new`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::QuotaStatus;
    ///
    /// let left = QuotaStatus::new((1, 0), (5, 3, Duration::from_secs(2), Duration::from_secs(9)));
    /// assert_eq!((left.dimension(), left.quota()), (1, 0));
    /// assert_eq!((left.limit(), left.remaining()), (5, 3));
    /// assert_eq!((left.next_after().as_secs(), left.reset_after().as_secs()), (2, 9));
    /// ```
    #[must_use]
    pub fn new(
        (dimension, quota): (usize, usize),
        (limit, remaining, next_after, reset_after): (u32, u32, Duration, Duration),
    ) -> Self {
        let (next_after_ns, reset_after_ns) = (nanos(next_after), nanos(reset_after));
        let left = Left { limit, remaining, next_after_ns, reset_after_ns };
        Self { dimension: octet(dimension), quota: octet(quota), is_violated: false, counts_requests: false, left }
    }

    /// How many more requests a concurrency limit lets in, of this dimension and index. It is for a
    /// [`Status::new`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::QuotaStatus;
    ///
    /// let left = QuotaStatus::in_flight((1, 0), (5, 3));
    /// assert_eq!((left.counts_requests(), left.limit(), left.remaining()), (true, 5, 3));
    /// assert_eq!(left.next_after(), Duration::MAX, "a request may end at any time");
    /// ```
    #[must_use]
    pub fn in_flight((dimension, quota): (usize, usize), (limit, remaining): (u32, u32)) -> Self {
        let wait = if remaining == limit { Duration::ZERO } else { Duration::MAX };
        Self { counts_requests: true, ..Self::new((dimension, quota), (limit, remaining, wait, wait)) }
    }

    /// The dimension of the quota, counted from zero; zero of a limiter without dimensions.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_minute(5)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_second(1), Quota::per_minute(9)]).build()?;
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// let status = limiter.peek(("alice", 7))?;
    /// let left = status.quotas().map(|left| (left.dimension(), left.quota(), left.is_violated()));
    /// assert_eq!(left.collect::<Vec<_>>(), [(0, 0, false), (1, 0, true), (1, 1, false)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    /// Whether the request was denied, or would have been but for shadow mode, and this quota had
    /// fewer permits left than the cost.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        self.is_violated
    }

    /// The index of the quota among the quotas of the key, counted from zero in the given order.
    #[must_use]
    pub const fn quota(&self) -> usize {
        self.quota as usize
    }

    /// Whether the quota is a [concurrency limit](crate::Quota::concurrent), whose numbers are requests
    /// in flight: a request takes one of them, whatever it costs, and none of its times are known.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("tokens", [Quota::per_minute(5000)])
    ///     .dimension("streams", [Quota::concurrent(4)])
    ///     .build()?;
    /// let reserved = limiter.reserve(("alice", "alice"), 300)?;
    /// let left: Vec<_> = reserved.status().quotas().collect();
    /// assert_eq!((left[0].counts_requests(), left[0].remaining()), (false, 4700));
    /// assert_eq!((left[1].counts_requests(), left[1].remaining()), (true, 3));
    /// assert_eq!(left[1].next_after(), Duration::MAX);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn counts_requests(&self) -> bool {
        self.counts_requests
    }

    /// The most permits that a request can be granted: [`Quota::limit`](crate::Quota::limit).
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.left.limit
    }

    /// The permits left after the decision. This quota would admit a request of this cost now, and
    /// none of a larger cost.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.left.remaining
    }

    /// The time until [`remaining`](Self::remaining) grows, if no more permits are granted, to the
    /// nanosecond. Zero when all permits are left. [`Duration::MAX`] for a key on the [deny
    /// list](crate::Limiter::deny), for requests in flight, and for a bucket that
    /// [starts](crate::Quota::starting_with) with less than all: it fills from the key's first request
    /// on.
    #[must_use]
    pub const fn next_after(&self) -> Duration {
        duration(self.left.next_after_ns)
    }

    /// The time until all permits of this quota are free, if no more are granted, to the
    /// nanosecond. Zero when all are free. [`Duration::MAX`] as for
    /// [`next_after`](Self::next_after).
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        duration(self.left.reset_after_ns)
    }
}

/// The permits left of one quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) next_after_ns: u64,
    pub(crate) reset_after_ns: u64,
}

impl Left {
    const NOTHING: Self = Self { limit: 0, remaining: 0, next_after_ns: 0, reset_after_ns: 0 };

    /// All permits are left.
    pub(crate) const fn all(limit: u32) -> Self {
        Self { limit, remaining: limit, ..Self::NOTHING }
    }

    /// No permits are left, and all are free after `wait_ns`.
    pub(crate) const fn none_for(limit: u32, wait_ns: u64) -> Self {
        Self { limit, remaining: 0, next_after_ns: wait_ns, reset_after_ns: wait_ns }
    }

    /// The same, told by a clock that reads so much less.
    pub(crate) fn after(self, lag: u64) -> Self {
        self.with_waits(|wait| if wait == 0 { 0 } else { wait + lag })
    }

    /// The same while something else denies the key: no permits are left, and a wait is as `later`
    /// says.
    pub(crate) fn denied(self, later: impl Fn(u64) -> u64) -> Self {
        // The remaining permits are free once that ends.
        let next_after_ns = if self.remaining > 0 { 0 } else { self.next_after_ns };
        Self { remaining: 0, next_after_ns, ..self }.with_waits(later)
    }

    fn with_waits(self, later: impl Fn(u64) -> u64) -> Self {
        Self { next_after_ns: later(self.next_after_ns), reset_after_ns: later(self.reset_after_ns), ..self }
    }
}

/// The permits left of each quota that a request asks, key by key, in the given order.
#[derive(Clone)]
pub(crate) struct PerQuota {
    inline: [QuotaStatus; INLINE],
    /// The quotas after the first [`INLINE`].
    more: Vec<QuotaStatus>,
    count: u8,
    /// The quotas of the present key begin here.
    from: u8,
    /// The dimension of the present key.
    dimension: u8,
    /// The cost of the request, if its one key denies it; otherwise zero.
    pub(crate) denied: u32,
}

/// The number of quotas kept inline. Three dimensions of two quotas are common; eight of eight are
/// possible.
const INLINE: usize = 6;

impl PerQuota {
    /// An empty list.
    pub(crate) const NONE: Self = {
        let left = Left::NOTHING;
        let none = QuotaStatus { dimension: 0, quota: 0, is_violated: false, counts_requests: false, left };
        Self { inline: [none; INLINE], more: Vec::new(), count: 0, from: 0, dimension: 0, denied: 0 }
    };

    /// Empties the list.
    pub(crate) fn clear(&mut self) {
        (self.count, self.from, self.dimension) = (0, 0, 0);
        self.more.clear();
    }

    /// Goes on with the key of a dimension.
    pub(crate) fn begin(&mut self, dimension: usize) {
        self.from = self.count;
        self.dimension = octet(dimension);
    }

    /// Takes the numbers of the present key, for those that were there.
    #[inline]
    pub(crate) fn set(&mut self, each: impl IntoIterator<Item = Left>) {
        self.count = self.from;
        self.more.truncate(usize::from(self.count).saturating_sub(INLINE));
        for (quota, left) in (0..).zip(each) {
            self.push(QuotaStatus {
                dimension: self.dimension,
                quota,
                is_violated: false,
                counts_requests: false,
                left,
            });
        }
    }

    /// The same of a concurrency limit.
    pub(crate) fn set_in_flight(&mut self, left: Left) {
        self.set([left]);
        let last = usize::from(self.count) - 1;
        let last = self.inline.get_mut(last).or_else(|| self.more.last_mut());
        last.into_iter().for_each(|last| last.counts_requests = true);
    }

    #[inline]
    fn push(&mut self, item: QuotaStatus) {
        match self.inline.get_mut(usize::from(self.count)) {
            Some(next) => *next = item,
            None => self.more.push(item),
        }
        self.count += 1;
    }

    /// Changes the numbers of the key of a dimension.
    pub(crate) fn change_in(&mut self, dimension: usize, other: impl Fn(Left) -> Left) {
        let inline = usize::from(self.count).min(INLINE);
        let all = self.inline[..inline].iter_mut().chain(&mut self.more);
        all.filter(|quota| quota.dimension() == dimension).for_each(|quota| quota.left = other(quota.left));
    }

    /// Changes the numbers of the present key.
    pub(crate) fn change(&mut self, other: impl Fn(Left) -> Left) {
        self.change_in(self.dimension.into(), other);
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone {
        (0..usize::from(self.count)).map(|index| {
            let quota = self.inline.get(index).copied().unwrap_or_else(|| self.more[index - INLINE]);
            let denied = if quota.counts_requests { self.denied.min(1) } else { self.denied };
            QuotaStatus { is_violated: quota.left.remaining < denied, ..quota }
        })
    }

    #[cfg(test)]
    pub(crate) fn first(&self) -> Left {
        self.inline[0].left
    }
}
