//! The permits left of a policy: the items of `RateLimit`.

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use bytes::BytesMut;
use tollgate::Status;

use crate::policy::Policy;
use crate::seconds;

/// The permits that a key has left of one quota, at the instant of a decision.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{Policy, Usage};
///
/// let policy = Policy::new("default", 100, Duration::from_secs(60))?;
/// let usage = Usage { remaining: 60, next_after: Duration::from_millis(58_200) };
/// assert_eq!(policy.admitted(usage).to_string(), r#""default";r=60;t=59"#);
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Usage {
    /// Permits that are free.
    pub remaining: u32,
    /// The time until one more is free; zero when all are free, and [`Duration::MAX`] if it is not
    /// known.
    pub next_after: Duration,
}

impl Usage {
    /// The same in the answer to a denied request of this cost; `None` if this quota did not deny it.
    ///
    /// Such a quota has fewer permits left than the cost, or it decides the wait. The permits may have
    /// been read a moment after the denial. If the quota that decides the wait has enough by then, it
    /// had at most one less than the cost before.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_http::Usage;
    ///
    /// let (soon, wait) = (Duration::from_secs(1), Duration::from_secs(8));
    /// let [few, many] = [2, 7].map(|remaining| Usage { remaining, next_after: soon });
    /// assert_eq!(few.violated(3, wait, false), Some(few));
    /// assert_eq!(many.violated(3, wait, false), None);
    /// assert_eq!(many.violated(3, wait, true), Some(Usage { remaining: 2, next_after: wait }));
    /// ```
    #[must_use]
    pub const fn violated(self, cost: u32, wait: Duration, decides: bool) -> Option<Self> {
        match self {
            usage if usage.remaining < cost => Some(usage),
            _ if decides => Some(Self { remaining: cost.saturating_sub(1), next_after: wait }),
            _ => None,
        }
    }
}

/// Of the [tightest](Status::tightest) quota.
impl From<&Status> for Usage {
    fn from(status: &Status) -> Self {
        Self { remaining: status.remaining(), next_after: status.next_after() }
    }
}

impl Policy {
    /// The permits left after a request was admitted.
    ///
    /// The time until more are free, in seconds, is `t = max(ceil(next_after), ceil(r * w / q))`. A
    /// client that spreads the remaining permits over that time stays within the quota's rate. A policy
    /// without a window has no such time.
    #[must_use]
    pub fn admitted(&self, usage: Usage) -> ServiceLimit<'_> {
        ServiceLimit::new(self, usage.remaining, self.reset(usage))
    }

    /// The permits left after this policy denied a request that can be sent again after `wait`
    /// ([`Duration::MAX`] if no wait helps).
    ///
    /// The time until more are free, in seconds, is `t = max(ceil(next_after), min(ceil(r * w / q),
    /// Retry-After))`, and at most `Retry-After`.
    #[must_use]
    pub fn violated(&self, usage: Usage, wait: Duration) -> ServiceLimit<'_> {
        let most = seconds::retry_after(wait).unwrap_or(u64::MAX);
        ServiceLimit::new(self, usage.remaining, self.reset(usage).min(most))
    }

    fn reset(&self, usage: Usage) -> u64 {
        seconds::ceil(usage.next_after).max(self.share(usage.remaining))
    }

    /// The part of the window in which the quota grants this many permits, in seconds.
    fn share(&self, remaining: u32) -> u64 {
        // Less than 2^64: both factors are less than 2^32.
        (u64::from(remaining.min(self.quota())) * u64::from(self.window())).div_ceil(self.quota().into())
    }
}

/// The permits left of a policy, as clients see them: one item of `RateLimit`. [`Policy::admitted`]
/// and [`Policy::violated`] make it.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{Policy, ServiceLimit, Usage};
///
/// let second = Policy::new("user-1s", 10, Duration::from_secs(1))?;
/// let minute = Policy::new("user-1m", 100, Duration::from_secs(60))?;
/// let limits = [
///     second.admitted(Usage { remaining: 9, next_after: Duration::from_secs(1) }),
///     minute.admitted(Usage { remaining: 3, next_after: Duration::from_secs(20) }),
/// ];
/// let tightest = ServiceLimit::tightest(limits).unwrap();
/// assert_eq!((tightest.limit(), tightest.remaining(), tightest.reset()), (100, 3, Some(20)));
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimit<'a> {
    policy: &'a Policy,
    remaining: u32,
    /// Without a meaning if the policy has no window.
    reset: u64,
    partition: Option<u64>,
}

impl<'a> ServiceLimit<'a> {
    pub(crate) const fn new(policy: &'a Policy, remaining: u32, reset: u64) -> Self {
        Self { policy, remaining, reset, partition: None }
    }

    /// Names the key (`pk`) by a hash, for clients that use several keys. Pass a keyed hash with a
    /// secret, such as one of [`RandomState`](std::hash::RandomState), and never the key itself.
    #[must_use]
    pub const fn partition_key(self, keyed_hash: u64) -> Self {
        Self { partition: Some(keyed_hash), ..self }
    }

    /// The limit with the fewest permits left; of several, the one with the longest wait for more. A
    /// limit on requests at a time comes after all others: its permits are of another kind.
    pub fn tightest(limits: impl IntoIterator<Item = Self>) -> Option<Self> {
        limits.into_iter().min_by_key(|limit| (!limit.policy.has_window(), limit.remaining, Reverse(limit.reset)))
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Permits per window, or at a time (`X-RateLimit-Limit`).
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.policy.quota()
    }

    /// Permits that are free (`r`, `X-RateLimit-Remaining`).
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Seconds until more is free (`t`, `X-RateLimit-Reset`); `None` for a policy without a window.
    #[must_use]
    pub const fn reset(&self) -> Option<u64> {
        if self.policy.has_window() { Some(self.reset) } else { None }
    }

    /// The most bytes that [`write_to`](Self::write_to) writes of any limit: a name of which each
    /// byte is escaped, a `u32`, an integer of 15 digits and a partition key.
    pub(crate) const MOST_BYTES: usize = (2 * Policy::MAX_NAME + 2) + (3 + 10) + (3 + 15) + (5 + 12 + 1);

    /// Appends the item of `RateLimit`, which has no partition key.
    pub(crate) fn put(&self, out: &mut BytesMut) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(self.policy.item().as_bytes());
        out.extend_from_slice(digits.format(self.remaining).as_bytes());
        if let Some(reset) = self.reset() {
            out.extend_from_slice(b";t=");
            out.extend_from_slice(digits.format(reset).as_bytes());
        }
    }

    /// Writes the item of `RateLimit`. Allocates nothing itself.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_to(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let mut digits = itoa::Buffer::new();
        out.write_str(self.policy.item())?;
        out.write_str(digits.format(self.remaining))?;
        if let Some(reset) = self.reset() {
            out.write_str(";t=")?;
            out.write_str(digits.format(reset))?;
        }
        if let Some(hash) = self.partition {
            out.write_str(";pk=:")?;
            write_base64(hash, out)?;
            out.write_str(":")?;
        }
        Ok(())
    }
}

/// The item of `RateLimit`.
impl fmt::Display for ServiceLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

/// Eight bytes, the most significant first, in base64 (RFC 4648, section 4).
fn write_base64(bytes: u64, out: &mut impl fmt::Write) -> fmt::Result {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Eleven digits have 66 bits: the last two are zero. The twelfth digit is padding.
    let bits = u128::from(bytes) << 2;
    for digit in (0..11).rev() {
        let six = (bits >> (6 * digit)) % 64;
        out.write_char(usize::try_from(six).map_or('A', |six| char::from(ALPHABET[six])))?;
    }
    out.write_char('=')
}
