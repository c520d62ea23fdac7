//! [`Quota`]: a limit and a window, as plain integers.

use core::time::Duration;

use crate::error::QuotaError;

/// How many permits a key may be granted in any half-open interval of one window's length.
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
    limit: u32,
    window: Duration,
}

impl Quota {
    /// The largest limit: 16,777,216 permits a window (2^24, the width of a position in a key's ring).
    pub const MAX_LIMIT: u32 = 1 << 24;

    /// The longest window: 2^60 - 1 nanoseconds, a little over 36 years.
    pub const MAX_WINDOW: Duration = Duration::from_nanos((1 << 60) - 1);

    /// `limit` permits in any interval of `window`.
    #[must_use]
    pub const fn new(limit: u32, window: Duration) -> Self {
        Self { limit, window }
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

    /// Permits per window.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The length of the window.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// Says whether a limiter can be made from this quota.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] when the limit or the window is zero or past [`MAX_LIMIT`](Self::MAX_LIMIT) or
    /// [`MAX_WINDOW`](Self::MAX_WINDOW).
    pub const fn validate(&self) -> Result<(), QuotaError> {
        if self.limit == 0 {
            return Err(QuotaError::ZeroLimit);
        }
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

    /// The window in nanoseconds, of a quota that has been validated.
    pub(crate) fn window_ns(&self) -> u64 {
        u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_maxima_are_allowed_and_one_more_is_not() {
        let longest = Quota::MAX_WINDOW;
        assert_eq!(Quota::new(Quota::MAX_LIMIT, longest).validate(), Ok(()));
        assert_eq!(Quota::new(1, Duration::from_nanos(1)).validate(), Ok(()));
        let limit = Quota::MAX_LIMIT + 1;
        assert_eq!(Quota::per_second(limit).validate(), Err(QuotaError::LimitTooLarge { limit }));
        let window = longest + Duration::from_nanos(1);
        assert_eq!(Quota::new(1, window).validate(), Err(QuotaError::WindowTooLong { window }));
        assert!(Quota::new(1, Duration::MAX).validate().is_err());
    }

    #[test]
    fn zero_is_an_error_not_a_clamp() {
        assert_eq!(Quota::per_minute(0).validate(), Err(QuotaError::ZeroLimit));
        assert_eq!(Quota::new(1, Duration::ZERO).validate(), Err(QuotaError::ZeroWindow));
    }
}
