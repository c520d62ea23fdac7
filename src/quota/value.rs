//! [`Quota`]: what a key may be granted, as plain integers.

use core::time::Duration;

use super::algorithm::Algorithm;
use super::bounds;
use super::error::QuotaError;
use super::name::Name;

/// How many permits a key may be granted, and how they are counted.
///
/// [`Quota::new`] and its short forms (`per_second` and so on) count exactly, with a sliding window log: at most `limit` permits in any
/// half-open interval of one window's length. The other constructors ask for another [`Algorithm`]; each says what it means by
/// [`limit`](Self::limit) and [`window`](Self::window).
///
/// A quota is a plain value that can be a `const`. It is checked when a limiter is made from it, not here, so that a
/// bad one is a typed error ([`QuotaError`]) and never a panic.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// const LOGIN: Quota = Quota::per_minute(100);
/// const BURST: Quota = Quota::new(5, Duration::from_secs(10));
/// assert_eq!(LOGIN.limit(), 100);
/// assert_eq!(BURST.window(), Duration::from_secs(10));
/// assert!(LOGIN.validate().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    pub(super) limit: u32,
    pub(super) window: Duration,
    pub(super) kind: Kind,
    /// What a new key finds in its token bucket, if not a full one.
    pub(super) start: Option<u32>,
    /// When, after the clock's origin, one of the windows begins.
    pub(super) phase: Option<Duration>,
    /// Whether requests that are refused count as well.
    pub(super) counts_refused: bool,
    pub(super) name: Option<Name>,
}

/// The algorithm, and what it needs to know beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Log,
    TokenBucket { refill: u32, per: Duration },
    LeakyBucket { leak: u32, per: Duration },
    LeakyQueue { leak: u32, per: Duration, max_delay: Duration },
    FixedWindow,
    SlidingCounter { window: Duration },
    QuantisedLog { window: Duration, resolution: Duration },
}

#[cfg(feature = "serde")]
impl Kind {
    /// The number that stands for the algorithm in a snapshot. It must never change.
    pub(crate) const fn number(&self) -> u64 {
        match self {
            Self::Log => 1,
            Self::TokenBucket { .. } => 2,
            Self::LeakyBucket { .. } => 3,
            Self::LeakyQueue { .. } => 4,
            Self::FixedWindow => 5,
            Self::SlidingCounter { .. } => 6,
            Self::QuantisedLog { .. } => 7,
        }
    }
}

impl Quota {
    /// The largest limit: 16,777,216 permits a window (2^24, the width of a position in a key's ring).
    pub const MAX_LIMIT: u32 = bounds::MAX_LIMIT;

    /// The longest window: 2^60 - 1 nanoseconds, a little over 36 years.
    pub const MAX_WINDOW: Duration = bounds::MAX_WINDOW;

    /// `limit` permits in any interval of `window`.
    #[must_use]
    pub const fn new(limit: u32, window: Duration) -> Self {
        Self::of(Kind::Log, limit, window)
    }

    pub(super) const fn of(kind: Kind, limit: u32, window: Duration) -> Self {
        Self { limit, window, kind, start: None, phase: None, counts_refused: false, name: None }
    }

    /// `limit` permits in any second.
    #[must_use]
    pub const fn per_second(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(1))
    }

    /// `limit` permits in any minute.
    #[must_use]
    pub const fn per_minute(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// `limit` permits in any hour.
    #[must_use]
    pub const fn per_hour(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60 * 60))
    }

    /// `limit` permits in any 24 hours.
    #[must_use]
    pub const fn per_day(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(24 * 60 * 60))
    }

    /// The most that can be had at once; of the sliding window log and the fixed window, the permits per window.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// How long it takes at most until a key that is left alone is as new; of the sliding window log, the length of the window.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// How permits are counted.
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
        }
    }

    /// Says whether a limiter can be made from this quota.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] when a number is zero that must not be, or past what its algorithm allows: [`MAX_LIMIT`](Self::MAX_LIMIT) for the
    /// sliding window log, [`MAX_COUNTER_LIMIT`](Self::MAX_COUNTER_LIMIT) for the sliding window counter, and
    /// [`MAX_CAPACITY`](Self::MAX_CAPACITY) for the others; [`MAX_WINDOW`](Self::MAX_WINDOW) for the window and for each period.
    /// Of a quantised log the window must be a multiple of the resolution, of at most [`MAX_STEPS`](Self::MAX_STEPS) steps. When the
    /// name is empty, longer than [`MAX_NAME`](Self::MAX_NAME), or holds what a [name](Self::named) may not.
    pub const fn validate(&self) -> Result<(), QuotaError> {
        if self.limit == 0 {
            return Err(QuotaError::ZeroLimit);
        }
        let checked = match self.kind {
            Kind::Log => self.check_log(),
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                self.check_bucket(permits, per)
            }
            Kind::LeakyQueue { leak, per, max_delay } => self.check_queue(leak, per, max_delay),
            Kind::FixedWindow => self.check_windows(self.window, Self::MAX_CAPACITY),
            Kind::SlidingCounter { window } => self.check_windows(window, Self::MAX_COUNTER_LIMIT),
            Kind::QuantisedLog { window, resolution } => self.check_steps(window, resolution),
        };
        if checked.is_err() {
            return checked;
        }
        match (self.check_start_and_phase(), &self.name) {
            (Ok(()), Some(name)) => name.check(),
            (checked, _) => checked,
        }
    }

    const fn check_log(&self) -> Result<(), QuotaError> {
        if self.limit > Self::MAX_LIMIT {
            return Err(QuotaError::LimitTooLarge { limit: self.limit });
        }
        if self.window.is_zero() {
            return Err(QuotaError::ZeroWindow);
        }
        if self.window.as_nanos() > Self::MAX_WINDOW.as_nanos() {
            return Err(QuotaError::WindowTooLong { window: self.window });
        }
        Ok(())
    }

    const fn check_bucket(&self, permits: u32, per: Duration) -> Result<(), QuotaError> {
        if self.limit > Self::MAX_CAPACITY {
            return Err(self.past(Self::MAX_CAPACITY));
        }
        let rate = check_rate(permits, per);
        if rate.is_err() { rate } else { self.check_reset() }
    }

    const fn check_queue(&self, leak: u32, per: Duration, max_delay: Duration) -> Result<(), QuotaError> {
        let rate = check_rate(leak, per);
        if rate.is_err() {
            return rate;
        }
        if self.limit > Self::MAX_CAPACITY {
            return Err(QuotaError::QueueTooLong { max_delay });
        }
        self.check_reset()
    }

    pub(super) const fn check_windows(&self, window: Duration, most: u32) -> Result<(), QuotaError> {
        if self.limit > most {
            return Err(self.past(most));
        }
        if window.is_zero() {
            return Err(QuotaError::ZeroWindow);
        }
        if window.as_nanos() > Self::MAX_WINDOW.as_nanos() {
            return Err(QuotaError::WindowTooLong { window });
        }
        self.check_reset()
    }

    const fn check_reset(&self) -> Result<(), QuotaError> {
        if self.window.as_nanos() > Self::MAX_WINDOW.as_nanos() {
            return Err(QuotaError::ResetTooLong { reset: self.window });
        }
        Ok(())
    }

    const fn check_start_and_phase(&self) -> Result<(), QuotaError> {
        match (self.start, self.kind) {
            (Some(start), Kind::TokenBucket { .. }) if start > self.limit => {
                return Err(QuotaError::StartPastCapacity { start, capacity: self.limit });
            }
            (None, _) | (Some(_), Kind::TokenBucket { .. }) => {}
            (Some(_), _) => return Err(QuotaError::StartNeedsTokenBucket),
        }
        if self.counts_refused && !matches!(self.kind, Kind::Log) {
            return Err(QuotaError::CountingRefusedNeedsLog);
        }
        match (self.phase, self.kind) {
            (None, _) | (Some(_), Kind::FixedWindow | Kind::SlidingCounter { .. }) => Ok(()),
            (Some(_), _) => Err(QuotaError::PhaseNeedsFixedWindow),
        }
    }

    const fn past(&self, most: u32) -> QuotaError {
        QuotaError::PastMaximum { algorithm: self.algorithm(), limit: self.limit, most }
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) const fn start(&self) -> Option<u32> {
        self.start
    }

    /// When, after the origin of the clock, one of the windows begins, if [`aligned`](Self::aligned) said so.
    #[must_use]
    pub const fn phase(&self) -> Option<Duration> {
        self.phase
    }

    /// The window in nanoseconds, of a quota that has been validated.
    pub(crate) fn window_ns(&self) -> u64 {
        u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX)
    }
}

const fn check_rate(permits: u32, per: Duration) -> Result<(), QuotaError> {
    if permits == 0 {
        return Err(QuotaError::ZeroRate);
    }
    if permits > Quota::MAX_CAPACITY {
        return Err(QuotaError::RateTooLarge { permits });
    }
    if per.is_zero() {
        return Err(QuotaError::ZeroPeriod);
    }
    if per.as_nanos() > Quota::MAX_WINDOW.as_nanos() {
        return Err(QuotaError::PeriodTooLong { per });
    }
    Ok(())
}

/// The quotient, rounded up; by zero, as large as can be.
pub(super) const fn ceil_div(dividend: u128, divisor: u128) -> u128 {
    if divisor == 0 { u128::MAX } else { dividend.div_ceil(divisor) }
}

/// So many nanoseconds, or the longest duration if that is shorter.
pub(super) const fn duration_of(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    if nanos > Duration::MAX.as_nanos() {
        return Duration::MAX;
    }
    #[expect(clippy::cast_possible_truncation, reason = "no more than that of the longest duration")]
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}
