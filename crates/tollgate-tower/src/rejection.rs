//! [`Rejection`]: a request that the layer answers itself, and what may be its answer.

use core::pin::pin;
use core::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, Method, Response, StatusCode};
use http_body::Body;
use tollgate_http::{Problem, grpc_content_type};

use crate::key::Head;

/// A request that the layer answers itself: it is denied, or has no key. This is the argument of
/// [`on_denied`](crate::RateLimitLayer::on_denied).
///
/// It is a [`Problem`], which tells the reason ([`kind`](Problem::kind)), the
/// [`wait`](Problem::wait), the violated [`quota`](Problem::quota) with its
/// [`limit`](Problem::limit) and the permits [`remaining`](Problem::remaining), and the key that is
/// [`wanted`](Problem::wanted).
///
/// ```
/// use std::sync::Arc;
/// use http::Response;
/// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer, Rejection};
///
/// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
/// let layer = RateLimitLayer::new(limiter).on_denied(|denied: Rejection<'_>| {
///     let text = match (denied.quota(), denied.retry_after()) {
///         (Some(quota), Some(seconds)) => format!("{quota} is used up: wait for {seconds} s\n"),
///         _ => format!("{}\n", denied.status()),
///     };
///     Response::builder().status(denied.status()).body(text).unwrap()
/// });
/// # let _ = layer;
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rejection<'a> {
    problem: &'a Problem<'a>,
    head: Head<'a>,
    /// The content type of the answer to a gRPC call.
    grpc: Option<&'static str>,
}

impl<'a> Rejection<'a> {
    pub(crate) fn new(problem: &'a Problem<'a>, head: &Head<'a>, has_grpc: bool) -> Self {
        // Caches store answers with status 200 to other methods.
        let is_post = has_grpc && *head.method == Method::POST;
        let content_type = if is_post { head.headers.get(CONTENT_TYPE) } else { None };
        let grpc = content_type.and_then(|value| grpc_content_type(value.as_bytes()));
        Self { problem, head: *head, grpc }
    }

    /// Whether the request is a [gRPC call](crate::RateLimitLayer::grpc). Its standard answer has the
    /// status code 200.
    #[must_use]
    pub const fn is_grpc(&self) -> bool {
        self.grpc.is_some()
    }

    /// The standard answer: problem details (RFC 9457), or the status of a gRPC call. The layer
    /// adds the fields about limits to it as to any other.
    #[must_use]
    pub fn answer(&self) -> Response<String> {
        let Some(content_type) = self.grpc else { return standard(self.problem) };
        let mut response = Response::new(String::new());
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.problem.write_grpc(|name, value| {
            // All values are printable ASCII.
            if let Ok(value) = HeaderValue::from_bytes(value) {
                fields.insert(HeaderName::from_static(name), value);
            }
        });
        response
    }
}

/// Problem details.
pub(crate) fn standard<T: From<String>>(problem: &Problem<'_>) -> Response<T> {
    let mut response = Response::new(problem.to_json().into());
    *response.status_mut() = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

tollgate_http::rejection_of_http!();

/// What [`on_denied`](crate::RateLimitLayer::on_denied) may return: a [`Response`] with a body such
/// as a `String` or `http_body_util::Full<Bytes>`. With the feature `axum` it is anything that
/// implements axum's `IntoResponse`, such as a tuple of a status and `Json`.
///
/// The body has to be there at once. If it is a stream that waits, or fails, the layer sends the
/// standard answer.
///
/// This trait is sealed: only these types implement it.
///
/// ```
/// use http::{Response, StatusCode};
/// use tollgate_tower::{IntoAnswer, Rejection};
///
/// /// An own answer for several layers: `layer.on_denied(busy)`.
/// fn busy(_: Rejection<'_>) -> impl IntoAnswer + use<> {
///     let mut response = Response::new("the service is busy\n".to_owned());
///     *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
///     response
/// }
/// # let layer = tollgate_tower::RateLimitLayer::new(tollgate_tower::DirectLimiter::new(
/// #     tollgate_tower::Quota::per_second(100),
/// # )?.into());
/// # let _ = layer.on_denied(busy);
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a response",
    note = "return a `Response<String>`, or with the feature `axum` anything that implements `IntoResponse`"
)]
pub trait IntoAnswer: sealed::Sealed {
    /// The response, if its body is there.
    #[doc(hidden)]
    fn into_answer(self) -> Option<Response<Bytes>>;
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(feature = "axum")]
impl<T: axum::response::IntoResponse> sealed::Sealed for T {}

#[cfg(feature = "axum")]
impl<T: axum::response::IntoResponse> IntoAnswer for T {
    fn into_answer(self) -> Option<Response<Bytes>> {
        whole(self.into_response())
    }
}

// These are the responses that implement `IntoResponse`, so that the feature only adds types.
#[cfg(not(feature = "axum"))]
impl<B> sealed::Sealed for Response<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn core::error::Error + Send + Sync>>,
{
}

#[cfg(not(feature = "axum"))]
impl<B> IntoAnswer for Response<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn core::error::Error + Send + Sync>>,
{
    fn into_answer(self) -> Option<Response<Bytes>> {
        whole(self)
    }
}

/// The response with its whole body, if that is there.
fn whole<B: Body<Data = Bytes>>(response: Response<B>) -> Option<Response<Bytes>> {
    let (parts, body) = response.into_parts();
    let (mut body, mut context) = (pin!(body), Context::from_waker(Waker::noop()));
    let mut bytes = Bytes::new();
    loop {
        match body.as_mut().poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(first) if bytes.is_empty() => bytes = first,
                Ok(next) => {
                    let mut both = BytesMut::from(bytes);
                    both.extend_from_slice(&next);
                    bytes = both.freeze();
                }
                // Trailers.
                Err(_) => {}
            },
            Poll::Ready(None) => return Some(Response::from_parts(parts, bytes)),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return None,
        }
    }
}
