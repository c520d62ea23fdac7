//! Which quotas can be used, and why others cannot.

use core::time::Duration;

use super::kind::{Algorithm, Kind};
use super::value::{Name, Quota};
use crate::texts::{error_if, texts};

impl Quota {
    /// Checks that a limiter can be built with this quota. In a `const`, the compiler can check it.
    ///
    /// ```
    /// use tollgate::{Quota, QuotaError};
    ///
    /// const LOGIN: Quota = Quota::per_minute(5);
    /// const _: () = assert!(LOGIN.validate().is_ok());
    ///
    /// assert_eq!(Quota::per_minute(0).validate(), Err(QuotaError::ZeroLimit));
    /// ```
    ///
    /// # Errors
    ///
    /// [`QuotaError`] when a number is zero, or out of range for the algorithm:
    /// - a limit or a capacity above [`MAX_LIMIT`](Self::MAX_LIMIT) for the sliding window log,
    ///   above [`MAX_COUNTER_LIMIT`](Self::MAX_COUNTER_LIMIT) for the sliding window counter, and
    ///   above [`MAX_CAPACITY`](Self::MAX_CAPACITY) for the others;
    /// - a window or a period above [`MAX_WINDOW`](Self::MAX_WINDOW);
    /// - for a quantised log, a window that is not a multiple of the resolution, or that has more
    ///   than [`MAX_STEPS`](Self::MAX_STEPS) steps;
    /// - a warm-up that is zero, or in which more than [`MAX_CAPACITY`](Self::MAX_CAPACITY) permits
    ///   flow;
    /// - a time of [`held_at_most`](Self::held_at_most) that is zero or above
    ///   [`MAX_WINDOW`](Self::MAX_WINDOW);
    /// - numbers by which [`window`](Self::window) is above [`MAX_WINDOW`](Self::MAX_WINDOW);
    /// - a [start](Self::starting_with) above the capacity.
    ///
    /// An option that the algorithm does not have is an error, too, and a [name](Self::named) that
    /// is empty, longer than [`MAX_NAME`](Self::MAX_NAME), or has a character that no name may have.
    pub const fn validate(&self) -> Result<(), QuotaError> {
        const ANY: (u32, Duration) = (1, Duration::from_nanos(1));
        let (limit, algorithm, kind) = (self.limit, self.algorithm(), self.kind);
        // The largest limit, the rate, and the given window. Where an algorithm has no rate or is given no
        // window, these are valid ones.
        let (most, (permits, per), window) = match kind {
            Kind::Log => (Self::MAX_LIMIT, ANY, self.window),
            Kind::FixedWindow | Kind::Calendar { .. } => (Self::MAX_CAPACITY, ANY, self.window),
            Kind::SlidingCounter { window } => (Self::MAX_COUNTER_LIMIT, ANY, window),
            Kind::QuantisedLog { window, .. } => (Self::MAX_CAPACITY, ANY, window),
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                (Self::MAX_CAPACITY, (permits, per), ANY.1)
            }
            Kind::LeakyQueue { leak, per, .. } => (u32::MAX, (leak, per), ANY.1),
            Kind::WarmUp { rate, per, .. } => (Self::MAX_CAPACITY, (rate, per), ANY.1),
            Kind::Concurrency { .. } => (Self::MAX_CAPACITY, ANY, ANY.1),
        };
        let (is_log, is_bucket) = (matches!(kind, Kind::Log), matches!(kind, Kind::TokenBucket { .. }));
        let has_phase = matches!(kind, Kind::FixedWindow | Kind::SlidingCounter { .. });
        error_if! {
            limit == 0 => QuotaError::ZeroLimit;
            is_log && limit > most => QuotaError::LimitTooLarge { limit };
            limit > most => QuotaError::PastMaximum { algorithm, limit, most };
            permits == 0 => QuotaError::ZeroRate;
            permits > Self::MAX_CAPACITY => QuotaError::RateTooLarge { permits };
            per.is_zero() => QuotaError::ZeroPeriod;
            is_long(per) => QuotaError::PeriodTooLong { per };
            window.is_zero() => QuotaError::ZeroWindow;
            is_long(window) => QuotaError::WindowTooLong { window };
        }
        match kind {
            Kind::LeakyQueue { max_delay, .. } if limit > Self::MAX_CAPACITY => {
                return Err(QuotaError::QueueTooLong { max_delay });
            }
            Kind::WarmUp { rate, per, warm_up } => {
                // A cold limiter has stored at most as many permits as the largest limit.
                let stored = warm_up.as_nanos().saturating_mul(rate as u128);
                let most = per.as_nanos().saturating_mul(Self::MAX_CAPACITY as u128);
                error_if! {
                    warm_up.is_zero() => QuotaError::ZeroWarmUp;
                    is_long(warm_up) || stored > most => QuotaError::WarmUpTooLong { warm_up };
                }
            }
            Kind::Concurrency { max_hold: Some(max_hold) } if max_hold.is_zero() || is_long(max_hold) => {
                return Err(QuotaError::HoldOutOfRange { max_hold });
            }
            _ => {}
        }
        error_if! { is_long(self.window) => QuotaError::ResetTooLong { reset: self.window }; }
        if let Kind::QuantisedLog { window, resolution } = kind {
            // The window is a whole number of steps.
            let Some(steps) = window.as_nanos().checked_div(resolution.as_nanos()) else {
                return Err(QuotaError::ZeroResolution);
            };
            error_if! {
                steps * resolution.as_nanos() != window.as_nanos() =>
                    QuotaError::UnevenResolution { resolution, window };
                steps > Self::MAX_STEPS as u128 => QuotaError::TooManySteps { steps };
            }
        }
        let start = if let Some(start) = self.start { start } else { 0 };
        error_if! {
            self.start.is_some() && !is_bucket => QuotaError::StartNeedsTokenBucket;
            start > limit => QuotaError::StartPastCapacity { start, capacity: limit };
            self.counts_refused && !is_log => QuotaError::CountingRefusedNeedsLog;
            self.phase.is_some() && !has_phase => QuotaError::PhaseNeedsFixedWindow;
            self.has_foreign_hold => QuotaError::HoldNeedsConcurrency;
        }
        if let Some(name) = &self.name { check_name(name) } else { Ok(()) }
    }
}

const fn check_name(name: &Name) -> Result<(), QuotaError> {
    let length = name.length as usize;
    error_if! {
        length == 0 => QuotaError::EmptyName;
        length > Quota::MAX_NAME => QuotaError::NameTooLong { length };
    }
    let mut at = 0;
    // These characters need no escape in a quoted string, neither in a header field nor in a
    // policy file.
    while at < length && matches!(name.bytes[at], b' ' | b'!' | b'#'..=b'[' | b']'..=b'~') {
        at += 1;
    }
    error_if! { at < length => QuotaError::NameCharacter { at }; }
    Ok(())
}

const fn is_long(duration: Duration) -> bool {
    duration.as_nanos() > Quota::MAX_WINDOW.as_nanos()
}

/// Why a [`Quota`] cannot be used.
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
    /// The limit is more than [`Quota::MAX_LIMIT`](Quota::MAX_LIMIT).
    LimitTooLarge {
        /// The given limit.
        limit: u32,
    },
    /// The window is zero: no request could ever be denied.
    ZeroWindow,
    /// The window is longer than [`Quota::MAX_WINDOW`](Quota::MAX_WINDOW).
    WindowTooLong {
        /// The given window.
        window: Duration,
    },
    /// The limit or capacity is more than its algorithm allows:
    /// [`Quota::MAX_CAPACITY`](Quota::MAX_CAPACITY), or
    /// [`Quota::MAX_COUNTER_LIMIT`](Quota::MAX_COUNTER_LIMIT) for the sliding window
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
    /// The refill or leak is more than [`Quota::MAX_CAPACITY`](Quota::MAX_CAPACITY) permits
    /// per period.
    RateTooLarge {
        /// The given permits per period.
        permits: u32,
    },
    /// The period of the refill or leak is zero: the rate would have no bound.
    ZeroPeriod,
    /// The period of the refill or leak is longer than
    /// [`Quota::MAX_WINDOW`](Quota::MAX_WINDOW).
    PeriodTooLong {
        /// The given period.
        per: Duration,
    },
    /// The maximum delay of a queue has room for more than
    /// [`Quota::MAX_CAPACITY`](Quota::MAX_CAPACITY) places.
    QueueTooLong {
        /// The given maximum delay.
        max_delay: Duration,
    },
    /// It could take longer than [`Quota::MAX_WINDOW`](Quota::MAX_WINDOW) until all permits
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
    /// [`Quota::starting_with`](Quota::starting_with) was called on a quota other than a
    /// token bucket.
    StartNeedsTokenBucket,
    /// [`Quota::aligned`](Quota::aligned) was called on a quota other than a fixed window or
    /// a sliding window counter, or on one of the [calendar](Quota::calendar).
    PhaseNeedsFixedWindow,
    /// [`Quota::counting_refused`](Quota::counting_refused) was called on a quota other than
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
    /// The window of a quantised log has more than [`Quota::MAX_STEPS`](Quota::MAX_STEPS)
    /// steps.
    TooManySteps {
        /// The number of steps.
        steps: u128,
    },
    /// The warm-up is zero.
    ZeroWarmUp,
    /// The warm-up is longer than [`Quota::MAX_WINDOW`](Quota::MAX_WINDOW), or more than
    /// [`Quota::MAX_CAPACITY`](Quota::MAX_CAPACITY) permits flow in it.
    WarmUpTooLong {
        /// The given warm-up.
        warm_up: Duration,
    },
    /// [`Quota::held_at_most`](Quota::held_at_most) was called on a quota other than a concurrency
    /// limit.
    HoldNeedsConcurrency,
    /// The time for which a request is held is zero, or longer than
    /// [`Quota::MAX_WINDOW`](Quota::MAX_WINDOW).
    HoldOutOfRange {
        /// The given time.
        max_hold: Duration,
    },
    /// The name has no characters.
    EmptyName,
    /// The name is longer than [`Quota::MAX_NAME`](Quota::MAX_NAME).
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
    LimitTooLarge { limit } => "the limit {limit} is too large for a sliding window log: at most {}; a quantised log \
        counts to {}", Quota::MAX_LIMIT, Quota::MAX_CAPACITY;
    ZeroWindow => "the window is zero: give at least one nanosecond";
    WindowTooLong { window } => "the window {window:?} is too long: at most {:?}", Quota::MAX_WINDOW;
    PastMaximum { algorithm, limit, most } => "{limit} permits are too many for a {algorithm}: at most {most}{}", remedy(*algorithm);
    ZeroRate => "the rate is zero: give at least one permit per period, as `refill` or `leak`";
    RateTooLarge { permits } => "a rate of {permits} permits per period is too large: at most {}",
        Quota::MAX_CAPACITY;
    ZeroPeriod => "the period of the rate is zero: give at least one nanosecond, as `per`";
    PeriodTooLong { per } => "the period {per:?} of the rate is too long: at most {:?}", Quota::MAX_WINDOW;
    QueueTooLong { max_delay } => "the queue is too long: a maximum delay of {max_delay:?} has room for more than \
        {} places", Quota::MAX_CAPACITY;
    ResetTooLong { reset } => "all permits of a key are free again only after {reset:?}: that may take at most {:?}",
        Quota::MAX_WINDOW;
    StartPastCapacity { start, capacity } => "a token bucket of {capacity} permits cannot start with {start}: at most \
        {capacity}";
    StartNeedsTokenBucket => "only a token bucket can start with a number of permits";
    PhaseNeedsFixedWindow => "only a fixed window of one length or a sliding window counter can be aligned to a phase";
    CountingRefusedNeedsLog => "only a sliding window log can count refused requests";
    ZeroResolution => "the resolution is zero: give at least one nanosecond";
    UnevenResolution { resolution, window } => "a window of {window:?} is not a multiple of {resolution:?}: give a \
        resolution that divides it";
    TooManySteps { steps } => "a window of {steps} steps is too fine: at most {}; give a longer resolution",
        Quota::MAX_STEPS;
    ZeroWarmUp => "the warm-up is zero: give at least one nanosecond, or a leaky bucket";
    WarmUpTooLong { warm_up } => "a warm-up of {warm_up:?} is too long: at most {:?}, and {} permits at the given rate",
        Quota::MAX_WINDOW, Quota::MAX_CAPACITY;
    HoldNeedsConcurrency => "only a concurrency limit can have a longest time for which requests are held";
    HoldOutOfRange { max_hold } => "requests can't be held for at most {max_hold:?}: give a time above zero, of at most {:?}",
        Quota::MAX_WINDOW;
    EmptyName => "the name is empty: give at least one character, or no name";
    NameTooLong { length } => "a name of {length} bytes is too long: at most {}", Quota::MAX_NAME;
    NameCharacter { at } => "the name has a character that is not allowed, after {at} bytes: give printable ASCII \
        without quotes and backslashes";
} }

/// The moving window that counts more permits, for a moving window.
fn remedy(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::SlidingCounter => format!("; a quantised log counts to {}", Quota::MAX_CAPACITY),
        _ => String::new(),
    }
}

impl core::error::Error for QuotaError {}
