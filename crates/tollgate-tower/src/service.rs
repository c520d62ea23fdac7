//! [`RateLimit`]: the service that asks a limiter before it calls the inner service.

use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use tollgate_http::middleware::{Gate, Judgement, NoKey, Shared};
use tower_service::Service;

use crate::future::{ResponseFuture, Waiting, tell};
use crate::key::{Head, KeyExtractor, Tower};

/// A service that asks a limiter before it calls the inner service.
/// [`RateLimitLayer`](crate::RateLimitLayer) makes it.
///
/// It is always ready, and decides in `call`. So a denied request never waits for the inner service,
/// and takes no place in a concurrency limit or a buffer. An admitted request waits in its future
/// until the inner service is ready. A layer that sheds load while a service is not ready, such as
/// tower's `LoadShed`, goes inside this one.
pub struct RateLimit<S, L, X: KeyExtractor = NoKey> {
    inner: S,
    shared: Arc<Shared<Tower, L, X>>,
}

impl<S, L, X: KeyExtractor> RateLimit<S, L, X> {
    pub(crate) const fn new(inner: S, shared: Arc<Shared<Tower, L, X>>) -> Self {
        Self { inner, shared }
    }

    /// The request waits: in a line, or for a store.
    fn wait<B>(&self, request: Request<B>, outcome: Waiting<L, X>) -> ResponseFuture<S, B, L, X>
    where
        S: Service<Request<B>> + Clone,
        L: Gate<Tower, X>,
    {
        ResponseFuture::in_line(self.inner.clone(), request, outcome, Arc::clone(&self.shared))
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Clone, L, X: KeyExtractor> Clone for RateLimit<S, L, X> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S, L, X, B, A> Service<Request<B>> for RateLimit<S, L, X>
where
    S: Service<Request<B>, Response = Response<A>> + Clone,
    A: Body,
    L: Gate<Tower, X, Keys: Send + Sync> + Send + Sync,
    X: KeyExtractor,
{
    type Response = Response<crate::ResponseBody<A>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B, L, X>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.shared.judge(&Head::of(&request)) {
            Judgement::Skipped => ResponseFuture::inner(&mut self.inner, request, None, self.shared.around(false)),
            Judgement::Settled(Ok(charge)) => {
                tell(&mut request, charge.as_ref());
                ResponseFuture::inner(&mut self.inner, request, charge, self.shared.around(true))
            }
            Judgement::Settled(Err(response)) => ResponseFuture::own(response),
            Judgement::Later(later) => self.wait(request, later),
            Judgement::InLine(line) => self.wait(request, Box::pin(line.outcome())),
        }
    }
}

impl<S: fmt::Debug, L: fmt::Debug, X: KeyExtractor> fmt::Debug for RateLimit<S, L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .field("limiter", self.shared.limits.limiter())
            .finish_non_exhaustive()
    }
}
