//! The future of a response.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use actix_web::Error;
use actix_web::body::EitherBody;
use actix_web::dev::ServiceResponse;
use pin_project_lite::pin_project;

use crate::charge::Charge;
use crate::gate::Gate;
use crate::key::KeyExtractor;

pin_project! {
    /// The future of a response: that of the inner service, or of the middleware's own answer. It
    /// is not boxed.
    pub struct ResponseFuture<F, B, L: Gate<X>, X: KeyExtractor> {
        #[pin]
        state: State<F, B, L, X>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, L: Gate<X>, X: KeyExtractor> {
        Inner {
            #[pin]
            future: F,
            charge: Option<Charge<L, X>>,
        },
        Own { response: Option<ServiceResponse<EitherBody<B>>> },
    }
}

impl<F, B, L: Gate<X>, X: KeyExtractor> ResponseFuture<F, B, L, X> {
    pub(crate) const fn inner(future: F, charge: Option<Charge<L, X>>) -> Self {
        Self { state: State::Inner { future, charge } }
    }

    pub(crate) const fn own(response: ServiceResponse<EitherBody<B>>) -> Self {
        Self { state: State::Own { response: Some(response) } }
    }
}

impl<F, B, L, X> Future for ResponseFuture<F, B, L, X>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    L: Gate<X>,
    X: KeyExtractor,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProjection::Inner { future, charge } => match ready!(future.poll(context)) {
                Ok(mut response) => {
                    if let Some(charge) = charge.take() {
                        charge.answered(&mut response);
                    }
                    Ok(response.map_into_left_body())
                }
                Err(error) => Err(match charge.take() {
                    Some(charge) => charge.failed(error),
                    None => error,
                }),
            },
            StateProjection::Own { response } => match response.take() {
                Some(response) => Ok(response),
                // The answer has been taken, so none is left.
                None => return Poll::Pending,
            },
        })
    }
}

impl<F, B, L: Gate<X>, X: KeyExtractor> fmt::Debug for ResponseFuture<F, B, L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = matches!(self.state, State::Own { .. });
        f.debug_struct("ResponseFuture").field("is_own", &is_own).finish_non_exhaustive()
    }
}
