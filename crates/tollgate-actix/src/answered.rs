//! [`AnswerHead`]: an answer without its body.

use actix_web::HttpResponse;
use actix_web::dev::Extensions;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;

/// An answer of the inner service, without its body. It is the argument of
/// [`refund_when`](crate::RateLimit::refund_when) and
/// [`cost_after`](crate::RateLimit::cost_after). An inner service that fails has the answer that its
/// error becomes.
///
/// ```
/// use actix_web::http::StatusCode;
/// use tollgate_actix::AnswerHead;
///
/// /// The part of a page that was read costs nothing where the page is unchanged.
/// fn is_free(answer: &AnswerHead<'_>) -> bool {
///     answer.status == StatusCode::NOT_MODIFIED || answer.headers.contains_key("x-free")
/// }
/// # let limiter = tollgate_actix::DirectLimiter::new(tollgate_actix::Quota::per_second(9))?;
/// # let _ = tollgate_actix::RateLimit::new(limiter.into()).refund_when(is_free);
/// # Ok::<(), tollgate_actix::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AnswerHead<'a> {
    /// The status code.
    pub status: StatusCode,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The extensions of the [`HttpResponse`], in which a handler can say what its answer cost.
    pub extensions: &'a Extensions,
}

/// Passes the head of this answer to `look`.
pub(crate) fn look<B, R>(answer: &HttpResponse<B>, look: impl FnOnce(&AnswerHead<'_>) -> R) -> R {
    let (status, headers) = (answer.status(), answer.headers());
    look(&AnswerHead { status, headers, extensions: &answer.extensions() })
}
