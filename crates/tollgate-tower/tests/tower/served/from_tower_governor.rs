//! The port of the README of `tower_governor` answers as that README says.

#[allow(dead_code, reason = "the example has a `main`")]
#[path = "../../../examples/from_tower_governor.rs"]
mod example;

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use tollgate::MockClock;

use crate::common::Answer;
use crate::served::support::{Connection, get, serve, with};

async fn service() -> (SocketAddr, MockClock) {
    let clock = MockClock::new();
    (serve(example::app(clock.clone()).unwrap()).await, clock)
}

/// The statuses of so many requests.
async fn statuses(client: &mut Connection, path: &str, requests: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..requests {
        statuses.push(client.send(get(path)).await.status.as_u16());
    }
    statuses
}

fn has(answer: &Answer, name: &str) -> bool {
    answer.fields.contains_key(name)
}

#[tokio::test]
async fn five_at_once_then_one_every_two_seconds_from_each_address() {
    let (address, clock) = service().await;
    let mut client = Connection::open(address).await;
    assert_eq!(statuses(&mut client, "/", 5).await, [200; 5]);
    let denied = client.send(get("/")).await;
    assert_eq!(denied.status, 429);
    assert_eq!((denied.one("retry-after"), denied.one("x-ratelimit-after")), ("2", "2"));
    assert!(!has(&denied, "x-ratelimit-limit") && !has(&denied, "ratelimit"), "{denied:?}");
    assert_eq!(denied.body, "wait for 2 s\n");

    // Another connection of the same address has no permits of its own.
    let mut second = Connection::open(address).await;
    assert_eq!(statuses(&mut second, "/", 1).await, [429]);
    // Another address has.
    let mut other = Connection::open_from([127, 0, 0, 2].into(), address).await;
    assert_eq!(statuses(&mut other, "/", 6).await, [200, 200, 200, 200, 200, 429]);

    clock.advance(Duration::from_millis(1_999));
    let denied = client.send(get("/")).await;
    assert_eq!((denied.status.as_u16(), denied.one("retry-after")), (429, "1"));
    clock.advance(Duration::from_millis(1));
    assert_eq!(statuses(&mut client, "/", 2).await, [200, 429]);
    clock.advance(Duration::from_secs(10));
    assert_eq!(statuses(&mut client, "/", 6).await, [200, 200, 200, 200, 200, 429]);
}

#[tokio::test]
async fn use_headers_shows_the_limit_and_what_is_left() {
    let (address, _clock) = service().await;
    let mut client = Connection::open(address).await;
    for left in ["4", "3", "2", "1", "0"] {
        let answer = client.send(get("/fields")).await;
        assert_eq!(answer.status, 200);
        assert_eq!((answer.one("x-ratelimit-limit"), answer.one("x-ratelimit-remaining")), ("5", left));
        assert!(!has(&answer, "x-ratelimit-after") && !has(&answer, "retry-after"), "{answer:?}");
    }
    let denied = client.send(get("/fields")).await;
    assert_eq!(denied.status, 429);
    let fields = ["retry-after", "x-ratelimit-after", "x-ratelimit-limit", "x-ratelimit-remaining"];
    assert_eq!(fields.map(|name| denied.one(name)), ["2", "2", "5", "0"]);

    // Other methods are not limited.
    for _ in 0..10 {
        let mut post = get("/fields");
        *post.method_mut() = Method::POST;
        let answer = client.send(post).await;
        assert_eq!(answer.status, 200);
        assert!(!has(&answer, "x-ratelimit-limit"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_custom_key_has_its_own_errors() {
    let (address, clock) = service().await;
    let mut client = Connection::open(address).await;
    let call = |token: &str| with(get("/token"), "authorization", &format!("Bearer {token}"));
    for token in ["alice", "bob"] {
        for _ in 0..5 {
            assert_eq!(client.send(call(token)).await.status, 200);
        }
        let denied = client.send(call(token)).await;
        assert_eq!((denied.status.as_u16(), &*denied.body), (429, &br#"{"after":2,"code":429}"#[..]));
        assert_eq!((denied.one("retry-after"), denied.one("content-type")), ("2", "application/json"));
    }
    let stranger = client.send(get("/token")).await;
    assert_eq!((stranger.status.as_u16(), &*stranger.body), (401, &br#"{"after":0,"code":401}"#[..]));

    // Tokens that are made up have no end, but an address has its limit.
    clock.advance(Duration::from_secs(60));
    let mut admitted = 0;
    for made_up in 0..200 {
        admitted += u32::from(client.send(call(&format!("token-{made_up}"))).await.status == 200);
    }
    assert_eq!(admitted, 50);
}

#[tokio::test]
async fn one_key_for_all_and_the_presets() {
    let (address, clock) = service().await;
    let mut client = Connection::open(address).await;
    let mut other = Connection::open_from([127, 0, 0, 2].into(), address).await;
    assert_eq!(statuses(&mut client, "/all", 4).await, [200; 4]);
    assert_eq!(statuses(&mut other, "/all", 2).await, [200, 429]);

    for (path, burst, period) in [("/default", 8, 500), ("/secure", 2, 4_000)] {
        let answers = statuses(&mut client, path, burst + 1).await;
        assert_eq!((&answers[..burst], answers[burst]), (&[200; 8][..burst], 429), "{path}");
        clock.advance(Duration::from_millis(period - 1));
        assert_eq!(statuses(&mut client, path, 1).await, [429], "{path}");
        clock.advance(Duration::from_millis(1));
        assert_eq!(statuses(&mut client, path, 2).await, [200, 429], "{path}");
    }
}
