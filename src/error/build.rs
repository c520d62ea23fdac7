//! Why a limiter could not be built.

use core::fmt;

use super::penalty::PenaltyError;
use crate::caps::MAX_KEY_CAP;
use crate::quota::{Algorithm, QuotaError};

/// Why a limiter could not be built.
///
/// The message names the bounds.
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
    /// Keys have several quotas, and one of them is not a sliding window log.
    QuotasDontCombine {
        /// The algorithm of that quota.
        algorithm: Algorithm,
    },
    /// Keys have more quotas than allowed.
    TooManyQuotas {
        /// The number of given quotas.
        quotas: usize,
        /// The most that are allowed.
        most: usize,
    },
    /// No quota was given.
    NoQuota,
    /// There are no dimensions, or too many.
    DimensionCount {
        /// The number of given dimensions.
        dimensions: usize,
        /// The most that are allowed.
        most: usize,
    },
    /// The limiter's type names another number of dimensions.
    OtherDimensionCount {
        /// The number of given dimensions.
        given: usize,
        /// The number in the type.
        named: usize,
    },
    /// A dimension has no name.
    EmptyDimensionName {
        /// The place of the dimension.
        dimension: usize,
    },
    /// Two dimensions have the same name.
    RepeatedDimensionName {
        /// The place of the first dimension.
        first: usize,
        /// The place of the second dimension.
        second: usize,
    },
    /// A penalty is for a dimension that does not exist.
    NoSuchDimension {
        /// The given place.
        dimension: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// [`AtKeyCap::Share`](crate::AtKeyCap::Share) was set for several dimensions, whose keys can't
    /// share a quota.
    NothingToShare,
    /// A quota of a joint limiter counts denied requests. There a denied request leaves no trace in
    /// any dimension.
    CountingRefusedAlone,
    /// The penalty cannot be used.
    Penalty(PenaltyError),
    /// The cap on listed keys is zero: no key could be listed.
    ZeroListCap,
    /// The cap on listed keys is more than [`MAX_KEY_CAP`].
    ListCapTooLarge {
        /// The given cap.
        list_cap: usize,
    },
    /// The cap on keys is zero: no key could be held.
    ZeroKeyCap,
    /// The cap on keys is more than [`MAX_KEY_CAP`].
    KeyCapTooLarge {
        /// The given cap.
        key_cap: usize,
    },
    /// More keys may have quotas of their own than the cap on keys allows.
    OwnQuotasPastCap {
        /// The number of keys that may have quotas of their own.
        keys_with_quotas: usize,
        /// The cap on keys.
        key_cap: usize,
    },
    /// More keys are expected than the cap allows.
    ExpectedKeysPastCap {
        /// The number of expected keys.
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
                write!(f, "there is no dimension {dimension} for a penalty: there are {dimensions}, counted from zero")
            }
            Self::CountingRefusedAlone => {
                f.write_str("a joint limiter can't count refused requests: use a `Limiter` for that quota")
            }
            Self::NothingToShare => {
                f.write_str("keys of several dimensions can't share a quota at the key cap: deny them or admit them")
            }
            Self::NoQuota => f.write_str("no quota: give at least one"),
            Self::Penalty(error) => error.fmt(f),
            Self::ZeroListCap => {
                f.write_str("the cap on listed keys is zero: allow at least one, or set no `list_cap`")
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
                    "{keys_with_quotas} keys can't have quotas of their own under a cap of {key_cap} keys: raise the cap"
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
    fn messages_name_the_allowed_values() {
        let text = BuildError::from(QuotaError::LimitTooLarge { limit: 99_000_000 }).to_string();
        assert!(text.contains("99000000") && text.contains("8388608"), "{text}");
    }
}
