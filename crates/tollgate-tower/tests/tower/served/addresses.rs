//! Requests written by hand, against the pitfalls of client addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use tollgate::{JointLimiter, Limiter, Quota};
use tollgate_http::{ClientAddress, TrustedProxies};
use tollgate_tower::{ClientIp, RateLimitLayer, header};

use crate::served::support::{raw, raw_status, serve};

/// A server with one request an hour for each client, and its limiter.
async fn server(clients: ClientIp) -> (SocketAddr, Arc<Limiter<IpAddr>>) {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(clients);
    (serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await, limiter)
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["127.0.0.0/8", "10.0.0.0/8"]).unwrap()
}

fn behind() -> ClientIp {
    ClientIp::behind(proxies())
}

/// Whether a request with these fields was counted for this client.
async fn counts_for(clients: ClientIp, fields: &str, client: &str) -> bool {
    let (address, limiter) = server(clients).await;
    let client: IpAddr = client.parse().unwrap();
    assert_eq!(limiter.peek(client).remaining(), 1);
    assert_eq!(raw_status(address, &format!("GET / HTTP/1.1\nHost: localhost\n{fields}")).await, 200);
    limiter.peek(client).remaining() == 0
}

#[tokio::test]
async fn forged_fields_do_not_count_without_trusted_proxies() {
    let fields = "X-Forwarded-For: 192.0.2.7\nForwarded: for=192.0.2.7\nX-Real-IP: 192.0.2.7";
    assert!(counts_for(ClientIp::peer(), fields, "127.0.0.1").await);
    // Nor where the peer is none of the proxies.
    let elsewhere = TrustedProxies::new(["10.0.0.0/8"]).unwrap();
    assert!(counts_for(ClientIp::behind(elsewhere), fields, "127.0.0.1").await);
}

#[tokio::test]
async fn all_lines_are_read_as_one_list_from_the_right() {
    let fields = "X-Forwarded-For: 203.0.113.1, 203.0.113.2\nX-Forwarded-For: 192.0.2.7\nx-forwarded-for: 10.0.0.1";
    assert!(counts_for(behind(), fields, "192.0.2.7").await);
    let fields = "X-Forwarded-For: 192.0.2.7, 10.0.0.2\nAccept: */*\nX-FORWARDED-FOR:10.0.0.1 ,\t10.0.0.3";
    assert!(counts_for(behind(), fields, "192.0.2.7").await);
    assert!(counts_for(behind(), "X-Forwarded-For: 10.0.0.9, 10.0.0.1", "10.0.0.9").await, "all are trusted");
    assert!(counts_for(behind(), "Accept: */*", "127.0.0.1").await, "there is no field");
}

#[tokio::test]
async fn an_entry_that_is_no_address_ends_the_list() {
    for entry in ["unknown", "_hidden", "192.0.2.300", "localhost", "192.0.2.7 192.0.2.8"] {
        let fields = format!("X-Forwarded-For: 192.0.2.7, {entry}, 10.0.0.5");
        assert!(counts_for(behind(), &fields, "10.0.0.5").await, "{entry}");
    }
    assert!(counts_for(behind(), "X-Forwarded-For: 192.0.2.7:4711", "192.0.2.7").await);
    // An empty element is no entry (RFC 9110, section 5.6.1).
    assert!(counts_for(behind(), "X-Forwarded-For: 192.0.2.7, , 10.0.0.5,", "192.0.2.7").await);
}

#[tokio::test]
async fn exactly_the_configured_field_counts() {
    let fields = "X-Forwarded-For: 192.0.2.7\nForwarded: for=192.0.2.8\nX-Real-IP: 192.0.2.9";
    let real_ip = ClientAddress::behind_header(proxies(), "X-Real-IP").unwrap();
    for (clients, client) in [
        (behind(), "192.0.2.7"),
        (ClientIp::new(ClientAddress::behind_forwarded(proxies())), "192.0.2.8"),
        (ClientIp::new(real_ip), "192.0.2.9"),
    ] {
        assert!(counts_for(clients, fields, client).await, "{client}");
    }
}

#[tokio::test]
async fn a_field_with_one_address_that_comes_twice_is_refused() {
    let clients = ClientIp::new(ClientAddress::behind_header(proxies(), "X-Real-IP").unwrap());
    let (address, limiter) = server(clients).await;
    let fields = "X-Real-IP: 192.0.2.7\nX-Real-IP: 192.0.2.7";
    assert_eq!(raw_status(address, &format!("GET / HTTP/1.1\nHost: localhost\n{fields}")).await, 400);
    assert_eq!(limiter.counts().live_keys, 0);
}

#[tokio::test]
async fn floods_of_entries_are_read_from_the_right_and_not_to_the_end() {
    let many = |count| vec!["10.0.0.1"; count].join(", ");
    let fields = |count| format!("X-Forwarded-For: 192.0.2.7, {}", many(count));
    assert!(counts_for(behind(), &fields(31), "192.0.2.7").await);
    assert!(counts_for(behind(), &fields(32), "10.0.0.1").await);
    assert!(counts_for(behind(), &fields(800), "10.0.0.1").await);
    // What begins more than 4 KiB from the end is not read.
    let spaces = " ".repeat(4_096);
    assert!(counts_for(behind(), &format!("X-Forwarded-For: 192.0.2.7,{spaces},10.0.0.1"), "10.0.0.1").await);
    assert!(counts_for(behind(), &format!("X-Forwarded-For: 192.0.2.7{spaces}"), "192.0.2.7").await, "trimmed");
    assert!(counts_for(behind(), &format!("X-Forwarded-For: 192.0.2.7,{spaces}10.0.0.1"), "127.0.0.1").await);
}

#[tokio::test]
async fn ipv6_counts_by_network_and_mapped_ipv4_as_ipv4() {
    assert!(counts_for(behind(), "X-Forwarded-For: 2001:db8:1:2:3:4:5:6", "2001:db8:1:2::").await);
    assert!(counts_for(behind(), "X-Forwarded-For: [2001:db8:1:2::9]:443", "2001:db8:1:2::").await);
    assert!(counts_for(behind(), "X-Forwarded-For: ::ffff:192.0.2.7", "192.0.2.7").await);
    assert!(counts_for(behind(), "X-Forwarded-For: 192.0.2.7, ::ffff:10.0.0.1", "192.0.2.7").await);
    let wide = ClientIp::new(ClientAddress::behind(proxies()).ipv6_prefix(48).unwrap());
    assert!(counts_for(wide, "X-Forwarded-For: 2001:db8:1:2:3:4:5:6", "2001:db8:1::").await);
}

#[tokio::test]
async fn made_up_api_keys_are_stopped_by_the_address_beside_them() {
    let limiter = JointLimiter::builder()
        .dimension("key", [Quota::per_hour(2)])
        .dimension("address", [Quota::per_hour(5)])
        .build()
        .unwrap();
    let key = (header("x-api-key"), behind());
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(key);
    let address = serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await;
    let request = |fields: &str| format!("GET / HTTP/1.1\nHost: localhost\nX-Forwarded-For: 192.0.2.7\n{fields}");
    for fields in ["", "X-Api-Key:", "X-Api-Key: a\nX-Api-Key: b", &format!("X-Api-Key: {}", "k".repeat(1_025))] {
        assert_eq!(raw_status(address, &request(fields)).await, 400, "{fields}");
    }
    for n in 0..10 {
        let status = raw_status(address, &request(&format!("X-Api-Key: made-up-{n}"))).await;
        assert_eq!(status, if n < 5 { 200 } else { 429 }, "key {n}");
    }
}

#[tokio::test]
async fn nothing_that_a_client_sends_is_echoed() {
    const MARK: &str = "MaRk3r";
    let limiter = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    let layer = RateLimitLayer::new(limiter).key((header("x-api-key"), behind()));
    let address = serve(Router::new().fallback(|| async { "hello" }).layer(layer)).await;
    let request = |method: &str, fields: &str| {
        format!(
            "{method} /{MARK}%0d%0aSet-Cookie:{MARK}?{MARK} HTTP/1.1\nHost: {MARK}\nUser-Agent: {MARK}\n\
             X-Forwarded-For: {MARK}, 192.0.2.7\nX-Api-Key: {MARK}\n{fields}"
        )
    };
    let grpc = format!("Content-Type: application/grpc+{MARK}");
    let twice = format!("X-Api-Key: {MARK}");
    for (method, fields, status) in
        [("GET", "", 200), ("GET", "", 429), ("GET", &*twice, 400), ("GET", &*grpc, 429), ("POST", &*grpc, 200)]
    {
        let response = raw(address, &request(method, fields)).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(!response.contains(MARK), "{response}");
    }
}
