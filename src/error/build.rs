//! Why a limiter could not be built.

use core::fmt;

use super::penalty::PenaltyError;
use crate::caps::MAX_KEY_CAP;
use crate::quota::{Algorithm, QuotaError};

/// Why a limiter could not be built.
///
/// Its text names the bounds.
///
/// ```
/// use tollgate::{BuildError, Limiter, Quota, QuotaError};
///
/// let error = Limiter::<String>::new(Quota::per_minute(0)).unwrap_err();
/// assert_eq!(error, BuildError::Quota(QuotaError::ZeroLimit));
/// assert_eq!(error.to_string(), "the limit is zero: give at least one permit per window");
///
/// let error = Limiter::<String>::builder(Quota::per_minute(5)).key_cap(0).build().unwrap_err();
/// assert_eq!(error, BuildError::ZeroKeyCap);
/// ```
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
    /// The dimensions are not as many as the limiter's type names.
    OtherDimensionCount {
        /// The dimensions that were given.
        given: usize,
        /// As many as the type names.
        named: usize,
    },
    /// A dimension has no name.
    EmptyDimensionName {
        /// Its place.
        dimension: usize,
    },
    /// Two dimensions have the same name.
    RepeatedDimensionName {
        /// The place of the first.
        first: usize,
        /// The place of the second.
        second: usize,
    },
    /// A penalty is for the keys of a dimension that there is not.
    NoSuchDimension {
        /// The one that was asked for.
        dimension: usize,
        /// How many there are.
        dimensions: usize,
    },
    /// Keys of several dimensions that find no place can't share a quota.
    NothingToShare,
    /// A quota of one of several dimensions counts refused requests: a request that is denied
    /// leaves no trace in any of them.
    CountingRefusedAlone,
    /// The penalty cannot be used.
    Penalty(PenaltyError),
    /// The cap on listed keys is zero: no key could be listed.
    ZeroListCap,
    /// The cap on listed keys is more than [`MAX_KEY_CAP`].
    ListCapTooLarge {
        /// The cap that was asked for.
        list_cap: usize,
    },
    /// The cap on keys is zero: every key would be refused.
    ZeroKeyCap,
    /// The cap on keys is more than [`MAX_KEY_CAP`].
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
            Self::OtherDimensionCount { given, named } => {
                write!(f, "{given} dimensions for a limiter whose type names {named}: give one for each key type")
            }
            Self::EmptyDimensionName { dimension } => {
                write!(f, "dimension {dimension}, counted from zero, has an empty name: give it one")
            }
            Self::RepeatedDimensionName { first, second } => {
                write!(f, "dimensions {first} and {second}, counted from zero, have the same name: rename one")
            }
            Self::NoSuchDimension { dimension, dimensions } => {
                write!(f, "a penalty for dimension {dimension}: there are {dimensions}, counted from zero")
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
                write!(f, "a cap of {list_cap} listed keys is too large: at most {MAX_KEY_CAP}")
            }
            Self::ZeroKeyCap => f.write_str("the cap on keys is zero: allow at least one key"),
            Self::KeyCapTooLarge { key_cap } => {
                write!(f, "a cap of {key_cap} keys is too large: at most {MAX_KEY_CAP}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_is_allowed() {
        let text = BuildError::from(QuotaError::LimitTooLarge { limit: 99_000_000 }).to_string();
        assert!(text.contains("99000000") && text.contains("8388608"), "{text}");
    }
}
