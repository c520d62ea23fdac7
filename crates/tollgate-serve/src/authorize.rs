//! `/auth_request` for nginx, and `/authz` for Envoy: the values of the fields in header fields.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tollgate_http::Problem;
use tollgate_http::middleware::KeyError;

use crate::answer::{Answer, Text};
use crate::fields::{Field, Fields, Value, Values, apart};
use crate::guard::Guard;
use crate::verdict::Ask;

/// The status that the client is to get.
const STATUS: HeaderName = HeaderName::from_static("tollgate-status");
/// The problem details that the client is to get.
const PROBLEM: HeaderName = HeaderName::from_static("tollgate-problem");

/// The values of the fields in these header fields.
///
/// # Errors
///
/// A value is not of its type, or a field comes twice.
pub(crate) fn values(fields: &Fields, headers: &HeaderMap) -> Result<Values<'static>, KeyError> {
    let values: Result<Values<'_>, KeyError> = fields.list().iter().map(|field| of_header(field, headers)).collect();
    values.map(apart)
}

/// Decides a request whose fields have these values.
pub(crate) async fn decide_by(guard: &Guard, values: Result<Values<'_>, KeyError>) -> Answer {
    let error = match values {
        Ok(values) if guard.fields.missing(&values).is_none() => {
            return Answer::of(guard, &guard.decide(&values, Ask::default()).await);
        }
        Ok(_) => KeyError::not_sent(),
        Err(error) => error,
    };
    if error.is_missing() {
        guard.counts.missing_key();
    } else {
        guard.counts.malformed();
    }
    Answer::of_problem(&Problem::from(error))
}

/// The value of a field, if its header field is there and not empty.
fn of_header<'a>(field: &Field, headers: &'a HeaderMap) -> Result<Option<Value<'a>>, KeyError> {
    let Some(name) = &field.header else { return Ok(None) };
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) if !line.is_empty() => {
            let text = core::str::from_utf8(line.as_bytes()).map_err(|_| KeyError::malformed())?;
            field.value(text).map(Some).map_err(|_| KeyError::malformed())
        }
        (_, None) => Ok(None),
        (_, Some(_)) => Err(KeyError::malformed()),
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
