//! Header fields of responses that the inner service has made.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{AtKeyCap, DirectLimiter, Limiter, MockClock, Quota};
use tollgate_http::{Headers, PolicyError};
use tollgate_tower::{ClientIp, RateLimitLayer, constant};

use crate::layer::support::{Inner, ask, from, get, item, items, with};

#[tokio::test]
async fn an_admitted_request_is_told_the_permits_left() {
    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(100), clock.clone()).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter));
    let answer = ask(&service, get("/")).await;
    assert_eq!(items(answer.one("ratelimit-policy")), [item("default", [("q", 100), ("w", 60)])]);
    assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", 99), ("t", 60)])]);
    assert!(!answer.fields.contains_key("retry-after"));
    assert_eq!(&answer.body[..], b"inner");
}

#[tokio::test]
async fn of_several_quotas_the_tightest_is_told() {
    let clock = MockClock::new();
    let limiter = Limiter::<&str>::builder(Quota::per_second(3)).and(Quota::per_minute(5)).clock(clock.clone());
    let layer = RateLimitLayer::new(Arc::new(limiter.build().unwrap())).key(constant("alice"));
    let service = Inner::default().behind(&layer.name("user").unwrap());
    let policies = [item("user-1s", [("q", 3), ("w", 1)]), item("user-1m", [("q", 5), ("w", 60)])];
    for (name, r, t) in [("user-1s", 2, 1), ("user-1s", 1, 1)] {
        let answer = ask(&service, get("/")).await;
        assert_eq!(items(answer.one("ratelimit-policy")), policies);
        assert_eq!(items(answer.one("ratelimit")), [item(name, [("r", r), ("t", t)])]);
    }
    clock.advance(Duration::from_secs(2));
    let answer = ask(&service, get("/")).await;
    // Both leave two; of the minute's it takes longest to leave more.
    assert_eq!(items(answer.one("ratelimit")), [item("user-1m", [("r", 2), ("t", 58)])]);
    clock.advance(Duration::from_secs(2));
    let answer = ask(&service, get("/")).await;
    assert_eq!(items(answer.one("ratelimit")), [item("user-1m", [("r", 1), ("t", 56)])]);
}

#[tokio::test]
async fn of_quotas_with_the_same_limit_the_longest_window_is_told() {
    let limiter = Limiter::<&str>::builder(Quota::per_second(5)).and(Quota::per_minute(5)).clock(MockClock::new());
    let layer = RateLimitLayer::new(Arc::new(limiter.build().unwrap())).key(constant("alice"));
    let answer = ask(&Inner::default().behind(&layer), get("/")).await;
    assert_eq!(items(answer.one("ratelimit")), [item("default-1m", [("r", 4), ("t", 60)])]);
}

#[tokio::test]
async fn fields_of_inner_layers_are_kept_and_ours_appended() {
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(9), MockClock::new()).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter));
    let request = with(get("/"), "inner-ratelimit", r#""inner";r=1;t=5"#);
    let request = with(request, "inner-ratelimit-policy", r#""inner";q=2;w=5"#);
    let answer = ask(&service, request).await;
    assert_eq!(answer.all("ratelimit"), [r#""inner";r=1;t=5"#, r#""default";r=8;t=60"#]);
    assert_eq!(answer.all("ratelimit-policy"), [r#""inner";q=2;w=5"#, r#""default";q=9;w=60"#]);
}

#[tokio::test]
async fn of_x_ratelimit_the_tightest_of_several_layers_is_told() {
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(9), MockClock::new()).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).headers(Headers::XRateLimit));
    let inner = |remaining| {
        let request = with(get("/"), "inner-x-ratelimit-limit", "50");
        with(with(request, "inner-x-ratelimit-remaining", remaining), "inner-x-ratelimit-reset", "3")
    };
    let fields = |answer: crate::layer::support::Answer| {
        let [limit, remaining, reset] = ["limit", "remaining", "reset"].map(|name| format!("x-ratelimit-{name}"));
        [limit, remaining, reset].map(|name| answer.one(&name).to_owned())
    };
    assert_eq!(fields(ask(&service, get("/")).await), ["9", "8", "60"]);
    assert_eq!(fields(ask(&service, inner("2")).await), ["50", "2", "3"]);
    assert_eq!(fields(ask(&service, inner("20")).await), ["9", "6", "60"]);
}

#[tokio::test]
async fn uncounted_requests_have_no_fields() {
    let limiter = Limiter::<IpAddr>::builder(Quota::per_minute(1))
        .key_cap(1)
        .at_key_cap(AtKeyCap::Admit)
        .list_cap(1)
        .build()
        .unwrap();
    limiter.allow(IpAddr::from([192, 0, 2, 1])).unwrap();
    let limiter = Arc::new(limiter);
    for refunds in [false, true] {
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer()).refund_unanswered(refunds);
        let service = Inner::default().behind(&layer);
        let counted = ask(&service, from("192.0.2.2")).await;
        assert_eq!(counted.status.is_success(), !refunds);
        for peer in ["192.0.2.1", "192.0.2.3"] {
            let answer = ask(&service, from(peer)).await;
            assert!(answer.status.is_success(), "{peer}");
            assert!(
                !answer.fields.contains_key("ratelimit") && !answer.fields.contains_key("ratelimit-policy"),
                "{peer}, refunds: {refunds}"
            );
        }
    }
}

#[tokio::test]
async fn a_limiter_in_shadow_mode_hides_overruled_denials() {
    let limiter = Limiter::<&str>::builder(Quota::per_minute(1)).shadow(true).build().unwrap();
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::new(limiter)).key(constant("alice")));
    assert!(ask(&service, get("/")).await.fields.contains_key("ratelimit"));
    let overruled = ask(&service, get("/")).await;
    assert!(
        overruled.status.is_success()
            && !overruled.fields.contains_key("ratelimit")
            && !overruled.fields.contains_key("ratelimit-policy")
    );
}

#[tokio::test]
async fn quotas_that_change_are_told_anew() {
    let limiter = Limiter::<IpAddr>::builder(Quota::per_minute(10)).keys_with_quotas(1).build().unwrap();
    let limiter = Arc::new(limiter);
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer()));
    let policy = |peer: &'static str| {
        let service = service.clone();
        async move { ask(&service, from(peer)).await.one("ratelimit-policy").to_owned() }
    };
    assert_eq!(policy("192.0.2.1").await, r#""default";q=10;w=60"#);
    limiter.set_quotas(&[Quota::per_hour(20)]).unwrap();
    limiter.set_quotas_of(IpAddr::from([192, 0, 2, 9]), &[Quota::per_hour(500)]).unwrap();
    for _ in 0..3 {
        assert_eq!(policy("192.0.2.1").await, r#""default";q=20;w=3600"#);
        assert_eq!(policy("192.0.2.9").await, r#""default";q=500;w=3600"#);
    }
}

#[test]
fn names_are_checked_when_they_are_given() {
    let layer = || RateLimitLayer::new(Arc::new(DirectLimiter::new(Quota::per_minute(1)).unwrap()));
    assert!(layer().name("an api").is_ok());
    assert_eq!(layer().name("").unwrap_err(), PolicyError::EmptyName);
    assert_eq!(layer().name("a\r\nset-cookie: b").unwrap_err(), PolicyError::NameNotPrintable { at: 1 });
    assert_eq!(layer().name(&"n".repeat(33)).unwrap_err(), PolicyError::NameTooLong { bytes: 33 });
}

#[tokio::test]
async fn names_of_dimensions_that_cannot_be_told_become_their_places() {
    let second = Duration::from_secs(1);
    let limiter = tollgate::JointLimiter::builder()
        .dimension("grüße\r\n", [Quota::per_second(1)])
        .dimension("same", [Quota::new(7, second), Quota::new(9, second / 4)])
        .dimension("same-1s", [Quota::new(8, second)])
        .dimension("other", [Quota::new(8, second), Quota::new(9, second / 8_000_000)])
        .build()
        .unwrap();
    let key = (constant(1), constant(2), constant(3), constant(4));
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::new(limiter)).key(key));
    let answer = ask(&service, get("/")).await;
    let names: Vec<String> = items(answer.one("ratelimit-policy")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["dimension-1", "same-1s", "same-250ms", "same-1s-2", "other-1s", "other-125ns"]);
}
