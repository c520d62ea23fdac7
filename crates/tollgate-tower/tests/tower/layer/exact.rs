//! As many requests pass as the limiter has permits: keyed, direct and joint.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use tollgate::{DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer, constant, header, path};
use tower::Layer;

use crate::layer::support::{Inner, ask, from, get, with};

#[tokio::test]
async fn a_direct_limiter_admits_its_limit() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(3)).unwrap());
    let inner = Inner::default();
    let service = inner.behind(&RateLimitLayer::new(limiter));
    for n in 0..10 {
        let status = if n < 3 { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
        assert_eq!(ask(&service, get("/")).await.status, status, "request {n}");
    }
    assert_eq!(inner.calls(), 3);
}

#[tokio::test]
async fn a_keyed_limiter_admits_its_limit_for_each_key() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(2)).unwrap());
    let inner = Inner::default();
    let service = inner.behind(&RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer()));
    for peer in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        for n in 0..4 {
            assert_eq!(ask(&service, from(peer)).await.status.is_success(), n < 2, "{peer}, request {n}");
        }
    }
    assert_eq!(inner.calls(), 6);
    // The keys are those of the limiter, so that it can be asked and changed besides.
    assert!(limiter.forget("192.0.2.1".parse::<IpAddr>().unwrap()));
    assert!(ask(&service, from("192.0.2.1")).await.status.is_success());
    assert!(ask(&service, from("192.0.2.2")).await.status.is_client_error());
}

#[tokio::test]
async fn a_tuple_is_one_key_of_a_keyed_limiter() {
    let limiter = Arc::new(Limiter::<(IpAddr, &str)>::new(Quota::per_hour(1)).unwrap());
    let inner = Inner::default();
    let layer = |name| RateLimitLayer::new(Arc::clone(&limiter)).key((ClientIp::peer(), constant(name)));
    let (login, search) = (inner.behind(&layer("login")), inner.behind(&layer("search")));
    for peer in ["192.0.2.1", "192.0.2.2"] {
        assert!(ask(&login, from(peer)).await.status.is_success());
        assert!(ask(&search, from(peer)).await.status.is_success());
        assert!(ask(&login, from(peer)).await.status.is_client_error());
        assert!(ask(&search, from(peer)).await.status.is_client_error());
    }
}

#[tokio::test]
async fn a_tuple_is_the_dimensions_of_a_joint_limiter() {
    let limiter = JointLimiter::builder()
        .dimension("key", [Quota::per_hour(2)])
        .dimension("address", [Quota::per_hour(3)])
        .build()
        .unwrap();
    let inner = Inner::default();
    let key = (header("x-api-key"), ClientIp::peer());
    let service = inner.behind(&RateLimitLayer::new(Arc::new(limiter)).key(key));
    let request = |key: &str, peer| with(from(peer), "x-api-key", key);
    assert!(ask(&service, request("a", "192.0.2.1")).await.status.is_success());
    assert!(ask(&service, request("a", "192.0.2.1")).await.status.is_success());
    // The key is exhausted, and a denial charges the address nothing.
    for _ in 0..5 {
        assert!(ask(&service, request("a", "192.0.2.1")).await.status.is_client_error());
    }
    assert!(ask(&service, request("b", "192.0.2.1")).await.status.is_success());
    // The address is exhausted.
    assert!(ask(&service, request("c", "192.0.2.1")).await.status.is_client_error());
    assert!(ask(&service, request("c", "192.0.2.2")).await.status.is_success());
    assert_eq!(inner.calls(), 4);
}

#[tokio::test]
async fn layers_and_clones_share_a_limiter() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(4)).unwrap());
    let inner = Inner::default();
    let one = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer());
    let another = RateLimitLayer::new(limiter).key(ClientIp::peer());
    let services = [inner.behind(&one), inner.behind(&one.clone()), inner.behind(&another)];
    for n in 0..9 {
        let answer = ask(&services[n % 3], from("192.0.2.1")).await;
        assert_eq!(answer.status.is_success(), n < 4, "request {n}");
    }
}

#[tokio::test]
async fn the_decision_is_in_call_and_not_in_poll_ready() {
    use std::future::poll_fn;
    use tower::Service;

    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(2)).unwrap());
    let mut service = Inner::default().behind(&RateLimitLayer::new(Arc::clone(&limiter)));
    for _ in 0..10 {
        let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    }
    assert_eq!(limiter.peek().remaining(), 2);
    // Charged before the future is polled.
    let pending = service.call(get("/"));
    assert_eq!(limiter.peek().remaining(), 1);
    drop(pending);
    assert_eq!(limiter.peek().remaining(), 1);
}

/// A client has to be able to wait for its turn without another's place.
#[tokio::test]
async fn a_denied_request_holds_no_place_of_a_limit_of_concurrency() {
    use tower::{Service, ServiceExt};

    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
    let inner = tower::limit::ConcurrencyLimitLayer::new(1);
    let service = RateLimitLayer::new(limiter).layer(Inner::default().behind(&inner));
    let (mut one, mut another) = (service.clone(), service);
    let Ok(first) = one.ready().await.unwrap().call(get("/")).await;
    assert!(first.status().is_success());
    drop(first);
    let Ok(denied) = one.ready().await.unwrap().call(get("/")).await;
    assert!(denied.status().is_client_error());
    // `one` lives on. Without its place, another is ready at once.
    let is_ready = std::future::poll_fn(|context| std::task::Poll::Ready(another.poll_ready(context).is_ready()));
    assert!(is_ready.await);
    drop(one);
}

#[tokio::test]
async fn cost_and_skip_are_asked_for_each_request() {
    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_hour(10), clock).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&limiter))
        .cost(|head| head.uri.path()[1..].parse().unwrap())
        .skip(|head| head.headers.contains_key("internal"));
    let service = Inner::default().behind(&layer);
    assert!(ask(&service, get("/7")).await.status.is_success());
    assert!(ask(&service, get("/4")).await.status.is_client_error());
    assert_eq!(limiter.peek().remaining(), 3);
    let free = ask(&service, get("/0")).await;
    assert!(free.status.is_success() && !free.fields.contains_key("ratelimit"));
    let skipped = ask(&service, with(get("/9"), "internal", "yes")).await;
    assert!(
        skipped.status.is_success()
            && !skipped.fields.contains_key("ratelimit")
            && !skipped.fields.contains_key("ratelimit-policy")
    );
    assert_eq!(limiter.peek().remaining(), 3);
    assert!(ask(&service, get("/3")).await.status.is_success());
}

#[tokio::test]
async fn paths_that_mean_the_same_share_a_limit() {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(2)).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).key(path()));
    assert!(ask(&service, get("/login")).await.status.is_success());
    assert!(ask(&service, get("//l%6fgin/?again")).await.status.is_success());
    assert!(ask(&service, get("/x/../login")).await.status.is_client_error());
    assert!(ask(&service, get("/other")).await.status.is_success());
}
