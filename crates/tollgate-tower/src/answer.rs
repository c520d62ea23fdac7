//! The layer's own answers.

use bytes::Bytes;
use http::header::Entry;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tollgate_http::middleware::{FieldValue, Notice, Told, bytes_of, digits_of};
use tollgate_http::{Headers, Problem};

use crate::key::Head;
use crate::rejection::Rejection;
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
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The answer to a request that is denied or has no key, with `RateLimit-Policy` if there is one.
pub(crate) fn to_rejected(
    problem: &Problem<'_>,
    policies: Option<&Value>,
    headers: Headers,
    settings: &Settings,
    head: &Head<'_>,
) -> Response<Bytes> {
    let rejection = Rejection::new(problem, head, !settings.without_grpc);
    let own = settings.on_denied.as_ref().and_then(|on_denied| on_denied(rejection));
    let response = own.unwrap_or_else(|| rejection.answer().map(Bytes::from));
    without_body_for_head(with_fields(response, problem, policies, headers), head)
}

/// The answer with the fields that tell about the limits.
pub(crate) fn with_fields(
    mut response: Response<Bytes>,
    problem: &Problem<'_>,
    policies: Option<&Value>,
    headers: Headers,
) -> Response<Bytes> {
    let fields = response.headers_mut();
    if fields.contains_key("grpc-status") {
        // Its fields are trailers, in which limits have no place.
        fields.entry(CACHE_CONTROL).or_insert(NO_STORE);
        return response;
    }
    if let Some(Value(policies)) = policies {
        fields.append(POLICIES, policies.clone());
    }
    problem.write_fields(headers, |name, value| match name {
        // This field describes the body.
        "content-type" => {}
        "cache-control" => {
            fields.entry(CACHE_CONTROL).or_insert(NO_STORE);
        }
        _ => write(fields, name, value),
    });
    response
}

/// Writes the header fields of the response to an admitted request.
pub(crate) fn write_told(fields: &mut HeaderMap, told: Told<Value>) {
    match told {
        Told::Draft11 { policies, limit } => {
            if let Some(Value(policies)) = policies {
                append_policies(fields, policies);
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

/// Appends to `RateLimit-Policy`. Notices a name that an inner limit has.
fn append_policies(fields: &mut HeaderMap, policies: HeaderValue) {
    match fields.entry(POLICIES) {
        Entry::Vacant(field) => {
            field.insert(policies);
        }
        Entry::Occupied(mut field) => {
            let inner = field.iter().find_map(|inner| Notice::of_names(policies.as_bytes(), inner.as_bytes()));
            if let Some(notice) = inner {
                log(&notice);
            }
            field.append(policies);
        }
    }
}

/// Logs a set-up that is seldom meant.
#[cfg(feature = "tracing")]
pub(crate) fn log(notice: &Notice) {
    tracing::warn!("{notice}");
}

#[cfg(not(feature = "tracing"))]
pub(crate) const fn log(_: &Notice) {}

/// Appends to `RateLimit`, which is a list, and sets any other field.
fn write(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    // All values are printable ASCII.
    let Ok(value) = HeaderValue::from_maybe_shared(bytes_of(value)) else { return };
    match name {
        "ratelimit" => {
            fields.append(LIMIT, value);
        }
        "retry-after" => {
            fields.insert(RETRY_AFTER, value);
        }
        name => {
            fields.insert(HeaderName::from_static(name), value);
        }
    }
}

/// The answer to HEAD tells the length of the body that GET would get.
fn without_body_for_head(mut response: Response<Bytes>, head: &Head<'_>) -> Response<Bytes> {
    if *head.method == Method::HEAD {
        let length = core::mem::take(response.body_mut()).len();
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
