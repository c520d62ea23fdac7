//! The middleware that asks a limiter before it calls the inner service.

use core::fmt;
use core::task::{Context, Poll};
use std::rc::Rc;
use std::sync::Arc;

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use tollgate_http::middleware::{Gate, Judgement, NoKey, Shared};

use crate::charge::tell;
use crate::future::{ResponseFuture, Waiting};
use crate::key::{Actix, Head, KeyExtractor};

/// The middleware of one worker. [`RateLimit`](crate::RateLimit) makes it and shares its limiter.
///
/// It decides when it is called, whether or not the inner service is ready.
pub struct RateLimitMiddleware<S, L, X: KeyExtractor = NoKey> {
    inner: Rc<S>,
    shared: Arc<Shared<Actix, L, X>>,
}

impl<S, L, X: KeyExtractor> RateLimitMiddleware<S, L, X> {
    pub(crate) fn new(inner: S, shared: Arc<Shared<Actix, L, X>>) -> Self {
        Self { inner: Rc::new(inner), shared }
    }

    /// The request waits: in a line, or for a store.
    fn wait<B>(&self, request: ServiceRequest, outcome: Waiting<L, X>) -> ResponseFuture<S, B, L, X>
    where
        S: Service<ServiceRequest>,
        L: Gate<Actix, X>,
    {
        ResponseFuture::in_line(Rc::clone(&self.inner), request, outcome, Arc::clone(&self.shared))
    }
}

impl<S, B, L, X> Service<ServiceRequest> for RateLimitMiddleware<S, L, X>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
    L: Gate<Actix, X>,
    X: KeyExtractor,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = ResponseFuture<S, B, L, X>;

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        match self.shared.judge(&Head::of(request.request())) {
            Judgement::Skipped => {
                let around = self.shared.around(false);
                ResponseFuture::inner(around.run(|| self.inner.call(request)), None, around)
            }
            Judgement::Settled(Ok(charge)) => {
                tell(&request, charge.as_ref());
                let around = self.shared.around(true);
                ResponseFuture::inner(around.run(|| self.inner.call(request)), charge, around)
            }
            Judgement::Settled(Err(response)) => {
                ResponseFuture::own(request.into_response(*response).map_into_right_body())
            }
            Judgement::Later(later) => self.wait(request, later),
            Judgement::InLine(line) => self.wait(request, Box::pin(line.outcome())),
        }
    }
}

impl<S: fmt::Debug, L: fmt::Debug, X: KeyExtractor> fmt::Debug for RateLimitMiddleware<S, L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitMiddleware")
            .field("inner", &self.inner)
            .field("limiter", self.shared.limits.limiter())
            .finish_non_exhaustive()
    }
}
