//! The limit of a handler: [`RateLimit::charge`], and what comes of it.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};
use tollgate_http::middleware::{Told, write_denied};
use tollgate_http::{Headers, Problem};

use crate::answer::Value;
use crate::key::{Actix, KeyExtractor};
use crate::limit::RateLimit;
use crate::rejection;

tollgate_http::handler_charge! {
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::{App, HttpResponse, Responder, web};
    /// use tollgate_actix::{Limiter, Quota, RateLimit, Rejected};
    ///
    /// /// Failed attempts by name.
    /// type Attempts = RateLimit<Limiter<String>>;
    ///
    /// async fn log_in(attempts: web::Data<Attempts>, name: String) -> Result<impl Responder, Rejected> {
    ///     let charge = attempts.charge(name)?;
    ///     Ok(if password_is_right().await {
    ///         charge.refund().on(HttpResponse::Ok().body("welcome"))
    ///     } else {
    ///         charge.keep().on(HttpResponse::Unauthorized().body("wrong"))
    ///     })
    /// }
    /// # async fn password_is_right() -> bool { true }
    ///
    /// // Once, outside the closure that makes the `App`.
    /// let attempts = RateLimit::new(Arc::new(Limiter::<String>::new(Quota::per_minute(5))?));
    /// let attempts = web::Data::new(attempts);
    /// let app = App::new().app_data(attempts.clone()).route("/login", web::post().to(log_in));
    /// # drop(app);
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    RateLimit, in "tollgate_actix" for Actix
}

/// The header fields about limits, for the answer of a handler. [`Charge::refund`] and
/// [`Charge::keep`] make them.
///
/// ```
/// use std::sync::Arc;
/// use actix_web::{HttpResponse, Responder};
/// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
///
/// let limit = RateLimit::new(Arc::new(DirectLimiter::new(Quota::per_minute(5))?));
/// let answer = limit.charge(())?.keep().on("hello");
/// let request = actix_web::test::TestRequest::get().to_http_request();
/// let response = answer.respond_to(&request);
/// assert_eq!(response.headers().get("ratelimit-policy").unwrap(), r#""default";q=5;w=60"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "the fields belong on the answer"]
pub struct Fields {
    told: Option<Told<Value>>,
}

impl Fields {
    /// This answer, with the fields.
    pub fn on<R: Responder>(self, answer: R) -> impl Responder<Body = R::Body> + use<R> {
        Answered { answer, fields: self }
    }
}

/// An answer, with the fields.
struct Answered<R> {
    answer: R,
    fields: Fields,
}

impl<R: Responder> Responder for Answered<R> {
    type Body = R::Body;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse<R::Body> {
        let mut response = self.answer.respond_to(request);
        self.fields.write_to(response.headers_mut());
        response
    }
}

/// A call that a limiter has denied: the error of [`RateLimit::charge`], and its answer.
///
/// It is a [`ResponseError`], and so the error of a handler. An error of the service can contain
/// it, too, and answer with its [`error_response`](ResponseError::error_response).
///
/// ```
/// use std::sync::Arc;
/// use actix_web::ResponseError;
/// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
///
/// let limit = RateLimit::new(Arc::new(DirectLimiter::new(Quota::per_minute(1))?));
/// let _ = limit.charge(())?.keep();
/// let rejected = limit.charge(()).unwrap_err();
/// assert_eq!((rejected.status_code().as_u16(), rejected.retry_after()), (429, Some(60)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rejected {
    problem: Problem<'static>,
    body: String,
    fields: Box<HeaderMap>,
}

impl Rejected {
    fn of(problem: &Problem<'_>, policies: Option<&Value>, headers: Headers) -> Self {
        let mut fields = HeaderMap::new();
        write_denied::<Actix>(&mut fields, problem, policies, headers);
        Self { problem: problem.without_limits(), body: problem.to_json(), fields: Box::new(fields) }
    }
}

impl ResponseError for Rejected {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = rejection::problem_details(self.problem.status(), self.body.clone());
        for (name, value) in &*self.fields {
            response.headers_mut().append(name.clone(), value.clone());
        }
        response
    }
}
