//! The charge of an admitted request, until its response is there.

use std::sync::Arc;

use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage as _, HttpResponse};
use tollgate_http::middleware::{self, Admitted};

use crate::answer::{self, Value};
use crate::answered;
use crate::failed::LimitedError;
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
    pub(crate) fn answered<B>(mut self, response: &mut ServiceResponse<B>) {
        match self.on_answer.take() {
            Some(on_answer) => self.settle(&on_answer, response.response()),
            None => self.charge.settle(|| false),
        }
        if let Some(told) = self.charge.told() {
            answer::write_told(response.headers_mut(), told);
        }
    }

    /// Settles the charge when the inner service has failed with an error, which becomes an answer
    /// later.
    pub(crate) fn failed(mut self, error: Error) -> Error {
        match self.on_answer.take() {
            Some(on_answer) => self.settle(&on_answer, &error.error_response()),
            None => self.charge.settle(|| false),
        }
        match self.charge.told() {
            Some(told) => LimitedError::new(error, told).into(),
            None => error,
        }
    }

    fn settle<B>(&mut self, on_answer: &OnAnswer, answer: &HttpResponse<B>) {
        let refund_when = on_answer.refund_when.as_ref();
        self.charge.settle(|| refund_when.is_some_and(|refund_when| answered::look(answer, |head| refund_when(head))));
        if let Some(cost_after) = &on_answer.cost_after {
            self.charge.more(answered::look(answer, |head| cost_after(head)));
        }
    }
}

/// Tells the decision to handlers, if they want to know it.
pub(crate) fn tell<L: Gate<X>, X: KeyExtractor>(request: &ServiceRequest, charge: Option<&Charge<L, X>>) {
    if let Some(admitted) = charge.and_then(Charge::admitted) {
        request.extensions_mut().insert(admitted);
    }
}
