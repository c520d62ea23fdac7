//! [`Rejection`]: a request that the middleware answers itself.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, HttpResponseBuilder};
use tollgate_http::Problem;

use crate::key::Head;

/// A request that the middleware answers itself: it is denied, or has no key. This is the argument
/// of [`on_denied`](crate::RateLimit::on_denied).
///
/// It is a [`Problem`], which tells the reason ([`kind`](Problem::kind)), the
/// [`wait`](Problem::wait), the violated [`quota`](Problem::quota) with its
/// [`limit`](Problem::limit) and the permits [`remaining`](Problem::remaining), and the key that is
/// [`wanted`](Problem::wanted).
///
/// ```
/// use std::sync::Arc;
/// use tollgate_actix::{DirectLimiter, Quota, RateLimit, Rejection};
///
/// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
/// let limit = RateLimit::new(limiter).on_denied(|denied: Rejection<'_>| {
///     let text = match (denied.quota(), denied.retry_after()) {
///         (Some(quota), Some(seconds)) => format!("{quota} is used up: wait for {seconds} s\n"),
///         _ => format!("{}\n", denied.status()),
///     };
///     (text, denied.status())
/// });
/// # let _ = limit;
/// # Ok::<(), tollgate_actix::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rejection<'a> {
    problem: &'a Problem<'a>,
    head: Head<'a>,
}

impl<'a> Rejection<'a> {
    pub(crate) const fn new(problem: &'a Problem<'a>, head: &Head<'a>) -> Self {
        Self { problem, head: *head }
    }

    /// The standard answer: problem details (RFC 9457). The middleware adds the fields about limits
    /// to it as to any other.
    #[must_use]
    pub fn answer(&self) -> HttpResponse {
        problem_details(self.problem.status(), self.problem.to_json())
    }
}

tollgate_http::rejection_of_http!();

/// Problem details, without other header fields.
pub(crate) fn problem_details(status: u16, json: String) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    HttpResponseBuilder::new(status).content_type("application/problem+json").body(json)
}
