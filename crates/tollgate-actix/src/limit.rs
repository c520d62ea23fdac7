//! [`RateLimit`]: the limit of a service and its options.

use core::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::{Error, Responder};
use tollgate_http::middleware::{Gate, NoKey, Shared};

use crate::answered::AnswerHead;
use crate::key::{Actix, Head, KeyExtractor};
use crate::middleware::RateLimitMiddleware;
use crate::rejection::Rejection;

/// Limits the requests to a service, a scope, a resource or a route.
///
/// Make it outside the closure that makes the `App`, and clone it inside: the clones share the
/// limiter, so the workers do. Limits with the same `Arc` share it, too. [The crate](crate)
/// describes the path of a request.
///
/// ```no_run
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use actix_web::{App, HttpServer, http::Method};
/// use tollgate_actix::{ClientIp, Limiter, Quota, RateLimit};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(100))?);
/// let limit = RateLimit::new(Arc::clone(&limiter))
///     .key(ClientIp::peer())
///     .skip(|head| head.uri.path() == "/health")
///     .cost(|head| if head.method == Method::GET { 1 } else { 5 });
/// HttpServer::new(move || App::new().wrap(limit.clone())).bind(("127.0.0.1", 8080))?.run().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a limit does nothing until a service is wrapped in it"]
pub struct RateLimit<L, X: KeyExtractor = NoKey> {
    shared: Arc<Shared<Actix, L, X>>,
}

tollgate_http::limit_options! {
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::{App, web};
    /// use tollgate_actix::{Admitted, DirectLimiter, Quota, RateLimit};
    ///
    /// async fn hello(admitted: web::ReqData<Admitted>) -> String {
    ///     format!("{} of {} left", admitted.remaining(), admitted.limit())
    /// }
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimit::new(limiter).tell_handlers(true);
    /// let app = App::new().route("/", web::get().to(hello)).wrap(limit);
    /// # drop(app);
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    RateLimit, AnswerHead<'_>, in "tollgate_actix" for Actix
}

impl<L, X: KeyExtractor> RateLimit<L, X> {
    /// The key of requests: an extractor, or a tuple of extractors. Resets
    /// [`on_missing`](Self::on_missing).
    pub fn key<Y>(self, extractor: Y) -> RateLimit<L, Y>
    where
        Y: KeyExtractor,
        L: Gate<Actix, Y>,
    {
        RateLimit { shared: Arc::new(self.shared.with_key(extractor)) }
    }

    /// Whether the permits of a request without an answer are refunded; `false` by default. Such a
    /// request has a closed connection, or an inner service that panicked. By default its permits
    /// stay charged, because work was done, and a client could otherwise close its connection for a
    /// refund.
    ///
    /// By default actix-web continues a request whose client has closed its half of an HTTP/1
    /// connection. With `HttpServer::h1_allow_half_closed(false)` it stops the request.
    ///
    /// On a store a task refunds them. A request that ends before its decision is there may stay
    /// charged.
    pub fn refund_unanswered(self, refund: bool) -> Self {
        self.set_refund_unanswered(refund)
    }

    /// The answer to each request that the middleware answers itself, in place of problem details
    /// (RFC 9457): a denied request, and one without a key. [`Rejection`] tells the status, the
    /// reason, the violated quota and the wait; [`answer`](Rejection::answer) is the standard
    /// answer.
    ///
    /// `answer` returns any [`Responder`]. `Retry-After` and the fields about limits are added to
    /// it, and `Cache-Control: no-store` if it has no `Cache-Control`. If `answer` panics, nothing
    /// is charged.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::Either;
    /// use actix_web::web::Html;
    /// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimit::new(limiter).on_denied(|denied| {
    ///     let accept = denied.head().headers.get("accept");
    ///     if accept.is_some_and(|accept| accept.as_bytes().starts_with(b"text/html")) {
    ///         Either::Left((Html::new("<h1>Too many requests</h1>"), denied.status()))
    ///     } else {
    ///         Either::Right(denied.answer())
    ///     }
    /// });
    /// # let _ = limit;
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    pub fn on_denied<T, R>(self, answer: T) -> Self
    where
        T: Fn(Rejection<'_>) -> R + Send + Sync + 'static,
        R: Responder + 'static,
    {
        let answer = move |denied: Rejection<'_>| {
            let request = denied.head().request;
            answer(denied).respond_to(request).map_into_boxed_body()
        };
        self.with(|shared| shared.settings.answers = Some(Arc::new(answer)))
    }
}

impl<S, B, L, X> Transform<S, ServiceRequest> for RateLimit<L, X>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
    L: Gate<Actix, X>,
    X: KeyExtractor,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = RateLimitMiddleware<S, L, X>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        ready(Ok(RateLimitMiddleware::new(inner, Arc::clone(&self.shared))))
    }
}
