//! With the CORS layer of `tower-http` outside.

use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use http::{HeaderName, Method};
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::RateLimitLayer;
use tower_http::cors::{Any, CorsLayer};

use crate::served::support::{Connection, get, serve, with};

fn preflight() -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = with(get("/"), "origin", "https://example.com");
    *request.method_mut() = Method::OPTIONS;
    with(request, "access-control-request-method", "GET")
}

#[tokio::test]
async fn preflights_are_answered_and_pages_can_read_denials() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
    let told = ["retry-after", "ratelimit", "ratelimit-policy"].map(HeaderName::from_static);
    let cors = CorsLayer::new().allow_origin(Any).allow_methods([Method::GET]).expose_headers(told);
    let layer = RateLimitLayer::new(limiter);
    // The last layer is the outermost.
    let app = Router::new().route("/", route(|| async { "hello" })).layer(layer).layer(cors);
    let mut connection = Connection::open(serve(app).await).await;
    for status in [200, 429, 429] {
        let answer = connection.send(preflight()).await;
        assert_eq!((answer.status.as_u16(), answer.one("access-control-allow-origin")), (200, "*"));
        let answer = connection.send(with(get("/"), "origin", "https://example.com")).await;
        assert_eq!((answer.status.as_u16(), answer.one("access-control-allow-origin")), (status, "*"));
        assert_eq!(answer.one("access-control-expose-headers"), "retry-after,ratelimit,ratelimit-policy");
    }
}

#[tokio::test]
async fn an_inner_cors_layer_needs_preflights_skipped() {
    for skip in [false, true] {
        let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
        let cors = CorsLayer::new().allow_origin(Any).allow_methods([Method::GET]);
        let layer = RateLimitLayer::new(limiter).skip_preflights(skip);
        let app = Router::new().route("/", route(|| async { "hello" })).layer(cors).layer(layer);
        let mut connection = Connection::open(serve(app).await).await;
        assert_eq!(connection.send(get("/")).await.status, 200);
        assert_eq!(connection.send(preflight()).await.status, if skip { 200 } else { 429 });
    }
}
