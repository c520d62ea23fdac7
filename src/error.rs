//! The errors: small enums that say what was wrong and what is allowed.

use core::fmt;
use core::time::Duration;

use crate::penalty::PenaltyError;
use crate::quota::{Algorithm, Quota};

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
    /// The limit or capacity is more than its algorithm can count to: [`Quota::MAX_CAPACITY`], or
    /// [`Quota::MAX_COUNTER_LIMIT`] for the sliding window counter.
    PastMaximum {
        /// The algorithm.
        algorithm: Algorithm,
        /// The limit or capacity that was asked for.
        limit: u32,
        /// The most that the algorithm allows.
        most: u32,
    },
    /// The refill or leak is zero: what was granted once would never come back.
    ZeroRate,
    /// The refill or leak is more than [`Quota::MAX_CAPACITY`] permits a period.
    RateTooLarge {
        /// The permits a period that were asked for.
        permits: u32,
    },
    /// The period of the refill or leak is zero: the rate would have no bound.
    ZeroPeriod,
    /// The period of the refill or leak is longer than [`Quota::MAX_WINDOW`].
    PeriodTooLong {
        /// The period that was asked for.
        per: Duration,
    },
    /// The maximum delay of a queue has room for more than [`Quota::MAX_CAPACITY`] places.
    QueueTooLong {
        /// The maximum delay that was asked for.
        max_delay: Duration,
    },
    /// A key that is left alone would take longer than [`Quota::MAX_WINDOW`] until it is as new.
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
    /// [`Quota::starting_with`] was asked of another algorithm than the token bucket.
    StartNeedsTokenBucket,
    /// [`Quota::aligned`] was asked of another algorithm than the fixed window and the sliding window counter.
    PhaseNeedsFixedWindow,
    /// [`Quota::counting_refused`] was asked of another algorithm than the sliding window log.
    CountingRefusedNeedsLog,
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
            Self::PastMaximum { algorithm, limit, most } => {
                write!(f, "{limit} permits are too many for a {algorithm}: at most {most}")
            }
            Self::ZeroRate => f.write_str("the rate is zero: give at least one permit per period"),
            Self::RateTooLarge { permits } => {
                write!(f, "a rate of {permits} permits per period is too large: at most {}", Quota::MAX_CAPACITY)
            }
            Self::ZeroPeriod => f.write_str("the period of the rate is zero: give at least one nanosecond"),
            Self::PeriodTooLong { per } => {
                write!(f, "the period {per:?} of the rate is too long: at most {:?}", Quota::MAX_WINDOW)
            }
            Self::QueueTooLong { max_delay } => {
                let most = Quota::MAX_CAPACITY;
                write!(
                    f,
                    "the queue is too long: a maximum delay of {max_delay:?} has room for more than {most} places"
                )
            }
            Self::ResetTooLong { reset } => {
                let most = Quota::MAX_WINDOW;
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
    /// A key was given several quotas of which one is not a sliding window log.
    QuotasDontCombine {
        /// The algorithm of that quota.
        algorithm: Algorithm,
    },
    /// A key was given more quotas than it may have.
    TooManyQuotas {
        /// The quotas that were given.
        quotas: usize,
        /// How many there may be.
        most: usize,
    },
    /// No quota was given.
    NoQuota,
    /// There are no dimensions, or too many.
    DimensionCount {
        /// The dimensions that were given.
        dimensions: usize,
        /// How many there may be.
        most: usize,
    },
    /// Keys of several dimensions that find no place can't share a quota.
    NothingToShare,
    /// A quota of one of several dimensions counts refused requests: a request that is denied leaves no trace in any of them.
    CountingRefusedAlone,
    /// The penalty cannot be used.
    Penalty(PenaltyError),
    /// The cap on listed keys is zero: no key could be listed.
    ZeroListCap,
    /// The cap on listed keys is more than [`MAX_KEY_CAP`](crate::MAX_KEY_CAP).
    ListCapTooLarge {
        /// The cap that was asked for.
        list_cap: usize,
    },
    /// The cap on keys is zero: every key would be refused.
    ZeroKeyCap,
    /// The cap on keys is more than [`MAX_KEY_CAP`](crate::MAX_KEY_CAP).
    KeyCapTooLarge {
        /// The cap that was asked for.
        key_cap: usize,
    },
    /// More keys are to have quotas of their own than the cap allows keys.
    OwnQuotasPastCap {
        /// How many keys may have quotas of their own.
        keys_with_quotas: usize,
        /// The cap on keys.
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
            Self::QuotasDontCombine { algorithm } => write!(
                f,
                "several quotas on one key have to be sliding window logs, and one is {algorithm:?}: \
                 give each key one such quota alone, or put them into dimensions of their own"
            ),
            Self::TooManyQuotas { quotas, most } => {
                write!(f, "{quotas} quotas on one key are too many: at most {most}")
            }
            Self::DimensionCount { dimensions, most } => {
                write!(f, "{dimensions} dimensions: give at least one and at most {most}")
            }
            Self::CountingRefusedAlone => f.write_str(
                "a limiter of several dimensions can't count refused requests: use a `Limiter` for that dimension",
            ),
            Self::NothingToShare => {
                f.write_str("keys of several dimensions can't share a quota at the key cap: deny them or admit them")
            }
            Self::NoQuota => f.write_str("no quota: give at least one"),
            Self::Penalty(error) => error.fmt(f),
            Self::ZeroListCap => {
                f.write_str("the cap on listed keys is zero: allow at least one, or don't ask for lists")
            }
            Self::ListCapTooLarge { list_cap } => {
                write!(f, "a cap of {list_cap} listed keys is too large: at most {}", crate::MAX_KEY_CAP)
            }
            Self::ZeroKeyCap => f.write_str("the cap on keys is zero: allow at least one key"),
            Self::KeyCapTooLarge { key_cap } => {
                write!(f, "a cap of {key_cap} keys is too large: at most {}", crate::MAX_KEY_CAP)
            }
            Self::OwnQuotasPastCap { keys_with_quotas, key_cap } => {
                write!(
                    f,
                    "{keys_with_quotas} keys can't have quotas of their own where there are at most {key_cap} keys: raise the key cap"
                )
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
            Self::Penalty(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PenaltyError> for BuildError {
    fn from(error: PenaltyError) -> Self {
        Self::Penalty(error)
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

/// Why a request in several dimensions could not be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JointError {
    /// There are not as many keys as dimensions.
    WrongNumberOfKeys {
        /// The keys that were given.
        keys: usize,
        /// The dimensions that there are.
        dimensions: usize,
    },
    /// More permits at once than a limit.
    Cost(CostExceedsLimit),
}

impl fmt::Display for JointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongNumberOfKeys { keys, dimensions } => {
                write!(f, "{keys} keys for {dimensions} dimensions: give one for each, or `None` where there is none")
            }
            Self::Cost(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for JointError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::WrongNumberOfKeys { .. } => None,
            Self::Cost(error) => Some(error),
        }
    }
}

impl From<CostExceedsLimit> for JointError {
    fn from(error: CostExceedsLimit) -> Self {
        Self::Cost(error)
    }
}
