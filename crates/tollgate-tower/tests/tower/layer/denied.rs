//! What the layer answers itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tollgate::{AtKeyCap, DirectLimiter, JointLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_http::{Headers, QuotaUnit};
use tollgate_tower::{ClientIp, RateLimitLayer, constant};

use crate::layer::support::{Answer, Inner, ask, from, get, item, items, with};

fn problem(answer: &Answer) -> serde_json::Value {
    assert_eq!(answer.one("content-type"), "application/problem+json");
    assert_eq!(answer.one("cache-control"), "no-store");
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn a_denial_is_a_problem_with_the_wait_and_the_policy() {
    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(1), clock.clone()).unwrap());
    let layer = RateLimitLayer::new(limiter).name("endpoint").unwrap();
    let service = Inner::default().behind(&layer);
    assert!(ask(&service, get("/")).await.status.is_success());
    clock.advance(Duration::from_millis(52_800));
    let answer = ask(&service, get("/")).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.one("retry-after"), "8");
    assert_eq!(items(answer.one("ratelimit-policy")), [item("endpoint", [("q", 1), ("w", 60)])]);
    assert_eq!(items(answer.one("ratelimit")), [item("endpoint", [("r", 0), ("t", 8)])]);
    let problem = problem(&answer);
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["violated-policies"], serde_json::json!(["endpoint"]));
}

#[tokio::test]
async fn after_the_wait_the_same_request_passes_and_not_a_second_sooner() {
    for quota in [
        Quota::new(3, Duration::from_millis(7_200)),
        Quota::token_bucket(3, 1, Duration::from_millis(2_400)),
        Quota::fixed_window(3, Duration::from_secs(10)),
    ] {
        let clock = MockClock::new();
        let limiter = Arc::new(DirectLimiter::with_clock(quota, clock.clone()).unwrap());
        let service = Inner::default().behind(&RateLimitLayer::new(limiter));
        for round in 0..20 {
            let denied = loop {
                let answer = ask(&service, get("/")).await;
                if answer.status == 429 {
                    break answer;
                }
                clock.advance(Duration::from_millis(1));
            };
            let seconds: u64 = denied.one("retry-after").parse().unwrap();
            assert!(seconds > 0);
            clock.advance(Duration::from_secs(seconds - 1));
            assert_eq!(ask(&service, get("/")).await.status, 429, "{quota}, round {round}");
            clock.advance(Duration::from_secs(1));
            assert_eq!(ask(&service, get("/")).await.status, 200, "{quota}, round {round}");
        }
    }
}

#[tokio::test]
async fn each_reason_has_its_status() {
    let peer = |n: u8| from(&format!("192.0.2.{n}"));
    let limiter = Limiter::<IpAddr>::builder(Quota::per_hour(1))
        .key_cap(1)
        .at_key_cap(AtKeyCap::Deny)
        .list_cap(1)
        .penalty(Penalty::new(2, Duration::from_secs(3_600), Duration::from_secs(7_200)))
        .clock(MockClock::new())
        .build()
        .unwrap();
    limiter.deny(IpAddr::from([192, 0, 2, 9])).unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter))
        .key(ClientIp::peer())
        .cost(|head| if head.headers.contains_key("huge") { 2 } else { 1 });
    let service = Inner::default().behind(&layer);
    assert_eq!(ask(&service, peer(1)).await.status, 200);

    let quota = ask(&service, peer(1)).await;
    assert_eq!((quota.status.as_u16(), quota.one("retry-after")), (429, "3600"));

    let penalty = ask(&service, peer(1)).await;
    assert_eq!((penalty.status.as_u16(), penalty.one("retry-after")), (429, "7200"));
    assert!(!penalty.fields.contains_key("ratelimit"));
    let kind = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
    assert_eq!(problem(&penalty)["type"], kind);

    let cap = ask(&service, peer(2)).await;
    assert_eq!(cap.status, 503);
    assert!(cap.fields.contains_key("retry-after") && !cap.fields.contains_key("ratelimit"));

    let listed = ask(&service, peer(9)).await;
    assert_eq!(listed.status, 403);
    assert!(!listed.fields.contains_key("retry-after") && !listed.fields.contains_key("ratelimit"));

    let huge = ask(&service, with(peer(1), "huge", "yes")).await;
    assert_eq!(huge.status, 422);
    assert!(!huge.fields.contains_key("retry-after") && !huge.fields.contains_key("ratelimit"));
}

#[tokio::test]
async fn content_that_costs_more_than_the_limit_is_too_large() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1_000)).unwrap());
    let layer = RateLimitLayer::new(limiter).cost(|_| 1_001).unit(QuotaUnit::ContentBytes);
    let answer = ask(&Inner::default().behind(&layer), get("/")).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.one("ratelimit-policy"), r#""default";q=1000;qu="content-bytes";w=3600"#);
}

#[tokio::test]
async fn a_joint_denial_names_the_dimensions_in_the_way() {
    let clock = MockClock::new();
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_second(10), Quota::per_minute(2)])
        .dimension("address", [Quota::per_minute(2)])
        .dimension("endpoint", [Quota::token_bucket(1_000, 100, Duration::from_secs(1))])
        .clock(clock.clone())
        .build()
        .unwrap();
    let key = (constant("alice"), constant("192.0.2.7"), constant("/login"));
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::new(limiter)).key(key));
    let admitted = ask(&service, get("/")).await;
    assert_eq!(
        items(admitted.one("ratelimit-policy")),
        [
            item("user-1s", [("q", 10), ("w", 1)]),
            item("user-1m", [("q", 2), ("w", 60)]),
            item("address", [("q", 2), ("w", 60)]),
            item("endpoint", [("q", 1_000), ("w", 10)]),
        ]
    );
    clock.advance(Duration::from_millis(500));
    ask(&service, get("/")).await;
    let denied = ask(&service, get("/")).await;
    assert_eq!(denied.status, 429);
    assert_eq!(
        items(denied.one("ratelimit")),
        [item("user-1m", [("r", 0), ("t", 60)]), item("address", [("r", 0), ("t", 60)])]
    );
    assert_eq!(problem(&denied)["violated-policies"], serde_json::json!(["user-1m", "address"]));
}

#[tokio::test]
async fn the_answer_to_head_has_the_length_of_the_body_and_no_body() {
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_hour(1), MockClock::new()).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter));
    assert!(ask(&service, get("/")).await.status.is_success());
    let to_get = ask(&service, get("/")).await;
    let mut request = get("/");
    *request.method_mut() = Method::HEAD;
    let to_head = ask(&service, request).await;
    assert_eq!(to_head.status, 429);
    assert!(to_head.body.is_empty() && !to_get.body.is_empty());
    assert_eq!(to_head.one("content-length"), to_get.body.len().to_string());
    assert_eq!(to_head.one("retry-after"), to_get.one("retry-after"));
}

#[tokio::test]
async fn headers_off_keeps_retry_after() {
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new()).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).headers(Headers::Off));
    let admitted = ask(&service, get("/")).await;
    assert!(!admitted.fields.contains_key("ratelimit") && !admitted.fields.contains_key("ratelimit-policy"));
    let denied = ask(&service, get("/")).await;
    assert_eq!(denied.one("retry-after"), "60");
    assert!(!denied.fields.contains_key("ratelimit") && !denied.fields.contains_key("ratelimit-policy"));
    assert_eq!(problem(&denied)["violated-policies"], serde_json::json!(["default"]));
}

#[tokio::test]
async fn a_leaky_queue_admits_requests_without_a_delay() {
    let clock = MockClock::new();
    let second = Duration::from_secs(1);
    let quota = Quota::leaky_queue(1, second, 5 * second);
    let limiter = Arc::new(DirectLimiter::with_clock(quota, clock.clone()).unwrap());
    let direct = Inner::default().behind(&RateLimitLayer::new(limiter));
    let limiter = JointLimiter::builder().dimension("queue", [quota]).clock(clock.clone()).build().unwrap();
    let joint = Inner::default().behind(&RateLimitLayer::new(Arc::new(limiter)).key((constant(()),)));
    for _ in 0..5 {
        assert_eq!(ask(&direct, get("/")).await.status, 200);
        assert_eq!(ask(&joint, get("/")).await.status, 200);
        for _ in 0..3 {
            assert_eq!(ask(&direct, get("/")).await.one("retry-after"), "1");
            let denied = ask(&joint, get("/")).await;
            assert_eq!((denied.one("retry-after"), denied.one("ratelimit")), ("1", r#""queue";r=0;t=1"#));
        }
        clock.advance(second);
    }
}
