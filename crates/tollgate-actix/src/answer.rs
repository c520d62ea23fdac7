//! The middleware's own answers.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};
use tollgate_http::{Headers, Problem};

use crate::key::{Head, KeyError};
use crate::prepared::Prepared;
use crate::settings::Settings;

/// Problem details, with the fields that do not depend on the quotas.
pub(crate) fn problem(problem: &Problem<'_>, headers: Headers) -> HttpResponse {
    let mut response = with_body(problem.status(), problem.to_json());
    problem.write_fields(headers, |name, value| write(response.headers_mut(), name, value));
    response
}

/// The answer to a denied request.
pub(crate) fn denied(problem: &Problem<'_>, prepared: &Prepared, settings: &Settings, head: &Head<'_>) -> HttpResponse {
    let own = settings.on_denied.as_ref().and_then(|on_denied| on_denied(problem, head));
    let is_own = own.is_some();
    let mut response = own.unwrap_or_else(|| with_body(problem.status(), problem.to_json()));
    let fields = response.headers_mut();
    if let Some((name, value)) = prepared.policy_field(settings.headers) {
        fields.append(HeaderName::from_static(name), value.clone());
    }
    problem.write_fields(settings.headers, |name, value| match name {
        // It describes the body that is not ours.
        "content-type" if is_own => {}
        "cache-control" if is_own && fields.contains_key(header::CACHE_CONTROL) => {}
        _ => write(fields, name, value),
    });
    response
}

/// The answer to a request without a key. It says nothing about the set-up.
pub(crate) fn rejected(error: KeyError) -> HttpResponse {
    let status = error.status();
    let title = status.canonical_reason().unwrap_or_default();
    let body = format!(r#"{{"title":"{title}","status":{}}}"#, status.as_u16());
    let mut response = with_body(status.as_u16(), body);
    write(response.headers_mut(), "cache-control", b"no-store");
    write(response.headers_mut(), "content-type", b"application/problem+json");
    response
}

/// Writes what is left of an admitted request's limit.
pub(crate) fn write_limit(
    fields: &mut HeaderMap,
    prepared: &Prepared,
    limit: Option<tollgate_http::ServiceLimit<'_>>,
    headers: Headers,
) {
    if let Some((name, value)) = prepared.policy_field(headers) {
        fields.append(HeaderName::from_static(name), value.clone());
    }
    // These fields are not lists: of several limits, the tightest is shown.
    let told = fields.get("x-ratelimit-remaining").and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    if headers == Headers::XRateLimit && limit.is_some_and(|own| told.is_some_and(|told| told <= own.remaining())) {
        return;
    }
    headers.write(limit, |name, value| write(fields, name, value));
}

/// Appends to `RateLimit`, which is a list, and sets any other field.
fn write(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    // All values are printable ASCII.
    let Ok(value) = HeaderValue::from_bytes(value) else { return };
    if name == "ratelimit" {
        fields.append(HeaderName::from_static(name), value);
    } else {
        fields.insert(HeaderName::from_static(name), value);
    }
}

fn with_body(status: u16, body: String) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    HttpResponseBuilder::new(status).body(body)
}
