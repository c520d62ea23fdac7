//! The middleware's own answers.

use core::fmt;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use tollgate_http::middleware::{FieldValue, Middleware, Notice, write_denied};
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

/// Problem details, with the fields that do not depend on the quotas.
pub(crate) fn problem(problem: &Problem<'_>, headers: Headers) -> HttpResponse {
    let mut response = rejection::problem_details(problem.status(), problem.to_json());
    write_denied::<Actix>(response.headers_mut(), problem, None, headers);
    response
}

/// The answer of [`on_denied`](crate::RateLimit::on_denied).
type OnDenied = dyn Fn(Rejection<'_>) -> HttpResponse + Send + Sync;

impl Middleware for Actix {
    tollgate_http::fields_of_http!();

    type AnswerHead<'a> = AnswerHead<'a>;
    type Answer = HttpResponse;
    type Answers = Option<Arc<OnDenied>>;

    const REMEDY: &'static str = "for the address of a client behind a Unix socket, use \
        `ClientIp::behind(TrustedProxies::unix_sockets()).peer_from(|_| Some(Peer::UnixSocket))`";

    fn append(
        fields: &mut HeaderMap,
        name: HeaderName,
        Value(value): Value,
        mut look: impl FnMut(&HeaderValue, &HeaderValue),
    ) {
        fields.get_all(&name).for_each(|inner| look(&value, inner));
        fields.append(name, value);
    }

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
        write_denied::<Actix>(response.headers_mut(), problem, policies, headers);
        response
    }

    fn warn(notice: &Notice) {
        log::warn!("{notice}");
    }

    fn error(text: fmt::Arguments<'_>) {
        log::error!("{text}");
    }
}
