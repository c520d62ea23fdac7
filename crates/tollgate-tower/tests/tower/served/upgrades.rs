//! A WebSocket is one request: its handshake.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::StatusCode;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::RateLimitLayer;

use crate::common::{item, items};
use crate::served::support::serve;

/// Answers the handshake of RFC 6455, section 1.3, and then sends back what comes.
async fn accept(mut request: Request) -> Response {
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
        let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
        tokio::io::copy(&mut read, &mut write).await
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("upgrade", "websocket")
        .header("connection", "Upgrade")
        .header("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        .body(Body::empty())
        .unwrap()
}

/// The stream after a handshake, and the head of its answer.
async fn handshake(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

#[tokio::test]
async fn a_web_socket_is_charged_at_its_handshake_and_not_by_message() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(2)).unwrap());
    // Also where permits of requests without an answer come back: this one has its answer.
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).refund_unanswered(true);
    let address = serve(Router::new().route("/chat", any(accept)).layer(layer)).await;
    for left in [1, 0] {
        let (mut stream, head) = handshake(address).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let told = head.lines().find_map(|line| line.strip_prefix("ratelimit: ")).unwrap();
        assert_eq!(items(told)[0].1[0], item("default", [("r", left), ("t", 0)]).1[0]);
        for message in [b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"; 20] {
            stream.write_all(message).await.unwrap();
            let mut back = [0; 11];
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(&back, message);
        }
        drop(stream);
        assert_eq!(u64::from(limiter.peek().remaining()), left);
    }
    let (_, head) = handshake(address).await;
    assert!(head.starts_with("HTTP/1.1 429 ") && head.contains("\r\nretry-after: "), "{head}");
}
