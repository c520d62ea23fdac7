//! [`Quota`]: the limit of a key, as plain integers.

use core::time::Duration;

use super::algorithm::Algorithm;
use super::bounds;
use super::error::QuotaError;
use super::name::Name;
use crate::clock::nanos;

/// The number of permits that a key may be granted, and the algorithm that counts them.
///
/// [`Quota::new`] and its short forms ([`per_second`](Self::per_second) and so on) are sliding
/// window logs. They count exactly: no half-open interval as long as the window holds more than
/// `limit` permits. The other constructors choose other [algorithms](Algorithm), and define
/// [`limit`](Self::limit) and [`window`](Self::window) for them.
///
/// A quota is a plain value and can be a `const`. Building a limiter checks it: an invalid quota is
/// a typed error ([`QuotaError`]) and never a panic. To check it earlier, call
/// [`validate`](Self::validate).
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// const LOGIN: Quota = Quota::new(5, Duration::from_secs(10));
/// assert_eq!((LOGIN.limit(), LOGIN.window()), (5, Duration::from_secs(10)));
///
/// // Short forms for a second, a minute, an hour and a day.
/// let short = [Quota::per_second(9), Quota::per_minute(9), Quota::per_hour(9), Quota::per_day(9)];
/// assert_eq!(short.map(|quota| quota.window().as_secs()), [1, 60, 3600, 86_400]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    pub(super) limit: u32,
    pub(super) window: Duration,
    pub(super) kind: Kind,
    /// The permits in a new key's token bucket; `None` if it starts full.
    pub(super) start: Option<u32>,
    /// The start of one of the aligned windows, after the clock's origin.
    pub(super) phase: Option<Duration>,
    /// Whether denied requests count.
    pub(super) counts_refused: bool,
    pub(super) name: Option<Name>,
}

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
}

impl Quota {
    /// The largest limit of a sliding window log: 1,048,576 permits per window (2^20).
    ///
    /// ```
    /// use tollgate::{Quota, QuotaError};
    ///
    /// assert!(Quota::per_day(Quota::MAX_LIMIT).validate().is_ok());
    /// let limit = Quota::MAX_LIMIT + 1;
    /// assert_eq!(Quota::per_day(limit).validate(), Err(QuotaError::LimitTooLarge { limit }));
    /// ```
    pub const MAX_LIMIT: u32 = bounds::MAX_LIMIT;

    /// The longest window: 2^60 - 1 nanoseconds, a little over 36 years.
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::MAX_WINDOW.as_secs() / (365 * 24 * 60 * 60), 36);
    /// assert!(Quota::new(1, Quota::MAX_WINDOW).validate().is_ok());
    /// ```
    pub const MAX_WINDOW: Duration = bounds::MAX_WINDOW;

    /// At most `limit` permits in any interval as long as `window`, as a sliding window log.
    ///
    /// A permit that is granted at `s` counts until just before `s + window`. At exactly
    /// `s + window` it is free again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let quota = Quota::new(2, Duration::from_secs(10));
    /// let limiter = Limiter::<String>::builder(quota).clock(clock.clone()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// clock.advance(Duration::from_secs(6));
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// // The first permit is free again 10 seconds after it was granted.
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(4)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn new(limit: u32, window: Duration) -> Self {
        Self::of(Kind::Log, limit, window)
    }

    pub(super) const fn of(kind: Kind, limit: u32, window: Duration) -> Self {
        Self { limit, window, kind, start: None, phase: None, counts_refused: false, name: None }
    }

    /// At most `limit` permits in any second.
    #[must_use]
    pub const fn per_second(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(1))
    }

    /// At most `limit` permits in any 60 seconds, not per calendar minute.
    #[must_use]
    pub const fn per_minute(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// At most `limit` permits in any hour.
    #[must_use]
    pub const fn per_hour(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60 * 60))
    }

    /// At most `limit` permits in any 24 hours.
    #[must_use]
    pub const fn per_day(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(24 * 60 * 60))
    }

    /// The most permits that a request can be granted.
    ///
    /// For a bucket this is the capacity, for a [queue](Self::leaky_queue) the number of places, and
    /// for any other quota the permits per window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_minute(100).limit(), 100);
    /// assert_eq!(Quota::token_bucket(20, 5, Duration::from_secs(1)).limit(), 20);
    /// ```
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The longest time until all permits of a key are free again, if no more are granted.
    ///
    /// For a sliding window log and a fixed window this is the window that was given.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_minute(100).window(), Duration::from_secs(60));
    /// // An empty bucket of 20 is full after 4 seconds.
    /// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// assert_eq!(bucket.window(), Duration::from_secs(4));
    /// ```
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The algorithm that counts the permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Algorithm, Quota};
    ///
    /// let mails = Quota::fixed_window(50, Duration::from_secs(3600));
    /// assert_eq!(mails.algorithm(), Algorithm::FixedWindow);
    /// ```
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.kind {
            Kind::Log => Algorithm::SlidingWindowLog,
            Kind::TokenBucket { .. } => Algorithm::TokenBucket,
            Kind::LeakyBucket { .. } => Algorithm::LeakyBucket,
            Kind::LeakyQueue { .. } => Algorithm::LeakyQueue,
            Kind::FixedWindow => Algorithm::FixedWindow,
            Kind::SlidingCounter { .. } => Algorithm::SlidingCounter,
            Kind::QuantisedLog { .. } => Algorithm::QuantisedLog,
            Kind::WarmUp { .. } => Algorithm::WarmUp,
        }
    }

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
    /// - numbers by which [`window`](Self::window) is above [`MAX_WINDOW`](Self::MAX_WINDOW);
    /// - a [start](Self::starting_with) above the capacity.
    ///
    /// An option that the algorithm does not have is an error, too, and a [name](Self::named) that
    /// is empty, longer than [`MAX_NAME`](Self::MAX_NAME), or has a character that no name may have.
    pub const fn validate(&self) -> Result<(), QuotaError> {
        let (limit, window) = (self.limit, self.window);
        let most =
            if let Kind::SlidingCounter { .. } = self.kind { Self::MAX_COUNTER_LIMIT } else { Self::MAX_CAPACITY };
        let past = error_if(limit > most, QuotaError::PastMaximum { algorithm: self.algorithm(), limit, most });
        let reset = error_if(is_long(window), QuotaError::ResetTooLong { reset: window });
        let of_kind = match self.kind {
            Kind::Log => {
                all(&[error_if(limit > Self::MAX_LIMIT, QuotaError::LimitTooLarge { limit }), check_window(window)])
            }
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                all(&[past, check_rate(permits, per), reset])
            }
            Kind::LeakyQueue { leak, per, max_delay } => {
                all(&[check_rate(leak, per), error_if(limit > most, QuotaError::QueueTooLong { max_delay }), reset])
            }
            Kind::FixedWindow => all(&[past, check_window(window)]),
            Kind::SlidingCounter { window } => all(&[past, check_window(window), reset]),
            Kind::QuantisedLog { resolution, .. } if resolution.is_zero() => Err(QuotaError::ZeroResolution),
            Kind::QuantisedLog { window, resolution } => {
                all(&[past, check_window(window), reset, check_steps(window, resolution)])
            }
            Kind::WarmUp { rate, per, warm_up } => {
                all(&[past, check_rate(rate, per), check_warm_up(rate, per, warm_up), reset])
            }
        };
        let start = match (self.start, self.kind) {
            (None, _) => Ok(()),
            (Some(start), Kind::TokenBucket { .. }) => {
                error_if(start > limit, QuotaError::StartPastCapacity { start, capacity: limit })
            }
            (Some(_), _) => Err(QuotaError::StartNeedsTokenBucket),
        };
        let can_have_phase = matches!(self.kind, Kind::FixedWindow | Kind::SlidingCounter { .. });
        all(&[
            error_if(limit == 0, QuotaError::ZeroLimit),
            of_kind,
            start,
            error_if(self.counts_refused && !matches!(self.kind, Kind::Log), QuotaError::CountingRefusedNeedsLog),
            error_if(self.phase.is_some() && !can_have_phase, QuotaError::PhaseNeedsFixedWindow),
            if let Some(name) = &self.name { name.check() } else { Ok(()) },
        ])
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The permits given to [`starting_with`](Self::starting_with); `None` for a bucket that starts
    /// full, and for any other quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// assert_eq!((bucket.start(), bucket.starting_with(0).start()), (None, Some(0)));
    /// ```
    #[must_use]
    pub const fn start(&self) -> Option<u32> {
        self.start
    }

    /// The permits that flow into a bucket, or out of it, in each period: the refill or the leak,
    /// and `per`. `None` for a quota without a rate.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Quota::token_bucket(20, 5, second).rate(), Some((5, second)));
    /// assert_eq!(Quota::per_second(5).rate(), None);
    /// ```
    #[must_use]
    pub const fn rate(&self) -> Option<(u32, Duration)> {
        match self.kind {
            Kind::TokenBucket { refill: permits, per }
            | Kind::LeakyBucket { leak: permits, per }
            | Kind::LeakyQueue { leak: permits, per, .. } => Some((permits, per)),
            _ => None,
        }
    }

    /// The longest delay of a request in a [leaky queue](Self::leaky_queue); `None` for any other
    /// quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (second, delay) = (Duration::from_secs(1), Duration::from_millis(500));
    /// assert_eq!(Quota::leaky_queue(10, second, delay).max_delay(), Some(delay));
    /// ```
    #[must_use]
    pub const fn max_delay(&self) -> Option<Duration> {
        match self.kind {
            Kind::LeakyQueue { max_delay, .. } => Some(max_delay),
            _ => None,
        }
    }

    /// The phase given to [`aligned`](Self::aligned); `None` for a quota that is not aligned. A
    /// window begins at this time after the origin of the clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (minute, phase) = (Duration::from_secs(60), Duration::from_secs(40));
    /// assert_eq!(Quota::fixed_window(10, minute).phase(), None);
    /// assert_eq!(Quota::fixed_window(10, minute).aligned(phase).phase(), Some(phase));
    /// ```
    #[must_use]
    pub const fn phase(&self) -> Option<Duration> {
        self.phase
    }

    /// The window of a validated quota in nanoseconds.
    pub(crate) fn window_ns(&self) -> u64 {
        nanos(self.window)
    }
}

const fn check_rate(permits: u32, per: Duration) -> Result<(), QuotaError> {
    all(&[
        error_if(permits == 0, QuotaError::ZeroRate),
        error_if(permits > Quota::MAX_CAPACITY, QuotaError::RateTooLarge { permits }),
        error_if(per.is_zero(), QuotaError::ZeroPeriod),
        error_if(is_long(per), QuotaError::PeriodTooLong { per }),
    ])
}

const fn check_window(window: Duration) -> Result<(), QuotaError> {
    all(&[
        error_if(window.is_zero(), QuotaError::ZeroWindow),
        error_if(is_long(window), QuotaError::WindowTooLong { window }),
    ])
}

/// A cold limiter has stored at most as many permits as the largest limit.
const fn check_warm_up(rate: u32, per: Duration, warm_up: Duration) -> Result<(), QuotaError> {
    let stored = warm_up.as_nanos().saturating_mul(rate as u128);
    let most = per.as_nanos().saturating_mul(Quota::MAX_CAPACITY as u128);
    all(&[
        error_if(warm_up.is_zero(), QuotaError::ZeroWarmUp),
        error_if(is_long(warm_up) || stored > most, QuotaError::WarmUpTooLong { warm_up }),
    ])
}

const fn check_steps(window: Duration, resolution: Duration) -> Result<(), QuotaError> {
    let (length, step) = (window.as_nanos(), resolution.as_nanos());
    let steps = length / step;
    all(&[
        error_if(steps * step != length, QuotaError::UnevenResolution { resolution, window }),
        error_if(steps > Quota::MAX_STEPS as u128, QuotaError::TooManySteps { steps }),
    ])
}

const fn is_long(duration: Duration) -> bool {
    duration.as_nanos() > Quota::MAX_WINDOW.as_nanos()
}

const fn error_if(is_wrong: bool, error: QuotaError) -> Result<(), QuotaError> {
    if is_wrong { Err(error) } else { Ok(()) }
}

/// The first error.
const fn all(checks: &[Result<(), QuotaError>]) -> Result<(), QuotaError> {
    let mut at = 0;
    while at < checks.len() {
        if checks[at].is_err() {
            return checks[at];
        }
        at += 1;
    }
    Ok(())
}

/// The quotient, rounded up; the maximum if the divisor is zero.
pub(super) const fn ceil_div(dividend: u128, divisor: u128) -> u128 {
    if divisor == 0 { u128::MAX } else { dividend.div_ceil(divisor) }
}

/// A duration of `nanos` nanoseconds, or the longest duration if `nanos` is too large.
pub(super) const fn duration_of(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    if nanos > Duration::MAX.as_nanos() {
        return Duration::MAX;
    }
    #[expect(clippy::cast_possible_truncation, reason = "no more than that of the longest duration")]
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}
