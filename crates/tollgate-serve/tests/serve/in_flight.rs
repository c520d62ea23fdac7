//! Requests in flight: acquired, released, and over in time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use serde_json::Value;
use tollgate::MockClock;

use crate::envoy_grpc::{attributes, check, descriptor, rate_limit, request};
use crate::support::{Answer, Running, post, server};

/// Two exports of a user at a time, and ten a day.
const EXPORTS: &str = r#"
    [[dimension]]
    name = "in flight"
    key = ["user"]
    quota = [{ algorithm = "concurrency", limit = 2, max_hold = "10m" }]

    [[dimension]]
    name = "day"
    key = ["user"]
    quota = [{ limit = 10, per = "1d" }]
"#;

const ALICE: &str = r#"{"keys": {"user": "alice"}}"#;

fn token(acquired: &Answer) -> String {
    assert_eq!(acquired.status, 200, "{acquired:?}");
    let body: Value = serde_json::from_str(&acquired.body).unwrap();
    assert_eq!(body["admitted"], true);
    body["token"].as_str().unwrap_or_else(|| panic!("no token: {body}")).to_owned()
}

fn release_as(served: &Running, body: &str) -> Answer {
    post(&served.url("/release"), "application/json", body.as_bytes())
}

fn release(served: &Running, token: &str) -> u16 {
    let answer = release_as(served, &format!(r#"{{"token": "{token}"}}"#));
    match answer.status {
        200 => assert_eq!(answer.body, "{\"released\":true}\n"),
        _ => assert!(answer.problem()["detail"].as_str().unwrap().starts_with("No request in flight has this token")),
    }
    answer.status
}

#[test]
fn a_request_is_in_flight_until_it_is_released() {
    let served = Running::of(EXPORTS);
    let ask = || served.acquire(ALICE);
    let answers = [ask(), ask()];
    let policies = r#""in flight";q=2;qu="concurrent-requests", "day";q=10;w=86400"#;
    for (answer, left) in answers.iter().zip([r#""in flight";r=1"#, r#""in flight";r=0"#]) {
        // The time until another ends is not known.
        assert_eq!((answer.field("ratelimit-policy"), answer.field("ratelimit")), (Some(policies), Some(left)));
    }
    let tokens = answers.map(|answer| token(&answer));
    assert_ne!(tokens[0], tokens[1]);
    assert!(tokens.iter().all(|token| token.len() == 32));

    let denied = ask();
    assert_eq!((denied.status, denied.field("retry-after")), (429, None), "{denied:?}");
    assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["in flight"]));
    assert_eq!(token(&served.acquire(r#"{"keys": {"user": "bob"}}"#)).len(), 32);
    assert_eq!(served.metric("tollgate_in_flight"), 3);

    let released = release_as(&served, &format!("{{\"token\": \"{}\"}}", tokens[0]));
    assert_eq!((released.status, released.field("cache-control")), (200, Some("no-store")));
    let third = token(&ask());
    assert_eq!(ask().status, 429);
    // It ends nothing twice.
    assert_eq!([release(&served, &tokens[0]), release(&served, &tokens[0])], [410; 2]);
    assert_eq!(ask().status, 429);
    assert_eq!(served.metric(r#"tollgate_requests_total{result="in_flight"}"#), 3);
    assert_eq!([release(&served, &tokens[1]), release(&served, &third)], [200; 2]);
    assert_eq!(served.metric("tollgate_in_flight"), 1);
    // The denied ones were not charged: seven of the day are left.
    let admitted = (0..10).take_while(|_| release(&served, &token(&ask())) == 200 && peek(&served) == 200);
    assert_eq!(admitted.count(), 6);
    assert_eq!(peek(&served), 429);
}

fn peek(served: &Running) -> u16 {
    let answer = served.acquire(r#"{"keys": {"user": "alice"}, "peek": true}"#);
    assert!(!answer.body.contains("token"), "{answer:?}");
    answer.status
}

#[test]
fn a_request_that_is_not_released_is_over_in_its_time_and_not_a_tick_sooner() {
    let clock = MockClock::new();
    let served = Running::start(server(EXPORTS).clock(clock.clone()));
    let ask = || served.acquire(ALICE);
    let first = token(&ask());
    clock.advance(Duration::from_secs(60));
    let second = token(&ask());
    clock.advance(Duration::from_secs(540) - Duration::from_nanos(1));
    assert_eq!(ask().status, 429);
    assert_eq!(served.metric("tollgate_in_flight_overdue_total"), 0);
    clock.advance(Duration::from_nanos(1));
    let third = token(&ask());
    assert_eq!((ask().status, served.metric("tollgate_in_flight")), (429, 2));
    assert_eq!(release(&served, &first), 410);
    assert_eq!(served.metric("tollgate_in_flight_overdue_total"), 1);

    // A look sees it as well, and a release in the same instant comes too late.
    clock.advance(Duration::from_secs(60));
    assert_eq!((peek(&served), release(&served, &second)), (200, 410));
    assert_eq!(release(&served, &third), 200);
    assert_eq!(served.metric("tollgate_in_flight"), 0);
}

/// Of several limits that count it, and of the tier that it is in.
#[test]
fn the_shortest_time_of_the_limits_that_count_a_request_counts() {
    let limit = |fields: &str| format!("quota = [{{ algorithm = \"concurrency\", {fields} }}]\n");
    let policy = format!(
        "[[dimension]]\nname = \"user\"\ntier_by = \"plan\"\n{}[[dimension.tier]]\nname = \"pro\"\n{}\
         [[dimension.tier]]\nname = \"rate\"\nquota = [{{ limit = 1, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"tenant\"\n{}",
        limit("limit = 1"),
        limit("limit = 1, max_hold = \"20s\""),
        limit("limit = 9, max_hold = \"30s\"")
    );
    // A minute, if the limit does not tell.
    for (keys, seconds) in [
        (r#""user": "alice""#, Some(60)),
        (r#""user": "alice", "plan": "pro""#, Some(20)),
        (r#""user": "alice", "tenant": "acme""#, Some(30)),
        (r#""user": "alice", "tenant": "acme", "plan": "pro""#, Some(20)),
        (r#""user": "alice", "plan": "rate""#, None),
    ] {
        let clock = MockClock::new();
        let server = server(&policy).clock(clock.clone()).optional("tenant").unwrap();
        let served = Running::start(server);
        let ask = || served.acquire(&format!("{{\"keys\": {{{keys}}}}}"));
        let Some(seconds) = seconds else {
            assert_eq!(ask().body, "{\"admitted\":true}\n", "no limit counts it");
            assert_eq!((served.metric("tollgate_in_flight"), ask().status), (0, 429));
            continue;
        };
        token(&ask());
        clock.advance(Duration::from_secs(seconds) - Duration::from_nanos(1));
        assert_eq!(ask().status, 429, "{keys}");
        clock.advance(Duration::from_nanos(1));
        token(&ask());
    }
}

#[test]
fn a_body_without_a_token_alone_is_refused_and_releases_nothing() {
    let served = Running::of(EXPORTS);
    let held = token(&served.acquire(ALICE));
    let bodies = [
        String::new(),
        "[]".to_owned(),
        "{}".to_owned(),
        "{\"token\": 7}".to_owned(),
        "{\"token\": null}".to_owned(),
        format!("\"{held}\""),
        format!("{{\"Token\": \"{held}\"}}"),
        format!("{{\"token\": [\"{held}\"]}}"),
        format!("{{\"token\": \"{held}\", \"token\": \"{held}\"}}"),
        format!("{{\"token\": \"{held}\", \"keys\": {{}}}}"),
        format!("{{\"token\": \"{held}\"}} {{}}"),
    ];
    for body in &bodies {
        let answer = release_as(&served, body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.problem()["detail"].as_str().unwrap().starts_with("The body "), "{answer:?}");
    }
    assert_eq!(served.metric(r#"tollgate_requests_total{result="malformed"}"#), bodies.len() as u64);
    let zeros = "0".repeat(32);
    for unknown in ["", "7", &held[1..], &held.to_uppercase().replace(char::is_numeric, "A"), &zeros] {
        assert_eq!(release(&served, unknown), 410, "{unknown}");
    }
    let body = format!("{{\"token\": \"{held}\"}}");
    assert_eq!(post(&served.url("/release"), "text/plain", body.as_bytes()).status, 415);
    assert_eq!(served.get("/release", &[]).field("allow"), Some("POST"));
    assert_eq!(release(&served, &held), 200);
    // A policy without such a limit knows no token.
    let without = Running::of("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1d\" }]");
    assert_eq!(release(&without, &held), 410);
}

/// A limit of the rate in shadow mode, and a limit of those in flight: a request that the latter admits by
/// its shadow mode alone has no place of it, and so no token.
#[test]
fn a_request_that_counts_in_no_limit_has_no_token() {
    let shadow = EXPORTS.replacen("key = [\"user\"]", "key = [\"user\"]\nshadow = true", 1);
    for policy in [format!("shadow = true\n{EXPORTS}"), shadow] {
        let served = Running::of(&policy);
        let answers =
            (0..5).map(|_| served.acquire(ALICE)).map(|answer| (answer.status, answer.body.contains("token")));
        let expected = [(200, true), (200, true), (200, false), (200, false), (200, false)];
        assert_eq!(answers.collect::<Vec<_>>(), expected, "{policy}");
        assert_eq!(served.metric("tollgate_in_flight"), 2);
    }
    // There is no place for the second key.
    let cap = "at_key_cap = \"admit\"\nkey_cap = 1\n[[dimension]]\nname = \"rate\"\nkey = [\"user\"]\n\
               quota = [{ limit = 9, per = \"1d\" }]\n";
    let served = Running::of(&format!("{cap}{EXPORTS}"));
    for _ in 0..5 {
        assert_eq!(served.acquire(ALICE).body, "{\"admitted\":true}\n");
    }
    assert_eq!(served.metric("tollgate_in_flight"), 0);
    let rule = format!("[[rule]]\nmatch = {{ user = \"alice\" }}\naction = \"admit\"\n{EXPORTS}");
    assert_eq!(Running::of(&rule).acquire(ALICE).body, "{\"admitted\":true}\n");
}

/// Clients count for themselves how many of them have a token.
#[test]
fn no_more_clients_than_the_limit_have_a_token_at_any_instant() {
    const LIMIT: u32 = 2;
    let served = Running::of("[[dimension]]\nname = \"user\"\nquota = [{ algorithm = \"concurrency\", limit = 2 }]");
    let within = AtomicU32::new(0);
    let work = || {
        let rounds = (0..50).filter(|_| {
            let answer = served.acquire(ALICE);
            if answer.status == 429 {
                return false;
            }
            let token = token(&answer);
            assert!(within.fetch_add(1, Ordering::SeqCst) < LIMIT, "too many have a token");
            within.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(release(&served, &token), 200);
            true
        });
        rounds.count()
    };
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(admitted > 0);
    assert_eq!(served.metric("tollgate_in_flight"), 0);
    let held = [(); 2].map(|()| token(&served.acquire(ALICE)));
    assert_eq!((held.len(), served.acquire(ALICE).status), (2, 429), "none is lost, and none is left");
}

/// nginx and Envoy do not tell the end of a request.
#[test]
fn by_nginx_and_envoy_a_request_is_over_at_once() {
    let served = Running::of(&EXPORTS.replace("limit = 10", "limit = 100"));
    let fields = [("x-tollgate-user", "alice")];
    let others = || {
        let answers = [served.get("/auth_request", &fields), served.get("/authz/page", &fields)];
        let checked = check(&served, attributes("192.0.2.1", &[], &[("user", "alice")])).unwrap();
        let by_descriptors = rate_limit(&served, request(vec![descriptor(&[("user", "alice")])], 1)).unwrap();
        (answers.map(|answer| answer.status), checked.status.unwrap().code == 0, by_descriptors.overall_code())
    };
    for _ in 0..3 {
        assert_eq!(others(), ([204, 200], true, Code::Ok));
    }
    assert_eq!(served.metric("tollgate_in_flight"), 0);
    let tokens = [(); 2].map(|()| token(&served.acquire(ALICE)));
    assert_eq!(others(), ([403, 429], false, Code::OverLimit));
    assert!(tokens.iter().all(|token| release(&served, token) == 200));
    assert_eq!(others(), ([204, 200], true, Code::Ok));
}

#[test]
fn nothing_is_in_flight_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits");
    let start = || Running::start(server(&EXPORTS.replace("limit = 10", "limit = 5")).snapshot(&path));
    let served = start();
    let tokens = [(); 2].map(|()| token(&served.acquire(ALICE)));
    assert_eq!(served.stop().saved, Some(1), "the key of the day");
    let served = start();
    assert_eq!(served.metric("tollgate_in_flight"), 0);
    assert_eq!(release(&served, &tokens[0]), 410);
    let held = [(); 2].map(|()| token(&served.acquire(ALICE)));
    assert_eq!(served.acquire(ALICE).status, 429);
    assert_eq!(release(&served, &held[0]), 200);
    token(&served.acquire(ALICE));
    // The day is restored: five were admitted.
    assert_eq!(release(&served, &held[1]), 200);
    assert_eq!(served.acquire(ALICE).problem()["violated-policies"], serde_json::json!(["day"]));
}

#[cfg(feature = "redis")]
#[test]
fn on_a_store_any_server_releases_a_request_also_of_one_that_has_stopped() {
    let Some(mut place) = crate::place::Place::on_store() else { return };
    let start = || Running::start(server(&place.policy(EXPORTS, "on_failure = \"open\"")));
    let (first, second) = (start(), start());
    let [one, other] = [&first, &second].map(|served| token(&served.acquire(ALICE)));
    for served in [&first, &second] {
        let denied = served.acquire(ALICE);
        assert_eq!((denied.status, denied.field("retry-after")), (429, None));
        assert_eq!(denied.field("ratelimit"), Some(r#""in flight";r=0"#), "{denied:?}");
        assert_eq!(peek(served), 429);
    }
    // Nginx and Envoy do not tell when a request ends: it takes no place, and needs one.
    assert_eq!(second.get("/auth_request", &[("x-tollgate-user", "alice")]).status, 403);
    first.stop();
    assert_eq!([release(&second, &one), release(&second, &one)], [200, 410]);
    assert_eq!([release(&second, &"0".repeat(32)), release(&second, &other)], [410, 200]);
    assert_eq!(second.get("/auth_request", &[("x-tollgate-user", "alice")]).status, 204);
    assert_eq!(peek(&second), 200);
    let again = token(&second.acquire(ALICE));
    place.goes_away();
    let released = release_as(&second, &format!(r#"{{"token": "{again}"}}"#));
    assert_eq!(released.status, 503);
    assert_eq!(released.problem()["detail"], "The store did not answer. Release the token again.");
    assert_eq!(second.metric("tollgate_store_unreleased_total"), 1);
    // It is admitted without a count, and so without a place.
    let open = second.acquire(ALICE);
    assert_eq!((open.status, open.body.as_str()), (200, "{\"admitted\":true}\n"));
}
