//! A joint limiter as middleware asks it.

use core::hash::Hash;
use std::sync::Arc;

use tollgate::{
    Algorithm, AsKey, Clock, Decision, Dimensions, Fingerprinter, JointError, JointLimiter, Keys, Quota, ReserveError,
    Status, Unasked,
};

use super::super::each_tuple::each_tuple;
use super::{AnyReceipt, Hidden, Items, Kind, Refusal, Request, Tell, Verdict, sealed};
use crate::problem::DenialKind;

/// The keys of a request for the dimensions of a [`JointLimiter`]: a tuple of one to eight
/// `Option`s; or a `Vec` of `Option`s, if the number of dimensions is known only at run time.
///
/// This trait is sealed: only these implement it.
pub trait JointKey: tuples::Sealed {
    /// The dimensions: the types of the keys.
    #[doc(hidden)]
    type Dimensions: Dimensions + ?Sized;

    /// The keys by reference.
    #[doc(hidden)]
    type Refs<'a>: Keys<Self::Dimensions>
    where
        Self: 'a;

    #[doc(hidden)]
    fn refs(&self) -> Self::Refs<'_>;

    /// Whether a dimension is asked.
    #[doc(hidden)]
    fn asks(&self, dimension: usize) -> bool;
}

mod tuples {
    pub trait Sealed {}
}

macro_rules! tuples {
    ($($K:ident $at:tt),*) => {
        impl<$($K),*> tuples::Sealed for ($(Option<$K>,)*) {}

        impl<$($K: Hash),*> JointKey for ($(Option<$K>,)*) {
            type Dimensions = ($($K,)*);
            type Refs<'a> = ($(Option<&'a $K>,)*) where Self: 'a;

            fn refs(&self) -> Self::Refs<'_> {
                ($(self.$at.as_ref(),)*)
            }

            fn asks(&self, dimension: usize) -> bool {
                [$(self.$at.is_some()),*].get(dimension).is_some_and(|asks| *asks)
            }
        }
    };
}

each_tuple!(tuples);

impl<K> tuples::Sealed for Vec<Option<K>> {}

impl<K: AsKey<K>> JointKey for Vec<Option<K>> {
    type Dimensions = [K];
    type Refs<'a>
        = &'a [Option<K>]
    where
        Self: 'a;

    fn refs(&self) -> &[Option<K>] {
        self
    }

    fn asks(&self, dimension: usize) -> bool {
        self.get(dimension).is_some_and(Option::is_some)
    }
}

impl<C, F, K> sealed::Ask<K> for JointLimiter<K::Dimensions, C, F>
where
    Self: Send + Sync + 'static,
    C: Clock,
    F: Fingerprinter,
    K: JointKey,
{
    const HAS_DIMENSIONS: bool = true;

    fn decide(self: &Arc<Self>, keys: &K, request: Request) -> Verdict {
        // Middleware does not wait for a queue: it reserves for now. The quotas that keys have of their
        // own are of the same algorithm as those of their dimension.
        let is_reserved = |quota: &Quota| match quota.algorithm() {
            Algorithm::LeakyQueue => true,
            Algorithm::Concurrency => request.kind == Kind::Enters,
            _ => false,
        };
        let status = match request.kind {
            Kind::Peek => self.peek_reserve(keys.refs(), request.cost),
            Kind::More => self.try_acquire_more(keys.refs(), request.cost),
            _ if request.refundable || self.settings().any_quota(is_reserved) => return reserve(self, keys, request),
            _ => self.try_acquire_n_status(keys.refs(), request.cost),
        };
        status.map_or_else(undecided, |status| Verdict::of(&status, request.tell, hidden(self)))
    }

    fn left(&self, keys: &K, tell: Tell) -> Option<Items> {
        self.peek_reserve(keys.refs(), 1).ok().and_then(|status| Items::left(&status, tell, hidden(self)))
    }

    fn each_quotas<'a>(&'a self, keys: &K, mut each: impl FnMut(Option<&'a str>, Arc<[Quota]>)) {
        // `quotas_of` allocates.
        let own = if self.keys_may_have_quotas() { self.quotas_of(keys.refs()).ok() } else { None };
        for (dimension, (name, of_all)) in self.dimensions().enumerate() {
            let own = own.as_ref().and_then(|own| own.get(dimension)?.clone());
            let is_shown = keys.asks(dimension) && !self.settings().is_shadow_dimension(dimension);
            each(Some(name), if is_shown { own.unwrap_or(of_all) } else { Arc::default() });
        }
    }

    fn look(&self, keys: &K, cost: u32) -> Option<Decision> {
        self.peek_n(keys.refs(), cost).ok().map(|status| status.decision())
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

fn reserve<K, C, F>(limiter: &Arc<JointLimiter<K::Dimensions, C, F>>, keys: &K, request: Request) -> Verdict
where
    JointLimiter<K::Dimensions, C, F>: Send + Sync + 'static,
    K: JointKey,
    C: Clock,
    F: Fingerprinter,
{
    match limiter.reserve(keys.refs(), request.cost) {
        Ok(reservation) => Verdict::reserved(limiter, reservation, request, hidden(limiter)),
        Err(ReserveError::Denied(denial)) => {
            let violated = |now: Status| Items::violated(&now, &denial, request.cost);
            let now = || limiter.peek_reserve(keys.refs(), request.cost);
            Refusal::of(&denial, || now().map_or(Items::NONE, violated).without(hidden(limiter)))
        }
        Err(ReserveError::Joint(error)) => undecided(error),
        Err(_) => Refusal::cost(),
    }
}

/// The dimensions in shadow mode.
fn hidden<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter>(limiter: &JointLimiter<D, C, F>) -> Hidden {
    let settings = limiter.settings();
    Hidden::of(limiter.dimensions().len(), |dimension| settings.is_shadow_dimension(dimension))
}

/// The limiter has an error.
fn undecided(error: JointError) -> Verdict {
    match error {
        JointError::Cost(_) => Refusal::cost(),
        // All keys may be missing, and none is there.
        _ => Refusal::without_wait(DenialKind::KeyNotSent),
    }
}
