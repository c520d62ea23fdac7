//! [`ApplyError`]: why a policy was not applied to what is in use.

use core::fmt;

use tollgate::ChangeError;

/// Why a policy was not [applied](crate::Policy::apply). Nothing has changed.
///
/// ```
/// use tollgate::{JointLimiter, Quota};
/// use tollgate_policy::{ApplyError, Policy};
///
/// let builder = JointLimiter::<(String,)>::builder().dimension("tenant", [Quota::per_minute(5)]);
/// let limiter = builder.build()?;
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let error = Policy::from_toml(text)?.apply(&limiter).unwrap_err();
/// assert!(matches!(error, ApplyError::NotInLimiter { .. }));
/// assert_eq!(error.dimension(), Some("user"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// The policy has a dimension that no limiter has.
    NotInLimiter {
        /// The name of the dimension.
        dimension: String,
    },
    /// A limiter has a dimension that the policy lacks.
    NotInPolicy {
        /// The name of the dimension.
        dimension: String,
    },
    /// The quotas or the penalty of a dimension can't be changed to those of the policy.
    Change {
        /// The name of the dimension.
        dimension: String,
        /// The reason.
        error: Box<ChangeError>,
    },
    /// The policy has a tier that the limiter lacks.
    NoTier {
        /// The name of the dimension.
        dimension: String,
        /// The name of the tier.
        tier: String,
    },
    /// The policy chooses dimensions or tiers by other fields of requests than the one before.
    Fields,
    /// The policy has another key cap than the limiter.
    KeyCap {
        /// That of the limiter.
        is: usize,
        /// That of the policy.
        asked: usize,
    },
    /// The policy has another `[client]` than the one before. Keys would be other keys.
    Client,
    /// The policy has a `[store]`, and the limiter decides in process.
    ForStore,
    /// A [`Target`](crate::Target) of the program refuses it.
    Refused {
        /// The name of the dimension, if it is because of one.
        dimension: Option<String>,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl ApplyError {
    /// The name of the dimension, if one is the reason.
    #[must_use]
    pub fn dimension(&self) -> Option<&str> {
        match self {
            Self::NotInLimiter { dimension }
            | Self::NotInPolicy { dimension }
            | Self::NoTier { dimension, .. }
            | Self::Change { dimension, .. } => Some(dimension),
            Self::Refused { dimension, .. } => dimension.as_deref(),
            Self::Fields | Self::KeyCap { .. } | Self::Client | Self::ForStore => None,
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInLimiter { dimension } => write!(
                f,
                "no limiter has the dimension {dimension:?}: remove it from the policy, or restart to build a limiter \
                 with it"
            ),
            Self::NotInPolicy { dimension } => write!(
                f,
                "the policy lacks the dimension {dimension:?}, which a limiter has: add it, or restart to build a \
                 limiter without it"
            ),
            Self::NoTier { dimension, tier } => write!(
                f,
                "dimension {dimension:?}: the limiter has no tier {tier:?}: remove it, or restart to build a limiter with \
                 it"
            ),
            Self::Fields => f.write_str(
                "rules, matches and tiers of other fields can't be taken on in use: name the fields as before, or restart",
            ),
            Self::Change { dimension, error } => write!(f, "dimension {dimension:?}: {error}"),
            Self::KeyCap { is, asked } => write!(
                f,
                "`key_cap` can't change from {is} to {asked} in use: write {is}, or restart to build a limiter with \
                 {asked}"
            ),
            Self::Client => f.write_str("`[client]` can't change in use: write it as it was, or restart"),
            Self::ForStore => f.write_str(
                "a limiter in process can't take on a policy with a `[store]`: remove the table, or restart to decide \
                 there",
            ),
            Self::Refused { dimension: Some(dimension), reason } => write!(f, "dimension {dimension:?}: {reason}"),
            Self::Refused { dimension: None, reason } => f.write_str(reason),
        }
    }
}

impl core::error::Error for ApplyError {}
