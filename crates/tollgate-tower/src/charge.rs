//! The charge of an admitted request, until its response is there.

use std::sync::Arc;

use http::Request;
use http::response::Parts;
use tollgate_http::middleware::{self, Admitted};

use crate::answer::{self, Value};
use crate::gate::Gate;
use crate::key::KeyExtractor;
use crate::settings::OnAnswer;

/// The charge of an admitted request. If it is dropped before the response, it refunds the permits
/// if the options say so.
pub(crate) struct Charge<L: Gate<X>, X: KeyExtractor> {
    charge: middleware::Charge<L, L::Keys, Value>,
    on_answer: Option<Arc<OnAnswer>>,
}

impl<L: Gate<X>, X: KeyExtractor> Charge<L, X> {
    pub(crate) const fn new(charge: middleware::Charge<L, L::Keys, Value>, on_answer: Option<Arc<OnAnswer>>) -> Self {
        Self { charge, on_answer }
    }

    /// The decision, as handlers see it.
    pub(crate) fn admitted(&self) -> Option<Admitted> {
        self.charge.admitted()
    }

    /// Settles the charge when the inner service has answered.
    pub(crate) fn answered(mut self, answer: &mut Parts) {
        let on_answer = self.on_answer.as_deref();
        let refund_when = on_answer.and_then(|on_answer| on_answer.refund_when.as_ref());
        self.charge.settle(|| refund_when.is_some_and(|refund_when| refund_when(answer)));
        if let Some(cost_after) = on_answer.and_then(|on_answer| on_answer.cost_after.as_ref()) {
            self.charge.more(cost_after(answer));
        }
        if let Some(told) = self.charge.told() {
            answer::write_told(&mut answer.headers, told);
        }
    }
}

/// Tells the decision to handlers, if they want to know it.
pub(crate) fn tell<B, L: Gate<X>, X: KeyExtractor>(request: &mut Request<B>, charge: Option<&Charge<L, X>>) {
    if let Some(admitted) = charge.and_then(Charge::admitted) {
        request.extensions_mut().insert(admitted);
    }
}
