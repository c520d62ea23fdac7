//! The limit of a handler: [`RateLimitLayer::charge`], and what comes of it.

use core::fmt;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use tollgate_http::middleware::{self, Outcome, Told};
use tollgate_http::{DenialKind, Problem};

use crate::answer::{self, Value};
use crate::key::KeyExtractor;
use crate::layer::RateLimitLayer;
use crate::rejection::standard;

impl<L, X: KeyExtractor> RateLimitLayer<L, X> {
    /// Charges one permit to a key that only a handler knows, such as a name in the body. The
    /// options of this layer count, but for those that need the head of a request.
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
                let headers = self.limits().options().headers;
                let response = answer::with_fields(standard(problem), problem, policies, headers);
                Rejected { problem: problem.without_limits(), response: Box::new(response) }
            })),
        }
    }
}

/// The charge of a call that a handler has made by [`RateLimitLayer::charge`].
///
/// If it is dropped, the permits stay charged.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_tower::{Limiter, Quota, RateLimitLayer};
///
/// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(5))?);
/// let attempts = RateLimitLayer::new(Arc::clone(&limiter));
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
    /// use tollgate_tower::{Limiter, Quota, RateLimitLayer};
    ///
    /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(1_000))?);
    /// let tokens = RateLimitLayer::new(Arc::clone(&limiter));
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

impl Fields {
    /// Writes the fields into those of an answer.
    pub fn write_to(self, fields: &mut HeaderMap) {
        if let Some(told) = self.told {
            answer::write_told(fields, told);
        }
    }
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
    /// The status code of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

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

    /// The answer: problem details (RFC 9457), with the fields about limits.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        *self.response
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

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Rejected {
    fn into_response(self) -> axum::response::Response {
        Self::into_response(self).map(axum::body::Body::from)
    }
}
