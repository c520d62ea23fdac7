//! [`Policy::apply`]: a changed policy for a limiter that is in use.

use super::model::Policy;
use super::unapplied::Unapplied;
use crate::cell::Scope;
use crate::change::ChangeError;
use crate::clock::Clock;
use crate::engine::Change;
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::Dimensions;
use crate::quota::Quota;
use crate::texts::texts;

impl Policy {
    /// Sets the quotas of this policy on a limiter that is in use: in all dimensions or in none.
    ///
    /// Requests may arrive at the same time. Dimensions are matched by name, in any order.
    /// [`JointLimiter::set_quotas`] does the same for one dimension.
    ///
    /// All quotas are checked first, then they change dimension by dimension. A request in between
    /// may be decided by new quotas of one dimension and old quotas of another.
    ///
    /// Keys with quotas of their own keep them. The limiter keeps the key cap, the answer at the cap,
    /// shadow mode and the penalties that it was built with. [`Unapplied`] names those that the
    /// policy wants otherwise.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Policy};
    ///
    /// let policy = |limit: u32| {
    ///     let quota = format!("quota = [{{ limit = {limit}, per = \"1m\" }}]");
    ///     Policy::from_toml(&format!("[[dimension]]\nname = \"user\"\n{quota}"))
    /// };
    /// let limiter: JointLimiter<(String,)> = policy(1)?.builder().build()?;
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// assert!(limiter.try_acquire(("alice",))?.is_denied());
    ///
    /// // The file has changed.
    /// let unapplied = policy(2)?.apply(&limiter)?;
    /// assert!(unapplied.is_empty(), "{unapplied}");
    /// assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ApplyError`] when policy and limiter have different dimensions, or the quotas of a
    /// dimension can't be changed to those of the policy. Then no quota has changed.
    pub fn apply<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter>(
        &self,
        limiter: &JointLimiter<D, C, F>,
    ) -> Result<Unapplied, ApplyError> {
        let of_limiter: Vec<(&str, &[Quota])> = limiter.dimensions().collect();
        let unknown = self.dimensions.iter().find(|it| of_limiter.iter().all(|(name, _)| **name != *it.name));
        if let Some(unknown) = unknown {
            return Err(ApplyError::NotInLimiter { dimension: unknown.name.to_string() });
        }
        let mut changes = Vec::with_capacity(of_limiter.len());
        for (dimension, &(name, is)) in of_limiter.iter().enumerate() {
            let found = self.dimensions.iter().find(|it| *it.name == *name);
            let quotas = &found.ok_or_else(|| ApplyError::NotInPolicy { dimension: name.to_owned() })?.quotas;
            if quotas != is {
                changes.push(Change { dimension, scope: Scope::All, quotas });
            }
        }
        limiter.change(&changes).map_err(|(dimension, error)| {
            let dimension = limiter.dimension(dimension).to_owned();
            ApplyError::Change { dimension, error }
        })?;
        Ok(Unapplied::of(self, limiter))
    }
}

/// Why a policy was not [applied](Policy::apply). No quota has changed.
///
/// ```
/// use tollgate::policy::{ApplyError, Policy};
/// use tollgate::{JointLimiter, Quota};
///
/// let builder = JointLimiter::<(String,)>::builder().dimension("tenant", [Quota::per_minute(5)]);
/// let limiter = builder.build()?;
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let error = Policy::from_toml(text)?.apply(&limiter).unwrap_err();
/// assert!(matches!(error, ApplyError::NotInLimiter { .. }));
/// assert_eq!(error.dimension(), "user");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// The policy has a dimension that the limiter lacks.
    NotInLimiter {
        /// The name of the dimension.
        dimension: String,
    },
    /// The limiter has a dimension that the policy lacks.
    NotInPolicy {
        /// The name of the dimension.
        dimension: String,
    },
    /// The quotas of a dimension can't be changed to those of the policy.
    Change {
        /// The name of the dimension.
        dimension: String,
        /// The reason.
        error: Box<ChangeError>,
    },
}

impl ApplyError {
    /// The name of the dimension.
    #[must_use]
    pub fn dimension(&self) -> &str {
        match self {
            Self::NotInLimiter { dimension } | Self::NotInPolicy { dimension } | Self::Change { dimension, .. } => {
                dimension
            }
        }
    }
}

texts! { ApplyError {
    NotInLimiter { dimension } => "the limiter has no dimension {dimension:?}: build a new limiter, or remove it from \
        the policy";
    NotInPolicy { dimension } => "the policy lacks the dimension {dimension:?} of the limiter: add it";
    Change { dimension, error } => "dimension {dimension:?}: {error}";
} }

impl core::error::Error for ApplyError {}
