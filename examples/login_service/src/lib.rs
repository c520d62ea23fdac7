//! A log-in and an API with limits from a policy file.

mod credentials;
mod passwords;

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use tollgate::policy::Dimension;
use tollgate::{Clock, Dimensions, JointLimiter, Policy};
use tollgate_tower::{ClientIp, RateLimitLayer, extension, matched_path};

use credentials::{ApiKey, Attempt};
pub use passwords::{OneUser, Passwords};

/// The service.
///
/// - `POST /login` with a user and a password (HTTP Basic): failed attempts are limited by user and
///   address, and by address for all users. An attempt is charged before its password is checked,
///   so a client that hangs up has used it. A right password refunds its permits.
/// - `GET /api/time` with an `x-api-key`: limited by key, and as a whole.
///
/// # Errors
///
/// When the policy lacks one of the dimensions `login`, `address`, `key` and `endpoint` or has
/// another, or a limiter cannot be built.
pub fn app<C, P>(policy: &Policy, clients: ClientIp, passwords: P, clock: C) -> Result<Router, Box<dyn Error>>
where
    C: Clock + Clone + Send + Sync + 'static,
    P: Passwords,
{
    const USED: [&str; 4] = ["login", "address", "key", "endpoint"];
    if let Some(other) = policy.dimensions().iter().find(|it| !USED.contains(&it.name())) {
        return Err(format!("the service does not use the dimension `{}`: remove it", other.name()).into());
    }
    let attempts = limiter::<((Arc<str>, IpAddr), IpAddr), _>(policy, ["login", "address"], clock.clone())?;
    let login = RateLimitLayer::new(Arc::new(attempts))
        .key(((extension(Attempt::user), clients.clone()), clients))
        .refund_when(|answer| answer.status.is_success());
    let requests = limiter(policy, ["key", "endpoint"], clock)?;
    let api = RateLimitLayer::new(Arc::new(requests)).key((extension(ApiKey::id), matched_path()));

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
    Ok(login.merge(api))
}

/// A limiter by two dimensions of the policy, with its cap and its mode.
fn limiter<D, C>(policy: &Policy, names: [&str; 2], clock: C) -> Result<JointLimiter<D, C>, Box<dyn Error>>
where
    D: Dimensions,
    C: Clock,
{
    let mut builder = JointLimiter::<D>::builder();
    for (at, name) in names.into_iter().enumerate() {
        let dimension = dimension(policy, name)?;
        builder = builder.dimension(name, dimension.quotas().iter().copied());
        if let Some(penalty) = dimension.penalty() {
            builder = builder.penalty(at, penalty);
        }
    }
    if let Some(key_cap) = policy.key_cap() {
        builder = builder.key_cap(key_cap);
    }
    let at_key_cap = policy.at_key_cap().unwrap_or_default();
    Ok(builder.at_key_cap(at_key_cap).shadow(policy.shadow().unwrap_or_default()).clock(clock).build()?)
}

fn dimension<'a>(policy: &'a Policy, name: &str) -> Result<&'a Dimension, String> {
    let found = policy.dimensions().iter().find(|dimension| dimension.name() == name);
    found.ok_or_else(|| format!("the policy has no dimension `{name}`: add one"))
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
