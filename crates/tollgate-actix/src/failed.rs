//! [`LimitedError`]: an error of the inner service, whose answer has the header fields of a limit.

use core::fmt;

use actix_web::http::StatusCode;
use actix_web::{Error, HttpResponse, ResponseError};
use tollgate_http::middleware::{Told, write_told};

use crate::answer::Value;
use crate::key::Actix;

/// An error of the inner service of a limit. Its answer is that of its [`cause`](Self::cause), with
/// the header fields that show the limit.
///
/// Errors of handlers are answers before they come to middleware. Only an error of other middleware
/// inside the limit becomes this error.
///
/// ```
/// use actix_web::Error;
/// use tollgate_actix::LimitedError;
///
/// /// In middleware outside the limit: the error as it was.
/// fn cause(error: &Error) -> &Error {
///     error.as_error::<LimitedError>().map_or(error, |limited| cause(limited.cause()))
/// }
///
/// let error = actix_web::error::ErrorForbidden("not here");
/// assert_eq!(cause(&error).to_string(), "not here");
/// ```
pub struct LimitedError {
    cause: Error,
    told: Told<Value>,
}

impl LimitedError {
    pub(crate) const fn new(cause: Error, told: Told<Value>) -> Self {
        Self { cause, told }
    }

    /// The error of the inner service.
    #[must_use]
    pub const fn cause(&self) -> &Error {
        &self.cause
    }
}

impl ResponseError for LimitedError {
    fn status_code(&self) -> StatusCode {
        self.cause.as_response_error().status_code()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = self.cause.as_response_error().error_response();
        write_told::<Actix>(response.headers_mut(), self.told.clone());
        response
    }
}

impl fmt::Display for LimitedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl fmt::Debug for LimitedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}
