//! Why a limiter could not be built.

use super::penalty::PenaltyError;
use crate::caps::MAX_KEY_CAP;
use crate::quota::{Algorithm, QuotaError};
use crate::texts::{texts, wraps};

/// Why a limiter could not be built.
///
/// The message names the bounds.
///
/// ```
/// use tollgate::{BuildError, Limiter, Quota, QuotaError};
///
/// let error = Limiter::<String>::new(Quota::per_minute(0)).unwrap_err();
/// assert_eq!(error, BuildError::Quota(QuotaError::ZeroLimit));
/// assert_eq!(error.to_string(), "the limit is zero: give at least one permit");
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
    /// There are too many tiers.
    TooManyTiers {
        /// The number of given tiers.
        tiers: usize,
        /// The most that are allowed beside the dimensions.
        most: usize,
    },
    /// A tier has no name.
    EmptyTierName {
        /// The place of the tier.
        tier: usize,
    },
    /// Two tiers of a dimension have the same name.
    RepeatedTierName {
        /// The place of the first tier.
        first: usize,
        /// The place of the second tier.
        second: usize,
    },
    /// A penalty or a tier is for a dimension that does not exist.
    NoSuchDimension {
        /// The given place.
        dimension: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// A quota of a joint limiter counts denied requests. There a denied request leaves no trace in
    /// any dimension.
    CountingRefusedAlone,
    /// The percentage of keys for which limits are enforced is more than 100.
    NoPercentage {
        /// The given number.
        percent: u32,
    },
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

texts! { BuildError {
    Quota(error) => "{error}";
    QuotasDontCombine { algorithm } => "several quotas on one key have to be sliding window logs, and one is a \
        {algorithm}: give each key one such quota alone, or put them into dimensions of their own";
    TooManyQuotas { quotas, most } => "{quotas} quotas on one key are too many: at most {most}";
    NoQuota => "no quota: give at least one";
    DimensionCount { dimensions, most } => "{dimensions} dimensions: give at least one and at most {most}";
    OtherDimensionCount { given, named } => "{given} dimensions for a limiter whose type names {named}: give one for \
        each key type";
    EmptyDimensionName { dimension } => "dimension {dimension}, counted from zero, has an empty name: give it one";
    RepeatedDimensionName { first, second } => "dimensions {first} and {second}, counted from zero, have the same \
        name: rename one";
    TooManyTiers { tiers, most } => "{tiers} tiers are too many: at most {most} beside the dimensions";
    EmptyTierName { tier } => "tier {tier}, counted from zero, has an empty name: give it one";
    RepeatedTierName { first, second } => "tiers {first} and {second}, counted from zero, have the same name: rename \
        one";
    NoSuchDimension { dimension, dimensions } => "there is no dimension {dimension} for a penalty or a tier: there are \
        {dimensions}, counted from zero";
    CountingRefusedAlone => "a joint limiter can't count refused requests: use a `Limiter` for that quota";
    NoPercentage { percent } => "limits can't be enforced for {percent} % of the keys: give a number from 0 to 100";
    Penalty(error) => "{error}";
    ZeroListCap => "the cap on listed keys is zero: allow at least one, or set no `list_cap`";
    ListCapTooLarge { list_cap } => "a cap of {list_cap} listed keys is too large: at most {MAX_KEY_CAP}";
    ZeroKeyCap => "the cap on keys is zero: allow at least one key";
    KeyCapTooLarge { key_cap } => "a cap of {key_cap} keys is too large: at most {MAX_KEY_CAP}";
    OwnQuotasPastCap { keys_with_quotas, key_cap } => "{keys_with_quotas} keys can't have quotas of their own under a \
        cap of {key_cap} keys: raise the cap";
    ExpectedKeysPastCap { expected_keys, key_cap } => "{expected_keys} keys are expected but the cap is {key_cap}: \
        raise the cap or expect fewer";
} }

wraps! { BuildError { Quota(QuotaError), Penalty(PenaltyError) } }

#[cfg(test)]
mod tests;
