//! Errors: small enums that name the problem and the bounds.

use core::fmt;
use core::time::Duration;

use crate::caps::{MAX_DENIALS, MAX_KEY_CAP};
use crate::quota::{Algorithm, Quota, QuotaError};
use crate::texts::{texts, wraps};

/// A request asked for more permits than the limit, so no wait would help.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(5))?;
/// let error = limiter.try_acquire_n("alice", 6).unwrap_err();
/// assert_eq!((error.cost(), error.limit()), (6, 5));
/// assert!(error.to_string().ends_with("ask for at most 5"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CostExceedsLimit {
    cost: u32,
    limit: u32,
}

impl CostExceedsLimit {
    pub(crate) const fn new(cost: u32, limit: u32) -> Self {
        Self { cost, limit }
    }

    /// The cost of the request.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// The most permits that a request can be granted.
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

/// Why a request in several dimensions was not decided.
///
/// ```
/// use tollgate::{Absent, JointError, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<[String]>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("endpoint", [Quota::per_minute(2)])
///     .build()?;
/// let error = limiter.try_acquire(["alice"]).unwrap_err();
/// assert_eq!(error, JointError::WrongNumberOfKeys { keys: 1, dimensions: 2 });
/// let error = limiter.try_acquire([Absent, Absent]).unwrap_err();
/// assert_eq!(error, JointError::NoKeys);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JointError {
    /// The request has another number of keys than the limiter has dimensions.
    WrongNumberOfKeys {
        /// The number of given keys.
        keys: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// The request has no key in any dimension, so no dimension is asked.
    NoKeys,
    /// The request asks for more permits than a limit.
    Cost(CostExceedsLimit),
}

texts! { JointError {
    WrongNumberOfKeys { keys, dimensions } => "{keys} keys for {dimensions} dimensions: give one for each, or `None` \
        where there is none";
    NoKeys => "no key in any dimension: give at least one, or decide such requests without the limiter";
    Cost(error) => "{error}";
} }

wraps! { JointError { Cost(CostExceedsLimit) } }

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

/// Why a [`Penalty`](crate::Penalty) cannot be used.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Penalty, PenaltyError};
///
/// let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
/// assert_eq!(Penalty::new(0, minute, hour).validate(), Err(PenaltyError::ZeroDenials));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PenaltyError {
    /// The number of denials is zero: each key would be blocked from the start.
    ZeroDenials,
    /// The number of denials is more than [`Penalty::MAX_DENIALS`](crate::Penalty::MAX_DENIALS).
    TooManyDenials {
        /// The given number of denials.
        denials: u32,
    },
    /// The window of the denials is zero: no two denials would ever be in it.
    ZeroWithin,
    /// The window of the denials is longer than [`Quota::MAX_WINDOW`].
    WithinTooLong {
        /// The given window.
        within: Duration,
    },
    /// The duration of the block is zero.
    ZeroBlock,
    /// The block is longer than [`Quota::MAX_WINDOW`].
    BlockTooLong {
        /// The given duration.
        blocked_for: Duration,
    },
    /// The factor of blocks that grow is zero.
    ZeroFactor,
    /// The longest block is shorter than the first.
    LongestTooShort {
        /// The duration of the first block.
        blocked_for: Duration,
    },
    /// The longest block is longer than [`Quota::MAX_WINDOW`].
    LongestTooLong {
        /// The given longest block.
        longest: Duration,
    },
    /// The quiet time is zero: each block would be the first.
    ZeroQuiet,
    /// The quiet time is longer than [`Quota::MAX_WINDOW`].
    QuietTooLong {
        /// The given quiet time.
        quiet_for: Duration,
    },
}

texts! { PenaltyError {
    ZeroDenials => "the number of a penalty's denials is zero: give at least one";
    TooManyDenials { denials } => "{denials} denials are too many for a penalty: at most {MAX_DENIALS}";
    ZeroWithin => "the window of a penalty's denials is zero: give at least one nanosecond";
    WithinTooLong { within } => "the window {within:?} of a penalty's denials is too long: at most {:?}",
        Quota::MAX_WINDOW;
    ZeroBlock => "the duration of a penalty's block is zero: give at least one nanosecond";
    BlockTooLong { blocked_for } => "the duration {blocked_for:?} of a penalty's block is too long: at most {:?}",
        Quota::MAX_WINDOW;
    ZeroFactor => "the factor by which a penalty's blocks grow is zero: give at least one";
    LongestTooShort { blocked_for } => "the longest block of a penalty is shorter than the first: give at least \
        {blocked_for:?}";
    LongestTooLong { longest } => "the longest block of a penalty, {longest:?}, is too long: at most {:?}",
        Quota::MAX_WINDOW;
    ZeroQuiet => "the quiet time of a penalty is zero, so that each block would be the first: give at least one \
        nanosecond";
    QuietTooLong { quiet_for } => "the quiet time {quiet_for:?} of a penalty is too long: at most {:?}",
        Quota::MAX_WINDOW;
} }

impl core::error::Error for PenaltyError {}

#[cfg(test)]
mod tests;
