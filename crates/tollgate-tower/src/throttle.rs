//! [`ThrottleLayer`]: the requests of a client, at a rate and as their server wishes.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;
use tollgate_http::{Pause, Polite};
use tollgate_wait::{Limit, TokioTimer, WaitError, WaitingLimiter};
use tower_layer::Layer;
use tower_service::Service;

/// Delays the requests of a client to a rate for each key, such as a host, and obeys `Retry-After`.
/// (Feature `client`.)
///
/// Requests of one key wait in one line: first come, first served. A request that cannot be sent in
/// time fails with [`ThrottleError::Wait`]; it is not sent. The timers are those of tokio.
///
/// After an answer with 429 or 503 and `Retry-After`, no further request of its key is sent before
/// that time has passed. Then requests go at the pace of the server:
/// - If the answer has `RateLimit-Policy` and `RateLimit`, one request is sent in each `w / q`
///   seconds of the exhausted policy. To each window is added the time that the answer took, because
///   requests can come closer together than they were sent. The pace holds for ten windows, and for
///   a minute at least. Then the limiter alone decides, in case the server allows more.
/// - Otherwise one request is sent in each further `Retry-After`, until the answer to one asks for no
///   time. Then the limiter alone decides.
///
/// The limiter's own rate holds all the time. Where all requests have the same key, as those over a
/// [`DirectLimiter`](crate::DirectLimiter), the whole client is delayed.
///
/// The layer works with any type of requests: also with `reqwest`, whose client is a service. The
/// example `polite_client` shows it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use http::{Request, Response};
/// use tollgate_tower::{Limiter, Quota, ThrottleLayer, retry_after};
///
/// let limiter = Arc::new(Limiter::<String>::new(Quota::per_second(10))?);
/// let layer = ThrottleLayer::new(
///     limiter,
///     |request: &Request<String>| request.uri().host().unwrap_or_default().to_owned(),
///     |answer: &Response<String>| retry_after(answer.status(), answer.headers()),
/// );
/// let layer = layer.within(Duration::from_secs(60));
/// # let _ = layer;
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[must_use = "a layer does nothing until it is put in front of a service"]
pub struct ThrottleLayer<L, K, A> {
    waiting: Arc<WaitingLimiter<Polite<L>, TokioTimer>>,
    key: K,
    retry_after: A,
    within: Duration,
    longest: Duration,
}

impl<L, K, A> ThrottleLayer<L, K, A> {
    /// A layer over this limiter. `key` tells the key of a request in a form that the limiter takes,
    /// such as `String` or `u64`, and `retry_after` the [`Pause`] that an answer asks for, or its time
    /// alone: [`retry_after`](retry_after()) reads it.
    pub fn new(limiter: Arc<L>, key: K, retry_after: A) -> Self {
        let waiting = Arc::new(WaitingLimiter::new(Arc::new(Polite::new(limiter))).timer(TokioTimer));
        let (within, longest) = (Duration::from_secs(60), Duration::from_secs(3600));
        Self { waiting, key, retry_after, within, longest }
    }

    /// How long a request waits; a minute by default.
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// The longest time between two requests that an answer can ask for; an hour by default. A longer
    /// one is cut.
    pub fn max_retry_after(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }
}

impl<S, L, K: Clone, A: Clone> Layer<S> for ThrottleLayer<L, K, A> {
    type Service = Throttle<S, L, K, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Throttle { inner, layer: self.clone() }
    }
}

impl<L, K: Clone, A: Clone> Clone for ThrottleLayer<L, K, A> {
    fn clone(&self) -> Self {
        let (key, retry_after) = (self.key.clone(), self.retry_after.clone());
        Self { waiting: Arc::clone(&self.waiting), key, retry_after, ..*self }
    }
}

/// A client whose requests wait. [`ThrottleLayer`] makes it.
pub struct Throttle<S, L, K, A> {
    inner: S,
    layer: ThrottleLayer<L, K, A>,
}

impl<S: Clone, L, K: Clone, A: Clone> Clone for Throttle<S, L, K, A> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, L, K, A, R, Q, P> Service<R> for Throttle<S, L, K, A>
where
    S: Service<R, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
    L: Limit<Q, Grant: Send> + Send + Sync + 'static,
    K: Fn(&R) -> Q,
    Q: Clone + Send + Sync + 'static,
    A: Fn(&S::Response) -> Option<P> + Clone + Send + 'static,
    P: Into<Pause>,
{
    type Response = S::Response;
    type Error = ThrottleError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (key, mut inner) = ((self.layer.key)(&request), self.inner.clone());
        let ThrottleLayer { within, longest, .. } = self.layer;
        let (waiting, retry_after) = (Arc::clone(&self.layer.waiting), self.layer.retry_after.clone());
        Box::pin(async move {
            waiting.acquire(key.clone()).within(within).await.map_err(ThrottleError::Wait)?;
            poll_fn(|context| inner.poll_ready(context)).await.map_err(ThrottleError::Inner)?;
            let sent = Instant::now();
            let answer = inner.call(request).await.map_err(ThrottleError::Inner)?;
            match retry_after(&answer) {
                Some(pause) => waiting.limiter().pause(&key, pause.into(), longest, sent),
                None => waiting.limiter().answered(&key, sent),
            }
            Ok(answer)
        })
    }
}

/// The [pause](Pause::asked) that an answer with 429 or 503 asks for, by `Retry-After` in seconds or as
/// a date, and the pace after it, by `RateLimit-Policy` and `RateLimit`.
///
/// ```
/// use std::time::Duration;
/// use http::{Response, StatusCode};
/// use tollgate_tower::{Pause, retry_after};
///
/// let answer = Response::builder().status(StatusCode::TOO_MANY_REQUESTS).header("retry-after", "8").body(())?;
/// let pause = Pause::from(Duration::from_secs(8));
/// assert_eq!(retry_after(answer.status(), answer.headers()), Some(pause));
/// assert_eq!(retry_after(StatusCode::OK, answer.headers()), None);
/// # Ok::<(), http::Error>(())
/// ```
#[must_use]
pub fn retry_after(status: StatusCode, fields: &HeaderMap) -> Option<Pause> {
    Pause::asked(status.as_u16(), |name| fields.get_all(name).iter().map(HeaderValue::as_bytes))
}

/// Why a request of a client has no answer.
///
/// ```
/// use tollgate_tower::ThrottleError;
///
/// fn is_sent<E>(error: &ThrottleError<E>) -> bool {
///     matches!(error, ThrottleError::Inner(_))
/// }
/// # let _ = is_sent::<()>;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThrottleError<E> {
    /// The request could not be sent in time.
    Wait(WaitError),
    /// The client failed.
    Inner(E),
}

impl<E: fmt::Display> fmt::Display for ThrottleError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(error) => write!(f, "the request was not sent: {error}"),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error> core::error::Error for ThrottleError<E> {}

impl<L, K, A> fmt::Debug for ThrottleLayer<L, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer")
            .field("within", &self.within)
            .field("max_retry_after", &self.longest)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, L, K, A> fmt::Debug for Throttle<S, L, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}
