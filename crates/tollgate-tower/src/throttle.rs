//! [`ThrottleLayer`]: the requests of a client, at a rate and as their server wishes.

use core::fmt;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher as _, Hasher};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::{HeaderMap, StatusCode, header};
use tokio::time::Instant;
use tollgate::Decision;
use tollgate_wait::{Limit, TokioTimer, WaitError, WaitingLimiter};
use tower_layer::Layer;
use tower_service::Service;

/// Delays the requests of a client to a rate for each key, such as a host, and obeys `Retry-After`.
/// (Feature `client`.)
///
/// Requests of one key wait in one line: first come, first served. After an answer with 429 or 503
/// and `Retry-After`, no further request of its key is sent before that time has passed. A request
/// that cannot be sent in time fails with [`ThrottleError::Wait`]; it is not sent. The timers are
/// those of tokio.
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
    /// such as `String` or `u64`, and `retry_after` the time that
    /// an answer asks for: [`retry_after`](retry_after()) reads it.
    pub fn new(limiter: Arc<L>, key: K, retry_after: A) -> Self {
        let polite = Polite { limiter, pauses: Mutex::default(), hashes: RandomState::new() };
        let waiting = Arc::new(WaitingLimiter::new(Arc::new(polite)).timer(TokioTimer));
        let (within, longest) = (Duration::from_secs(60), Duration::from_secs(3600));
        Self { waiting, key, retry_after, within, longest }
    }

    /// How long a request waits; a minute by default.
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// The longest time that a `Retry-After` can ask for; an hour by default. A longer one is cut.
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

impl<S, L, K, A, R, Q> Service<R> for Throttle<S, L, K, A>
where
    S: Service<R, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
    L: Limit<Q, Grant: Send> + Send + Sync + 'static,
    K: Fn(&R) -> Q,
    Q: Clone + Send + Sync + 'static,
    A: Fn(&S::Response) -> Option<Duration> + Clone + Send + 'static,
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
            let answer = inner.call(request).await.map_err(ThrottleError::Inner)?;
            if let Some(pause) = retry_after(&answer) {
                waiting.limiter().pause(&key, pause.min(longest));
            }
            Ok(answer)
        })
    }
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

/// The time that an answer asks for: that of `Retry-After`, in seconds or as a date, of an answer
/// with 429 or 503.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue, StatusCode, header};
/// use tollgate_tower::retry_after;
///
/// let fields = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from(8))]);
/// assert_eq!(retry_after(StatusCode::TOO_MANY_REQUESTS, &fields), Some(Duration::from_secs(8)));
/// assert_eq!(retry_after(StatusCode::OK, &fields), None);
/// ```
#[must_use]
pub fn retry_after(status: StatusCode, fields: &HeaderMap) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let value = fields.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date that has passed asks for no time.
    httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok()
}

/// The most keys with a pause.
const MOST_PAUSES: usize = 10_000;

/// A limiter that grants no permit of a key while its server has asked for a pause.
struct Polite<L> {
    limiter: Arc<L>,
    /// The ends of the pauses, by the hashes of the keys.
    pauses: Mutex<HashMap<u64, Instant>>,
    hashes: RandomState,
}

impl<L> Polite<L> {
    fn hash<Q>(&self, key: &Q) -> u64
    where
        L: Limit<Q>,
    {
        let mut state = self.hashes.build_hasher();
        self.limiter.hash_key(key, &mut state);
        state.finish()
    }

    fn pause<Q>(&self, key: &Q, pause: Duration)
    where
        L: Limit<Q>,
    {
        let key = self.hash(key);
        let now = Instant::now();
        let Some(end) = now.checked_add(pause) else { return };
        let mut pauses = self.pauses();
        if pauses.len() >= MOST_PAUSES && !pauses.contains_key(&key) {
            pauses.retain(|_, end| *end > now);
            if pauses.len() >= MOST_PAUSES {
                return;
            }
        }
        let known = pauses.entry(key).or_insert(end);
        *known = (*known).max(end);
    }

    /// The rest of the key's pause.
    fn left<Q>(&self, key: &Q) -> Duration
    where
        L: Limit<Q>,
    {
        let key = &self.hash(key);
        let mut pauses = self.pauses();
        let left = pauses.get(key).map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            pauses.remove(key);
        }
        left
    }

    /// The map is whole after each change, so a panic elsewhere does no harm to it.
    fn pauses(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Limit<Q>, Q> Limit<Q> for Polite<L> {
    type Grant = L::Grant;

    fn hash_key<H: Hasher>(&self, key: &Q, state: &mut H) {
        self.limiter.hash_key(key, state);
    }

    fn look(&self, key: &Q, cost: u32) -> Result<Decision, WaitError> {
        self.limiter.look(key, cost)
    }

    fn decide(&self, key: &Q, cost: u32) -> Result<Result<L::Grant, Duration>, WaitError> {
        let left = self.left(key);
        if left.is_zero() { self.limiter.decide(key, cost) } else { Ok(Err(left)) }
    }

    fn earliest(&self, key: &Q, permits: u64) -> Duration {
        self.limiter.earliest(key, permits).max(self.left(key))
    }

    fn reading(&self) -> u64 {
        self.limiter.reading()
    }
}

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
