//! A limiter with one kind of key, or none, as middleware asks it.

use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::time::Duration;
use std::sync::Arc;

use tollgate::{
    Algorithm, AsKey, Clock, CostExceedsLimit, Decision, Denial, Fingerprinter, Key, Limiter, NoKey, Quota,
    ReserveError, Status, Unasked,
};

use super::{AnyReceipt, Granted, Hidden, Item, Items, Kind, Refusal, Request, Tell, Verdict, sealed};

impl<K, X, C, F> sealed::Ask<X> for Limiter<K, C, F>
where
    Self: Send + Sync + 'static,
    K: Key,
    C: Clock,
    F: Fingerprinter,
    Keys: Same<K, X>,
{
    fn decide(self: &Arc<Self>, key: &X, request: Request) -> Verdict {
        Single { limiter: &**self, key }.decide(self, request)
    }

    fn left(&self, key: &X, tell: Tell) -> Option<Items> {
        Single { limiter: self, key }.left(tell)
    }

    fn each_quotas<'a>(&'a self, key: &X, mut each: impl FnMut(Option<&'a str>, Arc<[Quota]>)) {
        each(None, self.quotas_by(Lent(key, PhantomData)));
    }

    fn look(&self, key: &X, cost: u32) -> Option<Decision> {
        self.peek_by(Lent(key, PhantomData), cost).ok().map(|status| status.decision())
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }

    fn settle(&self, receipt: AnyReceipt, actual: u32) {
        // The receipt is of this limiter.
        let _ = receipt.in_process().map(|receipt| Self::settle(self, receipt, actual));
    }

    fn unasked(&self, request: Unasked) {
        self.observe_unasked(request);
    }
}

/// That a request to a limiter with keys of type `K` is made with `X`, the key of an extractor: `()`
/// for [`NoKey`], and else `K`. As a bound of its own, it tells what to write where they differ.
/// Either is inferred from the other.
#[diagnostic::on_unimplemented(
    message = "the key of the limiter is `{K}`, and that of the extractor is `{X}`",
    label = "here the key has to be `{K}`",
    note = "write `.key(..)` with an extractor of `{K}`; without `.key(..)` the key is `()`"
)]
pub trait Same<K, X> {
    /// Feeds the hasher with the key.
    fn hash_key<H: Hasher>(key: &X, state: &mut H);
}

/// What implements [`Same`]: a type that the compiler knows before it knows the keys.
#[derive(Debug)]
pub struct Keys;

impl<K: Hash> Same<K, K> for Keys {
    fn hash_key<H: Hasher>(key: &K, state: &mut H) {
        key.hash(state);
    }
}

impl Same<NoKey, ()> for Keys {
    fn hash_key<H: Hasher>((): &(), _: &mut H) {}
}

/// A limiter, and the key of a request.
struct Single<'a, K, X, C, F> {
    limiter: &'a Limiter<K, C, F>,
    key: &'a X,
}

/// The key of a request as a limiter takes it.
struct Lent<'a, K, X>(&'a X, PhantomData<K>);

impl<K, X> AsKey<K> for Lent<'_, K, X>
where
    Keys: Same<K, X>,
{
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        Keys::hash_key(self.0, state);
    }
}

impl<K: Key, X, C: Clock, F: Fingerprinter> Single<'_, K, X, C, F>
where
    Keys: Same<K, X>,
{
    /// Decides. The guard of a request in flight holds `limiter`, which is the same.
    fn decide(&self, limiter: &Arc<Limiter<K, C, F>>, request: Request) -> Verdict
    where
        Limiter<K, C, F>: Send + Sync + 'static,
    {
        // The quotas that keys have of their own are of the same algorithm.
        let algorithm = self.limiter.quotas()[0].algorithm();
        if request.kind == Kind::More && algorithm == Algorithm::Concurrency {
            // There are no permits.
            return Verdict::Uncounted;
        }
        // Middleware does not wait for a queue: it reserves for now.
        if request.refundable || matches!(algorithm, Algorithm::LeakyQueue | Algorithm::Concurrency) {
            return self.reserve(limiter, request);
        }
        if request.tell == Tell::Nothing {
            return self.decide_only(request);
        }
        // By reference: a status is large.
        let Ok(status) = &self.limiter.acquire_status_by(self.key(), request.cost) else { return Refusal::cost() };
        Verdict::of(status, request.tell, Hidden::NONE)
    }

    /// Decides where no permits left are shown.
    fn decide_only(&self, request: Request) -> Verdict {
        match self.limiter.acquire_by(self.key(), request.cost) {
            Ok(Decision::Admitted(admission)) if admission.is_counted() => {
                Verdict::Admitted(Granted { left: None, receipt: None, in_flight: None, overruled: None })
            }
            Ok(Decision::Admitted(_)) => Verdict::Uncounted,
            Ok(Decision::Denied(denial)) => Refusal::of(&denial, || self.one_violated(&denial, request.cost)),
            Err(_) => Refusal::cost(),
        }
    }

    /// The violated quotas of a request of which only the denial is known.
    fn one_violated(&self, denial: &Denial, cost: u32) -> Items {
        match self.limit() {
            // No permit is left of the only quota, and the next one is what the request waits for.
            Some(limit) if cost == 1 => Items::One(Item::exhausted(limit, denial.retry_after())),
            _ => self.violated_now(denial, cost),
        }
    }

    fn violated_now(&self, denial: &Denial, cost: u32) -> Items {
        self.peek(cost).map_or(Items::NONE, |now| Items::violated(&now, denial, cost))
    }

    fn reserve(&self, limiter: &Arc<Limiter<K, C, F>>, request: Request) -> Verdict
    where
        Limiter<K, C, F>: Send + Sync + 'static,
    {
        match limiter.reserve_by(self.key(), request.cost, Duration::ZERO) {
            Ok(reservation) => Verdict::reserved(limiter, reservation, request, Hidden::NONE),
            Err(ReserveError::Denied(denial)) => Refusal::of(&denial, || self.violated_now(&denial, request.cost)),
            Err(_) => Refusal::cost(),
        }
    }

    /// The permits left now.
    fn left(&self, tell: Tell) -> Option<Items> {
        self.peek(1).ok().and_then(|status| Items::left(&status, tell, Hidden::NONE))
    }

    fn key(&self) -> Lent<'_, K, X> {
        Lent(self.key, PhantomData)
    }

    /// The answer to a reservation, without a charge.
    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.limiter.peek_reserve_by(self.key(), cost, Duration::ZERO)
    }

    /// The limit, if there is one quota.
    fn limit(&self) -> Option<u32> {
        if let [quota] = *self.limiter.quotas_by(self.key()) { Some(quota.limit()) } else { None }
    }
}
