//! What no client should send. It is answered with problem details, and never charged.

use std::io::Write as _;
use std::time::Duration;

use crate::place::by_both;
use crate::support::{POLICY, Running, post, problem_of, read_all, server};

/// The permits that are left of the client `192.0.2.1` and the user `alice`.
fn left(served: &Running) -> [bool; 2] {
    let look = |client: &str, user: &str, cost: u32| {
        let keys = format!(r#"{{"client": "{client}", "user": "{user}"}}"#);
        served.acquire(&format!(r#"{{"keys": {keys}, "cost": {cost}, "peek": true}}"#)).status == 200
    };
    // All of them, each beside a key that nobody else has.
    [look("192.0.2.1", "nobody", 3), look("198.51.100.1", "alice", 3)]
}

#[test]
fn a_body_that_is_not_as_it_should_be_is_refused_with_the_reason_and_charges_nothing() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        let long = "x".repeat(1025);
        let good = r#""client": "192.0.2.1", "user": "alice""#;
        let cases = [
            (String::new(), "line 1, column 0"),
            ("{".to_owned(), "no JSON"),
            ("[]".to_owned(), "The body must be an object: {\"keys\": {\"client\": \"...\", \"user\": \"...\"}"),
            ("{}".to_owned(), "\"keys\" is missing"),
            (r#"{"keys": ["192.0.2.1", "alice"]}"#.to_owned(), "\"keys\" must be an object"),
            (r#"{"keys": {}}"#.to_owned(), "The field \"client\" is missing."),
            (r#"{"keys": {"client": "192.0.2.1"}}"#.to_owned(), "The field \"user\" is missing."),
            (r#"{"keys": {"client": "192.0.2.1", "user": null}}"#.to_owned(), "The field \"user\" must be a string."),
            (r#"{"keys": {"client": "192.0.2.1", "user": 7}}"#.to_owned(), "The field \"user\" must be a string."),
            (r#"{"keys": {"client": "192.0.2.1", "user": ["alice"]}}"#.to_owned(), "must be a string."),
            (r#"{"keys": {"client": "192.0.2.1", "user": {"name": "alice"}}}"#.to_owned(), "must be a string."),
            (r#"{"keys": {"client": "192.0.2.1", "user": ""}}"#.to_owned(), "The field \"user\" is empty."),
            (format!(r#"{{"keys": {{"client": "192.0.2.1", "user": "{long}"}}}}"#), "is longer than 1024 bytes."),
            (r#"{"keys": {"client": "here", "user": "alice"}}"#.to_owned(), "\"client\" is not an IP address."),
            (format!(r#"{{"keys": {{{good}, "tenant": "7"}}}}"#), "has the fields \"client\", \"user\" and no others."),
            (format!(r#"{{"keys": {{{good}, "user": "bob"}}}}"#), "The field \"user\" comes twice."),
            (format!(r#"{{"keys": {{{good}}}, "cost": 0}}"#), "must be 1 or more"),
            (format!(r#"{{"keys": {{{good}}}, "cost": -1}}"#), "\"cost\" must be an integer"),
            (format!(r#"{{"keys": {{{good}}}, "cost": 1.5}}"#), "\"cost\" must be an integer"),
            (format!(r#"{{"keys": {{{good}}}, "cost": "1"}}"#), "\"cost\" must be an integer"),
            (format!(r#"{{"keys": {{{good}}}, "cost": 4294967296}}"#), "\"cost\" must be an integer"),
            (format!(r#"{{"keys": {{{good}}}, "cost": 1, "cost": 1}}"#), "A member comes twice."),
            (format!(r#"{{"keys": {{{good}}}, "peek": 1}}"#), "\"peek\" must be true or false."),
            (format!(r#"{{"keys": {{{good}}}, "coste": 1}}"#), "The members are"),
            (format!(r#"{{"keys": {{{good}}}}} {{}}"#), "no JSON"),
            ("[".repeat(60_000), "no JSON"),
        ];
        for (body, expected) in &cases {
            let answer = served.acquire(body);
            assert_eq!(answer.status, 400, "{body}");
            let detail = answer.problem()["detail"].to_string();
            let detail: String = serde_json::from_str(&detail).unwrap();
            assert!(detail.contains(expected), "{body}: {detail}");
        }
        assert_eq!(left(&served), [true, true]);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="malformed"}"#), cases.len() as u64);
        let good = served.acquire(&format!(r#"{{"keys": {{{good}}}}}"#));
        assert_eq!(good.status, 200);
        assert_eq!(left(&served), [true, false]);
    });
}

#[test]
fn a_cost_above_a_limit_is_told_apart_and_charges_nothing() {
    by_both(|place| {
        let served = place.of(POLICY);
        let answer = served.acquire(r#"{"keys": {"client": "192.0.2.1", "user": "alice"}, "cost": 4}"#);
        assert_eq!((answer.status, answer.field("retry-after")), (422, None));
        assert_eq!(answer.problem()["title"], "Unprocessable Content");
        assert_eq!(left(&served), [true, true]);
    });
}

#[test]
fn without_a_field_of_any_dimension_there_is_nothing_to_decide() {
    by_both(|place| {
        let server = place.server(POLICY).optional("user").unwrap().optional("client").unwrap();
        let served = Running::start(server);
        let answer = served.acquire(r#"{"keys": {}}"#);
        assert_eq!(answer.status, 400);
        assert_eq!(answer.problem()["detail"], "The field \"client\" is missing.");
        assert_eq!(served.metric(r#"tollgate_requests_total{result="malformed"}"#), 1);
        assert_eq!(served.get("/authz", &[]).status, 400);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="missing_key"}"#), 1);
    });
}

#[test]
fn a_body_above_64_kib_is_refused_whether_its_length_is_told_or_not() {
    by_both(|place| {
        let served = place.of(POLICY);
        let keys = r#"{"keys": {"client": "192.0.2.1", "user": "alice"}}"#;
        let most = format!("{keys}{}", " ".repeat(64 * 1024 - keys.len()));
        assert_eq!(served.acquire(&most).status, 200);
        let more = format!("{most} ");
        let answer = served.acquire(&more);
        assert_eq!(answer.status, 413);
        assert_eq!(answer.problem()["detail"], "The body has more than 65536 bytes.");

        // In chunks, so that the server learns the length as it reads.
        let head = "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{:x}\r\n{}\r\n", 4096, " ".repeat(4096));
        let text = served.raw(format!("{head}{}", chunk.repeat(17)).as_bytes());
        assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
        // The answer alone: the server has ended the connection.
        problem_of(text.split_once("\r\n\r\n").unwrap().1, 413);
        // One request, whose keys the largest body had, was charged.
        assert_eq!(served.metric(r#"tollgate_requests_total{result="admitted"}"#), 1);
    });
}

#[test]
fn only_json_is_taken_so_that_a_page_of_a_browser_charges_nothing() {
    by_both(|place| {
        let served = place.of(POLICY);
        let keys = r#"{"keys": {"client": "192.0.2.1", "user": "alice"}}"#.as_bytes();
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            let answer = post(&served.url("/acquire"), kind, keys);
            assert_eq!(answer.status, 415, "{kind}");
            answer.problem();
        }
        assert_eq!(left(&served), [true, true]);
        assert_eq!(post(&served.url("/acquire"), "Application/JSON; charset=utf-8", keys).status, 200);
    });
}

#[test]
fn other_paths_and_methods_have_problem_details_too() {
    let served = Running::of(POLICY);
    assert_eq!(served.get("/", &[]).problem()["status"], 404);
    let answer = served.get("/acquire", &[]);
    assert_eq!((answer.status, answer.field("allow")), (405, Some("POST")));
    answer.problem();
    let answer = post(&served.url("/health"), "application/json", b"{}");
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")));
    let answer = served.get("/health", &[]);
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

#[test]
fn a_body_that_does_not_come_is_answered_in_time_and_charges_nothing() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).time_for_requests(Duration::from_secs(1)));
        let head = "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 60\r\n\r\n{";
        let text = served.raw(head.as_bytes());
        assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
        problem_of(text.split_once("\r\n\r\n").unwrap().1, 408);
        assert_eq!(left(&served), [true, true]);
    });
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let served = Running::start(server(POLICY).time_for_requests(Duration::from_millis(200)));
    // A beginning, or nothing that would tell whether it is HTTP/2.
    for start in ["GET /health HTTP/1.1\r\nhost: localhost\r\n", "GET"] {
        let text = served.raw(start.as_bytes());
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408 "), "{text}");
    }
}

#[test]
fn what_is_not_http_is_refused_and_others_are_served() {
    let served = Running::of(POLICY);
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"\r\n\r\n\0\0\0\0", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let mut stream = served.connect();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let text = read_all(&mut stream);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 400 "), "{text}");
    }
    // A head of 100 KiB.
    let text = served.raw(format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(100 * 1024)).as_bytes());
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    assert_eq!(served.get("/health", &[]).status, 200);
}
