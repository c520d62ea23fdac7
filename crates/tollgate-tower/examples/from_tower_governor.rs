//! The README of `tower_governor` as a service: each route has one of its configurations.
//!
//! - `GET /`: five requests at once from each address, then one every two seconds. Only denials
//!   have fields, `Retry-After` and `x-ratelimit-after`.
//! - `GET /fields`: the same, with `use_headers()` and `methods(vec![Method::GET])`.
//! - `GET /token`: the same for each bearer token, with an `error_handler` that answers in JSON.
//! - `GET /all`: the same for all clients together.
//! - `GET /default`, `GET /secure`: the presets.
//!
//! `curl -i 'http://127.0.0.1:3000/?[1-6]'`

use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tollgate::{Clock, MonotonicClock};
use tollgate_tower::{
    BuildError, ClientIp, DenialKind, DirectLimiter, Headers, JointLimiter, Limiter, Quota, RateLimitLayer, Rejection,
    header,
};

/// `per_second(2).burst_size(5)`: a permit comes back every two seconds, not two a second.
const README: Quota = Quota::token_bucket(5, 1, Duration::from_secs(2));
/// `GovernorConfig::default()`.
const DEFAULT: Quota = Quota::token_bucket(8, 1, Duration::from_millis(500));
/// `GovernorConfig::secure()`.
const SECURE: Quota = Quota::token_bucket(2, 1, Duration::from_secs(4));

/// A limiter is shared by the clones of its layer. No task has to clean it up.
fn limiter<K: Hash + 'static, C: Clock>(quota: Quota, clock: C) -> Result<Arc<Limiter<K, C>>, BuildError> {
    Ok(Arc::new(Limiter::builder(quota).clock(clock).build()?))
}

/// The service. Tests give it a clock of their own.
pub(crate) fn app<C: Clock + Clone + Send + Sync + 'static>(clock: C) -> Result<Router, Box<dyn std::error::Error>> {
    let hello = || get(|| async { "Hello world" });
    let by_address = |quota| -> Result<_, BuildError> {
        let layer = RateLimitLayer::new(limiter::<IpAddr, C>(quota, clock.clone())?).key(ClientIp::peer());
        // `tower_governor` shows limits on request. By default this crate does.
        Ok(layer.headers(Headers::Off).on_denied(wait))
    };
    let fields = by_address(README)?.headers(Headers::XRateLimit).skip(|head| *head.method != Method::GET);

    // Clients can make tokens up. So addresses have a limit as well, for all tokens together.
    let tokens = JointLimiter::<(String, IpAddr), _>::builder()
        .dimension("token", [README])
        .dimension("address", [Quota::token_bucket(50, 5, Duration::from_secs(1))])
        .clock(clock.clone())
        .build()?;
    let tokens = RateLimitLayer::new(Arc::new(tokens)).key((header(AUTHORIZATION), ClientIp::peer()));
    let tokens = tokens.headers(Headers::XRateLimit).on_denied(json);

    let all = DirectLimiter::builder(README).clock(clock.clone()).build()?;
    let all = RateLimitLayer::new(Arc::new(all)).headers(Headers::Off).on_denied(wait);

    Ok(Router::new()
        .route("/", hello().layer(by_address(README)?))
        .route("/fields", hello().post(|| async { "Hello" }).layer(fields))
        .route("/token", hello().layer(tokens))
        .route("/all", hello().layer(all))
        .route("/default", hello().layer(by_address(DEFAULT)?))
        .route("/secure", hello().layer(by_address(SECURE)?)))
}

/// The answer that `tower_governor` gives by itself. The layer adds `Retry-After`.
fn wait(denied: Rejection<'_>) -> Response {
    match denied.retry_after() {
        Some(seconds) => {
            let text = format!("wait for {seconds} s\n");
            (denied.status(), [("x-ratelimit-after", seconds.to_string())], text).into_response()
        }
        None => denied.answer().into_response(),
    }
}

/// The error handler, also for requests without a token.
fn json(denied: Rejection<'_>) -> Response {
    let status = match denied.kind() {
        DenialKind::KeyNotSent => StatusCode::UNAUTHORIZED,
        _ => denied.status(),
    };
    let body = [("code", u64::from(status.as_u16())), ("after", denied.retry_after().unwrap_or(0))];
    (status, Json(std::collections::BTreeMap::from(body))).into_response()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = app(MonotonicClock::new())?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
