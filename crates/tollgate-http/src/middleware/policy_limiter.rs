//! [`PolicyLimiter`]: the limiter of a policy, in process or on a store.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::{Clock as _, Decision, Dimensions, JointLimiter, Quota, Receipt};
use tollgate_policy::Policy;
use tollgate_redis::{BuildError, RedisJointLimiter, Status, StoreError};

use super::gate::{Granted, Item, Items, JointKey, Later, Refusal, Request, Tell, Verdict, sealed};
use super::store_key::StoreKeys;
use crate::limit::Usage;
use crate::problem::DenialKind;

/// The limiter of a policy file: in process, or on the Redis or Valkey server of its
/// [`[store]`](tollgate_policy#a-store). The file alone says which. (Feature `redis`.)
///
/// On a store, a layer waits for its answer. While the store is away, requests are answered as
/// `on_failure` says: with 503, admitted without a charge, or decided by a share of the limit.
///
/// `D` names the types of the keys, as for a [`JointLimiter`]. Each is a
/// [`StoreKey`](super::StoreKey), which all nodes write alike.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_policy::Policy;
/// use tollgate_http::middleware::PolicyLimiter;
///
/// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 100, per = \"1m\" }]";
/// let limiter = PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(text)?)?;
/// assert!(limiter.in_process().is_some() && limiter.on_store().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolicyLimiter<D: Dimensions> {
    place: Place<D>,
}

enum Place<D: Dimensions> {
    InProcess(Box<JointLimiter<D>>),
    OnStore(Arc<RedisJointLimiter>),
}

impl<D: Dimensions> PolicyLimiter<D> {
    /// The limiter of this policy. Nothing is sent to a store before the first request.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if `D` names another number of dimensions than the policy has, a value of the
    /// store is not where the policy says, or the policy has what no store keeps.
    pub fn new(policy: &Policy) -> Result<Self, BuildError> {
        // In any case, for the number of dimensions.
        let limiter = policy.without_store().builder()?.build()?;
        if policy.store().is_none() {
            return Ok(Self { place: Place::InProcess(Box::new(limiter)) });
        }
        let on_store = RedisJointLimiter::from_policy(policy)?.build()?;
        Ok(Self { place: Place::OnStore(Arc::new(on_store)) })
    }

    /// The limiter in process, if there is no store.
    #[must_use]
    pub fn in_process(&self) -> Option<&JointLimiter<D>> {
        match &self.place {
            Place::InProcess(limiter) => Some(limiter),
            Place::OnStore(_) => None,
        }
    }

    /// The limiter on the store, if there is one: for its [counts](RedisJointLimiter::counts).
    #[must_use]
    pub fn on_store(&self) -> Option<&RedisJointLimiter> {
        match &self.place {
            Place::InProcess(_) => None,
            Place::OnStore(limiter) => Some(limiter),
        }
    }
}

impl<K: JointKey + StoreKeys> sealed::Ask<K> for PolicyLimiter<K::Dimensions>
where
    K::Dimensions: Sized,
    JointLimiter<K::Dimensions>: sealed::Ask<K>,
{
    /// On a store only [`later`](sealed::Ask::later) decides.
    fn decide(&self, keys: &K, request: Request) -> Verdict {
        self.in_process().map_or_else(Refusal::undecided, |limiter| limiter.decide(keys, request))
    }

    fn later(&self, keys: &K, request: Request) -> Option<Later> {
        let Place::OnStore(limiter) = &self.place else { return None };
        let (limiter, keys) = (Arc::clone(limiter), keys.bytes());
        let decision = async move {
            let keys: Vec<Option<&[u8]>> = keys.iter().map(Option::as_deref).collect();
            match limiter.cached_denial(&keys, request.cost) {
                Some(denial) => denied(&denial, &limiter, &[], request.cost),
                None => verdict(limiter.try_acquire_status(&keys, request.cost).await, &limiter, request),
            }
        };
        Some(Box::pin(Alone(Mutex::new(Box::pin(decision)))))
    }

    fn left(&self, keys: &K, tell: Tell) -> Option<Items> {
        self.in_process()?.left(keys, tell)
    }

    fn each_quotas<'a>(&'a self, keys: &K, mut each: impl FnMut(Option<&'a str>, &'a [Quota])) {
        match &self.place {
            Place::InProcess(limiter) => limiter.each_quotas(keys, each),
            Place::OnStore(limiter) => {
                for (dimension, (name, quotas)) in limiter.dimensions().enumerate() {
                    each(Some(name), if keys.asks(dimension) { quotas } else { &[] });
                }
            }
        }
    }

    fn look(&self, keys: &K, cost: u32) -> Option<Decision> {
        self.in_process()?.look(keys, cost)
    }

    fn reading(&self) -> u64 {
        self.in_process().map_or(0, |limiter| limiter.clock().now())
    }

    fn give_back(&self, receipt: Receipt) {
        if let Some(limiter) = self.in_process() {
            sealed::Ask::<K>::give_back(limiter, receipt);
        }
    }
}

fn verdict(status: Result<Status, StoreError>, limiter: &RedisJointLimiter, request: Request) -> Verdict {
    let status = match status {
        Ok(status) => status,
        Err(StoreError::CostExceedsLimit { .. }) => return Refusal::cost(),
        Err(_) => return Refusal::undecided(),
    };
    let items: Vec<Item> = status.quotas().iter().map(Item::from).collect();
    match status.decision() {
        tollgate_redis::Decision::Admitted(admission) if admission.is_counted() => {
            let left = Items::told(request.tell, || Some((&status.tightest()).into()), || items.into_iter());
            Verdict::Admitted(Granted { left, receipt: None })
        }
        tollgate_redis::Decision::Admitted(_) => Verdict::Uncounted,
        tollgate_redis::Decision::Denied(denial) => denied(denial, limiter, &items, request.cost),
    }
}

/// A denial with the violated quotas. A cached one knows that which decides the wait alone.
fn denied(denial: &tollgate_redis::Denial, limiter: &RedisJointLimiter, items: &[Item], cost: u32) -> Verdict {
    let (wait, place) = (denial.retry_after(), (denial.dimension(), denial.quota()));
    let decides = |item: &Item| (item.dimension(), item.quota()) == place;
    let cached = || {
        let (_, quotas) = limiter.dimensions().nth(place.0)?;
        let usage = Usage { remaining: cost - 1, next_after: wait };
        Some(Item::of(place, quotas.get(place.1)?.limit(), usage))
    };
    let known = items.iter().copied().filter(|item| item.usage.remaining < cost || decides(item));
    let violated = if items.is_empty() { cached().into_iter().collect() } else { known.collect() };
    Verdict::Refused(Box::new(Refusal { kind: DenialKind::Quota, wait, violated }))
}

impl Refusal {
    /// The store did not decide.
    fn undecided() -> Verdict {
        Verdict::Refused(Box::new(Self { kind: DenialKind::Undecided, wait: Duration::MAX, violated: Items::NONE }))
    }
}

/// A future that threads may share, since nobody but its owner polls it.
struct Alone<T>(Mutex<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T> Future for Alone<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(context)
    }
}

impl<D: Dimensions> fmt::Debug for PolicyLimiter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyLimiter").field("is_on_store", &self.on_store().is_some()).finish_non_exhaustive()
    }
}
