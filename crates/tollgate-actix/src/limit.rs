//! [`RateLimit`]: the limit of a service and its options.

use core::fmt;
use core::future::{Ready, ready};
#[cfg(feature = "wait")]
use core::time::Duration;
use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::{Error, Responder};
use tollgate_http::middleware::{AtOnce, Limits, Missing, NoKey, OnAnswer, Options, Settings, ShadowSwitch, Shared};
use tollgate_http::{Headers, PolicyError, QuotaUnit};

use crate::answer::Value;
use crate::answered::AnswerHead;
use crate::gate::Gate;
use crate::key::{Actix, Head, KeyExtractor};
use crate::middleware::RateLimitMiddleware;
use crate::rejection::Rejection;

/// Limits the requests to a service, a scope, a resource or a route.
///
/// Make it outside the closure that makes the `App`, and clone it inside: the clones share the
/// limiter, so the workers do. Limits with the same `Arc` share it, too. [The crate](crate)
/// describes the path of a request.
///
/// ```no_run
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use actix_web::{App, HttpServer, http::Method};
/// use tollgate_actix::{ClientIp, Limiter, Quota, RateLimit};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(100))?);
/// let limit = RateLimit::new(Arc::clone(&limiter))
///     .key(ClientIp::peer())
///     .skip(|head| head.uri.path() == "/health")
///     .cost(|head| if head.method == Method::GET { 1 } else { 5 });
/// HttpServer::new(move || App::new().wrap(limit.clone())).bind(("127.0.0.1", 8080))?.run().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a limit does nothing until a service is wrapped in it"]
pub struct RateLimit<L, X: KeyExtractor = NoKey> {
    shared: Arc<Shared<Actix, L, X>>,
}

impl<L> RateLimit<L> {
    /// A limit by this limiter, without a key yet.
    pub fn new(limiter: Arc<L>) -> Self {
        let limits = Limits::new(limiter, Options::default());
        Self { shared: Arc::new(Shared::new(limits, NoKey, Settings::default())) }
    }
}

impl<L, X: KeyExtractor> RateLimit<L, X> {
    /// The key of requests: an extractor, or a tuple of extractors. Resets
    /// [`on_missing`](Self::on_missing).
    pub fn key<Y>(self, extractor: Y) -> RateLimit<L, Y>
    where
        Y: KeyExtractor,
        L: Gate<Y>,
    {
        let shared = Shared::new(self.shared.limits.clone(), extractor, self.shared.settings.clone());
        RateLimit { shared: Arc::new(shared) }
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
    /// send such requests, so use `true` only where the service does no work for them. CORS
    /// middleware outside this one is better: it answers preflights, and pages can read denials.
    pub fn skip_preflights(self, skip: bool) -> Self {
        self.with(|shared| shared.settings.skip_preflights = skip)
    }

    /// The answers after which the permits are refunded, by their status, header fields and
    /// extensions; none by default. The permits are charged before the service works, so a client
    /// that hangs up keeps its charge.
    ///
    /// An inner service that fails has the answer that its error becomes. If `refund` panics, the
    /// permits are refunded. See [`refund_unanswered`](Self::refund_unanswered) for a cancelled
    /// request.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::http::StatusCode;
    /// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
    ///
    /// /// A handler puts it into the extensions of an answer that is to cost nothing.
    /// struct Free;
    ///
    /// // Failed log-ins count, and successful ones do not.
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
    /// let limit = RateLimit::new(limiter).refund_when(|answer| {
    ///     answer.status != StatusCode::UNAUTHORIZED || answer.extensions.contains::<Free>()
    /// });
    /// # let _ = limit;
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    pub fn refund_when(self, refund: impl Fn(&AnswerHead<'_>) -> bool + Send + Sync + 'static) -> Self
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
    /// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
    ///
    /// /// A handler puts it into the extensions of its answer.
    /// struct Tokens(u32);
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(10_000))?);
    /// let limit = RateLimit::new(limiter)
    ///     .cost_after(|answer| answer.extensions.get().map_or(0, |&Tokens(tokens)| tokens));
    /// # let _ = limit;
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    pub fn cost_after(self, cost: impl Fn(&AnswerHead<'_>) -> u32 + Send + Sync + 'static) -> Self
    where
        L: AtOnce,
    {
        self.with_answers(|on_answer| on_answer.cost_after = Some(Arc::new(cost)))
    }

    /// Whether an admitted request gets the extension [`Admitted`](crate::Admitted), which tells
    /// handlers the permits left; `false` by default. It costs a few allocations.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::{App, web};
    /// use tollgate_actix::{Admitted, DirectLimiter, Quota, RateLimit};
    ///
    /// async fn hello(admitted: web::ReqData<Admitted>) -> String {
    ///     format!("{} of {} left", admitted.remaining(), admitted.limit())
    /// }
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimit::new(limiter).tell_handlers(true);
    /// let app = App::new().route("/", web::get().to(hello)).wrap(limit);
    /// # drop(app);
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    pub fn tell_handlers(self, tell: bool) -> Self
    where
        L: AtOnce,
    {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.left = tell))
    }

    /// Whether the permits of a request without an answer are refunded; `false` by default. Such a
    /// request has a closed connection, or an inner service that panicked. By default its permits
    /// stay charged, because work was done, and a client could otherwise close its connection for a
    /// refund.
    ///
    /// By default actix-web continues a request whose client has closed its half of an HTTP/1
    /// connection. With `HttpServer::h1_allow_half_closed(false)` it stops the request.
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

    /// The answer to each request that the middleware answers itself, in place of problem details
    /// (RFC 9457): a denied request, and one without a key. [`Rejection`] tells the status, the
    /// reason, the violated quota and the wait; [`answer`](Rejection::answer) is the standard
    /// answer.
    ///
    /// `answer` returns any [`Responder`]. `Retry-After` and the fields about limits are added to
    /// it, and `Cache-Control: no-store` if it has no `Cache-Control`. If `answer` panics, nothing
    /// is charged.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::Either;
    /// use actix_web::web::Html;
    /// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimit::new(limiter).on_denied(|denied| {
    ///     let accept = denied.head().headers.get("accept");
    ///     if accept.is_some_and(|accept| accept.as_bytes().starts_with(b"text/html")) {
    ///         Either::Left((Html::new("<h1>Too many requests</h1>"), denied.status()))
    ///     } else {
    ///         Either::Right(denied.answer())
    ///     }
    /// });
    /// # let _ = limit;
    /// # Ok::<(), tollgate_actix::BuildError>(())
    /// ```
    pub fn on_denied<T, R>(self, answer: T) -> Self
    where
        T: Fn(Rejection<'_>) -> R + Send + Sync + 'static,
        R: Responder + 'static,
    {
        let answer = move |denied: Rejection<'_>| {
            let request = denied.head().request;
            answer(denied).respond_to(request).map_into_boxed_body()
        };
        self.with(|shared| shared.settings.answers = Some(Arc::new(answer)))
    }

    /// How long a request over the limit waits for its permits; zero by default. (Feature `wait`.)
    ///
    /// Requests of one key wait in one line: first come, first served. A request whose permits are
    /// further away is answered at once, as any denied request, as far as the quotas tell: by a
    /// sliding counter it waits for the whole time. The answer to a request that has waited tells the
    /// permits left after the wait. A request that is cancelled leaves the line, and is charged
    /// nothing. [`max_waiters`](Self::max_waiters) bounds the lines.
    ///
    /// The clones of a limit share the lines. Another limit with the same limiter has lines of its
    /// own. The timers are those of tokio. Each request takes an allocation.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate_actix::{DirectLimiter, Quota, RateLimit};
    ///
    /// // 10 requests a second. Others wait for at most 2 seconds: about 20 at a time.
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(10))?);
    /// let limit = RateLimit::new(limiter).wait(Duration::from_secs(2));
    /// # let _ = limit;
    /// # Ok::<(), tollgate_actix::BuildError>(())
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
    /// once.
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

    fn with_answers(self, change: impl FnOnce(&mut OnAnswer<Actix>)) -> Self {
        self.with(|shared| {
            change(Arc::make_mut(shared.settings.on_answer.get_or_insert_default()));
            shared.limits = shared.limits.with(|options| options.refunds = true);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Shared<Actix, L, X>)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }
}

impl<L, X: KeyExtractor> Clone for RateLimit<L, X> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S, B, L, X> Transform<S, ServiceRequest> for RateLimit<L, X>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
    L: Gate<X>,
    X: KeyExtractor,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = RateLimitMiddleware<S, L, X>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        ready(Ok(RateLimitMiddleware::new(inner, Arc::clone(&self.shared))))
    }
}

impl<L: fmt::Debug, X: KeyExtractor> fmt::Debug for RateLimit<L, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("limiter", self.limiter()).finish_non_exhaustive()
    }
}
