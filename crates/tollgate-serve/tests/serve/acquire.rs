//! `POST /acquire`.

use std::time::Duration;

use tollgate::AnyClock;
use tollgate::MockClock;
use tollgate_kit::clients;
use tollgate_kit::clocks::AnchoredClock;
use tollgate_kit::months;
use tollgate_kit::phases::{self, nanos_at};

use crate::place::by_both;
use crate::support::{POLICY, Running, server};

#[test]
fn permits_are_charged_in_all_dimensions_or_in_none() {
    by_both(|place| {
        let served = place.of(POLICY);
        let ask = |client: &str, user: &str, cost: u32| {
            served.acquire(&format!(r#"{{"keys": {{"client": "{client}", "user": "{user}"}}, "cost": {cost}}}"#))
        };
        let first = ask("192.0.2.1", "alice", 2);
        assert_eq!((first.status, first.body.as_str()), (200, "{\"admitted\":true}\n"));
        assert_eq!(first.field("content-type"), Some("application/json"));
        assert_eq!(first.field("ratelimit-policy"), Some(r#""address";q=5;w=86400, "user";q=3;w=86400"#));
        // The tightest.
        assert!(first.field("ratelimit").unwrap().starts_with(r#""user";r=1;t="#), "{first:?}");

        let denied = ask("192.0.2.1", "alice", 2);
        assert_eq!(denied.status, 429);
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["user"]));
        assert!(denied.field("ratelimit").unwrap().starts_with(r#""user";r=1;t="#), "{denied:?}");
        assert_eq!(denied.field("cache-control"), Some("no-store"));
        let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
        assert!((80_000..=86_400).contains(&wait), "{wait}");

        // The denial has charged neither: of the address 3 are left, and of the user 1.
        assert_eq!(ask("192.0.2.1", "bob", 3).status, 200);
        assert_eq!(ask("192.0.2.1", "carol", 1).problem()["violated-policies"], serde_json::json!(["address"]));
        assert_eq!(ask("192.0.2.2", "alice", 1).status, 200);

        assert_eq!(served.metric(r#"tollgate_requests_total{result="admitted"}"#), 3);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="quota"}"#), 2);
        assert_eq!(served.metric(r#"tollgate_admissions_total{dimension="user"}"#), 3);
        assert_eq!(served.metric(r#"tollgate_denials_total{dimension="address",quota="address"}"#), 1);
    });
}

#[test]
fn at_the_cap_a_new_key_gets_the_answer_of_the_policy_and_others_are_decided() {
    for (before, status, result) in [("", 503, "key_cap"), ("at_key_cap = \"admit\"", 200, "uncounted")] {
        let served = Running::of(&format!("{before}\nkey_cap = 2\n{POLICY}"));
        let ask = |client: &str, user: &str| {
            served.acquire(&format!(r#"{{"keys": {{"client": "192.0.2.{client}", "user": "{user}"}}}}"#))
        };
        assert_eq!(ask("1", "alice").status, 200);
        let new = ask("2", "bob");
        assert_eq!((new.status, new.field("ratelimit")), (status, None), "{new:?}");
        assert_eq!(new.field("retry-after").is_some(), status == 503, "{new:?}");
        assert_eq!(served.metric(&format!("tollgate_requests_total{{result=\"{result}\"}}")), 1);
        // One that is held is charged beside a new one, or not at all: then the address has some left.
        assert_eq!([ask("1", "bob").status, ask("1", "bob").status], [status; 2]);
        assert_eq!([ask("1", "alice").status, ask("1", "alice").status], [200; 2]);
        assert_eq!(ask("1", "alice").problem()["violated-policies"][0], if status == 200 { "address" } else { "user" });
        assert_eq!(served.metric("tollgate_live_keys"), 2);
    }
}

#[test]
fn no_cache_keeps_an_answer() {
    let served = Running::start(server(POLICY).optional("user").unwrap());
    let client = [("x-tollgate-client", "192.0.2.1")];
    let answers = [
        served.acquire(r#"{"keys": {"client": "192.0.2.1"}}"#),
        served.acquire("no JSON"),
        served.get("/auth_request", &client),
        served.get("/authz/page", &client),
        served.get("/authz/page", &[]),
        served.get("/metrics", &[]),
        served.get("/nowhere", &[]),
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 400, 204, 200, 400, 200, 404]);
    for answer in answers {
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{answer:?}");
    }
}

#[test]
fn after_retry_after_the_same_request_passes_and_not_a_second_sooner() {
    by_both(|place| {
        let policy = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 1, per = \"7500ms\" }]";
        let clock = place.clock();
        let served = Running::start(place.server(policy).clock(clock.clone()));
        let ask = || served.acquire(r#"{"keys": {"user": "alice"}}"#);
        assert_eq!(ask().status, 200);
        let denied = ask();
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("8")));
        assert_eq!(denied.problem()["detail"], "Try again in 8 seconds.");
        clock.advance(Duration::from_secs(7));
        assert_eq!(ask().field("retry-after"), Some("1"));
        clock.advance(Duration::from_secs(1));
        assert_eq!(ask().status, 200);
    });
}

#[test]
fn a_peek_tells_and_charges_nothing() {
    by_both(|place| {
        let served = place.of("[[dimension]]\nname = \"user\"\nquota = [{ limit = 3, per = \"1d\" }]");
        let ask = |cost: u32, peek: bool| {
            served.acquire(&format!(r#"{{"keys": {{"user": "alice"}}, "cost": {cost}, "peek": {peek}}}"#))
        };
        for _ in 0..3 {
            let look = ask(3, true);
            assert_eq!((look.status, look.field("ratelimit")), (200, Some(r#""user";r=3;t=86400"#)));
        }
        assert_eq!(ask(2, false).status, 200);
        assert_eq!(ask(1, true).status, 200);
        assert_eq!(ask(2, true).problem()["violated-policies"], serde_json::json!(["user"]));
        assert_eq!(ask(1, false).status, 200);
        assert_eq!(ask(1, true).status, 429);
        // Looks are no requests.
        assert_eq!(served.metric(r#"tollgate_requests_total{result="admitted"}"#), 2);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="quota"}"#), 0);
    });
}

#[test]
fn an_optional_field_may_be_missing_and_its_dimension_is_not_asked() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).optional("user").unwrap());
        let anonymous = served.acquire(r#"{"keys": {"client": "192.0.2.1"}, "cost": 4}"#);
        assert_eq!((anonymous.status, anonymous.field("ratelimit-policy")), (200, Some(r#""address";q=5;w=86400"#)));
        assert_eq!(served.acquire(r#"{"keys": {"client": "192.0.2.1", "user": null}}"#).status, 200);
        // The address has none left, the user all.
        let denied = served.acquire(r#"{"keys": {"client": "192.0.2.1", "user": "alice"}}"#);
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["address"]));
        assert_eq!(served.acquire(r#"{"keys": {"client": "192.0.2.2", "user": "alice"}, "cost": 3}"#).status, 200);
    });
}

#[test]
fn fields_of_a_dimension_form_one_key() {
    by_both(|place| {
        let policy =
            "[[dimension]]\nname = \"login\"\nkey = [\"client\", \"user\"]\nquota = [{ limit = 1, per = \"1d\" }]";
        let served = place.of(policy);
        let ask = |client: &str, user: &str| {
            served.acquire(&format!(r#"{{"keys": {{"client": "{client}", "user": "{user}"}}}}"#)).status
        };
        assert_eq!([ask("a", "bc"), ask("a", "bc"), ask("a", "b"), ask("b", "bc")], [200, 429, 200, 200]);
        // As a pair, not as one text, and in order.
        assert_eq!([ask("ab", "c"), ask("bc", "a")], [200, 200]);
    });
}

#[test]
fn an_address_counts_as_its_network_however_it_is_written() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap().optional("user").unwrap());
        let ask = |client: &str| served.acquire(&format!(r#"{{"keys": {{"client": "{client}"}}, "cost": 5}}"#)).status;
        assert_eq!([ask("2001:db8::1"), ask("2001:DB8:0:0:1::2"), ask("2001:db8:0:1::1")], [200, 429, 200]);
        assert_eq!([ask("192.0.2.1"), ask("::ffff:192.0.2.1"), ask("192.0.2.2")], [200, 429, 200]);
        assert_eq!([ask("192.0.2.2:80"), ask("[2001:db8:0:1::9]:80")], [429, 429]);
        for text in ["localhost", "192.0.2.256", "[::1", "192.0.2.1,"] {
            assert_eq!(ask(text), 400, "{text}");
        }
    });
}

#[test]
fn the_field_client_is_an_address_and_another_text_stands_for_itself() {
    by_both(|place| {
        let policy = "[client]\ntrusted_proxies = [\"10.0.0.0/8\"]\nipv6_prefix = 48\n\
                      [[dimension]]\nname = \"client\"\nquota = [{ limit = 1, per = \"1d\" }]";
        let served = place.of(policy);
        let ask = |client: &str| served.acquire(&format!(r#"{{"keys": {{"client": "{client}"}}}}"#)).status;
        assert_eq!([ask("2001:db8:1::1"), ask("2001:db8:1:2::1"), ask("2001:db8:2::1")], [200, 429, 200]);
        assert_eq!(
            [ask("192.0.2.7"), ask("::ffff:192.0.2.7"), ask("203.0.113.9, 192.0.2.7, 10.0.0.2")],
            [200, 429, 429]
        );
        assert_eq!([ask("10.0.0.2"), ask("203.0.113.9, 10.0.0.2"), ask("a name"), ask("a name")], [200, 200, 200, 429]);
    });
}

#[test]
fn clients_are_taken_as_all_programs_do() {
    by_both(|place| {
        let served = place.of(clients::POLICY);
        for request in clients::requests() {
            let hops = request.hops();
            let status = served.acquire(&format!(r#"{{"keys": {{"client": "{hops}"}}}}"#)).status;
            assert_eq!(status == 200, request.is_admitted, "{hops}: {status}");
        }
    });
}

/// A server that starts anew in the middle of a window goes on with it.
#[test]
fn a_phase_counts_from_1970_and_a_restart_moves_no_window() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("snapshot");
    let start = |made_at: u64| {
        let clock = AnchoredClock::made_at(nanos_at(made_at));
        let server = server(phases::POLICY).clock(AnyClock::new(clock.clone())).snapshot(&snapshot);
        (Running::start(server), clock)
    };
    let (mut served, mut clock) = start(3);
    for (minute, is_admitted) in phases::REQUESTS {
        clock.set(nanos_at(minute));
        let status = served.acquire(r#"{"keys": {"client": "192.0.2.1"}}"#).status;
        assert_eq!(status == 200, is_admitted, "{minute}: {status}");
        served.stop();
        (served, clock) = start(minute);
    }
}

#[test]
fn a_month_begins_at_midnight_in_its_zone() {
    by_both(|place| {
        let clock = place.clock();
        let served = Running::start(place.server(months::POLICY).clock(clock.clone()));
        for (time, is_admitted) in months::REQUESTS {
            clock.set(time * 1_000_000_000);
            let status = served.acquire(r#"{"keys": {"client": "192.0.2.1"}}"#).status;
            assert_eq!(status == 200, is_admitted, "{time}: {status}");
        }
    });
}

#[test]
fn a_phase_counts_from_1970_on_a_store_too() {
    by_both(|place| {
        // On a store, and by a clock that knows no wall clock, it counts from the clock's origin.
        let clock = place.clock();
        let served = Running::start(place.server(phases::POLICY).clock(clock.clone()));
        for (minute, is_admitted) in phases::REQUESTS {
            clock.set(nanos_at(minute));
            let status = served.acquire(r#"{"keys": {"client": "192.0.2.1"}}"#).status;
            assert_eq!(status == 200, is_admitted, "{minute}: {status}");
        }
    });
}

#[test]
fn shadow_mode_admits_and_counts() {
    let served = Running::of(&format!("shadow = true\n{POLICY}"));
    let ask = || served.acquire(r#"{"keys": {"client": "192.0.2.1", "user": "alice"}, "cost": 2}"#).status;
    assert_eq!([ask(), ask()], [200, 200]);
    assert_eq!(served.metric(r#"tollgate_requests_total{result="overruled"}"#), 1);
    assert_eq!(served.metric(r#"tollgate_denials_total{dimension="user",quota="user"}"#), 1);
}

#[test]
fn a_queue_makes_nobody_wait() {
    let policy = r#"
        [[dimension]]
        name = "host"
        quota = [{ algorithm = "leaky-queue", leak = 1, per = "10s", max_delay = "60s" }]
    "#;
    let clock = MockClock::new();
    let served = Running::start(server(policy).clock(clock.clone()));
    let ask = |peek: bool| served.acquire(&format!(r#"{{"keys": {{"host": "a"}}, "peek": {peek}}}"#));
    assert_eq!(ask(false).status, 200);
    for peek in [false, true] {
        let denied = ask(peek);
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("10")));
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["host"]));
    }
    // Nor does one of a tier.
    let user = "[[dimension]]\nname = \"host\"\nquota = [{ limit = 9, per = \"1m\" }]\ntier_by = \"plan\"\n";
    let tier = policy.replace("[[dimension]]", "[[dimension.tier]]");
    let of_tier = Running::start(server(&format!("{user}{tier}")).clock(clock.clone()));
    let slow = || of_tier.acquire(r#"{"keys": {"host": "a", "plan": "host"}}"#);
    assert_eq!((slow().status, slow().status, slow().field("retry-after")), (200, 429, Some("10")));
    clock.advance(Duration::from_secs(10));
    assert_eq!([ask(true).status, ask(false).status, ask(false).status], [200, 200, 429]);
}

#[test]
fn threads_on_many_connections_are_admitted_exactly_the_limit() {
    by_both(|place| {
        let served = place.of("[[dimension]]\nname = \"user\"\nquota = [{ limit = 100, per = \"1d\" }]");
        let ask = || (0..50).filter(|_| served.acquire(r#"{"keys": {"user": "alice"}}"#).status == 200).count();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 100);
    });
}
