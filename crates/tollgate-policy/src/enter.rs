//! [`RequestLimiter::try_enter`]: a request that is in flight while its guard lasts.

use core::fmt;
use std::sync::Arc;

use tollgate::{Clock, Denial, Fingerprinter, InFlight, JointLimiter, ReserveError};

use crate::request_limiter::{Asked, RequestLimiter};
use crate::values::{Key, Value};

/// A request in flight.
type Guard<C, F> = InFlight<Arc<JointLimiter<[Key], C, F>>>;

/// Why a request was not admitted. Nothing is charged.
///
/// ```
/// use tollgate_policy::{EnterError, Policy};
///
/// let policy = Policy::from_toml(r#"
///     [[rule]]
///     match = { user = "mallory" }
///     action = "deny"
///
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 1, per = "1m" }]
/// "#)?;
/// let limiter = policy.request_limiter()?;
/// let enter = |user: Option<&'static str>| limiter.try_enter(vec![user.map(Into::into)]).err();
/// assert_eq!(enter(None), Some(EnterError::Lacks { field: 0 }));
/// assert_eq!(enter(Some("mallory")), Some(EnterError::Rule { rule: 0 }));
/// assert_eq!(enter(Some("alice")), None);
/// let denial = enter(Some("alice")).and_then(|error| error.denial()).expect("a denial");
/// assert_eq!(denial.retry_after_secs(), Some(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnterError {
    /// A rule denies it.
    Rule {
        /// The place of the rule in the policy.
        rule: usize,
    },
    /// It lacks a field of a dimension that it is asked of.
    Lacks {
        /// The place of the field.
        field: usize,
    },
    /// The limits do not admit it.
    Limits(ReserveError),
}

impl EnterError {
    /// The denial, if a limit denied the request.
    #[must_use]
    pub const fn denial(&self) -> Option<Denial> {
        match self {
            Self::Limits(error) => error.denial(),
            Self::Rule { .. } | Self::Lacks { .. } => None,
        }
    }
}

impl fmt::Display for EnterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule } => write!(f, "rule {} of the policy denies the request", rule + 1),
            Self::Lacks { field } => write!(f, "the request lacks field {} of the policy", field + 1),
            Self::Limits(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for EnterError {}

impl<C: Clock, F: Fingerprinter> RequestLimiter<JointLimiter<[Key], C, F>> {
    /// Decides a request with these values, in the order of the [fields](Self::fields), for one permit.
    /// An admitted request is in flight until the guard is dropped: see
    /// [`Quota::concurrent`](tollgate::Quota::concurrent). There is no guard where a rule admits it, or
    /// no limit is for it.
    ///
    /// The guard can go to another thread or task: it holds an `Arc` of the limiter.
    ///
    /// ```
    /// use tollgate::DenialReason;
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [[dimension]]
    ///     name = "streams"
    ///     key = ["user"]
    ///     quota = [{ algorithm = "concurrency", limit = 1 }]
    ///
    ///     [[dimension]]
    ///     name = "rate"
    ///     key = ["user"]
    ///     quota = [{ limit = 100, per = "1m" }]
    /// "#)?;
    /// let limiter = policy.request_limiter()?;
    /// let enter = || limiter.try_enter(vec![Some("alice".into())]);
    /// {
    ///     let _stream = enter()?;
    ///     let denial = enter().unwrap_err().denial().expect("a denial");
    ///     assert_eq!(denial.reason(), DenialReason::InFlight);
    /// }
    /// assert!(enter().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EnterError`] when the request is denied, or lacks a field.
    pub fn try_enter(&self, values: Vec<Option<Value<'_>>>) -> Result<Option<Guard<C, F>>, EnterError> {
        match self.ask(values) {
            Asked::Denied { rule } => Err(EnterError::Rule { rule }),
            Asked::Lacks { field } => Err(EnterError::Lacks { field }),
            Asked::Limits(keys) if keys.iter().any(Option::is_some) => {
                self.limiter().try_enter_owned(&keys[..]).map(Some).map_err(EnterError::Limits)
            }
            Asked::Admitted { .. } | Asked::Limits(_) => Ok(None),
        }
    }
}
