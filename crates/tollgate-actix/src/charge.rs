//! What becomes of the charge of an admitted request when the inner service has answered.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage as _, HttpResponse};
use tollgate_http::middleware::{Gate, RequestCharge, Told, write_told};

use crate::answer::Value;
use crate::answered;
use crate::body;
use crate::failed::LimitedError;
use crate::key::{Actix, KeyExtractor};

/// The response to an admitted request. Settles the charge when the inner service has answered.
pub(crate) fn answered<B: MessageBody + 'static, L: Gate<Actix, X>, X: KeyExtractor>(
    charge: RequestCharge<Actix, L, X>,
    mut response: ServiceResponse<B>,
) -> ServiceResponse<EitherBody<B>> {
    let in_flight = charge.in_flight();
    if let Some(told) = settle(charge, response.response()) {
        write_told::<Actix>(response.headers_mut(), told);
    }
    response.map_body(|_, body| body::of_inner(body, in_flight))
}

/// Settles the charge when the inner service has failed with an error, which becomes an answer
/// later.
pub(crate) fn failed<L: Gate<Actix, X>, X: KeyExtractor>(charge: RequestCharge<Actix, L, X>, error: Error) -> Error {
    let told = if charge.looks_at_answers() { settle(charge, &error.error_response()) } else { charge.answered(None) };
    match told {
        Some(told) => LimitedError::new(error, told).into(),
        None => error,
    }
}

fn settle<B, L: Gate<Actix, X>, X: KeyExtractor>(
    charge: RequestCharge<Actix, L, X>,
    answer: &HttpResponse<B>,
) -> Option<Told<Value>> {
    answered::look(answer, |head| charge.answered(Some(head)))
}

/// Tells the decision to handlers, if they want to know it.
pub(crate) fn tell<L: Gate<Actix, X>, X: KeyExtractor>(
    request: &ServiceRequest,
    charge: Option<&RequestCharge<Actix, L, X>>,
) {
    let Some((charge, admitted)) = charge.and_then(|charge| Some((charge, charge.admitted()?))) else { return };
    request.extensions_mut().insert(admitted);
    if let Some(in_flight) = charge.in_flight() {
        request.extensions_mut().insert(in_flight);
    }
}
