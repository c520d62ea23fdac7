//! A client that keeps to a rate, and after a refusal to the pace of a server that allows less.
//!
//! `cargo run -p tollgate-tower --features axum,client --example polite_client`

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::{Router, routing::get};
use tollgate_tower::{DirectLimiter, Limiter, Quota, RateLimitLayer, ThrottleLayer, retry_after};
use tower::{Layer, ServiceExt};

/// The path of a page of the server, which allows 5 requests a second.
async fn serve() -> Result<String, Box<dyn std::error::Error>> {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_second(5))?);
    let app = Router::new().route("/", get(|| async { "hello" })).layer(RateLimitLayer::new(limiter));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let page = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(page)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let page = serve().await?;

    // 10 requests a second to each host, which each wait for at most a minute.
    let limiter = Arc::new(Limiter::<String>::new(Quota::per_second(10))?);
    let throttle = ThrottleLayer::new(
        limiter,
        |request: &reqwest::Request| request.url().host_str().unwrap_or_default().to_owned(),
        |answer: &reqwest::Response| retry_after(answer.status(), answer.headers()),
    );
    let client = throttle.within(Duration::from_secs(60)).layer(reqwest::Client::new());

    let start = Instant::now();
    for number in 1..=12 {
        loop {
            let request = reqwest::Request::new(reqwest::Method::GET, page.parse()?);
            let answer = client.clone().oneshot(request).await?;
            if answer.status().is_success() {
                println!("{number}: {} after {:.1} s", answer.status(), start.elapsed().as_secs_f64());
                break;
            }
            // The next request waits as long as the server asks for. Those after it go at its pace.
            println!("{number}: {}", answer.status());
        }
    }
    Ok(())
}
