//! What becomes of the charge of an admitted request when the inner service has answered.

use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage as _, HttpResponse};
use tollgate_http::middleware::{Gate, RequestCharge, Told, write_told};

use crate::answer::Value;
use crate::answered;
use crate::failed::LimitedError;
use crate::key::{Actix, KeyExtractor};

/// Settles the charge when the inner service has answered.
pub(crate) fn answered<B, L: Gate<Actix, X>, X: KeyExtractor>(
    charge: RequestCharge<Actix, L, X>,
    response: &mut ServiceResponse<B>,
) {
    if let Some(told) = settle(charge, response.response()) {
        write_told::<Actix>(response.headers_mut(), told);
    }
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
    if let Some(admitted) = charge.and_then(RequestCharge::admitted) {
        request.extensions_mut().insert(admitted);
    }
}
