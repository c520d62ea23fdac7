//! A log-in and an API with limits from a policy file.

mod credentials;

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use tollgate::policy::Dimension;
use tollgate::{Clock, JointLimiter, Limiter, Policy};
use tollgate_tower::{ClientIp, RateLimitLayer, extension, matched_path};

use credentials::{ApiKey, Attempt};

/// The service.
///
/// - `POST /login` with a user and a password (HTTP Basic): failed attempts are limited by user and
///   address. A right password refunds its permit.
/// - `GET /api/time` with an `x-api-key`: limited by key, and as a whole.
///
/// # Errors
///
/// When the policy lacks one of the dimensions `login`, `key` and `endpoint`, or a limiter cannot
/// be built.
pub fn app<C>(policy: &Policy, clients: ClientIp, clock: C) -> Result<Router, Box<dyn Error>>
where
    C: Clock + Clone + Send + Sync + 'static,
{
    let login = dimension(policy, "login")?;
    let [first, more @ ..] = login.quotas() else { return Err("the dimension `login` has no quota".into()) };
    let builder = Limiter::<(Arc<str>, IpAddr)>::builder(*first);
    let limiter = more.iter().fold(builder, |builder, &quota| builder.and(quota)).clock(clock.clone()).build()?;
    let login = RateLimitLayer::new(Arc::new(limiter))
        .key((extension(Attempt::user), clients))
        .name(login.name())?
        .refund_when(|status| status.is_success());

    let (key, endpoint) = (dimension(policy, "key")?, dimension(policy, "endpoint")?);
    let limiter = JointLimiter::builder()
        .dimension(key.name(), key.quotas().iter().copied())
        .dimension(endpoint.name(), endpoint.quotas().iter().copied())
        .clock(clock)
        .build()?;
    let api = RateLimitLayer::new(Arc::new(limiter)).key((extension(ApiKey::id), matched_path()));

    // The last layer is the outermost: credentials come before the limit, which counts by them.
    let login = Router::new()
        .route("/login", post(log_in))
        .route_layer(login)
        .route_layer(middleware::from_fn(credentials::attempt));
    let api = Router::new()
        .route("/api/time", get(time))
        .route_layer(api)
        .route_layer(middleware::from_fn(credentials::api_key));
    Ok(login.merge(api))
}

fn dimension<'a>(policy: &'a Policy, name: &str) -> Result<&'a Dimension, String> {
    let found = policy.dimensions().iter().find(|dimension| dimension.name() == name);
    found.ok_or_else(|| format!("the policy has no dimension `{name}`: add one"))
}

async fn log_in(Extension(attempt): Extension<Attempt>) -> (StatusCode, &'static str) {
    if attempt.is_right() {
        (StatusCode::OK, "welcome\n")
    } else {
        (StatusCode::UNAUTHORIZED, "wrong user or password\n")
    }
}

async fn time() -> &'static str {
    "time flies\n"
}
