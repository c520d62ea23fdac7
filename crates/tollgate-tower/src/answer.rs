//! The layer's own answers.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use tollgate_http::middleware::{FieldValue, Options, Told, bytes_of, digits_of};
use tollgate_http::{Problem, grpc_content_type, write_grpc_message};

use crate::key::{Head, KeyError};
use crate::settings::Settings;

/// The value of a header field.
#[derive(Debug, Clone)]
pub(crate) struct Value(pub(crate) HeaderValue);

impl FieldValue for Value {
    fn of(text: Bytes) -> Option<Self> {
        HeaderValue::from_maybe_shared(text).ok().map(Self)
    }
}

// The names are checked at compile time.
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICIES: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The answer to a denied request.
pub(crate) fn denied(
    problem: &Problem<'_>,
    policies: Option<&Value>,
    options: &Options,
    settings: &Settings,
    head: &Head<'_>,
) -> Response<Bytes> {
    let own = settings.on_denied.as_ref().and_then(|on_denied| on_denied(problem, head));
    let is_own = own.is_some();
    if let (Some(content_type), false) = (grpc(settings, head), is_own) {
        let mut response = grpc_response(content_type);
        problem.write_grpc(|name, value| write(response.headers_mut(), name, value));
        return response;
    }
    let mut response = own.unwrap_or_else(|| {
        let mut response = Response::new(problem.to_json().into());
        *response.status_mut() = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        response
    });
    let fields = response.headers_mut();
    if let Some(Value(policies)) = policies {
        fields.append(POLICIES, policies.clone());
    }
    problem.write_fields(options.headers, |name, value| match name {
        // This field describes the body that the layer replaces.
        "content-type" if is_own => {}
        "cache-control" if is_own && fields.contains_key(CACHE_CONTROL) => {}
        _ => write(fields, name, value),
    });
    without_body_for_head(response, head)
}

/// The answer to a request without a key. It tells nothing about the set-up.
pub(crate) fn rejected(error: KeyError, settings: &Settings, head: &Head<'_>) -> Response<Bytes> {
    if let Some(content_type) = grpc(settings, head) {
        let mut response = grpc_response(content_type);
        let mut message = String::new();
        // Writing to a `String` never fails.
        let _ = write_grpc_message(error.title(), &mut message);
        // `INTERNAL` or `INVALID_ARGUMENT`.
        let code: &[u8] = if error.status() == 500 { b"13" } else { b"3" };
        write(response.headers_mut(), "grpc-status", code);
        write(response.headers_mut(), "grpc-message", message.as_bytes());
        return response;
    }
    let mut response = Response::new(error.to_json().into());
    *response.status_mut() = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    write(response.headers_mut(), "cache-control", b"no-store");
    write(response.headers_mut(), "content-type", b"application/problem+json");
    without_body_for_head(response, head)
}

/// Writes the header fields of the response to an admitted request.
pub(crate) fn write_told(fields: &mut HeaderMap, told: Told<Value>) {
    match told {
        Told::Draft11 { policies, limit } => {
            if let Some(Value(policies)) = policies {
                fields.append(POLICIES, policies);
            }
            if let Some(Value(limit)) = limit {
                fields.append(LIMIT, limit);
            }
        }
        Told::XRateLimit { limit, remaining, reset } => {
            // These fields are not lists: of several limits, the tightest is shown.
            let told = fields.get(X_REMAINING).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
            if told.is_none_or(|told| remaining < told) {
                let numbers = [(X_LIMIT, limit.into()), (X_REMAINING, remaining.into()), (X_RESET, reset)];
                for (name, number) in numbers {
                    if let Some(Value(value)) = Value::of(digits_of(number)) {
                        fields.insert(name, value);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Appends to `RateLimit`, which is a list, and sets any other field.
fn write(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    let value = match value {
        // The usual value, which needs no check.
        b"no-store" => HeaderValue::from_static("no-store"),
        b"application/problem+json" => HeaderValue::from_static("application/problem+json"),
        value => match HeaderValue::from_maybe_shared(bytes_of(value)) {
            Ok(value) => value,
            // All values are printable ASCII.
            Err(_) => return,
        },
    };
    if name == "ratelimit" {
        fields.append(LIMIT, value);
    } else {
        fields.insert(field(name), value);
    }
}

/// The name of a field.
fn field(name: &'static str) -> HeaderName {
    match name {
        "retry-after" => RETRY_AFTER,
        "cache-control" => CACHE_CONTROL,
        "content-type" => CONTENT_TYPE,
        name => HeaderName::from_static(name),
    }
}

/// The content type of the answer if the request is a gRPC call: a POST with such a content type.
/// Caches store answers with status 200 to other methods.
fn grpc(settings: &Settings, head: &Head<'_>) -> Option<&'static str> {
    if settings.without_grpc || *head.method != Method::POST {
        return None;
    }
    grpc_content_type(head.headers.get(CONTENT_TYPE)?.as_bytes())
}

/// A response of header fields only.
fn grpc_response(content_type: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The answer to HEAD tells the length of the body that GET would get.
fn without_body_for_head(mut response: Response<Bytes>, head: &Head<'_>) -> Response<Bytes> {
    if *head.method == Method::HEAD {
        let length = core::mem::take(response.body_mut()).len();
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
