//! [`PolicyLimiter`]: the limiter of a policy, in process or on a store.

use core::fmt;
use std::sync::Arc;

use tollgate::{Algorithm, Dimensions, JointLimiter, Keys, MonotonicClock, Quota};
use tollgate_policy::Policy;

use crate::acquire_error::AcquireError;
use crate::error::BuildError;
use crate::joint::RedisJointLimiter;
use crate::store_key::StoreKeys;

/// The limiter of a policy file: in process, or on the Redis or Valkey server of its
/// [`[store]`](tollgate_policy#a-store). The file alone says which. (Feature `policy`.)
///
/// On a store, a request waits for the answer. While the store is away, requests are decided as
/// `on_failure` says: refused with an error, admitted without a charge, or by a share of the limit.
///
/// `D` names the types of the keys, as for a [`JointLimiter`]. Each is a
/// [`StoreKey`](crate::StoreKey), which all nodes write alike.
///
/// It does not follow a changed file: start again, or take a limiter of
/// [`Policy::builder`](tollgate_policy::Policy::builder), which a
/// [`Reloader`](tollgate_policy::Reloader) changes.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_policy::Policy;
/// use tollgate_redis::PolicyLimiter;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 1, per = \"1m\" }]";
/// let limiter = PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(text)?)?;
/// assert!(limiter.in_process().is_some() && limiter.on_store().is_none());
/// let address: IpAddr = "192.0.2.7".parse()?;
/// assert!(limiter.try_acquire((address,)).await.is_ok());
/// let denied = limiter.try_acquire((address,)).await.unwrap_err();
/// assert_eq!(denied.retry_after_secs(), Some(60));
/// # Ok(())
/// # }
/// ```
pub struct PolicyLimiter<D: ?Sized, C = MonotonicClock> {
    place: Place<D, C>,
}

enum Place<D: ?Sized, C> {
    InProcess(Arc<JointLimiter<D, C>>),
    OnStore(Arc<RedisJointLimiter>),
}

impl<D: Dimensions + ?Sized> PolicyLimiter<D> {
    /// The limiter of this policy. Nothing is sent to a store before the first request.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if `D` names another number of dimensions than the policy has, a value of the
    /// store is not where the policy says, or the policy has what no store keeps. A leaky queue on a
    /// store is an error, too: its requests would have to wait.
    pub fn new(policy: &Policy) -> Result<Self, BuildError> {
        // In any case, for the number of dimensions.
        let limiter = policy.without_store().builder()?.build()?;
        if policy.store().is_none() {
            return Ok(limiter.into());
        }
        let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyQueue;
        let queue = policy.dimensions().iter().find(|dimension| dimension.all_quotas().any(is_queue));
        if let Some(dimension) = queue {
            return Err(BuildError::QueueOnStore { dimension: dimension.name().to_owned() });
        }
        Ok(RedisJointLimiter::from_policy(policy)?.build()?.into())
    }

    /// Decides a request of one permit in each dimension, all or nothing.
    ///
    /// It gives no receipt. [`in_process`](Self::in_process) and [`on_store`](Self::on_store) do, and
    /// tell the numbers of each quota.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the request is denied, can never be admitted, or the store did not decide.
    pub async fn try_acquire(&self, keys: impl Keys<D> + StoreKeys) -> Result<(), AcquireError> {
        self.try_acquire_n(keys, 1).await
    }

    /// Decides a request of `cost` permits in each dimension. A cost of zero is admitted without a
    /// charge.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_n(&self, keys: impl Keys<D> + StoreKeys, cost: u32) -> Result<(), AcquireError> {
        match &self.place {
            Place::InProcess(limiter) => {
                limiter.try_acquire_n(keys, cost)?.into_result()?;
            }
            // It takes no round trip.
            Place::OnStore(_) if cost == 0 => {}
            Place::OnStore(limiter) => {
                let bytes = keys.bytes();
                let tiers: Vec<Option<usize>> = (0..bytes.len()).map(|at| StoreKeys::tier(&keys, at)).collect();
                let bytes: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
                limiter.try_acquire_in(&bytes, &tiers, cost).await?.into_result()?;
            }
        }
        Ok(())
    }
}

impl<D: ?Sized, C> PolicyLimiter<D, C> {
    /// The limiter in process, if there is no store.
    #[must_use]
    pub fn in_process(&self) -> Option<&Arc<JointLimiter<D, C>>> {
        match &self.place {
            Place::InProcess(limiter) => Some(limiter),
            Place::OnStore(_) => None,
        }
    }

    /// The limiter on the store, if there is one: for its [counts](RedisJointLimiter::counts).
    #[must_use]
    pub fn on_store(&self) -> Option<&Arc<RedisJointLimiter>> {
        match &self.place {
            Place::InProcess(_) => None,
            Place::OnStore(limiter) => Some(limiter),
        }
    }
}

/// A limiter with settings of its own, such as another clock.
impl<D: ?Sized, C> From<JointLimiter<D, C>> for PolicyLimiter<D, C> {
    fn from(limiter: JointLimiter<D, C>) -> Self {
        Self { place: Place::InProcess(Arc::new(limiter)) }
    }
}

/// A limiter on a store of its own. With a [`RequestLimiter`](tollgate_policy::RequestLimiter), it heeds
/// the rules, matches and tiers of its policy:
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::{Asked, Key, Policy, RequestLimiter};
/// use tollgate_redis::{AcquireError, PolicyLimiter, RedisJointLimiter};
///
/// fn on_store(policy: &Policy) -> Result<RequestLimiter<PolicyLimiter<[Key]>>, tollgate_redis::BuildError> {
///     let limiter = RedisJointLimiter::from_policy(policy)?.build()?;
///     Ok(RequestLimiter::new(policy, Arc::new(limiter.into()), |_, _| None))
/// }
///
/// async fn admits(limiter: &RequestLimiter<PolicyLimiter<[Key]>>, user: &str) -> Result<bool, AcquireError> {
///     match limiter.ask(vec![Some(user.to_owned().into())]) {
///         Asked::Admitted { .. } => Ok(true),
///         Asked::Limits(keys) => limiter.limiter().try_acquire(&keys[..]).await.map(|()| true),
///         _ => Ok(false),
///     }
/// }
/// ```
impl<D: ?Sized, C> From<RedisJointLimiter> for PolicyLimiter<D, C> {
    fn from(limiter: RedisJointLimiter) -> Self {
        Self { place: Place::OnStore(Arc::new(limiter)) }
    }
}

impl<D: ?Sized, C: fmt::Debug> fmt::Debug for PolicyLimiter<D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::InProcess(limiter) => limiter.fmt(f),
            Place::OnStore(limiter) => limiter.fmt(f),
        }
    }
}
