//! A [`PolicyLimiter`] as middleware asks it: in process, or on a store.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::{Clock, Decision, JointError, JointLimiter, Quota, Unasked};
use tollgate_redis::{AcquireError, InFlight, PolicyLimiter, RedisJointLimiter, StoreError, StoreKeys};

use super::gate::joint::JointKey;
use super::gate::{AnyReceipt, Granted, Hidden, Items, Kind, Later, Refusal, Request, Tell, Verdict, sealed};
use super::in_flight::RequestInFlight;
use crate::problem::{DenialKind, Problem};

impl<K, C> sealed::Ask<K> for PolicyLimiter<K::Dimensions, C>
where
    JointLimiter<K::Dimensions, C>: Send + Sync + 'static,
    K: JointKey + StoreKeys,
    C: Clock,
{
    const HAS_DIMENSIONS: bool = true;

    /// On a store only [`later`](sealed::Ask::later) decides.
    fn decide(self: &Arc<Self>, keys: &K, request: Request) -> Verdict {
        self.in_process().map_or_else(undecided, |limiter| limiter.decide(keys, request))
    }

    fn later(&self, keys: &K, request: Request) -> Option<Later> {
        let limiter = Arc::clone(self.on_store()?);
        let (bytes, tiers) = bytes_and_tiers(keys);
        let decision = async move {
            let (verdict, in_flight) = ask(&limiter, &bytes, &tiers, request).await;
            match verdict {
                Verdict::Admitted(granted) => {
                    Verdict::Admitted(Granted { in_flight: in_flight.map(RequestInFlight::new), ..granted })
                }
                other => other,
            }
        };
        Some(Box::pin(Alone(Mutex::new(Box::pin(decision)))))
    }

    fn left(&self, keys: &K, tell: Tell) -> Option<Items> {
        self.in_process()?.left(keys, tell)
    }

    fn each_quotas<'a>(&'a self, keys: &K, mut each: impl FnMut(Option<&'a str>, Arc<[Quota]>)) {
        if let Some(limiter) = self.in_process() {
            return limiter.each_quotas(keys, each);
        }
        let Some(limiter) = self.on_store() else { return };
        for (dimension, (name, own)) in limiter.dimensions().enumerate() {
            let of_tier = || limiter.quotas_in(dimension, keys.tier(dimension)?);
            each(Some(name), if keys.asks(dimension) { of_tier().unwrap_or(own) } else { Arc::default() });
        }
    }

    fn look(&self, keys: &K, cost: u32) -> Option<Decision> {
        self.in_process()?.look(keys, cost)
    }

    fn reading(&self) -> u64 {
        self.in_process().map_or(0, |limiter| limiter.clock().now())
    }

    fn settle(&self, receipt: AnyReceipt, actual: u32) {
        match (receipt, self.on_store(), self.in_process()) {
            (AnyReceipt::OnStore(receipt), Some(limiter), _) => {
                // The receipt is of this limiter.
                let _ = limiter.spawn_settle(*receipt, actual);
            }
            (receipt, _, Some(limiter)) => sealed::Ask::<K>::settle(&**limiter, receipt, actual),
            // No other receipt is of this limiter.
            (AnyReceipt::InProcess(_), _, None) | (AnyReceipt::OnStore(_), None, None) => {}
        }
    }

    /// A limiter on a store has no observers.
    fn unasked(&self, request: Unasked) {
        if let Some(limiter) = self.in_process() {
            limiter.observe_unasked(request);
        }
    }
}

/// The keys as a store has them, with the tiers that they name.
pub(crate) fn bytes_and_tiers(keys: &impl StoreKeys) -> (Vec<Option<Vec<u8>>>, Vec<Option<usize>>) {
    let bytes = keys.bytes();
    let tiers = (0..bytes.len()).map(|dimension| keys.tier(dimension)).collect();
    (bytes, tiers)
}

/// Decides on a store. An admitted request that enters is in flight until the guard is dropped.
pub(crate) async fn ask(
    limiter: &RedisJointLimiter,
    bytes: &[Option<Vec<u8>>],
    tiers: &[Option<usize>],
    request: Request,
) -> (Verdict, Option<InFlight>) {
    let keys: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
    let decided = match request.kind {
        Kind::Enters => limiter.enter_in(&keys, tiers, request.cost).await,
        kind => limiter.decide_in(&keys, tiers, request.cost, kind == Kind::Peek).await,
    };
    let decided = match decided {
        Ok(decided) => decided,
        Err(error) => return (undecided_by(&error), None),
    };
    let verdict = Verdict::of(&decided, request.tell, Hidden::NONE);
    let (in_flight, receipt) = decided.enter();
    let in_flight = Some(in_flight).filter(InFlight::counts);
    let verdict = match verdict {
        Verdict::Admitted(granted) if request.refundable || in_flight.is_some() => {
            let receipt = AnyReceipt::OnStore(Box::new(receipt));
            Verdict::Admitted(Granted { receipt: Some(Box::new(receipt)), ..granted })
        }
        other => other,
    };
    (verdict, in_flight)
}

fn undecided_by(error: &StoreError) -> Verdict {
    match error {
        StoreError::CostExceedsLimit { .. } => Refusal::cost(),
        StoreError::WrongKeys { .. } => Refusal::without_wait(DenialKind::KeyNotSent),
        _ => undecided(),
    }
}

/// The store did not decide.
fn undecided() -> Verdict {
    Refusal::without_wait(DenialKind::Undecided)
}

/// A future that threads may share, since nobody but its owner polls it.
struct Alone<T>(Mutex<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T> Future for Alone<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(context)
    }
}

/// The answer to a call that an attribute did not let pass. (Feature `redis`.)
impl From<&AcquireError> for Problem<'static> {
    fn from(error: &AcquireError) -> Self {
        match error {
            AcquireError::Denied(denial) => Self::from(denial),
            AcquireError::InProcess(JointError::Cost(error)) => Self::from(*error),
            AcquireError::Store(StoreError::CostExceedsLimit { .. }) => {
                Self::new(DenialKind::CostExceedsLimit, Duration::MAX)
            }
            AcquireError::InProcess(_) | AcquireError::Store(StoreError::WrongKeys { .. }) => {
                Self::new(DenialKind::KeyNotProvided, Duration::MAX)
            }
            _ => Self::new(DenialKind::Undecided, Duration::MAX),
        }
    }
}

impl From<AcquireError> for Problem<'static> {
    fn from(error: AcquireError) -> Self {
        Self::from(&error)
    }
}
