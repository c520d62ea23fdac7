//! The layer's own answers.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::Entry;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, RETRY_AFTER};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tollgate_http::middleware::{FieldValue, Middleware, Notice, Told, bytes_of, digits_of};
use tollgate_http::{Headers, Problem};

use crate::key::{Head, Tower};
use crate::rejection::Rejection;

/// Logs by `tracing`, with that feature.
macro_rules! log {
    ($level:ident, $($text:tt)*) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!($($text)*);
        #[cfg(not(feature = "tracing"))]
        let _ = format_args!($($text)*);
    }};
}

/// The value of a header field.
#[derive(Debug, Clone)]
pub struct Value(pub(crate) HeaderValue);

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

/// The options that the answers of a layer have in tower alone.
#[derive(Clone, Default)]
#[expect(missing_debug_implementations, reason = "it is a part of a layer, which has a text")]
pub struct Answers {
    pub(crate) on_denied: Option<Arc<OnDenied>>,
    pub(crate) without_grpc: bool,
}

type OnDenied = dyn Fn(Rejection<'_>) -> Option<Response<Bytes>> + Send + Sync;

impl Middleware for Tower {
    type Field = Value;
    type AnswerHead<'a> = Parts;
    type Answer = Response<Bytes>;
    type Answers = Answers;

    const REMEDY: &'static str = "for the peer's address with axum, serve \
        `router.into_make_service_with_connect_info::<SocketAddr>()`";

    fn reject(
        answers: &Answers,
        problem: &Problem<'_>,
        policies: Option<&Value>,
        headers: Headers,
        head: &Head<'_>,
    ) -> Response<Bytes> {
        let rejection = Rejection::new(problem, head, !answers.without_grpc);
        let own = answers.on_denied.as_ref().and_then(|on_denied| on_denied(rejection));
        let response = own.unwrap_or_else(|| rejection.answer().map(Bytes::from));
        without_body_for_head(with_fields(response, problem, policies, headers), head)
    }

    fn warn(notice: &Notice) {
        log!(warn, "{notice}");
    }

    fn error(text: fmt::Arguments<'_>) {
        log!(error, "{text}");
    }
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
                Tower::warn(&notice);
            }
            field.append(policies);
        }
    }
}

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
