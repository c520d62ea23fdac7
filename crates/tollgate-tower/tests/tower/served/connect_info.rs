//! Servers that tell the peer's address, and those that do not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::connect_info::MockConnectInfo;
use axum::routing::get as route;
use axum::{Extension, Router};
use tokio::net::{TcpListener, UnixListener};
use tollgate::{Limiter, Quota};
use tollgate_http::{Peer, TrustedProxies};
use tollgate_tower::{ClientIp, Missing, RateLimitLayer};

use crate::served::support::{Connection, get, raw_status, serve_at};

type ByAddress = Arc<Limiter<IpAddr>>;

fn limiter(limit: u32) -> ByAddress {
    Arc::new(Limiter::new(Quota::per_hour(limit)).unwrap())
}

fn app() -> Router {
    Router::new().route("/", route(|| async { "hello" }))
}

/// Serves without saying where connections come from.
async fn serve_without(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn without_connect_info_requests_are_rejected_and_not_told_why() {
    let layer = RateLimitLayer::new(limiter(1)).key(ClientIp::peer());
    let address = serve_without(app().layer(layer)).await;
    let mut connection = Connection::open(address).await;
    for _ in 0..3 {
        let answer = connection.send(get("/")).await;
        assert_eq!(answer.status, 500);
        assert_eq!(&answer.body[..], br#"{"title":"Internal Server Error","status":500}"#);
    }
}

#[tokio::test]
async fn without_connect_info_requests_share_a_key_if_configured() {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let layer = RateLimitLayer::new(limiter(2)).key(ClientIp::peer()).on_missing(Missing::Share(unknown));
    let address = serve_without(app().layer(layer)).await;
    for n in 0..4 {
        let status = Connection::open(address).await.send(get("/")).await.status;
        assert_eq!(status, if n < 2 { 200 } else { 429 }, "request {n}");
    }
}

#[tokio::test]
async fn ipv4_clients_of_a_listener_for_both_have_their_own_address() {
    let limiter = limiter(5);
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer());
    let address = serve_at("[::]:0", app().layer(layer)).await;
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    for (ip, requests) in [(v4, 2), (v6, 3)] {
        let mut connection = Connection::open(SocketAddr::new(ip, address.port())).await;
        for _ in 0..requests {
            assert_eq!(connection.send(get("/")).await.status, 200);
        }
    }
    assert_eq!(limiter.peek(v4).remaining(), 3);
    // An IPv6 client counts by its network.
    assert_eq!(limiter.peek(IpAddr::V6(Ipv6Addr::UNSPECIFIED)).remaining(), 2);
}

#[tokio::test]
async fn the_mock_connect_info_of_tests_is_found() {
    let limiter = limiter(1);
    let mock = MockConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1)));
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer());
    let address = serve_without(app().layer(layer).layer(mock)).await;
    assert_eq!(Connection::open(address).await.send(get("/")).await.status, 200);
    assert_eq!(limiter.peek(IpAddr::from([192, 0, 2, 1])).remaining(), 0);
}

#[tokio::test]
async fn by_a_unix_socket_the_proxy_names_the_client_if_it_is_trusted() {
    use hyper_util::rt::TokioIo;
    use tokio::net::UnixStream;

    let directory = std::env::temp_dir().join(format!("tollgate-tower-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for trusted in [true, false] {
        let limiter = limiter(1);
        let proxies = if trusted { TrustedProxies::unix_sockets() } else { TrustedProxies::new(["10.0.0.1"]).unwrap() };
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::behind(proxies));
        let path = directory.join(if trusted { "trusted" } else { "untrusted" });
        let listener = UnixListener::bind(&path).unwrap();
        let app = app().layer(layer).layer(Extension(Peer::UnixSocket));
        tokio::spawn(async move { axum::serve(listener, app).await });

        let stream = UnixStream::connect(&path).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = crate::served::support::with(get("/"), "x-forwarded-for", "203.0.113.9, 192.0.2.7");
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), if trusted { 200 } else { 500 });
        assert_eq!(limiter.peek(IpAddr::from([192, 0, 2, 7])).remaining(), u32::from(!trusted));
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn connect_info_is_told_to_requests_written_by_hand() {
    let layer = RateLimitLayer::new(limiter(1)).key(ClientIp::peer());
    let address = crate::served::support::serve(app().layer(layer)).await;
    let request = "GET / HTTP/1.1\nHost: localhost";
    assert_eq!(raw_status(address, request).await, 200);
    assert_eq!(raw_status(address, request).await, 429);
}
