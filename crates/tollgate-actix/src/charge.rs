//! The charge of an admitted request, until its response is there.

use std::sync::Arc;

use actix_web::Error;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use tollgate_http::middleware;

use crate::answer::{self, Value};
use crate::failed::LimitedError;
use crate::gate::Gate;
use crate::key::KeyExtractor;
use crate::settings::RefundWhen;

/// The charge of an admitted request. If it is dropped before the response, it refunds the permits
/// if the options say so.
pub(crate) struct Charge<L: Gate<X>, X: KeyExtractor> {
    charge: middleware::Charge<L, L::Keys, Value>,
    refund_when: Option<Arc<RefundWhen>>,
}

impl<L: Gate<X>, X: KeyExtractor> Charge<L, X> {
    pub(crate) const fn new(
        charge: middleware::Charge<L, L::Keys, Value>,
        refund_when: Option<Arc<RefundWhen>>,
    ) -> Self {
        Self { charge, refund_when }
    }

    /// Settles the charge when the inner service has answered.
    pub(crate) fn answered(mut self, status: StatusCode, fields: &mut HeaderMap) {
        self.settle(status);
        if let Some(told) = self.charge.told() {
            answer::write_told(fields, told);
        }
    }

    /// Settles the charge when the inner service has failed with an error, which becomes an answer
    /// later.
    pub(crate) fn failed(mut self, error: Error) -> Error {
        self.settle(error.as_response_error().status_code());
        match self.charge.told() {
            Some(told) => LimitedError::new(error, told).into(),
            None => error,
        }
    }

    fn settle(&mut self, status: StatusCode) {
        let refund_when = self.refund_when.as_ref();
        self.charge.settle(|| refund_when.is_some_and(|refund_when| refund_when(status)));
    }
}
