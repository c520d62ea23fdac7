//! The limit of a handler: [`RateLimit::charge`], and what comes of it.

use core::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};
use tollgate_http::middleware::{self, Outcome, Told};
use tollgate_http::{DenialKind, Problem};

use crate::answer::{self, Value};
use crate::key::KeyExtractor;
use crate::limit::RateLimit;
use crate::rejection;

impl<L, X: KeyExtractor> RateLimit<L, X> {
    /// Charges one permit to a key that only a handler knows, such as a name in the body. The
    /// options of this limit count, but for those that need the head of a request.
    ///
    /// It charges first. [`Charge::refund`] refunds the permit, for example after a successful
    /// log-in. A client that hangs up drops the handler, and with it the charge: then the permit
    /// stays charged, so hanging up does not save it.
    ///
    /// The key of a [`DirectLimiter`](crate::DirectLimiter) is `()`. That of a
    /// [`JointLimiter`](crate::JointLimiter) is a tuple of `Option`s, with `None` for a dimension
    /// that is not asked.
    ///
    /// # Errors
    ///
    /// [`Rejected`], the answer, when the limiter denies the call.
    ///
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
    pub fn charge<K>(&self, key: K) -> Result<Charge<L, K>, Rejected>
    where
        L: middleware::Gate<K> + middleware::AtOnce,
    {
        self.charge_n(key, 1)
    }

    /// As [`charge`](Self::charge), with a cost. A cost of zero charges nothing.
    ///
    /// # Errors
    ///
    /// [`Rejected`] when the limiter denies the call, or `cost` is more than the limit.
    pub fn charge_n<K>(&self, key: K, cost: u32) -> Result<Charge<L, K>, Rejected>
    where
        L: middleware::Gate<K> + middleware::AtOnce,
    {
        if cost == 0 {
            return Ok(Charge { charge: None });
        }
        match self.limits().lend(key, cost) {
            Outcome::Admitted(charge) => Ok(Charge { charge }),
            Outcome::Denied(_) if self.limits().overrules() => Ok(Charge { charge: None }),
            Outcome::Denied(denied) => Err(denied.answer(|problem, policies| {
                let mut fields = HeaderMap::new();
                answer::write_rejected(&mut fields, problem, policies, self.limits().options().headers);
                Rejected { problem: problem.without_limits(), body: problem.to_json(), fields: Box::new(fields) }
            })),
        }
    }
}

/// The charge of a call that a handler has made by [`RateLimit::charge`].
///
/// If it is dropped, the permits stay charged.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_actix::{Limiter, Quota, RateLimit};
///
/// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(5))?);
/// let attempts = RateLimit::new(Arc::clone(&limiter));
/// let _ = attempts.charge("alice".to_owned())?.refund();
/// assert_eq!(limiter.peek("alice").remaining(), 5);
/// let _ = attempts.charge("alice".to_owned())?.keep();
/// assert_eq!(limiter.peek("alice").remaining(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "`refund` or `keep` returns the header fields of the answer"]
pub struct Charge<L: middleware::Gate<K>, K> {
    /// `None` if nothing was charged.
    charge: Option<middleware::Charge<L, K, Value>>,
}

impl<L: middleware::Gate<K>, K> Charge<L, K> {
    /// Refunds the permits. Returns the header fields of the answer.
    pub fn refund(self) -> Fields {
        self.settle(true)
    }

    /// Keeps the permits charged. Returns the header fields of the answer.
    pub fn keep(self) -> Fields {
        self.settle(false)
    }

    /// Charges more permits to the same key: a cost that is known only now. If fewer are left, takes
    /// those; the rest is not owed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_actix::{Limiter, Quota, RateLimit};
    ///
    /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(1_000))?);
    /// let tokens = RateLimit::new(Arc::clone(&limiter));
    /// let mut charge = tokens.charge("alice".to_owned())?;
    /// charge.more(99);
    /// drop(charge);
    /// assert_eq!(limiter.peek("alice").remaining(), 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn more(&mut self, cost: u32) {
        if let Some(charge) = &mut self.charge {
            charge.more(cost);
        }
    }

    fn settle(self, refund: bool) -> Fields {
        let told = self.charge.and_then(|mut charge| {
            charge.settle(|| refund);
            charge.told()
        });
        Fields { told }
    }
}

impl<L: middleware::Gate<K>, K> fmt::Debug for Charge<L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").field("is_counted", &self.charge.is_some()).finish()
    }
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

    /// Writes the fields into those of an answer.
    pub fn write_to(self, fields: &mut HeaderMap) {
        if let Some(told) = self.told {
            answer::write_told(fields, told);
        }
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
    /// Why the call is denied.
    #[must_use]
    pub const fn kind(&self) -> DenialKind {
        self.problem.kind()
    }

    /// The value of `Retry-After`, in seconds; `None` if no wait helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.problem.retry_after()
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

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after() {
            Some(seconds) => write!(f, "the call is denied: try again in {seconds} s"),
            None => f.write_str("the call is denied: trying again does not help"),
        }
    }
}

impl core::error::Error for Rejected {}
