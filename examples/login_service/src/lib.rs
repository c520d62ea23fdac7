//! A log-in and an API with limits from a policy file, which may change while the service runs.

mod credentials;
mod observed;
mod passwords;

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use metrics_exporter_prometheus::PrometheusHandle;
use tollgate::{Clock, Dimensions, JointLimiter};
use tollgate_observe::ReloadMetrics;
use tollgate_policy::{Policy, Reloader, Target};
use tollgate_tower::{ClientAddress, ClientIp, RateLimitLayer, extension, matched_path};

use credentials::{ApiKey, Attempt};
use observed::Observed;
pub use passwords::{OneUser, Passwords};

/// The service. It waits nowhere: a request over a limit is denied at once.
pub struct Service {
    clients: Router,
    limiters: [Arc<dyn Target>; 2],
    observed: Arc<[Observed; 2]>,
}

impl Service {
    /// The service with the limits of a policy.
    ///
    /// # Errors
    ///
    /// When the policy lacks one of the dimensions `login`, `address`, `site`, `provider`, `key` and
    /// `endpoint` or has another, or a limiter cannot be built.
    pub fn new<C, P>(policy: &Policy, clients: ClientAddress, passwords: P, clock: C) -> Result<Self, Box<dyn Error>>
    where
        C: Clock + Clone + Send + Sync + 'static,
        P: Passwords,
    {
        const USED: [&str; 6] = ["login", "address", "site", "provider", "key", "endpoint"];
        if let Some(other) = policy.dimensions().iter().find(|it| !USED.contains(&it.name())) {
            return Err(format!("the service does not use the dimension `{}`: remove it", other.name()).into());
        }
        type Attempts = ((Arc<str>, IpAddr), IpAddr, IpAddr, IpAddr);
        let dimensions = ["login", "address", "site", "provider"];
        let (attempts, of_attempts) = limiter::<Attempts, C>("log-in", &policy.only(dimensions)?, clock.clone())?;
        // Of IPv6, networks of so many bits. An IPv4 address is a site and a provider of its own.
        let [site, provider] = [clients.clone().ipv6_prefix(48)?, clients.clone().ipv6_prefix(32)?].map(ClientIp::new);
        let address = ClientIp::new(clients);
        let login = RateLimitLayer::new(Arc::clone(&attempts))
            .key(((extension(Attempt::user), address.clone()), address, site, provider))
            .refund_when(|answer| answer.status.is_success());
        let (requests, of_requests) = limiter("api", &policy.only(["key", "endpoint"])?, clock)?;
        let api = RateLimitLayer::new(Arc::clone(&requests)).key((extension(ApiKey::id), matched_path()));

        // The last layer is the outermost: credentials come before the limit, which counts by them.
        let login = Router::new()
            .route("/login", post(log_in::<P>))
            .with_state(passwords)
            .route_layer(login)
            .route_layer(middleware::from_fn(credentials::attempt));
        let api = Router::new()
            .route("/api/time", get(time))
            .route_layer(api)
            .route_layer(middleware::from_fn(credentials::api_key));
        let observed = Arc::new([of_attempts, of_requests]);
        Ok(Self { clients: login.merge(api), limiters: [attempts, requests], observed })
    }

    /// What clients reach.
    ///
    /// - `POST /login` with a user and a password (HTTP Basic): failed attempts are limited by user
    ///   and address, and by address and IPv6 network for all users. An attempt is charged before its password is
    ///   checked, so a client that hangs up has used it. A right password refunds its permits.
    /// - `GET /api/time` with an `x-api-key`: limited by key, and as a whole.
    pub fn clients(&self) -> Router {
        self.clients.clone()
    }

    /// What operators reach, and clients must not, because it names users.
    ///
    /// - `GET /metrics` for a server of metrics.
    /// - `GET /denied`: the keys that were denied most.
    pub fn operators(&self, recorder: PrometheusHandle) -> Router {
        let [scraped, asked] = [(); 2].map(|()| Arc::clone(&self.observed));
        let metrics = async move || {
            scraped.iter().for_each(Observed::before_scrape);
            recorder.render()
        };
        let denied = async move || asked.iter().map(ToString::to_string).collect::<String>();
        Router::new().route("/metrics", get(metrics)).route("/denied", get(denied))
    }

    /// Follows a policy file, of which the service has this policy. What becomes of a change is in the
    /// log on the terminal and in the metrics.
    pub fn follow(&self, file: &Path, policy: Policy) -> Reloader {
        let name = file.display().to_string();
        let reloads = ReloadMetrics::new();
        Reloader::new(file, policy, self.limiters.to_vec()).on_reload(move |reloaded| {
            reloads.count(reloaded.result());
            eprintln!("{name}: {reloaded}");
        })
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("observed", &self.observed).finish_non_exhaustive()
    }
}

/// A limiter, and what operators see of it.
type Limited<D, C> = (Arc<JointLimiter<D, C>>, Observed);

/// A limiter by some dimensions of the policy, with its cap and its mode.
fn limiter<D, C>(name: &'static str, policy: &Policy, clock: C) -> Result<Limited<D, C>, Box<dyn Error>>
where
    D: Dimensions + 'static,
    C: Clock + Send + Sync + 'static,
{
    let (metrics, denied) = observed::observers(name);
    let builder = policy.builder::<D>()?.clock(clock).observer(Arc::clone(&metrics)).observer(Arc::clone(&denied));
    let limiter = Arc::new(builder.build()?);
    let observed = Observed::new(name, metrics, denied, Arc::clone(&limiter));
    Ok((limiter, observed))
}

async fn log_in<P>(State(passwords): State<P>, Extension(attempt): Extension<Attempt>) -> (StatusCode, &'static str)
where
    P: Passwords,
{
    if passwords.is_right(attempt.name(), attempt.password()).await {
        (StatusCode::OK, "welcome\n")
    } else {
        (StatusCode::UNAUTHORIZED, "wrong user or password\n")
    }
}

async fn time() -> &'static str {
    "time flies\n"
}
