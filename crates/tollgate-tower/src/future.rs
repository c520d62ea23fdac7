//! The future of a response.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;

use crate::body::ResponseBody;
use crate::charge::Charge;
use crate::gate::Gate;
use crate::key::KeyExtractor;

pin_project! {
    /// The future of a response: that of the inner service, or of the layer's own answer. It is not
    /// boxed.
    pub struct ResponseFuture<F, L: Gate<X>, X: KeyExtractor> {
        #[pin]
        state: State<F, L, X>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, L: Gate<X>, X: KeyExtractor> {
        Inner {
            #[pin]
            future: F,
            charge: Option<Charge<L, X>>,
        },
        Own { response: Option<Response<Bytes>> },
    }
}

impl<F, L: Gate<X>, X: KeyExtractor> ResponseFuture<F, L, X> {
    pub(crate) const fn inner(future: F, charge: Option<Charge<L, X>>) -> Self {
        Self { state: State::Inner { future, charge } }
    }

    pub(crate) const fn own(response: Response<Bytes>) -> Self {
        Self { state: State::Own { response: Some(response) } }
    }
}

impl<F, L, X, B, E> Future for ResponseFuture<F, L, X>
where
    F: Future<Output = Result<Response<B>, E>>,
    L: Gate<X>,
    X: KeyExtractor,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProjection::Inner { future, charge } => ready!(future.poll(context)).map(|mut response| {
                if let Some(charge) = charge.take() {
                    charge.answered(response.status(), response.headers_mut());
                }
                response.map(ResponseBody::inner)
            }),
            StateProjection::Own { response } => match response.take() {
                Some(response) => Ok(response.map(ResponseBody::own)),
                // The answer has been taken, so none is left.
                None => return Poll::Pending,
            },
        })
    }
}

impl<F, L: Gate<X>, X: KeyExtractor> fmt::Debug for ResponseFuture<F, L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = matches!(self.state, State::Own { .. });
        f.debug_struct("ResponseFuture").field("is_own", &is_own).finish_non_exhaustive()
    }
}
