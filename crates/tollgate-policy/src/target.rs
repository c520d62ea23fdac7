//! [`Target`]: what a policy is applied to.

use core::fmt;
use core::hash::Hash;
use std::sync::Arc;

use tollgate::{Clock, Dimensions, Fingerprinter, JointLimiter, Limiter};

use crate::apply_error::ApplyError;
use crate::model::Policy;
use crate::wanted::Wanted;

/// What a policy is [applied](Policy::apply) to: a [`JointLimiter`], a [`Limiter`] of one dimension
/// ([`OfDimension`]), a `Vec` of them, or something of the program.
///
/// All targets check a policy before the first takes it on. A program implements this for what
/// else follows the file:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tollgate_policy::{ApplyError, Policy, Target};
///
/// /// A pool that is as large as the users' limit.
/// struct Pool(AtomicU32);
///
/// impl Target for Pool {
///     fn takes(&self, dimension: &str) -> bool {
///         dimension == "user"
///     }
///
///     fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
///         let dimension = Some("user".to_owned());
///         match policy.dimension("user") {
///             Ok(user) if user.quotas()[0].limit() <= 100 => Ok(()),
///             _ => Err(ApplyError::Refused { dimension, reason: "give it at most 100".to_owned() }),
///         }
///     }
///
///     fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
///         if let Ok(user) = policy.dimension("user") {
///             self.0.store(user.quotas()[0].limit(), Ordering::Relaxed);
///         }
///         Ok(())
///     }
/// }
///
/// let policy = |limit: u32| {
///     let quota = format!("quota = [{{ limit = {limit}, per = \"1m\" }}]");
///     Policy::from_toml(&format!("[[dimension]]\nname = \"user\"\n{quota}"))
/// };
/// let limiter = Arc::new(policy(1)?.builder::<(String,)>()?.build()?);
/// let pool = Arc::new(Pool(AtomicU32::new(1)));
/// let both: Vec<Arc<dyn Target>> = vec![limiter.clone(), pool.clone()];
/// policy(50)?.apply(&both)?;
/// assert!(policy(500)?.apply(&both).is_err());
/// assert_eq!(pool.0.load(Ordering::Relaxed), 50);
/// assert_eq!(limiter.peek(("alice",))?.tightest().map(|it| it.limit()), Some(50));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Target: Send + Sync {
    /// Whether it takes this dimension of a policy. A dimension that no target takes is an error.
    fn takes(&self, dimension: &str) -> bool;

    /// Checks that this policy can be taken on. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`ApplyError`] with what is wrong and what to do.
    fn check(&self, policy: &Policy) -> Result<(), ApplyError>;

    /// Takes on a policy that was checked.
    ///
    /// # Errors
    ///
    /// [`ApplyError`] when it can't be done any more. Then other targets, and a part of this one,
    /// may have taken it on.
    fn set(&self, policy: &Policy) -> Result<(), ApplyError>;
}

impl<T: Target + ?Sized> Target for Arc<T> {
    fn takes(&self, dimension: &str) -> bool {
        (**self).takes(dimension)
    }

    fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
        (**self).check(policy)
    }

    fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
        (**self).set(policy)
    }
}

impl<T: Target> Target for Vec<T> {
    fn takes(&self, dimension: &str) -> bool {
        self.iter().any(|target| target.takes(dimension))
    }

    fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
        self.iter().try_for_each(|target| target.check(policy))
    }

    fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
        self.iter().try_for_each(|target| target.set(policy))
    }
}

/// All of its dimensions.
impl<D, C, F> Target for JointLimiter<D, C, F>
where
    D: Dimensions + ?Sized,
    C: Clock + Send + Sync,
    F: Fingerprinter + Send + Sync,
{
    fn takes(&self, dimension: &str) -> bool {
        self.dimensions().any(|(name, _)| name == dimension)
    }

    fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
        Wanted::of(policy, self.dimensions().map(|(name, _)| name))?.check(self.settings())
    }

    fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
        Wanted::of(policy, self.dimensions().map(|(name, _)| name))?.set(self.settings())
    }
}

/// A [`Limiter`] with one dimension of a policy, as [`Policy::builder_of`] makes it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::{OfDimension, Policy};
///
/// let policy = |limit: u32| {
///     let quota = format!("quota = [{{ limit = {limit}, per = \"1m\" }}]");
///     Policy::from_toml(&format!("[[dimension]]\nname = \"user\"\n{quota}"))
/// };
/// let limiter = Arc::new(policy(1)?.builder_of::<String>("user")?.build()?);
/// policy(2)?.apply(&OfDimension::new("user", Arc::clone(&limiter)))?;
/// assert_eq!(limiter.peek("alice").limit(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OfDimension<K: ?Sized, C, F> {
    dimension: Box<str>,
    limiter: Arc<Limiter<K, C, F>>,
}

impl<K: ?Sized, C, F> OfDimension<K, C, F> {
    /// The limiter, and the name of the dimension that it has.
    pub fn new(dimension: impl Into<Box<str>>, limiter: Arc<Limiter<K, C, F>>) -> Self {
        Self { dimension: dimension.into(), limiter }
    }
}

impl<K, C, F> Target for OfDimension<K, C, F>
where
    K: Hash + ?Sized,
    C: Clock + Send + Sync,
    F: Fingerprinter + Send + Sync,
{
    fn takes(&self, dimension: &str) -> bool {
        *self.dimension == *dimension
    }

    fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
        Wanted::of(policy, [&*self.dimension])?.check(self.limiter.settings())
    }

    fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
        Wanted::of(policy, [&*self.dimension])?.set(self.limiter.settings())
    }
}

impl<K: ?Sized, C, F> fmt::Debug for OfDimension<K, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfDimension").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}
