//! HTTP/2 without TLS.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use http::Request;
use http_body_util::Full;
use tollgate::{Limiter, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer};

use crate::common::{item, items};
use crate::served::support::{Streams, serve};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_one_connection_share_the_limit_of_their_address() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(50)).unwrap());
    let layer = RateLimitLayer::new(limiter).key(ClientIp::peer());
    let address = serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await;
    let connections = [Streams::open(address).await, Streams::open(address).await];
    let request = move |method: &str| {
        Request::builder().method(method).uri(format!("http://{address}/")).body(Full::default()).unwrap()
    };
    let mut streams = tokio::task::JoinSet::new();
    for n in 0..200 {
        let mut sender = connections[n % 2].clone();
        streams.spawn(async move { sender.send(request("GET")).await });
    }
    let answers = streams.join_all().await;
    let (admitted, denied): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((admitted.len(), denied.len()), (50, 150));
    for answer in denied {
        assert_eq!(answer.status, 429);
        assert_eq!(items(answer.one("ratelimit-policy")), [item("default", [("q", 50), ("w", 3_600)])]);
        assert_eq!(answer.one("content-length"), answer.body.len().to_string());
    }
    let mut sender = connections[0].clone();
    let to_head = sender.send(request("HEAD")).await;
    let to_get = sender.send(request("GET")).await;
    assert_eq!((to_head.status.as_u16(), to_head.body.len()), (429, 0));
    assert_eq!(to_head.one("content-length"), to_get.one("content-length"));
}
