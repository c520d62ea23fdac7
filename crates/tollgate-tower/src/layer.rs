//! [`RateLimitLayer`]: the layer and its options.

use core::fmt;
#[cfg(feature = "wait")]
use core::time::Duration;
use std::sync::Arc;

use http::response::Parts;
use tollgate_http::middleware::{AtOnce, Limits, Missing, NoKey, OnAnswer, Options, Settings, ShadowSwitch, Shared};
use tollgate_http::{Headers, PolicyError, QuotaUnit};
use tower_layer::Layer;

use crate::answer::Value;
use crate::gate::Gate;
use crate::key::{Head, KeyExtractor, Tower};
use crate::rejection::{IntoAnswer, Rejection};
use crate::service::RateLimit;

/// Limits the requests to a service.
///
/// The limiter is shared by the clones of a layer, by the services that it makes, and by layers
/// with the same `Arc`. [The crate](crate) describes the path of a request.
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_tower::{ClientIp, Limiter, Quota, RateLimitLayer};
///
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(100))?);
/// let layer = RateLimitLayer::new(Arc::clone(&limiter))
///     .key(ClientIp::peer())
///     .skip(|head| head.uri.path() == "/health")
///     .cost(|head| if head.method == http::Method::GET { 1 } else { 5 });
/// # let _ = layer;
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[must_use = "a layer does nothing until it is put in front of a service"]
pub struct RateLimitLayer<L, X: KeyExtractor = NoKey> {
    shared: Arc<Shared<Tower, L, X>>,
}

impl<L> RateLimitLayer<L> {
    /// A layer in front of this limiter, without a key yet.
    pub fn new(limiter: Arc<L>) -> Self {
        let limits = Limits::new(limiter, Options::default());
        Self { shared: Arc::new(Shared::new(limits, NoKey, Settings::default())) }
    }
}

impl<L, X: KeyExtractor> RateLimitLayer<L, X> {
    /// The key of requests: an extractor, or a tuple of extractors. Resets
    /// [`on_missing`](Self::on_missing).
    pub fn key<Y>(self, extractor: Y) -> RateLimitLayer<L, Y>
    where
        Y: KeyExtractor,
        L: Gate<Y>,
    {
        let shared = Shared::new(self.shared.limits.clone(), extractor, self.shared.settings.clone());
        RateLimitLayer { shared: Arc::new(shared) }
    }

    /// The treatment of a request without a key; [`Missing::Reject`] by default.
    pub fn on_missing(self, missing: Missing<X::Key>) -> Self {
        self.with(|shared| shared.missing = missing)
    }

    /// The cost of a request; 1 by default. A request of cost 0 is not limited.
    ///
    /// The answer to a request that costs more than the limit is 422, or 413 where
    /// [`unit`](Self::unit) is bytes. [`shadow`](Self::shadow) and a limiter in
    /// [shadow mode](tollgate::LimiterBuilder::shadow) let the request pass. If `cost` panics,
    /// nothing is charged.
    pub fn cost(self, cost: impl Fn(&Head<'_>) -> u32 + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.settings.cost = Some(Arc::new(cost)))
    }

    /// The requests that are not limited; none by default. If `skip` panics, nothing is charged.
    /// [`ClientIp::address`](crate::ClientIp::address) has an example for own networks.
    pub fn skip(self, skip: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.settings.skip = Some(Arc::new(skip)))
    }

    /// Whether CORS preflights are not limited; `false` by default.
    ///
    /// A preflight is `OPTIONS` with `Origin` and `Access-Control-Request-Method`. Any client can
    /// send such requests, so use `true` only where the service does no work for them. A CORS layer
    /// outside this one is better: it answers preflights, and pages can read denials.
    pub fn skip_preflights(self, skip: bool) -> Self {
        self.with(|shared| shared.settings.skip_preflights = skip)
    }

    /// The answers after which the permits are refunded, by their status, header fields and
    /// extensions; none by default. The permits are charged before the service works, so a client
    /// that hangs up keeps its charge.
    ///
    /// If `refund` panics, the permits are refunded. See
    /// [`refund_unanswered`](Self::refund_unanswered) for a service that fails without an answer,
    /// and for a cancelled request.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use http::StatusCode;
    /// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
    ///
    /// /// A handler puts it into the extensions of an answer that is to cost nothing.
    /// #[derive(Clone)]
    /// struct Free;
    ///
    /// // Failed log-ins count, and successful ones do not.
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
    /// let layer = RateLimitLayer::new(limiter).refund_when(|answer| {
    ///     answer.status != StatusCode::UNAUTHORIZED || answer.extensions.get::<Free>().is_some()
    /// });
    /// # let _ = layer;
    /// # Ok::<(), tollgate_tower::BuildError>(())
    /// ```
    pub fn refund_when(self, refund: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self
    where
        L: AtOnce,
    {
        self.with_answers(|on_answer| on_answer.refund_when = Some(Arc::new(refund)))
    }

    /// A further cost of a request, known by its answer: rows read, tokens generated. It is charged
    /// to the same keys when the answer is there, after [`refund_when`](Self::refund_when).
    ///
    /// If fewer permits are left, those are taken, and the next request is denied. The rest is not
    /// owed. So let [`cost`](Self::cost) be an estimate if answers cost much. A request without an
    /// answer keeps the charge of its `cost`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
    ///
    /// /// A handler puts it into the extensions of its answer.
    /// #[derive(Clone)]
    /// struct Tokens(u32);
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(10_000))?);
    /// let layer = RateLimitLayer::new(limiter)
    ///     .cost_after(|answer| answer.extensions.get().map_or(0, |&Tokens(tokens)| tokens));
    /// # let _ = layer;
    /// # Ok::<(), tollgate_tower::BuildError>(())
    /// ```
    pub fn cost_after(self, cost: impl Fn(&Parts) -> u32 + Send + Sync + 'static) -> Self
    where
        L: AtOnce,
    {
        self.with_answers(|on_answer| on_answer.cost_after = Some(Arc::new(cost)))
    }

    /// Whether an admitted request gets the extension [`Admitted`](crate::Admitted), which tells
    /// inner services the permits left; `false` by default. It costs a few allocations.
    ///
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn main() -> Result<(), tollgate_tower::BuildError> {
    /// use std::sync::Arc;
    /// use axum::{Extension, Router, routing::get};
    /// use tollgate_tower::{Admitted, DirectLimiter, Quota, RateLimitLayer};
    ///
    /// async fn hello(Extension(admitted): Extension<Admitted>) -> String {
    ///     format!("{} of {} left", admitted.remaining(), admitted.limit())
    /// }
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimitLayer::new(limiter).tell_handlers(true);
    /// let app: Router = Router::new().route("/", get(hello)).layer(limit);
    /// # let _ = app;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "axum"))]
    /// # fn main() {}
    /// ```
    pub fn tell_handlers(self, tell: bool) -> Self
    where
        L: AtOnce,
    {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.left = tell))
    }

    /// Whether the permits of a request without an answer are refunded; `false` by default. Such a
    /// request has a closed connection, a dropped future, or an inner service that failed or
    /// panicked. By default its permits stay charged, because work was done, and a client could
    /// otherwise close its connection for a refund.
    pub fn refund_unanswered(self, refund: bool) -> Self
    where
        L: AtOnce,
    {
        self.with(|shared| {
            let refunds = refund || shared.settings.on_answer.is_some();
            shared.limits = shared.limits.with(|options| {
                options.refund_unanswered = refund;
                options.refunds = refunds;
            });
        })
    }

    /// The answer to each request that the layer answers itself, in place of problem details (RFC
    /// 9457): a denied request, and one without a key. [`Rejection`] tells the status, the reason,
    /// the violated quota and the wait; [`answer`](Rejection::answer) is the standard answer.
    ///
    /// With the feature `axum`, `answer` returns anything that implements `IntoResponse`; without,
    /// a `Response<String>` or another [`IntoAnswer`]. `Retry-After` and the fields about limits are
    /// added to it, and `Cache-Control: no-store` if it has no `Cache-Control`. If `answer` panics,
    /// nothing is charged.
    ///
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn main() -> Result<(), tollgate_tower::BuildError> {
    /// use std::sync::Arc;
    /// use axum::response::{Html, IntoResponse};
    /// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let layer = RateLimitLayer::new(limiter).on_denied(|denied| {
    ///     let accept = denied.head().headers.get("accept");
    ///     if accept.is_some_and(|accept| accept.as_bytes().starts_with(b"text/html")) {
    ///         (denied.status(), Html("<h1>Too many requests</h1>")).into_response()
    ///     } else {
    ///         denied.answer().into_response()
    ///     }
    /// });
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "axum"))]
    /// # fn main() {}
    /// ```
    pub fn on_denied<T, R>(self, answer: T) -> Self
    where
        T: Fn(Rejection<'_>) -> R + Send + Sync + 'static,
        R: IntoAnswer,
    {
        self.with(|shared| {
            shared.settings.answers.on_denied = Some(Arc::new(move |denied| answer(denied).into_answer()))
        })
    }

    /// Whether gRPC calls get gRPC answers; `true` by default.
    ///
    /// A gRPC call is a POST with a content type of gRPC or gRPC-Web. The answer has status 200, the
    /// reason in `grpc-status`, `Cache-Control: no-store` and no body. Use `false` for a service
    /// without gRPC: its clients cannot turn the status of a denial into 200, which logs and alarms
    /// might count.
    pub fn grpc(self, grpc: bool) -> Self {
        self.with(|shared| shared.settings.answers.without_grpc = !grpc)
    }

    /// How long a request over the limit waits for its permits; zero by default. (Feature `wait`.)
    ///
    /// Requests of one key wait in one line: first come, first served. A request whose permits are
    /// further away is answered at once, as any denied request, as far as the quotas tell: by a
    /// sliding counter it waits for the whole time. The answer to a request that has waited tells the
    /// permits left after the wait. A request that is cancelled leaves the line, and is charged
    /// nothing. [`max_waiters`](Self::max_waiters) bounds the lines.
    ///
    /// The clones of a layer share the lines. Another layer with the same limiter has lines of its
    /// own. The timers are those of tokio. Each request takes an allocation.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate_tower::{DirectLimiter, Quota, RateLimitLayer};
    ///
    /// // 10 requests a second. Others wait for at most 2 seconds: about 20 at a time.
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(10))?);
    /// let layer = RateLimitLayer::new(limiter).wait(Duration::from_secs(2));
    /// # let _ = layer;
    /// # Ok::<(), tollgate_tower::BuildError>(())
    /// ```
    #[cfg(feature = "wait")]
    pub fn wait(self, within: Duration) -> Self
    where
        L: AtOnce,
    {
        self.with(|shared| shared.settings.waits = Arc::new(shared.settings.waits.within(within)))
    }

    /// How many requests may [wait](Self::wait) for one key, and for all keys; 100 and 10,000 by
    /// default. One more over the limit is answered at once.
    #[cfg(feature = "wait")]
    pub fn max_waiters(self, of_key: usize, of_all: usize) -> Self {
        self.with(|shared| shared.settings.waits = Arc::new(shared.settings.waits.max_waiters(of_key, of_all)))
    }

    /// Lets denied requests pass while this switch is on, also those that cost more than the limit.
    pub fn shadow(self, switch: ShadowSwitch) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.shadow = Some(switch)))
    }

    /// The header fields that tell clients their limits; [`Headers::Draft11`] by default.
    /// `Retry-After` is always written.
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.headers = headers))
    }

    /// Whether `RateLimit` shows each quota in the response to an admitted request; by default only
    /// the tightest. [`Headers::XRateLimit`] always shows the tightest.
    ///
    /// A list of several quotas costs an allocation.
    pub fn all_limits(self, all: bool) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.all_limits = all))
    }

    /// Whether `RateLimit-Policy`, which is the same in each answer, is only in answers to denied
    /// requests; `false` by default. An admitted request then costs less.
    pub fn policy_on_denial(self, on_denial: bool) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.policy_on_denial = on_denial))
    }

    /// The name that clients see of quotas without a [name of their own](tollgate::Quota::named);
    /// `default` by default, and `default-2` and so on inside of others without a name. If a key has
    /// several quotas, the window of each is appended, such as `default-1m`. Quotas of a joint
    /// limiter have the names of their dimensions. A name that a header field cannot hold is
    /// replaced by `dimension-1` and so on. A name that two limits of one answer have is logged,
    /// once (feature `tracing`).
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the name is empty, longer than 32 bytes or not printable ASCII.
    pub fn name(self, name: &str) -> Result<Self, PolicyError> {
        let mut named = Ok(());
        let limit = self.with(|shared| shared.limits = shared.limits.with(|options| named = options.set_name(name)));
        named.map(|()| limit)
    }

    /// The unit of permits; [`QuotaUnit::Requests`] by default.
    pub fn unit(self, unit: QuotaUnit) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.unit = unit))
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Arc<L> {
        self.shared.limits.limiter()
    }

    pub(crate) fn limits(&self) -> &Limits<L, Value> {
        &self.shared.limits
    }

    fn with_answers(self, change: impl FnOnce(&mut OnAnswer<Tower>)) -> Self {
        self.with(|shared| {
            change(Arc::make_mut(shared.settings.on_answer.get_or_insert_default()));
            shared.limits = shared.limits.with(|options| options.refunds = true);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Shared<Tower, L, X>)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }
}

impl<L, X: KeyExtractor> Clone for RateLimitLayer<L, X> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S, L: Gate<X>, X: KeyExtractor> Layer<S> for RateLimitLayer<L, X> {
    type Service = RateLimit<S, L, X>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.shared))
    }
}

impl<L: fmt::Debug, X: KeyExtractor> fmt::Debug for RateLimitLayer<L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("limiter", self.limiter()).finish_non_exhaustive()
    }
}
