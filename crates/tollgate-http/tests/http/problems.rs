//! The answers to denied requests: the table of kinds, bodies that JSON parsers read, and gRPC.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::{AtKeyCap, Decision, DenialReason, Limiter, Penalty, Quota};
use tollgate_http::{DenialKind, Headers, Policies, Policy, Problem, Usage, grpc_content_type, write_grpc_message};

const KINDS: [DenialKind; 11] = [
    DenialKind::Quota,
    DenialKind::InFlight,
    DenialKind::Penalty,
    DenialKind::KeyCap,
    DenialKind::DenyList,
    DenialKind::CostExceedsLimit,
    DenialKind::ContentExceedsLimit,
    DenialKind::KeyNotSent,
    DenialKind::KeyMalformed,
    DenialKind::KeyNotProvided,
    DenialKind::Undecided,
];

fn fields(problem: &Problem<'_>, headers: Headers) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    problem.write_fields(headers, |name, value| fields.push((name, String::from_utf8(value.to_vec()).unwrap())));
    fields
}

fn grpc(problem: &Problem<'_>) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    problem.write_grpc(|name, value| fields.push((name, String::from_utf8(value.to_vec()).unwrap())));
    fields
}

fn owned<const N: usize>(fields: [(&'static str, &str); N]) -> Vec<(&'static str, String)> {
    fields.map(|(name, value)| (name, value.to_owned())).into()
}

/// A place may be free at any time, so that clients are told neither a wait nor that none helps.
#[test]
fn too_many_requests_in_flight_are_told_no_wait() {
    let limiter = tollgate::DirectLimiter::new(Quota::concurrent(1)).unwrap();
    let _in_flight = limiter.try_enter().unwrap();
    let denial = limiter.try_enter().unwrap_err();
    let problem = Problem::from(denial);
    assert_eq!((problem.kind(), problem.wait(), problem.retry_after()), (DenialKind::InFlight, None, None));
    let body: Value = serde_json::from_str(&problem.to_json()).unwrap();
    assert_eq!(body["detail"], "Too many requests are in flight. Try again when one has ended.");
    let expected = [("cache-control", "no-store"), ("content-type", "application/problem+json")];
    assert_eq!(fields(&problem, Headers::Draft11), owned(expected));
    let grpc = grpc(&problem);
    assert_eq!((grpc.len(), &grpc[0]), (2, &("grpc-status", "8".to_owned())));
    assert!(grpc[1].1.ends_with("Too many requests are in flight. Try again when one has ended."), "{grpc:?}");
}

#[test]
fn each_kind_has_its_status_and_type() {
    let base = "https://iana.org/assignments/http-problem-types#";
    for (kind, status, problem_type) in [
        (DenialKind::Quota, 429, Some("quota-exceeded")),
        (DenialKind::InFlight, 429, Some("quota-exceeded")),
        (DenialKind::Penalty, 429, Some("abnormal-usage-detected")),
        (DenialKind::KeyCap, 503, Some("temporary-reduced-capacity")),
        (DenialKind::DenyList, 403, None),
        (DenialKind::CostExceedsLimit, 422, None),
        (DenialKind::ContentExceedsLimit, 413, None),
        (DenialKind::KeyNotSent, 400, None),
        (DenialKind::KeyMalformed, 400, None),
        (DenialKind::KeyNotProvided, 500, None),
        (DenialKind::Undecided, 503, None),
    ] {
        let problem = Problem::new(kind, Duration::from_secs(3));
        let body: Value = serde_json::from_str(&problem.to_json()).unwrap();
        assert_eq!(problem.status(), status);
        assert_eq!(body["status"], status);
        assert_eq!(body.get("type"), problem_type.map(|name| json!(format!("{base}{name}"))).as_ref());
        assert_eq!(body["title"], kind.title());
        assert_eq!(body.get("violated-policies"), None);
    }
}

#[test]
fn there_is_a_retry_after_only_where_waiting_helps() {
    for kind in KINDS {
        let helps = matches!(kind, DenialKind::Quota | DenialKind::Penalty | DenialKind::KeyCap);
        let problem = Problem::new(kind, Duration::from_millis(2_001));
        assert_eq!(problem.retry_after(), helps.then_some(3), "{kind:?}");
        let named = fields(&problem, Headers::Off).iter().any(|(name, _)| *name == "retry-after");
        assert_eq!(named, helps, "{kind:?}");

        let never = Problem::new(kind, Duration::MAX);
        assert_eq!(never.retry_after(), None);
        // Without a key the limiter was not asked, or without its store did not decide: no advice. When a
        // request in flight ends is not known.
        let is_without = [
            DenialKind::InFlight,
            DenialKind::KeyNotSent,
            DenialKind::KeyMalformed,
            DenialKind::KeyNotProvided,
            DenialKind::Undecided,
        ];
        let has_advice = !is_without.contains(&kind);
        assert_eq!(never.to_json().contains("Trying again does not help."), has_advice, "{kind:?}");
    }
}

#[test]
fn a_quota_is_exceeded() {
    let policies = [("user-1s", 10, 1), ("user-1m", 100, 60)];
    let policies = policies.map(|(name, q, w)| Policy::new(name, q, Duration::from_secs(w)).unwrap());
    let policies = Policies::new(policies).unwrap();
    let wait = Duration::from_millis(7_200);
    let violated = [policies[1].violated(Usage { remaining: 0, next_after: wait }, wait)];
    let problem = Problem::new(DenialKind::Quota, wait).violated(&violated);
    assert_eq!(
        fields(&problem, Headers::Draft11),
        owned([
            ("retry-after", "8"),
            ("ratelimit", r#""user-1m";r=0;t=8"#),
            ("cache-control", "no-store"),
            ("content-type", "application/problem+json"),
        ])
    );
    assert_eq!(
        problem.to_json(),
        concat!(
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
            r#""title":"Request cannot be satisfied as assigned quota has been exceeded","#,
            r#""status":429,"detail":"Try again in 8 seconds.","violated-policies":["user-1m"]}"#
        )
    );
}

#[test]
fn details_count_in_english() {
    let detail = |wait| {
        let body = Problem::new(DenialKind::Quota, wait).to_json();
        serde_json::from_str::<Value>(&body).unwrap()["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(detail(Duration::ZERO), "Try again in 1 second.");
    assert_eq!(detail(Duration::from_nanos(1_000_000_001)), "Try again in 2 seconds.");
}

#[test]
fn every_denial_of_a_limiter_has_an_answer() {
    let problem = |decision| match decision {
        Decision::Denied(denial) => {
            let problem = Problem::from(&denial);
            assert_eq!(problem.retry_after(), denial.retry_after_secs());
            (denial.reason(), problem)
        }
        Decision::Admitted(_) => panic!("admitted"),
    };
    let hour = Duration::from_secs(3_600);

    let limiter = Limiter::<u32>::builder(Quota::per_minute(1)).list_cap(1).key_cap(1).at_key_cap(AtKeyCap::Deny);
    let limiter = limiter.build().unwrap();
    limiter.deny(9).unwrap();
    assert!(limiter.try_acquire(1).is_admitted());
    for (key, reason, kind) in [
        (1, DenialReason::Quota, DenialKind::Quota),
        (2, DenialReason::KeyCap, DenialKind::KeyCap),
        (9, DenialReason::DenyList, DenialKind::DenyList),
    ] {
        let (of, problem) = problem(limiter.try_acquire(key));
        assert_eq!((of, problem.kind()), (reason, kind));
        assert_eq!(problem.retry_after().is_some(), kind != DenialKind::DenyList);
    }

    let penalty = Penalty::new(1, Duration::from_secs(1), hour);
    let limiter = Limiter::<u32>::builder(Quota::per_minute(1)).penalty(penalty).build().unwrap();
    assert!(limiter.try_acquire(1).is_admitted());
    let (of, problem) = problem(limiter.try_acquire(1));
    assert_eq!((of, problem.kind()), (DenialReason::Penalty, DenialKind::Penalty));
    assert_eq!(problem.retry_after(), Some(3_600));
}

#[test]
fn grpc_answers_are_trailers_only() {
    let of = |kind, wait| grpc(&Problem::new(kind, wait));
    assert_eq!(
        of(DenialKind::Quota, Duration::from_micros(7_200_001)),
        owned([
            ("grpc-status", "8"),
            (
                "grpc-message",
                "Request cannot be satisfied as assigned quota has been exceeded. Try again in 8 seconds."
            ),
            ("grpc-retry-pushback-ms", "7201"),
        ])
    );
    let pushback = |kind, wait| of(kind, wait)[2].1.clone();
    assert_eq!(pushback(DenialKind::Quota, Duration::ZERO), "1");
    assert_eq!(pushback(DenialKind::Quota, Duration::from_millis(2_147_483_647)), "2147483647");
    // A number that clients could not parse, and "do not retry".
    assert_eq!(pushback(DenialKind::Quota, Duration::from_nanos(2_147_483_647_000_001)), "-1");
    assert_eq!(pushback(DenialKind::Quota, Duration::MAX), "-1");
    assert_eq!(pushback(DenialKind::CostExceedsLimit, Duration::from_secs(1)), "-1");
    for kind in KINDS {
        let (expected, has_advice) = match kind {
            DenialKind::DenyList => ("7", true),
            DenialKind::KeyNotSent | DenialKind::KeyMalformed => ("3", false),
            DenialKind::KeyNotProvided => ("13", false),
            DenialKind::Undecided => ("14", false),
            _ => ("8", true),
        };
        assert_eq!(of(kind, Duration::from_secs(1))[0], ("grpc-status", expected.to_owned()));
        // The longest number of seconds that there is. Nothing is cut off.
        let longest = Duration::MAX - Duration::from_nanos(1);
        assert_eq!(of(kind, longest)[1].1.ends_with('.'), has_advice);
    }
}

#[test]
fn the_message_of_a_grpc_answer_names_the_key_unless_its_words_are_too_long() {
    let message = |kind, key: &str| grpc(&Problem::new(kind, Duration::MAX).wanting(key))[1].1.clone();
    assert_eq!(message(DenialKind::KeyNotSent, "the 5 % \"key\""), "Bad Request. The request needs the 5 %25 \"key\".");
    assert_eq!(message(DenialKind::KeyNotProvided, "the key"), "Internal Server Error");
    for long in ["k".repeat(1_000), "\u{e4}".repeat(1_000)] {
        assert_eq!(message(DenialKind::KeyMalformed, &long), "Bad Request");
    }
}

#[test]
fn grpc_calls_are_known_by_their_content_type() {
    for (request, answer) in [
        ("application/grpc", Some("application/grpc")),
        ("application/grpc+proto", Some("application/grpc")),
        ("Application/GRPC; charset=utf-8", Some("application/grpc")),
        ("application/grpc-web", Some("application/grpc-web")),
        ("application/grpc-web+proto", Some("application/grpc-web")),
        ("application/grpc-web-text", Some("application/grpc-web-text")),
        ("application/grpcx", None),
        ("application/json", None),
        ("", None),
    ] {
        assert_eq!(grpc_content_type(request.as_bytes()), answer, "{request}");
    }
}

proptest! {
    #[test]
    fn grpc_messages_are_printable_and_can_be_decoded(message: String) {
        let mut encoded = String::new();
        write_grpc_message(&message, &mut encoded).unwrap();
        prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        let (mut decoded, mut rest) = (Vec::new(), encoded.as_bytes());
        while let [first, after @ ..] = rest {
            rest = after;
            decoded.push(*first);
            if *first == b'%' {
                let hex = std::str::from_utf8(&rest[..2]).unwrap();
                *decoded.last_mut().unwrap() = u8::from_str_radix(hex, 16).unwrap();
                rest = &rest[2..];
            }
        }
        prop_assert_eq!(String::from_utf8(decoded).unwrap(), message);
    }

    #[test]
    fn bodies_are_json_with_the_words_for_a_key(words: String, kind in proptest::sample::select(KINDS.to_vec())) {
        let body = Problem::new(kind, Duration::MAX).wanting(words.as_str()).to_json();
        prop_assert!(body.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        let body: Value = serde_json::from_str(&body).unwrap();
        let detail = body.get("detail").and_then(Value::as_str);
        match kind {
            DenialKind::KeyNotSent => prop_assert_eq!(detail, Some(&*format!("The request needs {words}."))),
            DenialKind::KeyMalformed => prop_assert!(detail.is_some_and(|detail| detail.contains(&words))),
            DenialKind::KeyNotProvided | DenialKind::Undecided => prop_assert_eq!(detail, None),
            DenialKind::InFlight => prop_assert!(detail.is_some_and(|detail| detail.contains("has ended"))),
            _ => prop_assert_eq!(detail, Some("Trying again does not help.")),
        }
    }

    /// Whatever the names of the policies are, and nothing but them varies.
    #[test]
    fn bodies_are_json_with_the_names_of_the_policies(
        names in proptest::collection::vec("[ -~]{1,64}", 0..5),
        kind in proptest::sample::select(KINDS.to_vec()),
    ) {
        let policies: Vec<Policy> =
            names.iter().map(|name| Policy::new(name, 1, Duration::from_secs(1)).unwrap()).collect();
        let usage = Usage { remaining: 0, next_after: Duration::ZERO };
        let violated: Vec<_> = policies.iter().map(|policy| policy.violated(usage, Duration::MAX)).collect();
        let body = Problem::new(kind, Duration::MAX).violated(&violated).to_json();
        prop_assert!(body.is_ascii());
        let body: Value = serde_json::from_str(&body).unwrap();
        let expected = (!names.is_empty()).then(|| json!(names));
        prop_assert_eq!(body.get("violated-policies"), expected.as_ref());
    }
}
