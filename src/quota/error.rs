//! Why a quota cannot be used.

use core::time::Duration;

use super::algorithm::Algorithm;
use super::bounds::{MAX_CAPACITY, MAX_LIMIT, MAX_NAME, MAX_STEPS, MAX_WINDOW};
use crate::texts::texts;

/// Why a [`Quota`](crate::Quota) cannot be used.
///
/// The message names the allowed values.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, QuotaError};
///
/// let error = Quota::new(5, Duration::ZERO).validate().unwrap_err();
/// assert_eq!(error, QuotaError::ZeroWindow);
/// assert_eq!(error.to_string(), "the window is zero: give at least one nanosecond");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaError {
    /// The limit is zero: no request could ever be admitted.
    ZeroLimit,
    /// The limit is more than [`Quota::MAX_LIMIT`](crate::Quota::MAX_LIMIT).
    LimitTooLarge {
        /// The given limit.
        limit: u32,
    },
    /// The window is zero: no request could ever be denied.
    ZeroWindow,
    /// The window is longer than [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
    WindowTooLong {
        /// The given window.
        window: Duration,
    },
    /// The limit or capacity is more than its algorithm allows:
    /// [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY), or
    /// [`Quota::MAX_COUNTER_LIMIT`](crate::Quota::MAX_COUNTER_LIMIT) for the sliding window
    /// counter.
    PastMaximum {
        /// The algorithm.
        algorithm: Algorithm,
        /// The given limit or capacity.
        limit: u32,
        /// The most that the algorithm allows.
        most: u32,
    },
    /// The refill or leak is zero: a granted permit would never come back.
    ZeroRate,
    /// The refill or leak is more than [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY) permits
    /// per period.
    RateTooLarge {
        /// The given permits per period.
        permits: u32,
    },
    /// The period of the refill or leak is zero: the rate would have no bound.
    ZeroPeriod,
    /// The period of the refill or leak is longer than
    /// [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
    PeriodTooLong {
        /// The given period.
        per: Duration,
    },
    /// The maximum delay of a queue has room for more than
    /// [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY) places.
    QueueTooLong {
        /// The given maximum delay.
        max_delay: Duration,
    },
    /// It could take longer than [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW) until all permits
    /// of a key are free again.
    ResetTooLong {
        /// The time that it could take.
        reset: Duration,
    },
    /// A token bucket starts with more permits than its capacity.
    StartPastCapacity {
        /// The permits at the start.
        start: u32,
        /// The capacity.
        capacity: u32,
    },
    /// [`Quota::starting_with`](crate::Quota::starting_with) was called on a quota other than a
    /// token bucket.
    StartNeedsTokenBucket,
    /// [`Quota::aligned`](crate::Quota::aligned) was called on a quota other than a fixed window or
    /// a sliding window counter.
    PhaseNeedsFixedWindow,
    /// [`Quota::counting_refused`](crate::Quota::counting_refused) was called on a quota other than
    /// a sliding window log.
    CountingRefusedNeedsLog,
    /// The resolution of a quantised log is zero.
    ZeroResolution,
    /// The window of a quantised log is not a multiple of its resolution.
    UnevenResolution {
        /// The given resolution.
        resolution: Duration,
        /// The given window.
        window: Duration,
    },
    /// The window of a quantised log has more than [`Quota::MAX_STEPS`](crate::Quota::MAX_STEPS)
    /// steps.
    TooManySteps {
        /// The number of steps.
        steps: u128,
    },
    /// The warm-up is zero.
    ZeroWarmUp,
    /// The warm-up is longer than [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW), or more than
    /// [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY) permits flow in it.
    WarmUpTooLong {
        /// The given warm-up.
        warm_up: Duration,
    },
    /// The name has no characters.
    EmptyName,
    /// The name is longer than [`Quota::MAX_NAME`](crate::Quota::MAX_NAME).
    NameTooLong {
        /// The length in bytes, at most 255: a longer name is reported as 255.
        length: usize,
    },
    /// The name has a character that is not printable ASCII, a quote or a backslash.
    NameCharacter {
        /// The offset of the character in bytes.
        at: usize,
    },
}

texts! { QuotaError {
    ZeroLimit => "the limit is zero: give at least one permit";
    LimitTooLarge { limit } => "the limit {limit} is too large for a sliding window log: at most {MAX_LIMIT}; a quantised \
        log counts to {MAX_CAPACITY}";
    ZeroWindow => "the window is zero: give at least one nanosecond";
    WindowTooLong { window } => "the window {window:?} is too long: at most {MAX_WINDOW:?}";
    PastMaximum { algorithm, limit, most } => "{limit} permits are too many for a {algorithm}: at most {most}{}", remedy(*algorithm);
    ZeroRate => "the rate is zero: give at least one permit per period, as `refill` or `leak`";
    RateTooLarge { permits } => "a rate of {permits} permits per period is too large: at most {MAX_CAPACITY}";
    ZeroPeriod => "the period of the rate is zero: give at least one nanosecond, as `per`";
    PeriodTooLong { per } => "the period {per:?} of the rate is too long: at most {MAX_WINDOW:?}";
    QueueTooLong { max_delay } => "the queue is too long: a maximum delay of {max_delay:?} has room for more than \
        {MAX_CAPACITY} places";
    ResetTooLong { reset } => "all permits of a key are free again only after {reset:?}: that may take at most \
        {MAX_WINDOW:?}";
    StartPastCapacity { start, capacity } => "a token bucket of {capacity} permits cannot start with {start}: at most \
        {capacity}";
    StartNeedsTokenBucket => "only a token bucket can start with a number of permits";
    PhaseNeedsFixedWindow => "only a fixed window or a sliding window counter can be aligned to a phase";
    CountingRefusedNeedsLog => "only a sliding window log can count refused requests";
    ZeroResolution => "the resolution is zero: give at least one nanosecond";
    UnevenResolution { resolution, window } => "a window of {window:?} is not a multiple of {resolution:?}: give a \
        resolution that divides it";
    TooManySteps { steps } => "a window of {steps} steps is too fine: at most {MAX_STEPS}; give a longer resolution";
    ZeroWarmUp => "the warm-up is zero: give at least one nanosecond, or a leaky bucket";
    WarmUpTooLong { warm_up } => "a warm-up of {warm_up:?} is too long: at most {MAX_WINDOW:?}, and {MAX_CAPACITY} \
        permits at the given rate";
    EmptyName => "the name is empty: give at least one character, or no name";
    NameTooLong { length } => "a name of {length} bytes is too long: at most {MAX_NAME}";
    NameCharacter { at } => "the name has a character that is not allowed, after {at} bytes: give printable ASCII \
        without quotes and backslashes";
} }

/// The moving window that counts more permits, for a moving window.
fn remedy(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::SlidingCounter => format!("; a quantised log counts to {MAX_CAPACITY}"),
        _ => String::new(),
    }
}

impl core::error::Error for QuotaError {}
