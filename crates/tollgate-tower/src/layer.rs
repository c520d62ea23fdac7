//! [`RateLimitLayer`]: the layer and its options.

use std::sync::Arc;

use http::response::Parts;
use tollgate_http::middleware::{Gate, NoKey, Shared};
use tower_layer::Layer;

use crate::key::{Head, KeyExtractor, Tower};
use crate::rejection::{IntoAnswer, Rejection};
use crate::service::RateLimit;

/// Limits the requests to a service.
///
/// The limiter is shared by the clones of a layer, by the services that it makes, and by layers
/// with the same `Arc`. [The crate](crate) describes the path of a request.
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_tower::{ClientIp, Limiter, Quota, RateLimitLayer};
///
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(100))?);
/// let layer = RateLimitLayer::new(Arc::clone(&limiter))
///     .key(ClientIp::peer())
///     .skip(|head| head.uri.path() == "/health")
///     .cost(|head| if head.method == http::Method::GET { 1 } else { 5 });
/// # let _ = layer;
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[must_use = "a layer does nothing until it is put in front of a service"]
pub struct RateLimitLayer<L, X: KeyExtractor = NoKey> {
    shared: Arc<Shared<Tower, L, X>>,
}

tollgate_http::limit_options! {
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn main() -> Result<(), tollgate_tower::BuildError> {
    /// use std::sync::Arc;
    /// use axum::{Extension, Router, routing::get};
    /// use tollgate_tower::{Admitted, DirectLimiter, Quota, RateLimitLayer};
    ///
    /// async fn hello(Extension(admitted): Extension<Admitted>) -> String {
    ///     format!("{} of {} left", admitted.remaining(), admitted.limit())
    /// }
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimitLayer::new(limiter).tell_handlers(true);
    /// let app: Router = Router::new().route("/", get(hello)).layer(limit);
    /// # let _ = app;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "axum"))]
    /// # fn main() {}
    /// ```
    RateLimitLayer, Parts, in "tollgate_tower" for Tower
}

impl<L, X: KeyExtractor> RateLimitLayer<L, X> {
    /// The key of requests: an extractor, or a tuple of extractors. Resets
    /// [`on_missing`](Self::on_missing).
    pub fn key<Y>(self, extractor: Y) -> RateLimitLayer<L, Y>
    where
        Y: KeyExtractor,
        L: Gate<Tower, Y, Keys: Send + Sync> + Send + Sync,
    {
        RateLimitLayer { shared: Arc::new(self.shared.with_key(extractor)) }
    }

    /// Whether the permits of a request without an answer are refunded; `false` by default. Such a
    /// request has a closed connection, a dropped future, or an inner service that failed or
    /// panicked. By default its permits stay charged, because work was done, and a client could
    /// otherwise close its connection for a refund.
    ///
    /// On a store a task refunds them. A request that ends before its decision is there may stay
    /// charged.
    pub fn refund_unanswered(self, refund: bool) -> Self {
        self.set_refund_unanswered(refund)
    }

    /// The answer to each request that the layer answers itself, in place of problem details (RFC
    /// 9457): a denied request, and one without a key. [`Rejection`] tells the status, the reason,
    /// the violated quota and the wait; [`answer`](Rejection::answer) is the standard answer.
    ///
    /// With the feature `axum`, `answer` returns anything that implements `IntoResponse`; without,
    /// a `Response<String>` or another [`IntoAnswer`]. `Retry-After` and the fields about limits are
    /// added to it, and `Cache-Control: no-store` if it has no `Cache-Control`. If `answer` panics,
    /// nothing is charged.
    ///
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn main() -> Result<(), tollgate_tower::BuildError> {
    /// use std::sync::Arc;
    /// use axum::response::{Html, IntoResponse};
    /// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let layer = RateLimitLayer::new(limiter).on_denied(|denied| {
    ///     let accept = denied.head().headers.get("accept");
    ///     if accept.is_some_and(|accept| accept.as_bytes().starts_with(b"text/html")) {
    ///         (denied.status(), Html("<h1>Too many requests</h1>")).into_response()
    ///     } else {
    ///         denied.answer().into_response()
    ///     }
    /// });
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "axum"))]
    /// # fn main() {}
    /// ```
    pub fn on_denied<T, R>(self, answer: T) -> Self
    where
        T: Fn(Rejection<'_>) -> R + Send + Sync + 'static,
        R: IntoAnswer,
    {
        self.with(|shared| {
            shared.settings.answers.on_denied = Some(Arc::new(move |denied| answer(denied).into_answer()))
        })
    }

    /// Whether gRPC calls get gRPC answers; `true` by default.
    ///
    /// A gRPC call is a POST with a content type of gRPC or gRPC-Web. The answer has status 200, the
    /// reason in `grpc-status`, `Cache-Control: no-store` and no body. Use `false` for a service
    /// without gRPC: its clients cannot turn the status of a denial into 200, which logs and alarms
    /// might count.
    pub fn grpc(self, grpc: bool) -> Self {
        self.with(|shared| shared.settings.answers.without_grpc = !grpc)
    }
}

impl<S, L, X: KeyExtractor> Layer<S> for RateLimitLayer<L, X>
where
    L: Gate<Tower, X, Keys: Send + Sync> + Send + Sync,
{
    type Service = RateLimit<S, L, X>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.shared))
    }
}
