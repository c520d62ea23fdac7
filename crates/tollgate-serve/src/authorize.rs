//! `/auth_request` for nginx, and `/authz` for Envoy: the values of the fields in header fields.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tollgate_http::Problem;
use tollgate_http::middleware::KeyError;
use tollgate_policy::Value;

use crate::answer::{Answer, Text};
use crate::ask::Ask;
use crate::fields::{Field, Fields, Malformed, Values};
use crate::guard::Guard;

/// The status that the client is to get.
const STATUS: HeaderName = HeaderName::from_static("tollgate-status");
/// The problem details that the client is to get.
const PROBLEM: HeaderName = HeaderName::from_static("tollgate-problem");

/// The values of the fields in these header fields.
///
/// # Errors
///
/// A value is not of its type, or a field comes twice.
pub(crate) fn values(fields: &Fields, headers: &HeaderMap) -> Result<Values<'static>, Malformed> {
    fields.read(|field| of_header(field, headers))
}

/// Decides a request whose fields have these values.
pub(crate) async fn decide_by(guard: &Guard, values: Result<Values<'static>, Malformed>) -> Answer {
    let (error, field) = match values {
        Ok(values) => match guard.decide(values, Ask::default()).await {
            Ok(decided) => return Answer::of(&decided),
            Err(lacks) => (KeyError::not_sent(), Some(guard.lacked(lacks))),
        },
        Err(Malformed { field }) => (KeyError::malformed(), guard.fields.list().get(field)),
    };
    if error.is_missing() {
        guard.counts.missing_key();
    } else {
        guard.counts.malformed();
    }
    let wanted = field.and_then(Field::wanted);
    Answer::of_problem(&Problem::from(error).wanting(wanted.as_deref()))
}

/// The value of a field, if its header field is there and not empty.
fn of_header<'a>(field: &Field, headers: &'a HeaderMap) -> Result<Option<Value<'a>>, ()> {
    let Some(name) = &field.header else { return Ok(None) };
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) if !line.is_empty() => {
            let text = core::str::from_utf8(line.as_bytes()).map_err(drop)?;
            field.value(text).map(Some).map_err(drop)
        }
        (_, None) => Ok(None),
        (_, Some(_)) => Err(()),
    }
}

/// The response for nginx, which understands 2xx, 401 and 403 and takes any other status for an
/// error: 204 or 403. The status and the problem details for the client are in header fields.
pub(crate) fn for_nginx(answer: Answer) -> Response<Text> {
    let status = if answer.is_admitted() { StatusCode::NO_CONTENT } else { StatusCode::FORBIDDEN };
    let (told, problem) = (answer.status, answer.problem.clone());
    let mut response = answer.into_response();
    *response.status_mut() = status;
    *response.body_mut() = Text::default();
    let fields = response.headers_mut();
    fields.remove(http::header::CONTENT_TYPE);
    if let Some(problem) = problem {
        fields.insert(STATUS, HeaderValue::from(told));
        // Problem details are ASCII on one line.
        if let Ok(problem) = HeaderValue::from_maybe_shared(Bytes::from(problem)) {
            fields.insert(PROBLEM, problem);
        }
    }
    response
}
