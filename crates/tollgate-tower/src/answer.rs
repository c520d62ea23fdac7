//! The layer's own answers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tollgate_http::{Headers, Problem, grpc_content_type, write_grpc_message};

use crate::key::{Head, KeyError};
use crate::prepared::Prepared;
use crate::settings::Settings;

/// The answer to a denied request.
pub(crate) fn denied(
    problem: &Problem<'_>,
    prepared: &Prepared,
    settings: &Settings,
    head: &Head<'_>,
) -> Response<Bytes> {
    if let Some(content_type) = grpc(head) {
        let mut response = grpc_response(content_type);
        problem.write_grpc(|name, value| set(response.headers_mut(), name, value));
        return response;
    }
    let own = settings.on_denied.as_ref().and_then(|on_denied| on_denied(problem, head));
    let is_own = own.is_some();
    let mut response = own.unwrap_or_else(|| {
        let mut response = Response::new(problem.to_json().into());
        *response.status_mut() = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        response
    });
    let fields = response.headers_mut();
    if let Some((name, value)) = prepared.policy_field(settings.headers) {
        fields.append(HeaderName::from_static(name), value.clone());
    }
    problem.write_fields(settings.headers, |name, value| match name {
        // It describes the body that is not ours.
        "content-type" if is_own => {}
        "cache-control" if is_own && fields.contains_key(header::CACHE_CONTROL) => {}
        "ratelimit" => add(fields, name, value),
        _ => set(fields, name, value),
    });
    without_body_for_head(response, head)
}

/// The answer to a request without a key. It says nothing about the set-up.
pub(crate) fn rejected(error: KeyError, head: &Head<'_>) -> Response<Bytes> {
    let status = error.status();
    let title = status.canonical_reason().unwrap_or_default();
    if let Some(content_type) = grpc(head) {
        let mut response = grpc_response(content_type);
        let mut message = String::new();
        // A `String` takes everything.
        let _ = write_grpc_message(title, &mut message);
        // `INTERNAL` or `INVALID_ARGUMENT`.
        let code: &[u8] = if status.is_server_error() { b"13" } else { b"3" };
        set(response.headers_mut(), "grpc-status", code);
        set(response.headers_mut(), "grpc-message", message.as_bytes());
        return response;
    }
    let body = format!(r#"{{"title":"{title}","status":{}}}"#, status.as_u16());
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    set(response.headers_mut(), "cache-control", b"no-store");
    set(response.headers_mut(), "content-type", b"application/problem+json");
    without_body_for_head(response, head)
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
    // These fields are not lists: of several layers, the tightest limit is shown.
    let told = fields.get("x-ratelimit-remaining").and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    if headers == Headers::XRateLimit && limit.is_some_and(|own| told.is_some_and(|told| told <= own.remaining())) {
        return;
    }
    headers.write(limit, |name, value| match name {
        "ratelimit" => add(fields, name, value),
        _ => set(fields, name, value),
    });
}

fn add(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    // All values are printable ASCII.
    if let Ok(value) = HeaderValue::from_bytes(value) {
        fields.append(HeaderName::from_static(name), value);
    }
}

fn set(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        fields.insert(HeaderName::from_static(name), value);
    }
}

/// The content type of the answer if the request is a gRPC call.
fn grpc(head: &Head<'_>) -> Option<&'static str> {
    grpc_content_type(head.headers.get(header::CONTENT_TYPE)?.as_bytes())
}

/// A response of header fields only.
fn grpc_response(content_type: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The answer to HEAD tells the length of the body that GET would get.
fn without_body_for_head(mut response: Response<Bytes>, head: &Head<'_>) -> Response<Bytes> {
    if *head.method == Method::HEAD {
        let length = core::mem::take(response.body_mut()).len();
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
