//! A joint limiter as middleware asks it.

use core::hash::Hash;

use tollgate::{
    Algorithm, Clock, Decision, Denial, Dimensions, Fingerprinter, JointLimiter, Keys, Quota, Receipt, ReserveError,
};

use super::single::none_left;
use super::{Granted, Left, Refusal, Request, Verdict, Violated, sealed};
use crate::limit::Usage;
use crate::problem::DenialKind;

/// The keys of a request for the dimensions of a [`JointLimiter`]: a tuple of one to eight `Option`s.
///
/// This trait is implemented for such tuples; it is not meant to be implemented elsewhere.
pub trait JointKey: tuples::Sealed {
    /// The dimensions: the types of the keys.
    #[doc(hidden)]
    type Dimensions: Dimensions;

    /// The keys by reference.
    #[doc(hidden)]
    type Refs<'a>: Keys<Self::Dimensions>
    where
        Self: 'a;

    #[doc(hidden)]
    fn refs(&self) -> Self::Refs<'_>;
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
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, D 2);
tuples!(A 0, B 1, D 2, E 3);
tuples!(A 0, B 1, D 2, E 3, G 4);
tuples!(A 0, B 1, D 2, E 3, G 4, H 5);
tuples!(A 0, B 1, D 2, E 3, G 4, H 5, I 6);
tuples!(A 0, B 1, D 2, E 3, G 4, H 5, I 6, J 7);

impl<C: Clock, F: Fingerprinter, K: JointKey> sealed::Ask<K> for JointLimiter<K::Dimensions, C, F> {
    fn decide(&self, keys: &K, request: Request) -> Verdict {
        if request.refundable || queues(self).next().is_some() {
            return reserve(self, keys.refs(), request.cost);
        }
        match self.try_acquire_n(keys.refs(), request.cost) {
            Ok(Decision::Admitted(admission)) if admission.is_counted() => {
                Verdict::Admitted(Granted { status: None, receipt: None })
            }
            Ok(Decision::Admitted(_)) => Verdict::Uncounted,
            Ok(Decision::Denied(denial)) => refused(self, &denial),
            Err(_) => Verdict::Refused(Refusal::cost()),
        }
    }

    /// A joint limiter does not tell what is left.
    fn left(&self, _: &K) -> Left {
        Left::Unknown
    }

    fn each_quotas(&self, _: &K, mut each: impl FnMut(Option<&str>, &[Quota])) {
        for (name, quotas) in self.dimensions() {
            each(Some(name), quotas);
        }
    }

    fn give_back(&self, receipt: Receipt) {
        // It is this limiter's.
        let _ = self.refund(receipt);
    }
}

fn reserve<D: Dimensions, C: Clock, F: Fingerprinter>(
    limiter: &JointLimiter<D, C, F>,
    keys: impl Keys<D>,
    cost: u32,
) -> Verdict {
    match limiter.reserve(keys, cost) {
        Ok(reservation) if !reservation.delay().is_zero() => {
            // Middleware does not wait.
            let wait = reservation.delay();
            reservation.cancel();
            let usage = Usage { remaining: 0, next_after: wait };
            let violated = queues(limiter).map(|dimension| Violated { dimension, quota: 0, usage }).collect();
            Verdict::Refused(Refusal { kind: DenialKind::Quota, wait, violated })
        }
        Ok(reservation) => Verdict::Admitted(Granted { status: None, receipt: Some(reservation.commit()) }),
        Err(ReserveError::Denied(denial)) => refused(limiter, &denial),
        Err(_) => Verdict::Refused(Refusal::cost()),
    }
}

/// A denial. Of a dimension with several quotas, which of them is in the way is known where it
/// decides the wait.
fn refused<D: Dimensions, C: Clock, F: Fingerprinter>(limiter: &JointLimiter<D, C, F>, denial: &Denial) -> Verdict {
    let usage = none_left(denial);
    let violated = || {
        let quotas = limiter.dimensions().map(|(_, quotas)| quotas.len()).enumerate();
        let is_violated = |dimension| denial.violated().any(|violated| violated == dimension);
        let of_dimension = |(dimension, quotas)| {
            let quota = if dimension == denial.dimension() { Some(denial.quota()) } else { (quotas == 1).then_some(0) };
            quota.filter(|_| is_violated(dimension)).map(|quota| Violated { dimension, quota, usage })
        };
        quotas.filter_map(of_dimension).collect()
    };
    Verdict::Refused(Refusal::of(denial, violated))
}

/// The dimensions whose admissions may have a delay.
fn queues<D: Dimensions, C: Clock, F: Fingerprinter>(limiter: &JointLimiter<D, C, F>) -> impl Iterator<Item = usize> {
    let is_queue = |quotas: &[Quota]| quotas.iter().any(|quota| quota.algorithm() == Algorithm::LeakyQueue);
    limiter.dimensions().enumerate().filter(move |(_, (_, quotas))| is_queue(quotas)).map(|(dimension, _)| dimension)
}
