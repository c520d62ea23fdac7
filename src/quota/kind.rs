//! The algorithms, and the numbers of each.

use core::any::Any;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;

use super::calendar::{Calendar, Zone};
use crate::texts::texts;

/// The algorithm, and its parameters except the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Log,
    TokenBucket { refill: u32, per: Duration },
    LeakyBucket { leak: u32, per: Duration },
    LeakyQueue { leak: u32, per: Duration, max_delay: Duration },
    FixedWindow,
    SlidingCounter { window: Duration },
    QuantisedLog { window: Duration, resolution: Duration },
    WarmUp { rate: u32, per: Duration, warm_up: Duration },
    Calendar { per: Calendar, zone: Zone },
    Concurrency { max_hold: Option<Duration> },
}

/// The code of an algorithm, of a type that quotas do not know. Its numbers tell a quota from another.
/// By a thin pointer: observers copy a quota.
#[derive(Clone, Copy)]
pub(crate) struct Code(pub(crate) &'static AnyCode);

pub(crate) type AnyCode = &'static (dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for Code {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Code {}

impl Hash for Code {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// How a [`Quota`](crate::Quota) counts permits.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Quota};
///
/// assert_eq!(Quota::per_minute(100).algorithm(), Algorithm::SlidingWindowLog);
/// let bucket = Quota::token_bucket(10, 1, Duration::from_secs(1));
/// assert_eq!(bucket.algorithm(), Algorithm::TokenBucket);
/// assert_eq!(bucket.algorithm().to_string(), "token bucket");
/// ```
// A snapshot has their numbers in this order, and so have serde formats without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Algorithm {
    /// A stamp is kept for each permit, for one window ([`Quota::new`](crate::Quota::new)).
    SlidingWindowLog,
    /// Permits are taken from a bucket that is refilled evenly
    /// ([`Quota::token_bucket`](crate::Quota::token_bucket)).
    TokenBucket,
    /// Permits are poured into a bucket that leaks evenly
    /// ([`Quota::leaky_bucket`](crate::Quota::leaky_bucket)).
    LeakyBucket,
    /// Requests queue, and each gets its delay ([`Quota::leaky_queue`](crate::Quota::leaky_queue)).
    LeakyQueue,
    /// Permits are counted from the start of a window to its end
    /// ([`Quota::fixed_window`](crate::Quota::fixed_window),
    /// [`Quota::calendar`](crate::Quota::calendar)).
    FixedWindow,
    /// The counts of two windows are added. The older count is weighted by the part of its window
    /// that the moving window still covers
    /// ([`Quota::sliding_counter`](crate::Quota::sliding_counter)).
    SlidingCounter,
    /// A count is kept for each step of time, for one window
    /// ([`Quota::quantised_log`](crate::Quota::quantised_log)).
    QuantisedLog,
    /// An idle limiter is cold, and rises to its rate ([`Quota::warm_up`](crate::Quota::warm_up)).
    WarmUp,
    /// Requests are counted while they are in flight
    /// ([`Quota::concurrent`](crate::Quota::concurrent)).
    Concurrency,
}

texts! { Algorithm {
    SlidingWindowLog => "sliding window log";
    TokenBucket => "token bucket";
    LeakyBucket => "leaky bucket";
    LeakyQueue => "leaky queue";
    FixedWindow => "fixed window";
    SlidingCounter => "sliding window counter";
    QuantisedLog => "quantised log";
    WarmUp => "warm-up";
    Concurrency => "concurrency limit";
} }
