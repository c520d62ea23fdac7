//! The port of the README of `actix-governor` answers as that README says.

#[allow(dead_code, reason = "the example has a `main`")]
#[path = "../../examples/from_actix_governor.rs"]
mod example;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::server::Server;
use actix_web::App;
use actix_web::test::{TestRequest, call_service, init_service};
use tollgate::MockClock;

fn service() -> (Server, MockClock) {
    let clock = MockClock::new();
    let routes = example::routes(clock.clone()).unwrap();
    (Server::of(move || App::new().configure(routes.clone())), clock)
}

/// The statuses of so many requests, on a connection each.
fn statuses(server: &Server, path: &str, requests: usize) -> Vec<u16> {
    (0..requests).map(|_| server.status(path)).collect()
}

#[test]
fn five_at_once_then_two_a_second() {
    let (server, clock) = service();
    // On four workers, which share the limit.
    assert_eq!(statuses(&server, "/", 5), [200; 5]);
    let denied = server.get("/", &[]);
    let fields = ["retry-after", "x-ratelimit-after", "x-ratelimit-limit", "ratelimit"].map(|name| denied.field(name));
    assert_eq!((denied.status, fields), (429, [Some("1"), Some("1"), None, None]));
    assert_eq!(denied.body, "wait for 1 s\n");

    for _ in 0..4 {
        clock.advance(Duration::from_millis(499));
        assert_eq!(statuses(&server, "/", 1), [429]);
        clock.advance(Duration::from_millis(1));
        assert_eq!(statuses(&server, "/", 2), [200, 429]);
    }
    clock.advance(Duration::from_millis(2_500));
    assert_eq!(statuses(&server, "/", 6), [200, 200, 200, 200, 200, 429]);
}

#[actix_web::test]
async fn each_address_has_permits_of_its_own() {
    let routes = example::routes(MockClock::new()).unwrap();
    let service = init_service(App::new().configure(routes)).await;
    for last in 1..=3 {
        for (port, status) in [(1, 200), (2, 200), (3, 200), (4, 200), (5, 200), (6, 429)] {
            let request = TestRequest::get().peer_addr(([192, 0, 2, last], port).into()).to_request();
            assert_eq!(call_service(&service, request).await.status(), status, "{last} {port}");
        }
    }
}

#[test]
fn use_headers_shows_the_limit_and_what_is_left() {
    let (server, clock) = service();
    let names = ["x-ratelimit-limit", "x-ratelimit-remaining", "retry-after", "x-ratelimit-after"];
    for left in ["4", "3", "2", "1", "0"] {
        let answer = server.get("/fields", &[]);
        assert_eq!(answer.status, 200);
        assert_eq!(names.map(|name| answer.field(name)), [Some("5"), Some(left), None, None]);
    }
    let denied = server.get("/fields", &[]);
    assert_eq!(denied.status, 429);
    assert_eq!(names.map(|name| denied.field(name)), [Some("5"), Some("0"), Some("2"), Some("2")]);

    // Other methods are not limited.
    for _ in 0..10 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "POST /fields HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("ratelimit"), "{answer}");
    }

    clock.advance(Duration::from_millis(1_999));
    assert_eq!(statuses(&server, "/fields", 1), [429]);
    clock.advance(Duration::from_millis(1));
    assert_eq!(statuses(&server, "/fields", 2), [200, 429]);
}

#[test]
fn a_custom_key_has_its_own_errors() {
    let (server, clock) = service();
    let call = |token: &str| server.get("/token", &[("authorization", &format!("Bearer {token}"))]);
    for token in ["alice", "bob"] {
        for _ in 0..5 {
            assert_eq!(call(token).status, 200);
        }
        let denied = call(token);
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("2")));
        assert_eq!(denied.json(), serde_json::json!({ "code": 429, "after": 2 }));
    }
    let stranger = server.get("/token", &[]);
    assert_eq!((stranger.status, stranger.json()), (401, serde_json::json!({ "code": 401, "after": 0 })));

    // Tokens that are made up have no end, but an address has its limit.
    clock.advance(Duration::from_secs(60));
    let admitted = (0..200).filter(|made_up| call(&format!("token-{made_up}")).status == 200).count();
    assert_eq!(admitted, 50);
}

#[test]
fn one_key_for_all_and_the_presets() {
    let (server, clock) = service();
    assert_eq!(statuses(&server, "/all", 6), [200, 200, 200, 200, 200, 429]);
    for (path, burst, period) in [("/default", 8, 500), ("/secure", 2, 4_000)] {
        let answers = statuses(&server, path, burst + 1);
        assert_eq!((&answers[..burst], answers[burst]), (&[200; 8][..burst], 429), "{path}");
        clock.advance(Duration::from_millis(period - 1));
        assert_eq!(statuses(&server, path, 1), [429], "{path}");
        clock.advance(Duration::from_millis(1));
        assert_eq!(statuses(&server, path, 2), [200, 429], "{path}");
    }
}
