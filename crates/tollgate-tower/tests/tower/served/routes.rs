//! Keys by the route that axum has matched, and HEAD.

use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_tower::{RateLimitLayer, Route, matched_path};

use crate::served::support::{Connection, get, raw, serve};

#[tokio::test]
async fn paths_of_one_route_share_a_limit_and_so_do_those_without_a_route() {
    let limiter = Arc::new(Limiter::<Route>::new(Quota::per_hour(2)).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(matched_path());
    let app = Router::new()
        .route("/users/{id}", route(|| async { "user" }))
        .route("/login", route(|| async { "login" }))
        .fallback(|| async { (http::StatusCode::NOT_FOUND, "none") })
        .layer(layer);
    let mut connection = Connection::open(serve(app).await).await;
    for (path, status) in [
        ("/users/1", 200),
        ("/users/2?page=1", 200),
        ("/users/%33", 429),
        ("/login", 200),
        ("/nothing", 404),
        ("/users/1/more", 404),
        ("/else", 429),
        ("/login", 200),
        ("/login", 429),
    ] {
        assert_eq!(connection.send(get(path)).await.status, status, "{path}");
    }
    assert_eq!(limiter.counts().live_keys, 3);
}

#[tokio::test]
async fn a_denied_head_request_has_no_body_and_the_connection_goes_on() {
    let layer = RateLimitLayer::new(Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap()));
    let address = serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await;
    let mut connection = Connection::open(address).await;
    assert_eq!(connection.send(get("/")).await.status, 200);
    let mut head = get("/");
    *head.method_mut() = http::Method::HEAD;
    let to_head = connection.send(head).await;
    let to_get = connection.send(get("/")).await;
    assert_eq!((to_head.status.as_u16(), to_get.status.as_u16()), (429, 429));
    assert_eq!(to_head.one("content-length"), to_get.one("content-length"));
    assert_eq!(to_get.one("content-length"), to_get.body.len().to_string());

    let response = raw(address, "HEAD / HTTP/1.1\nHost: localhost").await;
    let (fields, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(fields.starts_with("HTTP/1.1 429 Too Many Requests"), "{fields}");
    assert_eq!(body, "");
}
