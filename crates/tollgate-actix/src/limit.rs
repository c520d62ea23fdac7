//! The limit of a service, and how it is set up.

use core::fmt;
use core::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::StatusCode;
use actix_web::{Error, HttpResponse};
use tollgate_http::middleware::{Limits, Options, ShadowSwitch};
use tollgate_http::{Headers, PolicyError, Problem, QuotaUnit};

use crate::gate::Gate;
use crate::key::{Head, KeyExtractor, Missing, NoKey};
use crate::middleware::RateLimitMiddleware;
use crate::settings::Settings;
use crate::shared::Shared;

/// Limits the requests to a service, a scope, a resource or a route.
///
/// Make it outside the closure that makes the `App`, and clone it inside: the clones share the
/// limiter, so that the workers do. Several limits that are given the same `Arc` share it as well.
/// See [the crate](crate) for what a request goes through.
///
/// ```no_run
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use actix_web::{App, HttpServer, http::Method};
/// use tollgate::{Limiter, Quota};
/// use tollgate_actix::{ClientIp, RateLimit};
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
    shared: Arc<Shared<L, X>>,
}

impl<L> RateLimit<L> {
    /// A limit by this limiter, without a key yet.
    pub fn new(limiter: Arc<L>) -> Self {
        let limits = Limits::new(limiter, Options::default());
        Self { shared: Arc::new(Shared::new(limits, NoKey, Settings::default())) }
    }
}

impl<L, X: KeyExtractor> RateLimit<L, X> {
    /// What requests are counted by: an extractor, or a tuple of them. Forgets what
    /// [`on_missing`](Self::on_missing) said.
    pub fn key<Y>(self, extractor: Y) -> RateLimit<L, Y>
    where
        Y: KeyExtractor,
        L: Gate<Y>,
    {
        let shared = Shared::new(self.shared.limits.clone(), extractor, self.shared.settings.clone());
        RateLimit { shared: Arc::new(shared) }
    }

    /// What happens to a request without a key; [`Missing::Reject`] unless said.
    pub fn on_missing(self, missing: Missing<X::Key>) -> Self {
        self.with(|shared| shared.missing = missing)
    }

    /// What a request costs; 1 unless said. A request of cost 0 is not limited.
    ///
    /// A request that costs more than the limit is answered with 422, or with 413 where
    /// [`unit`](Self::unit) is bytes. If `cost` panics, nothing is charged.
    pub fn cost(self, cost: impl Fn(&Head<'_>) -> u32 + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.settings.cost = Some(Arc::new(cost)))
    }

    /// Which requests are not limited; all are unless said. If `skip` panics, nothing is charged.
    pub fn skip(self, skip: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.settings.skip = Some(Arc::new(skip)))
    }

    /// Whether CORS preflights are not limited; they are unless said.
    ///
    /// A preflight is `OPTIONS` with `Origin` and `Access-Control-Request-Method`. Anybody can send
    /// such requests, so say `true` only where the service does no work for them: best with CORS
    /// middleware outside this one, which answers them and makes denials readable to pages.
    pub fn skip_preflights(self, skip: bool) -> Self {
        self.with(|shared| shared.settings.skip_preflights = skip)
    }

    /// For which answers the permits are given back, by their status code; for none unless said.
    ///
    /// An inner service that fails has the status of the answer that its error becomes. If `refund`
    /// panics, the permits are given back. A request that is cancelled is a matter of
    /// [`refund_unanswered`](Self::refund_unanswered).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::http::StatusCode;
    /// use tollgate::{DirectLimiter, Quota};
    /// use tollgate_actix::RateLimit;
    ///
    /// // Failed log-ins count, those that succeed do not.
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
    /// let limit = RateLimit::new(limiter).refund_when(|status| status != StatusCode::UNAUTHORIZED);
    /// # let _ = limit;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn refund_when(self, refund: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|shared| {
            shared.settings.refund_when = Some(Arc::new(refund));
            shared.limits = shared.limits.with(|options| options.refunds = true);
        })
    }

    /// Whether the permits are given back of a request that gets no answer, because its connection
    /// was closed, or the inner service panicked. They are kept unless said, because work was done,
    /// and a client could otherwise close its connection to get them back.
    ///
    /// By default actix-web goes on with a request whose client has closed its half of an HTTP/1
    /// connection. `HttpServer::h1_allow_half_closed(false)` makes it stop there.
    pub fn refund_unanswered(self, refund: bool) -> Self {
        self.with(|shared| {
            let refunds = refund || shared.settings.refund_when.is_some();
            shared.limits = shared.limits.with(|options| {
                options.refund_unanswered = refund;
                options.refunds = refunds;
            });
        })
    }

    /// The answer to a denied request; problem details (RFC 9457) unless said, and where `answer`
    /// gives `None`.
    ///
    /// `Retry-After` and the fields about limits are added to it, and `Cache-Control: no-store` if
    /// it has none. If `answer` panics, nothing is charged.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use actix_web::HttpResponseBuilder;
    /// use actix_web::http::StatusCode;
    /// use tollgate::{DirectLimiter, Quota};
    /// use tollgate_actix::RateLimit;
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
    /// let limit = RateLimit::new(limiter).on_denied(|problem, head| {
    ///     let is_page = head.headers.get("accept")?.to_str().ok()?.contains("text/html");
    ///     let status = StatusCode::from_u16(problem.status()).ok()?;
    ///     let mut page = HttpResponseBuilder::new(status);
    ///     is_page.then(|| page.content_type("text/html; charset=utf-8").body("<h1>Too many requests</h1>"))
    /// });
    /// # let _ = limit;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn on_denied<T>(self, answer: T) -> Self
    where
        T: Fn(&Problem<'_>, &Head<'_>) -> Option<HttpResponse> + Send + Sync + 'static,
    {
        self.with(|shared| shared.settings.on_denied = Some(Arc::new(answer)))
    }

    /// Whether denied requests pass all the same, as long as this switch is on.
    pub fn shadow(self, switch: ShadowSwitch) -> Self {
        self.with(|shared| shared.settings.shadow = Some(switch))
    }

    /// Which header fields tell clients about their limits; [`Headers::Draft11`] unless said.
    /// `Retry-After` is told in any case.
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.headers = headers))
    }

    /// Whether `RateLimit` tells what is left of each quota to an admitted request; of the tightest
    /// alone unless said. [`Headers::XRateLimit`] tells the tightest in any case.
    ///
    /// A list of all costs an allocation.
    pub fn all_limits(self, all: bool) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.all_limits = all))
    }

    /// The name of quotas without a [name of their own](tollgate::Quota::named), as clients see it;
    /// `default` unless said. Of several quotas of a key, each has its window behind it, such as
    /// `default-1m`. The quotas of a joint limiter go by the names of their dimensions; those that
    /// cannot be told are called `dimension-1` and so on.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the name is empty, longer than 32 bytes or not printable ASCII.
    pub fn name(self, name: &str) -> Result<Self, PolicyError> {
        let mut named = Ok(());
        let limit = self.with(|shared| shared.limits = shared.limits.with(|options| named = options.set_name(name)));
        named.map(|()| limit)
    }

    /// What permits count; [`QuotaUnit::Requests`] unless said.
    pub fn unit(self, unit: QuotaUnit) -> Self {
        self.with(|shared| shared.limits = shared.limits.with(|options| options.unit = unit))
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Arc<L> {
        self.shared.limits.limiter()
    }

    fn with(mut self, change: impl FnOnce(&mut Shared<L, X>)) -> Self {
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
