//! The layer's own answers.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, Entry};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tollgate_http::middleware::{FieldValue, Middleware, Notice, write_denied, write_no_store};
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

/// The options that the answers of a layer have in tower alone.
#[derive(Clone, Default)]
#[expect(missing_debug_implementations, reason = "it is a part of a layer, which has a text")]
pub struct Answers {
    pub(crate) on_denied: Option<Arc<OnDenied>>,
    pub(crate) without_grpc: bool,
}

type OnDenied = dyn Fn(Rejection<'_>) -> Option<Response<Bytes>> + Send + Sync;

impl Middleware for Tower {
    tollgate_http::fields_of_http!();

    type AnswerHead<'a> = Parts;
    type Answer = Response<Bytes>;
    type Answers = Answers;

    const REMEDY: &'static str = "for the peer's address with axum, serve \
        `router.into_make_service_with_connect_info::<SocketAddr>()`";

    fn append(
        fields: &mut HeaderMap,
        name: HeaderName,
        Value(value): Value,
        mut look: impl FnMut(&HeaderValue, &HeaderValue),
    ) {
        match fields.entry(name) {
            Entry::Vacant(field) => {
                field.insert(value);
            }
            Entry::Occupied(mut field) => {
                field.iter().for_each(|inner| look(&value, inner));
                field.append(value);
            }
        }
    }

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
        write_no_store::<Tower>(fields);
    } else {
        write_denied::<Tower>(fields, problem, policies, headers);
    }
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
