//! Exactly as many requests pass as there are permits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::server::{Server, item};
use actix_web::{App, web};
use tollgate::{Limiter, MockClock, Quota};
use tollgate_actix::{ClientIp, RateLimit};
use tollgate_http::TrustedProxies;

const CONNECTIONS: usize = 64;
const CLIENTS: usize = 4;
const EACH: usize = 10;
const LIMIT: usize = 40;

/// How many requests of each client pass. The server's peer is a trusted proxy, and each request
/// has other addresses that the client has made up.
fn flood(server: &Server) -> [usize; CLIENTS] {
    let ask = |connection: usize| {
        let mut admitted = 0;
        for n in 0..EACH {
            let forged = format!("203.0.113.{n}, 198.51.100.{connection}");
            let seen = format!("192.0.2.{}", connection % CLIENTS);
            let answer = server.get("/", &[("x-forwarded-for", &forged), ("x-forwarded-for", &seen)]);
            assert!([200, 429].contains(&answer.status));
            if answer.status == 429 {
                assert_eq!(answer.field("retry-after"), Some("60"));
                assert_eq!(answer.list("ratelimit"), [item("default", [("r", 0), ("t", 60)])]);
            }
            admitted += usize::from(answer.status == 200);
        }
        admitted
    };
    let mut by_client = [0; CLIENTS];
    std::thread::scope(|scope| {
        let connections: Vec<_> = (0..CONNECTIONS).map(|at| (at, scope.spawn(move || ask(at)))).collect();
        for (at, connection) in connections {
            by_client[at % CLIENTS] += connection.join().unwrap();
        }
    });
    by_client
}

#[test]
fn of_requests_on_64_connections_as_many_pass_as_there_are_permits() {
    let clock = MockClock::new();
    let quota = Quota::per_minute(u32::try_from(LIMIT).unwrap());
    let limiter = Limiter::<IpAddr>::builder(quota).clock(clock.clone()).build().unwrap();
    let proxies = TrustedProxies::new(["127.0.0.1"]).unwrap();
    let limit = RateLimit::new(Arc::new(limiter)).key(ClientIp::behind(proxies));
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(|| async { "hello" })));
    for _ in 0..2 {
        assert_eq!(flood(&server), [LIMIT; CLIENTS]);
        clock.advance(Duration::from_secs(60));
    }
}
