//! The middleware's own answers.

use core::fmt;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use tollgate_http::middleware::{FieldValue, Middleware, Notice, Told, bytes_of, digits_of};
use tollgate_http::{Headers, Problem};

use crate::answered::AnswerHead;
use crate::key::{Actix, Head};
use crate::rejection::{self, Rejection};

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

/// Problem details, with the fields that do not depend on the quotas.
pub(crate) fn problem(problem: &Problem<'_>, headers: Headers) -> HttpResponse {
    let mut response = rejection::problem_details(problem.status(), problem.to_json());
    problem.write_fields(headers, |name, value| write(response.headers_mut(), name, value));
    response
}

/// The answer of [`on_denied`](crate::RateLimit::on_denied).
type OnDenied = dyn Fn(Rejection<'_>) -> HttpResponse + Send + Sync;

impl Middleware for Actix {
    type Field = Value;
    type AnswerHead<'a> = AnswerHead<'a>;
    type Answer = HttpResponse;
    type Answers = Option<Arc<OnDenied>>;

    const REMEDY: &'static str = "for the address of a client behind a Unix socket, use \
        `ClientIp::behind(TrustedProxies::unix_sockets()).peer_from(|_| Some(Peer::UnixSocket))`";

    fn reject(
        on_denied: &Self::Answers,
        problem: &Problem<'_>,
        policies: Option<&Value>,
        headers: Headers,
        head: &Head<'_>,
    ) -> HttpResponse {
        let rejection = Rejection::new(problem, head);
        let own = on_denied.as_ref().map(|on_denied| on_denied(rejection));
        let mut response = own.unwrap_or_else(|| rejection.answer());
        write_rejected(response.headers_mut(), problem, policies, headers);
        response
    }

    fn warn(notice: &Notice) {
        log::warn!("{notice}");
    }

    fn error(text: fmt::Arguments<'_>) {
        log::error!("{text}");
    }
}

/// Writes the header fields of the answer to a denied request, except that of the body.
pub(crate) fn write_rejected(
    fields: &mut HeaderMap,
    problem: &Problem<'_>,
    policies: Option<&Value>,
    headers: Headers,
) {
    if let Some(Value(policies)) = policies {
        fields.append(POLICIES, policies.clone());
    }
    problem.write_fields(headers, |name, value| match name {
        // This field describes the body.
        "content-type" => {}
        "cache-control" if fields.contains_key(header::CACHE_CONTROL) => {}
        _ => write(fields, name, value),
    });
}

/// Writes the header fields of the response to an admitted request.
pub(crate) fn write_told(fields: &mut HeaderMap, told: Told<Value>) {
    match told {
        Told::Draft11 { policies, limit } => {
            if let Some(Value(policies)) = policies {
                let inner = |inner: &HeaderValue| Notice::of_names(policies.as_bytes(), inner.as_bytes());
                if let Some(notice) = fields.get_all(POLICIES).find_map(inner) {
                    Actix::warn(&notice);
                }
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
        fields.append(HeaderName::from_static(name), value);
    } else {
        fields.insert(HeaderName::from_static(name), value);
    }
}
