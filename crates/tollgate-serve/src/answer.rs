//! [`Answer`]: what a client is told, before it becomes a response of HTTP or gRPC.

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tollgate_http::middleware::bytes_of;
use tollgate_http::{Headers, Problem};

use crate::guard::Guard;
use crate::trouble::Trouble;
use crate::verdict::{Decided, Verdict};

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
}

impl Answer {
    /// The answer to a request that was decided.
    pub(crate) fn of(guard: &Guard, decided: &Decided) -> Self {
        let told = match &decided.verdict {
            Verdict::Admitted(status) => {
                let mut fields = Vec::with_capacity(2);
                let limit = guard.tightest(status, |_| true);
                Headers::Draft11.write(limit, |name, value| fields.push((name, bytes_of(value))));
                Self { status: 200, fields, problem: None }
            }
            Verdict::Uncounted | Verdict::Overruled(_) => Self { status: 200, fields: Vec::new(), problem: None },
            Verdict::Denied(refusal) => {
                let violated: Vec<_> = guard.violated(refusal, |_| true).collect();
                Self::of_problem(&Problem::new(refusal.kind, refusal.wait).violated(&violated))
            }
        };
        told.with_policies(guard, decided)
    }

    /// The same answer with the policies, if it has limits.
    fn with_policies(mut self, guard: &Guard, decided: &Decided) -> Self {
        if self.fields.iter().any(|(name, _)| *name == "ratelimit") {
            let policies = guard.policies_of(&decided.asked);
            self.fields.push(("ratelimit-policy", bytes_of(policies.as_bytes())));
        }
        self
    }

    /// The answer with a problem.
    pub(crate) fn of_problem(problem: &Problem<'_>) -> Self {
        let mut fields = Vec::with_capacity(4);
        problem.write_fields(Headers::Draft11, |name, value| {
            if name != CONTENT_TYPE.as_str() {
                fields.push((name, bytes_of(value)));
            }
        });
        Self { status: problem.status(), fields, problem: Some(problem.to_json()) }
    }

    pub(crate) const fn is_admitted(&self) -> bool {
        self.problem.is_none()
    }

    /// The response of HTTP: a short object of JSON, or problem details.
    pub(crate) fn into_response(self) -> Response<Text> {
        let (kind, body) = match self.problem {
            Some(problem) => ("application/problem+json", problem.into()),
            None => ("application/json", Bytes::from_static(b"{\"admitted\":true}\n")),
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
