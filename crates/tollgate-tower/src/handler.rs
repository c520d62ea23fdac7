//! The limit of a handler: [`RateLimitLayer::charge`], and what comes of it.

use bytes::Bytes;
use http::{Response, StatusCode};
use tollgate_http::middleware::Told;
use tollgate_http::{Headers, Problem};

use crate::answer::{self, Value};
use crate::key::{KeyExtractor, Tower};
use crate::layer::RateLimitLayer;
use crate::rejection::standard;

tollgate_http::handler_charge! {
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn main() -> Result<(), tollgate_tower::BuildError> {
    /// use std::sync::Arc;
    /// use axum::extract::State;
    /// use axum::http::StatusCode;
    /// use axum::response::{IntoResponse, Response};
    /// use axum::{Router, routing::post};
    /// use tollgate_tower::{Limiter, Quota, RateLimitLayer, Rejected};
    ///
    /// /// Failed attempts by name. The guide has those by name and address, which lock no user out.
    /// type Attempts = RateLimitLayer<Limiter<String>>;
    ///
    /// async fn log_in(State(attempts): State<Attempts>, name: String) -> Result<Response, Rejected> {
    ///     let charge = attempts.charge(name)?;
    ///     if password_is_right().await {
    ///         Ok((charge.refund(), "welcome").into_response())
    ///     } else {
    ///         Ok((StatusCode::UNAUTHORIZED, charge.keep(), "wrong").into_response())
    ///     }
    /// }
    /// # async fn password_is_right() -> bool { true }
    ///
    /// let limiter = Arc::new(Limiter::new(Quota::per_minute(5))?);
    /// let app: Router = Router::new().route("/login", post(log_in)).with_state(RateLimitLayer::new(limiter));
    /// # let _ = app;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "axum"))]
    /// # fn main() {}
    /// ```
    RateLimitLayer, in "tollgate_tower" for Tower
}

/// The header fields about limits, for the answer of a handler. [`Charge::refund`] and
/// [`Charge::keep`] make them.
///
/// With the feature `axum` they are a part of a response: `(charge.keep(), "hello")`.
///
/// ```
/// use std::sync::Arc;
/// use http::Response;
/// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
///
/// let limit = RateLimitLayer::new(Arc::new(DirectLimiter::new(Quota::per_minute(5))?));
/// let mut response = Response::new("hello");
/// limit.charge(())?.keep().write_to(response.headers_mut());
/// assert_eq!(response.headers()["ratelimit-policy"], r#""default";q=5;w=60"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "the fields belong on the answer"]
pub struct Fields {
    told: Option<Told<Value>>,
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponseParts for Fields {
    type Error = core::convert::Infallible;

    fn into_response_parts(
        self,
        mut parts: axum::response::ResponseParts,
    ) -> Result<axum::response::ResponseParts, Self::Error> {
        self.write_to(parts.headers_mut());
        Ok(parts)
    }
}

/// A call that a limiter has denied: the error of [`RateLimitLayer::charge`], and its answer.
///
/// With the feature `axum` it is a response, and so the error of a handler or a part of it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
///
/// let limit = RateLimitLayer::new(Arc::new(DirectLimiter::new(Quota::per_minute(1))?));
/// let _ = limit.charge(())?.keep();
/// let rejected = limit.charge(()).unwrap_err();
/// assert_eq!((rejected.status().as_u16(), rejected.retry_after()), (429, Some(60)));
/// assert_eq!(rejected.into_response().headers()["retry-after"], "60");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rejected {
    problem: Problem<'static>,
    response: Box<Response<Bytes>>,
}

impl Rejected {
    fn of(problem: &Problem<'_>, policies: Option<&Value>, headers: Headers) -> Self {
        let response = answer::with_fields(standard(problem), problem, policies, headers);
        Self { problem: problem.without_limits(), response: Box::new(response) }
    }

    /// The status code of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The answer: problem details (RFC 9457), with the fields about limits.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        *self.response
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Rejected {
    fn into_response(self) -> axum::response::Response {
        Self::into_response(self).map(axum::body::Body::from)
    }
}
