//! Why a quota cannot be used.

use core::fmt;
use core::time::Duration;

use super::algorithm::Algorithm;
use super::bounds::{MAX_CAPACITY, MAX_LIMIT, MAX_NAME, MAX_STEPS, MAX_WINDOW};

/// Why a [`Quota`](crate::Quota) cannot be used.
///
/// Its text says which values are allowed.
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
    /// The limit is zero: nothing could ever be admitted.
    ZeroLimit,
    /// The limit is more than [`Quota::MAX_LIMIT`](crate::Quota::MAX_LIMIT).
    LimitTooLarge {
        /// The limit that was asked for.
        limit: u32,
    },
    /// The window is zero: nothing could ever be denied.
    ZeroWindow,
    /// The window is longer than [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
    WindowTooLong {
        /// The window that was asked for.
        window: Duration,
    },
    /// The limit or capacity is more than its algorithm allows:
    /// [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY), or
    /// [`Quota::MAX_COUNTER_LIMIT`](crate::Quota::MAX_COUNTER_LIMIT) for the sliding window
    /// counter.
    PastMaximum {
        /// The algorithm.
        algorithm: Algorithm,
        /// The limit or capacity that was asked for.
        limit: u32,
        /// The most that the algorithm allows.
        most: u32,
    },
    /// The refill or leak is zero: a granted permit would never come back.
    ZeroRate,
    /// The refill or leak is more than [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY) permits
    /// a period.
    RateTooLarge {
        /// The permits a period that were asked for.
        permits: u32,
    },
    /// The period of the refill or leak is zero: the rate would have no bound.
    ZeroPeriod,
    /// The period of the refill or leak is longer than
    /// [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
    PeriodTooLong {
        /// The period that was asked for.
        per: Duration,
    },
    /// The maximum delay of a queue has room for more than
    /// [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY) places.
    QueueTooLong {
        /// The maximum delay that was asked for.
        max_delay: Duration,
    },
    /// All permits of a key would be free again only after more than
    /// [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
    ResetTooLong {
        /// How long it would take.
        reset: Duration,
    },
    /// A token bucket is to start with more permits than it holds.
    StartPastCapacity {
        /// The permits that it is to start with.
        start: u32,
        /// The permits that it holds.
        capacity: u32,
    },
    /// [`Quota::starting_with`](crate::Quota::starting_with) was asked of another algorithm than
    /// the token bucket.
    StartNeedsTokenBucket,
    /// [`Quota::aligned`](crate::Quota::aligned) was asked of another algorithm than the fixed
    /// window and the sliding window counter.
    PhaseNeedsFixedWindow,
    /// [`Quota::counting_refused`](crate::Quota::counting_refused) was asked of another algorithm
    /// than the sliding window log.
    CountingRefusedNeedsLog,
    /// The resolution of a quantised log is zero: time could not be divided.
    ZeroResolution,
    /// The window of a quantised log is not a multiple of its resolution.
    UnevenResolution {
        /// The resolution that was asked for.
        resolution: Duration,
        /// The window that was asked for.
        window: Duration,
    },
    /// The window of a quantised log has more than [`Quota::MAX_STEPS`](crate::Quota::MAX_STEPS)
    /// steps.
    TooManySteps {
        /// How many it has.
        steps: u128,
    },
    /// The name has no characters.
    EmptyName,
    /// The name is longer than [`Quota::MAX_NAME`](crate::Quota::MAX_NAME).
    NameTooLong {
        /// How long it is, in bytes; of a longer one, 255.
        length: usize,
    },
    /// The name has a character that is not printable ASCII, a quote or a backslash.
    NameCharacter {
        /// Where it is, in bytes from the start.
        at: usize,
    },
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroLimit => f.write_str("the limit is zero: give at least one permit per window"),
            Self::LimitTooLarge { limit } => {
                write!(f, "the limit {limit} is too large: at most {} permits per window", MAX_LIMIT)
            }
            Self::ZeroWindow => f.write_str("the window is zero: give at least one nanosecond"),
            Self::WindowTooLong { window } => {
                write!(f, "the window {window:?} is too long: at most {:?}", MAX_WINDOW)
            }
            Self::PastMaximum { algorithm, limit, most } => {
                write!(f, "{limit} permits are too many for a {algorithm}: at most {most}")
            }
            Self::ZeroRate => f.write_str("the rate is zero: give at least one permit per period"),
            Self::RateTooLarge { permits } => {
                write!(f, "a rate of {permits} permits per period is too large: at most {}", MAX_CAPACITY)
            }
            Self::ZeroPeriod => f.write_str("the period of the rate is zero: give at least one nanosecond"),
            Self::PeriodTooLong { per } => {
                write!(f, "the period {per:?} of the rate is too long: at most {:?}", MAX_WINDOW)
            }
            Self::QueueTooLong { max_delay } => {
                let most = MAX_CAPACITY;
                write!(
                    f,
                    "the queue is too long: a maximum delay of {max_delay:?} has room for more than {most} places"
                )
            }
            Self::ResetTooLong { reset } => {
                let most = MAX_WINDOW;
                write!(
                    f,
                    "a key that is left alone would be as new only after {reset:?}: that may take at most {most:?}"
                )
            }
            Self::StartPastCapacity { start, capacity } => {
                write!(f, "a token bucket of {capacity} cannot start with {start}: at most {capacity}")
            }
            Self::StartNeedsTokenBucket => f.write_str("only a token bucket can start with a number of permits"),
            Self::PhaseNeedsFixedWindow => {
                f.write_str("only a fixed window or a sliding window counter can be aligned to a phase")
            }
            Self::CountingRefusedNeedsLog => f.write_str("only a sliding window log can count refused requests"),
            Self::ZeroResolution => f.write_str("the resolution is zero: give at least one nanosecond"),
            Self::UnevenResolution { resolution, window } => {
                write!(
                    f,
                    "a window of {window:?} is not made of steps of {resolution:?}: give a resolution that divides it"
                )
            }
            Self::TooManySteps { steps } => {
                write!(f, "a window of {steps} steps is too fine: at most {}; give a longer resolution", MAX_STEPS)
            }
            Self::EmptyName => f.write_str("the name is empty: give at least one character, or no name"),
            Self::NameTooLong { length } => {
                write!(f, "a name of {length} bytes is too long: at most {MAX_NAME}")
            }
            Self::NameCharacter { at } => {
                let allowed = "printable ASCII without quotes and backslashes";
                write!(f, "the name has a character that it may not have after {at} bytes: give {allowed}")
            }
        }
    }
}

impl core::error::Error for QuotaError {}
