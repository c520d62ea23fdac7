//! The README of `actix-governor` as a service: each route has one of its configurations.
//!
//! - `GET /`: five requests at once from each address, then two a second. Only denials have fields,
//!   `Retry-After` and `x-ratelimit-after`.
//! - `GET /fields`: five at once, then one every two seconds, with `use_headers()` and
//!   `methods(vec![Method::GET])`.
//! - `GET /token`: the same for each bearer token, with responses in JSON.
//! - `GET /all`: the same for all clients together.
//! - `GET /default`, `GET /secure`: the presets.
//!
//! `curl -i 'http://127.0.0.1:8080/?[1-6]'`

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::AUTHORIZATION;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, ServiceConfig};
use actix_web::{App, HttpResponse, HttpServer};
use tollgate::{Clock, MonotonicClock};
use tollgate_actix::{
    BuildError, ClientIp, DenialKind, DirectLimiter, Headers, JointLimiter, Limiter, Quota, RateLimit, Rejection,
    header,
};

/// `requests_per_second(2).burst_size(5)`.
const README: Quota = Quota::token_bucket(5, 2, Duration::from_secs(1));
/// `seconds_per_request(2).burst_size(5)`, which was `per_second(2)` until version 0.6.
const SLOW: Quota = Quota::token_bucket(5, 1, Duration::from_secs(2));
/// `GovernorConfig::default()`.
const DEFAULT: Quota = Quota::token_bucket(8, 1, Duration::from_millis(500));
/// `GovernorConfig::secure()`.
const SECURE: Quota = Quota::token_bucket(2, 1, Duration::from_secs(4));

/// A limiter is shared by the clones of its middleware. No task has to clean it up.
fn limiter<K: Hash + 'static, C: Clock>(quota: Quota, clock: C) -> Result<Arc<Limiter<K, C>>, BuildError> {
    Ok(Arc::new(Limiter::builder(quota).clock(clock).build()?))
}

/// The routes. The limits are made here once, and each worker gets clones of them. Tests give a
/// clock of their own.
pub(crate) fn routes<C: Clock + Clone + Send + Sync + 'static>(
    clock: C,
) -> Result<impl Fn(&mut ServiceConfig) + Clone + Send, Box<dyn std::error::Error>> {
    let by_address = |quota| -> Result<_, BuildError> {
        let limit = RateLimit::new(limiter::<IpAddr, C>(quota, clock.clone())?).key(ClientIp::peer());
        // `actix-governor` shows limits on request. By default this crate does.
        Ok(limit.headers(Headers::Off).on_denied(wait))
    };
    let [readme, slow, default, secure] =
        [by_address(README)?, by_address(SLOW)?, by_address(DEFAULT)?, by_address(SECURE)?];
    let fields = slow.headers(Headers::XRateLimit).skip(|head| *head.method != Method::GET);

    // Clients can make tokens up. So addresses have a limit as well, for all tokens together.
    let tokens = JointLimiter::<(String, IpAddr), _>::builder()
        .dimension("token", [SLOW])
        .dimension("address", [Quota::token_bucket(50, 5, Duration::from_secs(1))])
        .clock(clock.clone())
        .build()?;
    let tokens = RateLimit::new(Arc::new(tokens)).key((header(AUTHORIZATION), ClientIp::peer()));
    let tokens = tokens.headers(Headers::XRateLimit).on_denied(json);

    let all = DirectLimiter::builder(SLOW).clock(clock).build()?;
    let all = RateLimit::new(Arc::new(all)).headers(Headers::Off).on_denied(wait);

    Ok(move |app: &mut ServiceConfig| {
        let hello = || web::get().to(|| async { "Hello world!" });
        app.service(web::resource("/").wrap(readme.clone()).route(hello()))
            .service(
                web::resource("/fields").wrap(fields.clone()).route(hello()).route(web::post().to(HttpResponse::Ok)),
            )
            .service(web::resource("/token").wrap(tokens.clone()).route(hello()))
            .service(web::resource("/all").wrap(all.clone()).route(hello()))
            .service(web::resource("/default").wrap(default.clone()).route(hello()))
            .service(web::resource("/secure").wrap(secure.clone()).route(hello()));
    })
}

/// The answer that `actix-governor` gives by itself. The middleware adds `Retry-After`.
fn wait(denied: Rejection<'_>) -> HttpResponse {
    match denied.retry_after() {
        Some(seconds) => HttpResponse::build(denied.status())
            .insert_header(("x-ratelimit-after", seconds))
            .body(format!("wait for {seconds} s\n")),
        None => denied.answer(),
    }
}

/// `exceed_rate_limit_response`, and the error of a request without a token.
fn json(denied: Rejection<'_>) -> HttpResponse {
    let status = match denied.kind() {
        DenialKind::KeyNotSent => StatusCode::UNAUTHORIZED,
        _ => denied.status(),
    };
    let body = [("code", u64::from(status.as_u16())), ("after", denied.retry_after().unwrap_or(0))];
    HttpResponse::build(status).json(std::collections::BTreeMap::from(body))
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let routes = routes(MonotonicClock::new())?;
    HttpServer::new(move || App::new().configure(routes.clone())).bind(("127.0.0.1", 8080))?.run().await?;
    Ok(())
}
