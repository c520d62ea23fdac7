//! A real client that obeys the `Retry-After` of a real server.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get as route;
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_tower::{RateLimitLayer, ThrottleLayer, retry_after};
use tower::{Layer, ServiceExt};

use crate::served::support::serve;

#[tokio::test]
async fn a_client_sends_nothing_before_retry_after_has_passed() {
    let second = Duration::from_secs(1);
    let server = Arc::new(DirectLimiter::new(Quota::new(1, second)).unwrap());
    let served = Arc::new(Mutex::new(Vec::new()));
    let times = Arc::clone(&served);
    let page = move || {
        times.lock().unwrap().push(Instant::now());
        async { "hello" }
    };
    let address = serve(Router::new().route("/", route(page)).layer(RateLimitLayer::new(server))).await;

    let limiter = Arc::new(Limiter::<String>::new(Quota::per_second(1_000)).unwrap());
    let throttle = ThrottleLayer::new(
        limiter,
        |request: &reqwest::Request| request.url().host_str().unwrap().to_owned(),
        |answer: &reqwest::Response| retry_after(answer.status(), answer.headers()),
    );
    let client = throttle.layer(reqwest::Client::new());
    let mut last = None;
    while served.lock().unwrap().len() < 2 {
        let sent = Instant::now();
        let request = reqwest::Request::new(reqwest::Method::GET, format!("http://{address}/").parse().unwrap());
        let answer = client.clone().oneshot(request).await.unwrap();
        if let Some(refused) = last.take() {
            // The first request after a refusal is always served, and not before the time has passed.
            assert_eq!(answer.status(), 200);
            assert!(Instant::now().duration_since(refused) >= second);
        }
        if answer.status() == 429 {
            assert_eq!(answer.headers()["retry-after"], "1");
            last = Some(sent);
        }
    }
}
