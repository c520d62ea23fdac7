//! The body of a response.

use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tollgate_http::middleware::RequestInFlight;

pin_project! {
    /// The body of a response: that of the inner service, or the layer's own. Neither is copied.
    ///
    /// By a [concurrency limit](tollgate::Quota::concurrent), the request is in flight until the body
    /// has ended, has failed, or is dropped.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = SourceProjection]
    enum Source<B> {
        Inner {
            #[pin]
            body: B,
            // It goes after the body.
            in_flight: Option<RequestInFlight>,
        },
        /// The unread rest.
        Own { bytes: Bytes },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) const fn inner(body: B, in_flight: Option<RequestInFlight>) -> Self {
        Self { source: Source::Inner { body, in_flight } }
    }

    pub(crate) const fn own(bytes: Bytes) -> Self {
        Self { source: Source::Own { bytes } }
    }
}

/// An empty body.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::own(Bytes::new())
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data: From<Bytes>>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut source = self.project().source;
        match source.as_mut().project() {
            SourceProjection::Inner { mut body, in_flight } => {
                let frame = ready!(body.as_mut().poll_frame(context));
                let is_over = !matches!(frame, Some(Ok(_))) || body.is_end_stream();
                // The server may keep an ended body, but not its place.
                if is_over && in_flight.is_some() {
                    source.set(Source::Own { bytes: Bytes::new() });
                }
                Poll::Ready(frame)
            }
            SourceProjection::Own { bytes } => {
                let whole = core::mem::take(bytes);
                Poll::Ready(whole.has_remaining().then(|| Ok(Frame::data(whole.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Inner { body, .. } => body.is_end_stream(),
            Source::Own { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Inner { body, .. } => body.size_hint(),
            Source::Own { bytes } => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
        }
    }
}
