//! The future of a response.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::rc::Rc;
use std::sync::Arc;

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use pin_project_lite::pin_project;
use tollgate_http::middleware::{Around, Gate, Outcome, RequestCharge, Shared};

use crate::answer::Value;
use crate::charge::{self, tell};
use crate::key::{Actix, Head, KeyExtractor};

/// The outcome of a request that waits: in a line, or for a store.
pub(crate) type Waiting<L, X> = Pin<Box<dyn Future<Output = Outcome<L, <L as Gate<Actix, X>>::Keys, Value>>>>;

/// The charge of an admitted request.
type Charge<L, X> = RequestCharge<Actix, L, X>;

pin_project! {
    /// The future of a response: that of the inner service `S`, or of the middleware's own answer. It
    /// is boxed only while the request waits.
    pub struct ResponseFuture<S, B, L, X>
    where
        S: Service<ServiceRequest>,
        L: Gate<Actix, X>,
        X: KeyExtractor,
    {
        #[pin]
        state: State<S, S::Future, B, L, X>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, F, B, L: Gate<Actix, X>, X: KeyExtractor> {
        /// The request waits for its permits, or for a store.
        InLine { waiter: Option<Box<Waiter<S, L, X>>> },
        Inner {
            #[pin]
            future: F,
            charge: Option<Charge<L, X>>,
            around: Around,
        },
        Own { response: Option<ServiceResponse<EitherBody<B>>> },
    }
}

/// A request that waits.
struct Waiter<S, L: Gate<Actix, X>, X: KeyExtractor> {
    line: Waiting<L, X>,
    service: Rc<S>,
    request: ServiceRequest,
    shared: Arc<Shared<Actix, L, X>>,
}

impl<S: Service<ServiceRequest>, B, L: Gate<Actix, X>, X: KeyExtractor> ResponseFuture<S, B, L, X> {
    pub(crate) const fn inner(future: S::Future, charge: Option<Charge<L, X>>, around: Around) -> Self {
        Self { state: State::Inner { future, charge, around } }
    }

    /// The request waits, and then goes to the inner service.
    pub(crate) fn in_line(
        service: Rc<S>,
        request: ServiceRequest,
        line: Waiting<L, X>,
        shared: Arc<Shared<Actix, L, X>>,
    ) -> Self {
        let waiter = Some(Box::new(Waiter { line, service, request, shared }));
        Self { state: State::InLine { waiter } }
    }

    pub(crate) const fn own(response: ServiceResponse<EitherBody<B>>) -> Self {
        Self { state: State::Own { response: Some(response) } }
    }
}

impl<S, B, L, X> Future for ResponseFuture<S, B, L, X>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
    L: Gate<Actix, X>,
    X: KeyExtractor,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        if let StateProjection::InLine { waiter } = state.as_mut().project() {
            let Some(mut waiter) = waiter.take() else { return Poll::Pending };
            let Poll::Ready(outcome) = waiter.line.as_mut().poll(context) else {
                state.set(State::InLine { waiter: Some(waiter) });
                return Poll::Pending;
            };
            let Waiter { service, request, shared, .. } = *waiter;
            let settled = shared.settle(outcome, &Head::of(request.request()));
            match settled {
                Ok(charge) => {
                    tell(&request, charge.as_ref());
                    let around = shared.around(true);
                    state.set(State::Inner { future: around.run(|| service.call(request)), charge, around });
                }
                Err(response) => {
                    let response = request.into_response(*response).map_into_right_body();
                    state.set(State::Own { response: Some(response) });
                }
            }
        }
        Poll::Ready(match state.project() {
            StateProjection::Inner { future, charge, around } => match ready!(around.run(|| future.poll(context))) {
                Ok(response) => Ok(match charge.take() {
                    Some(charge) => charge::answered(charge, response),
                    None => response.map_into_left_body(),
                }),
                Err(error) => Err(match charge.take() {
                    Some(charge) => charge::failed(charge, error),
                    None => error,
                }),
            },
            StateProjection::Own { response } => match response.take() {
                Some(response) => Ok(response),
                // The answer has been taken, so none is left.
                None => return Poll::Pending,
            },
            StateProjection::InLine { .. } => return Poll::Pending,
        })
    }
}

impl<S: Service<ServiceRequest>, B, L: Gate<Actix, X>, X: KeyExtractor> fmt::Debug for ResponseFuture<S, B, L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = matches!(self.state, State::Own { .. });
        f.debug_struct("ResponseFuture").field("is_own", &is_own).finish_non_exhaustive()
    }
}
