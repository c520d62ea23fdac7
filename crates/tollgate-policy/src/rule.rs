//! [`Rule`] and [`PolicyTier`]: requests that no limit decides, and other quotas of a dimension.

use tollgate::Quota;

use crate::matches::Match;

/// A `[[rule]]` of a policy file: requests that are admitted or denied before any limit is asked.
///
/// ```
/// use tollgate_policy::{Action, Policy};
///
/// let policy = Policy::from_toml(r#"
///     [[rule]]
///     match = { path = "/health" }
///     action = "admit"
///
///     [[dimension]]
///     name = "client"
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// let rule = &policy.rules()[0];
/// assert_eq!((rule.action(), rule.matches().to_string()), (Action::Admit, "path /health".to_owned()));
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) matches: Match,
    pub(crate) action: Action,
}

/// What a [`Rule`] does with the requests that it matches.
///
/// ```
/// use tollgate_policy::Action;
///
/// assert_eq!(Action::Deny.to_string(), "deny");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// They are admitted, and no limit counts them.
    Admit,
    /// They are denied, and no limit counts them.
    Deny,
}

impl core::fmt::Display for Action {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Admit => "admit",
            Self::Deny => "deny",
        })
    }
}

impl Rule {
    /// The requests that it decides.
    #[must_use]
    pub const fn matches(&self) -> &Match {
        &self.matches
    }

    /// What it does with them.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }
}

/// A `[[dimension.tier]]` of a policy file: other quotas of a dimension, for the requests that match
/// it or that name it.
///
/// Each key has its own permits in each [`Tier`](tollgate::Tier).
///
/// ```
/// use tollgate::Quota;
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml(r#"
///     [[dimension]]
///     name = "tenant"
///     quota = [{ limit = 100, per = "1m" }]
///     tier_by = "header.x-plan"
///
///     [[dimension.tier]]
///     name = "premium"
///     quota = [{ limit = 1000, per = "1m" }]
///
///     [[dimension.tier]]
///     name = "internal"
///     match = { client = ["10.0.0.0/8"] }
///     unlimited = true
/// "#)?;
/// let [premium, internal] = policy.dimensions()[0].tiers() else { panic!("there are two") };
/// assert_eq!((premium.name(), premium.quotas()), ("premium", &[Quota::per_minute(1000)][..]));
/// assert!(premium.matches().is_any() && internal.is_unlimited());
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTier {
    pub(crate) name: Box<str>,
    pub(crate) matches: Match,
    /// None if it is unlimited.
    pub(crate) quotas: Vec<Quota>,
}

impl PolicyTier {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The requests that it is for. Without a condition, it is for those whose value of `tier_by` is
    /// its name.
    #[must_use]
    pub const fn matches(&self) -> &Match {
        &self.matches
    }

    /// The quotas of each key; none if it is unlimited.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.quotas
    }

    /// Whether the dimension does not limit these requests.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.quotas.is_empty()
    }
}
