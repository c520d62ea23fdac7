//! Shadow mode and preflights.

use std::net::IpAddr;
use std::sync::Arc;

use tollgate::{DirectLimiter, JointLimiter, Limiter, Quota};
use tollgate_tower::{ClientIp, Gate, KeyExtractor, RateLimitLayer, ShadowSwitch, Tower, constant, from_head};

use crate::layer::support::{Inner, ask, from, get, served};

tollgate_kit::limited_alike!(tollgate_tower::RateLimitLayer, served);

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

/// Of requests that cost 2, 9, 1, 1 and 9 permits, all pass, and the last three would be denied.
async fn overrules<L, X>(layer: RateLimitLayer<L, X>)
where
    L: Gate<Tower, X, Keys: Send + Sync> + Send + Sync + 'static,
    X: KeyExtractor + 'static,
{
    let switch = ShadowSwitch::off();
    let layer = layer.shadow(switch.clone()).cost(|head| head.uri.path()[1..].parse().unwrap());
    let service = Inner::default().behind(&layer);
    for (path, is_counted) in [("/1", true), ("/9", false), ("/1", true), ("/1", false), ("/9", false)] {
        let answer = ask(&service, get(path)).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.fields.contains_key("ratelimit"), is_counted, "{path}");
    }
    // The limiter overrules, so the layer has nothing to do.
    assert_eq!(switch.overruled(), 0);
}

#[tokio::test]
async fn a_limiter_in_shadow_mode_overrules_a_cost_above_the_limit_too() {
    let quota = Quota::per_hour(2);
    let direct = || RateLimitLayer::new(Arc::new(DirectLimiter::builder(quota).shadow(true).build().unwrap()));
    let keyed = || Limiter::<&str>::builder(quota).shadow(true).build().unwrap();
    let keyed = || RateLimitLayer::new(Arc::new(keyed())).key(constant("alice"));
    let joint = || JointLimiter::<(&str, u8)>::builder().dimension("user", [quota]).dimension("page", [quota]);
    let joint = || joint().shadow(true).build().unwrap();
    let joint = || RateLimitLayer::new(Arc::new(joint())).key((constant("alice"), constant(7)));
    overrules(direct()).await;
    overrules(keyed()).await;
    overrules(joint()).await;
    // By reservations.
    overrules(direct().refund_when(|_| false)).await;
    overrules(keyed().refund_when(|_| false)).await;
    overrules(joint().refund_when(|_| false)).await;
}

#[tokio::test]
async fn lists_come_before_the_cost() {
    for refunds in [false, true] {
        let limiter = Limiter::<&str>::builder(Quota::per_hour(2)).list_cap(2).build().unwrap();
        limiter.allow("alice").unwrap();
        limiter.deny("mallory").unwrap();
        let layer = RateLimitLayer::new(Arc::new(limiter)).key(from_head(|head| match head.uri.path() {
            "/alice" => Ok("alice"),
            "/mallory" => Ok("mallory"),
            _ => Ok("bob"),
        }));
        let layer = layer.cost(|_| 9);
        let layer = if refunds { layer.refund_when(|_| false) } else { layer };
        let service = Inner::default().behind(&layer);
        for (path, status) in [("/alice", 200), ("/mallory", 403), ("/bob", 422)] {
            let answer = ask(&service, get(path)).await;
            assert_eq!((answer.status.as_u16(), answer.fields.contains_key("retry-after")), (status, false), "{path}");
        }
    }
}
