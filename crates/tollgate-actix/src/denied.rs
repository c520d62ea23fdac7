//! The error of a handler that is limited by `#[rate_limit]`.

use core::fmt;
use core::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use tollgate::{CostExceedsLimit, Denial};
use tollgate_http::middleware::{CLIENT_IN_WORDS, KeyError};
use tollgate_http::{DenialKind, Headers, Problem};

use crate::answer;

/// A denied call as the error of a handler. Its answer is that of the middleware, with the same
/// status, `Retry-After` and problem details (RFC 9457).
///
/// Use it with the attribute
/// [`rate_limit`](https://docs.rs/tollgate/latest/tollgate/attr.rate_limit.html) on a handler
/// (feature `macros` of `tollgate`). An error of the service can contain it, too, and answer with
/// its [`error_response`](ResponseError::error_response).
///
/// ```
/// use actix_web::{HttpRequest, Responder, get};
/// use tollgate::rate_limit;
/// use tollgate_actix::Denied;
///
/// #[get("/page")]
/// #[rate_limit(limit = 2, per = "30s", key = request.path())]
/// async fn page(request: HttpRequest) -> Result<impl Responder, Denied> {
///     Ok(format!("this is {}", request.path()))
/// }
/// # let app = actix_web::App::new().service(page);
/// # drop(app);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    problem: Problem<'static>,
}

impl Denied {
    /// The answer.
    #[must_use]
    pub const fn problem(&self) -> Problem<'static> {
        self.problem
    }

    /// The answer to a request whose client has no address.
    pub(crate) fn of_address(error: KeyError) -> Self {
        Self { problem: Problem::from(error).wanting(CLIENT_IN_WORDS) }
    }
}

impl From<Denial> for Denied {
    fn from(denial: Denial) -> Self {
        Self { problem: Problem::from(&denial) }
    }
}

/// The answer is 422, because the call can never be admitted.
impl From<CostExceedsLimit> for Denied {
    fn from(_: CostExceedsLimit) -> Self {
        Self { problem: Problem::new(DenialKind::CostExceedsLimit, Duration::MAX) }
    }
}

/// The answer is 503 if the store did not decide. (Feature `redis`.)
#[cfg(feature = "redis")]
impl From<tollgate_http::middleware::AcquireError> for Denied {
    fn from(error: tollgate_http::middleware::AcquireError) -> Self {
        Self { problem: error.into() }
    }
}

/// The answer is 500 or 400, as to a request without a key.
impl From<KeyError> for Denied {
    fn from(error: KeyError) -> Self {
        Self { problem: error.into() }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.put_denied_call(f)
    }
}

impl core::error::Error for Denied {}

impl ResponseError for Denied {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
    }

    fn error_response(&self) -> HttpResponse {
        answer::problem(&self.problem, Headers::Draft11)
    }
}
