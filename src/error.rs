//! The errors: small enums that say what was wrong and what is allowed.

use core::fmt;
use core::time::Duration;

use crate::quota::Quota;

/// Why a [`Quota`] cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaError {
    /// The limit is zero: nothing could ever be admitted.
    ZeroLimit,
    /// The limit is more than [`Quota::MAX_LIMIT`].
    LimitTooLarge {
        /// The limit that was asked for.
        limit: u32,
    },
    /// The window is zero: nothing could ever be denied.
    ZeroWindow,
    /// The window is longer than [`Quota::MAX_WINDOW`].
    WindowTooLong {
        /// The window that was asked for.
        window: Duration,
    },
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroLimit => f.write_str("the limit is zero: give at least one permit per window"),
            Self::LimitTooLarge { limit } => {
                write!(f, "the limit {limit} is too large: at most {} permits per window", Quota::MAX_LIMIT)
            }
            Self::ZeroWindow => f.write_str("the window is zero: give at least one nanosecond"),
            Self::WindowTooLong { window } => {
                write!(f, "the window {window:?} is too long: at most {:?}", Quota::MAX_WINDOW)
            }
        }
    }
}

impl core::error::Error for QuotaError {}

/// Why a limiter could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildError {
    /// The quota cannot be used.
    Quota(QuotaError),
    /// The cap on keys is zero: every key would be refused.
    ZeroKeyCap,
    /// The cap on keys is more than [`MAX_KEY_CAP`](crate::MAX_KEY_CAP).
    KeyCapTooLarge {
        /// The cap that was asked for.
        key_cap: usize,
    },
    /// More keys are expected than the cap allows.
    ExpectedKeysPastCap {
        /// The keys that are expected.
        expected_keys: usize,
        /// The cap on keys.
        key_cap: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(error) => error.fmt(f),
            Self::ZeroKeyCap => f.write_str("the cap on keys is zero: allow at least one key"),
            Self::KeyCapTooLarge { key_cap } => {
                write!(f, "a cap of {key_cap} keys is too large: at most {}", crate::MAX_KEY_CAP)
            }
            Self::ExpectedKeysPastCap { expected_keys, key_cap } => {
                write!(f, "{expected_keys} keys are expected but the cap is {key_cap}: raise the cap or expect fewer")
            }
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Quota(error) => Some(error),
            _ => None,
        }
    }
}

impl From<QuotaError> for BuildError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}

/// A request asked for more permits at once than the limit: it could never be admitted, however long it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CostExceedsLimit {
    cost: u32,
    limit: u32,
}

impl CostExceedsLimit {
    pub(crate) const fn new(cost: u32, limit: u32) -> Self {
        Self { cost, limit }
    }

    /// The permits that were asked for at once.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// The most that can ever be granted at once.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }
}

impl fmt::Display for CostExceedsLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cost, limit } = self;
        write!(f, "a request of cost {cost} can never be admitted under a limit of {limit}: ask for at most {limit}")
    }
}

impl core::error::Error for CostExceedsLimit {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_is_allowed() {
        let text = BuildError::from(QuotaError::LimitTooLarge { limit: 99_000_000 }).to_string();
        assert!(text.contains("99000000") && text.contains("16777216"), "{text}");
        let text = CostExceedsLimit::new(7, 5).to_string();
        assert!(text.contains("cost 7") && text.contains("limit of 5"), "{text}");
    }
}
