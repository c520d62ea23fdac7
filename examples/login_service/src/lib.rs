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
/// When the policy lacks one of the dimensions `login`, `key` and `endpoint` or has another, or a
/// limiter cannot be built.
pub fn app<C>(policy: &Policy, clients: ClientIp, clock: C) -> Result<Router, Box<dyn Error>>
where
    C: Clock + Clone + Send + Sync + 'static,
{
    if let Some(other) = policy.dimensions().iter().find(|it| !["login", "key", "endpoint"].contains(&it.name())) {
        return Err(format!("the service does not use the dimension `{}`: remove it", other.name()).into());
    }
    // Both limiters have the cap and the mode of the policy.
    let (at_key_cap, shadow) = (policy.at_key_cap().unwrap_or_default(), policy.shadow().unwrap_or_default());

    let login = dimension(policy, "login")?;
    let [first, more @ ..] = login.quotas() else { return Err("the dimension `login` has no quota".into()) };
    let builder = Limiter::<(Arc<str>, IpAddr)>::builder(*first);
    let mut builder = more.iter().fold(builder, |builder, &quota| builder.and(quota));
    if let Some(penalty) = login.penalty() {
        builder = builder.penalty(penalty);
    }
    if let Some(key_cap) = policy.key_cap() {
        builder = builder.key_cap(key_cap);
    }
    let limiter = builder.at_key_cap(at_key_cap).shadow(shadow).clock(clock.clone()).build()?;
    let login = RateLimitLayer::new(Arc::new(limiter))
        .key((extension(Attempt::user), clients))
        .name(login.name())?
        .refund_when(|answer| answer.status.is_success());

    let (key, endpoint) = (dimension(policy, "key")?, dimension(policy, "endpoint")?);
    let mut builder = JointLimiter::builder();
    for (at, dimension) in [key, endpoint].into_iter().enumerate() {
        builder = builder.dimension(dimension.name(), dimension.quotas().iter().copied());
        if let Some(penalty) = dimension.penalty() {
            builder = builder.penalty(at, penalty);
        }
    }
    if let Some(key_cap) = policy.key_cap() {
        builder = builder.key_cap(key_cap);
    }
    let limiter = builder.at_key_cap(at_key_cap).shadow(shadow).clock(clock).build()?;
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
