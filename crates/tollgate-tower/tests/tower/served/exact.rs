//! Exactly as many requests pass as there are permits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as route;
use tollgate::{JointLimiter, Limiter, MockClock, Quota};
use tollgate_http::TrustedProxies;
use tollgate_tower::{ClientIp, RateLimitLayer, constant};

use crate::common::{Answer, items};
use crate::served::support::{Connection, get, serve, with};

const CONNECTIONS: u32 = 64;
const CLIENTS: u32 = 4;

/// The answers to `each` requests on each of 64 connections, by client. The server's peer is a
/// trusted proxy, and each request has other addresses that the client has made up.
async fn flood(address: SocketAddr, each: u32) -> BTreeMap<u32, Vec<Answer>> {
    let mut connections = tokio::task::JoinSet::new();
    for connection in 0..CONNECTIONS {
        connections.spawn(async move {
            let mut sender = Connection::open(address).await;
            let client = connection % CLIENTS;
            let mut answers = Vec::new();
            for n in 0..each {
                let forged = format!("203.0.113.{}, 198.51.100.{}", n % 250, connection);
                let request = with(get("/"), "x-forwarded-for", &forged);
                answers.push(sender.send(with(request, "x-forwarded-for", &format!("192.0.2.{client}"))).await);
            }
            (client, answers)
        });
    }
    let mut by_client = BTreeMap::<u32, Vec<Answer>>::new();
    while let Some(joined) = connections.join_next().await {
        let (client, answers) = joined.unwrap();
        by_client.entry(client).or_default().extend(answers);
    }
    by_client
}

fn proxy() -> ClientIp {
    ClientIp::behind(TrustedProxies::new(["127.0.0.1"]).unwrap())
}

/// The number of a parameter of the one item of a list.
fn number(answer: &Answer, field: &str, parameter: &str) -> u32 {
    let items = items(answer.one(field));
    let [(name, parameters)] = &items[..] else { panic!("one item: {answer:?}") };
    assert_eq!(name, "default");
    let found = parameters.iter().find(|(key, _)| key == parameter);
    found.unwrap_or_else(|| panic!("{parameter} in {answer:?}")).1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_requests_on_64_connections_as_many_pass_as_there_are_permits() {
    const LIMIT: u32 = 100;
    const EACH: u32 = 20;
    let clock = MockClock::new();
    let limiter = Limiter::<IpAddr>::builder(Quota::per_minute(LIMIT)).clock(clock.clone()).build().unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(proxy());
    let address = serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await;
    for _ in 0..3 {
        let mut longest = 0;
        for (client, answers) in flood(address, EACH).await {
            assert_eq!(answers.len(), (CONNECTIONS / CLIENTS * EACH) as usize);
            let (admitted, denied): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
            assert_eq!(admitted.len(), LIMIT as usize, "client {client}");
            // Each of them was told another number of permits that are left.
            let mut left: Vec<u32> = admitted.iter().map(|answer| number(answer, "ratelimit", "r")).collect();
            left.sort_unstable();
            assert_eq!(left, (0..LIMIT).collect::<Vec<_>>(), "client {client}");
            for answer in admitted {
                assert_eq!(&answer.body[..], b"hello");
                assert!((1..=60).contains(&number(answer, "ratelimit", "t")));
                assert_eq!(number(answer, "ratelimit-policy", "q"), LIMIT);
                assert_eq!(number(answer, "ratelimit-policy", "w"), 60);
            }
            for answer in denied {
                assert_eq!(answer.status, 429);
                let retry_after: u32 = answer.one("retry-after").parse().unwrap();
                assert_eq!((retry_after, number(answer, "ratelimit", "r")), (60, 0));
                assert_eq!(number(answer, "ratelimit", "t"), retry_after);
                longest = longest.max(retry_after);
            }
        }
        // After `Retry-After`, the same passes as before.
        clock.advance(Duration::from_secs(longest.into()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_joint_limiter_is_exact_in_each_dimension() {
    let limiter = JointLimiter::builder()
        .dimension("address", [Quota::per_minute(60)])
        .dimension("endpoint", [Quota::per_minute(150)])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key((proxy(), constant("endpoint")));
    let address = serve(Router::new().route("/", route(|| async { "hello" })).layer(layer)).await;
    let by_client = flood(address, 20).await;
    let admitted: Vec<usize> =
        by_client.values().map(|answers| answers.iter().filter(|answer| answer.status == 200).count()).collect();
    assert_eq!(admitted.iter().sum::<usize>(), 150);
    assert!(admitted.iter().all(|&admitted| admitted <= 60), "{admitted:?}");
    let denied = by_client.values().flatten().filter(|answer| answer.status == 429);
    assert!(denied.clone().count() > 0);
    for answer in denied {
        assert_eq!(answer.one("retry-after"), "60");
        assert!(!items(answer.one("ratelimit")).is_empty());
        assert_eq!(items(answer.one("ratelimit-policy")).len(), 2);
    }
}
