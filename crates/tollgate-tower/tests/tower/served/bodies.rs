//! Bodies go through as they come: none is read or kept.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::RateLimitLayer;

use crate::served::support::{raw_status, serve};

/// A service that answers with the body of the request.
fn echo(limit: u32) -> Router {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(limit)).unwrap());
    let handler = async |request: Request| Response::new(request.into_body());
    Router::new().route("/", post(handler)).layer(RateLimitLayer::new(limiter).refund_unanswered(true))
}

#[tokio::test]
async fn a_request_is_denied_before_its_body_comes() {
    let address = serve(echo(1)).await;
    assert_eq!(raw_status(address, "POST / HTTP/1.1\nHost: localhost\nContent-Length: 0").await, 200);
    // None of it is ever sent.
    let head = "POST / HTTP/1.1\nHost: localhost\nContent-Length: 1000000";
    assert_eq!(raw_status(address, head).await, 429);
}

#[tokio::test]
async fn a_part_of_a_body_goes_through_before_the_next_comes() {
    let mut stream = TcpStream::connect(serve(echo(1)).await).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received = String::new();
    for part in ["ping", "pong"] {
        stream.write_all(format!("4\r\n{part}\r\n").as_bytes()).await.unwrap();
        // Through the layer and back, while the request goes on.
        while !received.contains(part) {
            let mut bytes = [0; 512];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "{received}");
            received.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    stream.read_to_string(&mut received).await.unwrap();
    assert!(received.starts_with("HTTP/1.1 200 ") && received.ends_with("0\r\n\r\n"), "{received}");
}
