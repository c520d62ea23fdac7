//! [`Answer`]: what a client is told, before it becomes a response of HTTP or gRPC.

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tollgate_http::middleware::bytes_of;
use tollgate_http::{Headers, Problem};

use crate::ask::Decided;
use crate::trouble::Trouble;

/// The body of a response without frames of gRPC.
pub(crate) type Text = Bytes;

/// The answer to a request that was decided, or can't be.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Fields about limits and of the body, but not the content type.
    pub(crate) fields: Vec<(&'static str, Bytes)>,
    /// Problem details; `None` if the request is admitted.
    pub(crate) problem: Option<String>,
    /// Releases the request, if it is held in flight.
    pub(crate) token: Option<String>,
}

impl Answer {
    /// The answer to a request that was decided. If it has limits, it has their policies.
    pub(crate) fn of(decided: &Decided) -> Self {
        let mut told = decided.problem(Self::of_problem).unwrap_or_else(|| {
            let mut fields = Vec::with_capacity(2);
            let limit = decided.tightest(|_| true);
            Headers::Draft11.write(limit, |name, value| fields.push((name, bytes_of(value))));
            Self { status: 200, fields, problem: None, token: None }
        });
        if told.fields.iter().any(|(name, _)| *name == "ratelimit") {
            told.fields.extend(decided.policies().map(|policies| ("ratelimit-policy", policies.clone())));
        }
        told
    }

    /// The answer with a problem.
    pub(crate) fn of_problem(problem: &Problem<'_>) -> Self {
        let mut fields = Vec::with_capacity(4);
        problem.write_fields(Headers::Draft11, |name, value| {
            if name != CONTENT_TYPE.as_str() {
                fields.push((name, bytes_of(value)));
            }
        });
        Self { status: problem.status(), fields, problem: Some(problem.to_json()), token: None }
    }

    pub(crate) const fn is_admitted(&self) -> bool {
        self.problem.is_none()
    }

    /// The response of HTTP: a short object of JSON, or problem details.
    pub(crate) fn into_response(self) -> Response<Text> {
        let (kind, body) = match self.problem {
            Some(problem) => ("application/problem+json", problem.into()),
            None => ("application/json", admitted(self.token.as_deref())),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in self.fields {
            // Values are printable ASCII.
            if let Ok(value) = HeaderValue::from_maybe_shared(value) {
                fields.append(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

fn admitted(token: Option<&str>) -> Bytes {
    match token {
        Some(token) => format!("{{\"admitted\":true,\"token\":\"{token}\"}}\n").into(),
        None => Bytes::from_static(b"{\"admitted\":true}\n"),
    }
}

/// The response of HTTP to a request that can't be decided: problem details.
impl From<Trouble> for Response<Text> {
    fn from(trouble: Trouble) -> Self {
        let mut response = Self::new(trouble.to_json().into());
        *response.status_mut() = trouble.status();
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(allowed) = trouble.allowed() {
            fields.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        if trouble.ends_connection() {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
