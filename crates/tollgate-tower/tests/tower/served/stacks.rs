//! Under hyper without a framework, in front of a client, and with a layer that catches panics.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_http::Peer;
use tollgate_tower::{ClientIp, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;

use crate::served::support::{Connection, get, serve};

/// Serves by hyper alone. The connection's peer becomes an extension of its requests.
async fn serve_by_hyper() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limiter = Arc::new(Limiter::new(Quota::per_hour(3)).unwrap());
    let layer = RateLimitLayer::new(limiter).key(ClientIp::peer());
    let handler = tower::service_fn(|_: Request<hyper::body::Incoming>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(Full::<Bytes>::from("hello")))
    });
    let service = layer.layer(handler);
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            let service = service.clone().map_request(move |mut request: Request<_>| {
                request.extensions_mut().insert(Peer::from(peer));
                request
            });
            tokio::spawn(async move {
                let service = TowerToHyperService::new(service);
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
            });
        }
    });
    address
}

#[tokio::test]
async fn connections_of_hyper_share_a_limiter() {
    let address = serve_by_hyper().await;
    let mut connections = [Connection::open(address).await, Connection::open(address).await];
    for n in 0..6 {
        let answer = connections[n % 2].send(get("/")).await;
        assert_eq!(answer.status, if n < 3 { 200 } else { 429 }, "request {n}");
    }
}

#[tokio::test]
async fn in_front_of_a_client_a_denied_request_is_not_sent() {
    let app = Router::new().route("/", route(|| async { "hello" }));
    let address = serve(app).await;
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(2)).unwrap());
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut client = RateLimitLayer::new(limiter).layer(client);
    let request = |port| Request::get(format!("http://127.0.0.1:{port}/")).body(Full::default()).unwrap();
    for _ in 0..2 {
        let response = client.ready().await.unwrap().call(request(address.port())).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        assert_eq!(&body[..], b"hello");
    }
    // A request to port 0 would fail.
    let response = client.ready().await.unwrap().call(request(0)).await.unwrap();
    assert_eq!(response.status(), 429);
}

#[tokio::test]
async fn a_panic_in_the_handler_keeps_the_charge_and_the_server_goes_on() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(3)).unwrap());
    async fn handler() -> &'static str {
        panic!("in the handler")
    }
    let app = Router::new()
        .route("/", route(handler))
        .layer(RateLimitLayer::new(Arc::clone(&limiter)))
        .layer(CatchPanicLayer::new());
    let mut connection = Connection::open(serve(app).await).await;
    for status in [500, 500, 500, 429] {
        assert_eq!(connection.send(get("/")).await.status, status);
    }
    assert_eq!(limiter.peek().remaining(), 0);
}
