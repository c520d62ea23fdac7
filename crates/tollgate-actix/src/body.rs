//! The body of a response to a request that is in flight.

use core::pin::Pin;
use core::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;
use tollgate_http::middleware::RequestInFlight;

pin_project! {
    /// A body whose request is in flight until it has ended, has failed, or is dropped. It is boxed, so
    /// that the bodies of other requests have no room for it.
    struct InFlightBody<B> {
        // `None` once it is over.
        #[pin]
        body: Option<B>,
        // It goes after the body.
        in_flight: Option<RequestInFlight>,
    }
}

/// The body of the inner service. It keeps the request in flight, if a concurrency limit counts it.
pub(crate) fn of_inner<B: MessageBody + 'static>(body: B, in_flight: Option<RequestInFlight>) -> EitherBody<B> {
    match in_flight {
        Some(in_flight) if !is_empty(&body) => {
            EitherBody::right(BoxBody::new(InFlightBody { body: Some(body), in_flight: Some(in_flight) }))
        }
        // Without a body, the request is over with the head.
        _ => EitherBody::left(body),
    }
}

fn is_empty(body: &impl MessageBody) -> bool {
    matches!(body.size(), BodySize::None | BodySize::Sized(0))
}

impl<B: MessageBody> MessageBody for InFlightBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.as_ref().map_or(BodySize::None, MessageBody::size)
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let part = ready!(body.poll_next(context));
        if !matches!(part, Some(Ok(_))) {
            this.body.set(None);
            *this.in_flight = None;
        }
        Poll::Ready(part)
    }
}
