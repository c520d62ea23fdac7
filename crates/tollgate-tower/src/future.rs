//! The future of a response.

use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tollgate_http::middleware::{Around, Gate, OutcomeLater, RequestCharge, Shared, write_told};
use tower_service::Service;

use crate::answer::Value;
use crate::body::ResponseBody;
use crate::key::{Head, KeyExtractor, Tower};

/// The outcome of a request that waits: in a line, or for a store.
pub(crate) type Waiting<L, X> = OutcomeLater<L, <L as Gate<Tower, X>>::Keys, Value>;

/// The charge of an admitted request.
type Charge<L, X> = RequestCharge<Tower, L, X>;

pin_project! {
    /// The future of a response: that of the inner service `S`, or of the layer's own answer. It is
    /// boxed only while the request waits, or the inner service is not ready.
    pub struct ResponseFuture<S, B, L, X>
    where
        S: Service<Request<B>>,
        L: Gate<Tower, X>,
        X: KeyExtractor,
    {
        #[pin]
        state: State<S, B, S::Future, S::Error, L, X>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B, F, E, L: Gate<Tower, X>, X: KeyExtractor> {
        /// The request waits for its permits.
        InLine { waiter: Option<Box<Waiter<S, B, L, X>>> },
        /// The inner service is not ready yet.
        Waiting { waiting: Option<Box<Ready<S, B, L, X>>> },
        Inner {
            #[pin]
            future: F,
            charge: Option<Charge<L, X>>,
            around: Around,
        },
        /// The inner service failed before it was ready.
        Failed { error: Option<E> },
        /// Boxed, because admitted requests move in the same memory.
        Own { response: Option<Box<Response<Bytes>>> },
    }
}

/// A request that waits for its permits.
struct Waiter<S, B, L: Gate<Tower, X>, X: KeyExtractor> {
    line: Waiting<L, X>,
    service: S,
    request: Request<B>,
    shared: Arc<Shared<Tower, L, X>>,
}

/// An admitted request, and the service that it waits for.
struct Ready<S, B, L: Gate<Tower, X>, X: KeyExtractor> {
    service: S,
    request: Request<B>,
    charge: Option<Charge<L, X>>,
    around: Around,
}

impl<S, B, L, X> ResponseFuture<S, B, L, X>
where
    S: Service<Request<B>> + Clone,
    L: Gate<Tower, X>,
    X: KeyExtractor,
{
    /// The request goes to the inner service, once it is ready.
    pub(crate) fn inner(inner: &mut S, request: Request<B>, charge: Option<Charge<L, X>>, around: Around) -> Self {
        // Usually it is ready. Otherwise the future asks again, with the waker of its task.
        let state = match inner.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => State::Inner { future: around.run(|| inner.call(request)), charge, around },
            Poll::Ready(Err(error)) => State::Failed { error: Some(error) },
            Poll::Pending => {
                // The service that was asked may have a place in a queue.
                let fresh = inner.clone();
                let service = mem::replace(inner, fresh);
                State::Waiting { waiting: Some(Box::new(Ready { service, request, charge, around })) }
            }
        };
        Self { state }
    }

    /// The request waits, and then goes to the inner service.
    pub(crate) fn in_line(
        service: S,
        request: Request<B>,
        line: Waiting<L, X>,
        shared: Arc<Shared<Tower, L, X>>,
    ) -> Self {
        let waiter = Some(Box::new(Waiter { line, service, request, shared }));
        Self { state: State::InLine { waiter } }
    }

    pub(crate) const fn own(response: Box<Response<Bytes>>) -> Self {
        Self { state: State::Own { response: Some(response) } }
    }
}

/// The response to an admitted request.
fn answered<A: Body, L: Gate<Tower, X>, X: KeyExtractor>(
    charge: Option<Charge<L, X>>,
    response: Response<A>,
) -> Response<ResponseBody<A>> {
    let (mut parts, body) = response.into_parts();
    // Without a body, the request is over with the head.
    let in_flight = if body.is_end_stream() { None } else { charge.as_ref().and_then(Charge::in_flight) };
    if let Some(told) = charge.and_then(|charge| charge.answered(Some(&parts))) {
        write_told::<Tower>(&mut parts.headers, told);
    }
    Response::from_parts(parts, ResponseBody::inner(body, in_flight))
}

/// Tells the decision to handlers, if they want to know it.
pub(crate) fn tell<B, L: Gate<Tower, X>, X: KeyExtractor>(request: &mut Request<B>, charge: Option<&Charge<L, X>>) {
    let Some((charge, admitted)) = charge.and_then(|charge| Some((charge, charge.admitted()?))) else { return };
    request.extensions_mut().insert(admitted);
    if let Some(in_flight) = charge.in_flight() {
        request.extensions_mut().insert(in_flight);
    }
}

impl<S, B, A, L, X> Future for ResponseFuture<S, B, L, X>
where
    S: Service<Request<B>, Response = Response<A>>,
    A: Body,
    L: Gate<Tower, X>,
    X: KeyExtractor,
{
    type Output = Result<Response<ResponseBody<A>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        if let StateProjection::InLine { waiter } = state.as_mut().project() {
            let Some(mut waiter) = waiter.take() else { return Poll::Pending };
            let Poll::Ready(outcome) = waiter.line.as_mut().poll(context) else {
                state.set(State::InLine { waiter: Some(waiter) });
                return Poll::Pending;
            };
            let Waiter { service, mut request, shared, .. } = *waiter;
            match shared.settle(outcome, &Head::of(&request)) {
                Ok(charge) => {
                    tell(&mut request, charge.as_ref());
                    let around = shared.around(true);
                    state.set(State::Waiting { waiting: Some(Box::new(Ready { service, request, charge, around })) });
                }
                Err(response) => state.set(State::Own { response: Some(response) }),
            }
        }
        if let StateProjection::Waiting { waiting } = state.as_mut().project() {
            if let Some(waiting) = waiting {
                ready!(waiting.service.poll_ready(context))?;
            }
            if let Some(waiting) = waiting.take() {
                let Ready { mut service, request, charge, around } = *waiting;
                state.set(State::Inner { future: around.run(|| service.call(request)), charge, around });
            }
        }
        let answer = match state.project() {
            StateProjection::Inner { future, charge, around } => {
                let answer = ready!(around.run(|| future.poll(context)));
                // A request that has failed is over, also while this future lives on.
                let charge = charge.take();
                Some(answer.map(|response| answered(charge, response)))
            }
            StateProjection::Failed { error } => error.take().map(Err),
            StateProjection::Own { response } => response.take().map(|response| Ok(response.map(ResponseBody::own))),
            StateProjection::InLine { .. } | StateProjection::Waiting { .. } => None,
        };
        // Without an answer, it has been taken.
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<S, B, L, X> fmt::Debug for ResponseFuture<S, B, L, X>
where
    S: Service<Request<B>>,
    L: Gate<Tower, X>,
    X: KeyExtractor,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = matches!(self.state, State::Own { .. });
        f.debug_struct("ResponseFuture").field("is_own", &is_own).finish_non_exhaustive()
    }
}
