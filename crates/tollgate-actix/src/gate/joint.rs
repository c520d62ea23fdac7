//! A joint limiter as the middleware asks it.

use tollgate::{
    Algorithm, Clock, Decision, Denial, Dimensions, Fingerprinter, JointLimiter, Keys, Quota, Receipt, ReserveError,
    Status,
};
use tollgate_http::{DenialKind, Usage};

use super::single::none_left;
use super::{Granted, Refusal, Request, Verdict, Violated, sealed};
use crate::key::{Head, JointKeys, KeyError, Missing};

impl<C, F, X> sealed::Ask<X> for JointLimiter<X::Key, C, F>
where
    C: Clock,
    F: Fingerprinter,
    X: JointKeys<Key: Dimensions>,
{
    type Keys = X::Found;

    fn keys_needed(&self) -> Option<usize> {
        Some(self.dimensions().len())
    }

    fn keys_given() -> Option<usize> {
        Some(X::COUNT)
    }

    fn find(&self, extractor: &X, missing: &Missing<X::Key>, head: &Head<'_>) -> Result<Option<X::Found>, KeyError> {
        extractor.find(missing, head)
    }

    fn decide(&self, keys: &X::Found, request: Request) -> Verdict {
        if request.refundable || queues(self).next().is_some() {
            return reserve(self, X::refs(keys), request.cost);
        }
        match self.try_acquire_n(X::refs(keys), request.cost) {
            Ok(Decision::Admitted(admission)) if admission.is_counted() => {
                Verdict::Admitted(Granted { status: None, receipt: None })
            }
            Ok(Decision::Admitted(_)) => Verdict::Uncounted,
            Ok(Decision::Denied(denial)) => refused(self, &denial),
            Err(_) => Verdict::Refused(Refusal::cost()),
        }
    }

    /// A joint limiter does not tell what is left.
    fn status(&self, _: &X::Found) -> Option<Status> {
        None
    }

    fn each_quotas(&self, _: &X::Found, each: &mut dyn FnMut(Option<&str>, &[Quota])) {
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
            // The middleware does not wait.
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
