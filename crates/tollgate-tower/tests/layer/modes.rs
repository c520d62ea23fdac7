//! Shadow mode and preflights.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer, ShadowSwitch};

use crate::support::{Inner, ask, from, get, with};

#[tokio::test]
async fn the_switch_is_flipped_while_requests_come() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
    let switch = ShadowSwitch::off();
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).shadow(switch.clone()));
    assert_eq!(ask(&service, get("/")).await.status, 200);
    for round in 1..=3 {
        assert_eq!(ask(&service, get("/")).await.status, 429);
        switch.set(true);
        let overruled = ask(&service, get("/")).await;
        assert_eq!(overruled.status, 200);
        assert!(
            !overruled.fields.contains_key("ratelimit")
                && !overruled.fields.contains_key("ratelimit-policy")
                && !overruled.fields.contains_key("retry-after")
        );
        assert_eq!(switch.overruled(), round);
        switch.set(false);
    }
}

#[tokio::test]
async fn nothing_is_rejected_in_shadow_mode_and_all_is_charged() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(2)).unwrap());
    let switch = ShadowSwitch::on();
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer()).shadow(switch.clone());
    let service = Inner::default().behind(&layer.cost(|head| if head.uri.path() == "/" { 1 } else { 3 }));
    assert_eq!(ask(&service, get("/")).await.status, 200, "without a peer");
    let answer = ask(&service, from("192.0.2.1")).await;
    assert!(answer.status.is_success() && answer.fields.contains_key("ratelimit"));
    assert_eq!(limiter.peek(IpAddr::from([192, 0, 2, 1])).remaining(), 1);
    let mut huge = from("192.0.2.1");
    *huge.uri_mut() = "/huge".parse().unwrap();
    assert_eq!(ask(&service, huge).await.status, 200);
    assert_eq!(switch.overruled(), 2);
}

#[tokio::test]
async fn a_limiter_in_shadow_mode_refuses_what_costs_more_than_the_limit_and_the_switch_does_not() {
    let limiter = Arc::new(DirectLimiter::builder(Quota::per_hour(2)).shadow(true).build().unwrap());
    let switch = ShadowSwitch::off();
    let layer = RateLimitLayer::new(limiter).cost(|head| head.uri.path().len().try_into().unwrap());
    let service = Inner::default().behind(&layer.shadow(switch.clone()));
    for (path, status) in [("/a", 200), ("/a", 200), ("/ab", 422)] {
        assert_eq!(ask(&service, get(path)).await.status, status, "{path}");
    }
    switch.set(true);
    assert_eq!(ask(&service, get("/ab")).await.status, 200);
    assert_eq!(switch.overruled(), 1);
}

#[tokio::test]
async fn preflights_are_limited_unless_asked_otherwise() {
    let preflight = |fields: &[&'static str]| {
        let mut request = get("/");
        *request.method_mut() = Method::OPTIONS;
        fields.iter().fold(request, |request, name| with(request, name, "https://example.com"))
    };
    let whole: &[&'static str] = &["origin", "access-control-request-method"];
    for skip in [false, true] {
        let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
        let service = Inner::default().behind(&RateLimitLayer::new(limiter).skip_preflights(skip));
        assert_eq!(ask(&service, get("/")).await.status, 200);
        assert_eq!(ask(&service, preflight(whole)).await.status, if skip { 200 } else { 429 });
        // What is no preflight.
        for fields in [&[], &whole[..1], &whole[1..]] {
            assert_eq!(ask(&service, preflight(fields)).await.status, 429, "{fields:?}");
        }
        let not_options = with(with(get("/"), whole[0], "https://example.com"), whole[1], "GET");
        assert_eq!(ask(&service, not_options).await.status, 429);
    }
}
