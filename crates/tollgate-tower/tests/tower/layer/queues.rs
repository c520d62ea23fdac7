//! Leaky queues, in which no request waits: the header fields tell what passes now.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tollgate::{DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_http::Headers;
use tollgate_tower::{AtOnce, Gate, KeyExtractor, RateLimitLayer, Tower, constant};

use crate::layer::support::{Inner, ask, get, item, items, with};

const SECOND: Duration = Duration::from_secs(1);
const QUEUE: Quota = Quota::leaky_queue(1, SECOND, Duration::from_secs(5)).named("queue");

/// A request passes once a second. It and the next are told that none is left.
async fn passes_once_a_second<L, X>(layer: RateLimitLayer<L, X>, clock: &MockClock)
where
    L: Gate<Tower, X, Keys: Send + Sync> + AtOnce + Send + Sync + 'static,
    X: KeyExtractor + 'static,
{
    let x_ratelimit = Inner::default().behind(&layer.clone().headers(Headers::XRateLimit));
    for layer in [layer.clone(), layer.clone().all_limits(true), layer.clone().refund_when(|_| false)] {
        let service = Inner::default().behind(&layer);
        for _ in 0..3 {
            for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
                let answer = ask(&service, get("/")).await;
                assert_eq!(answer.status, status);
                assert_eq!(items(answer.one("ratelimit-policy")), [item("queue", [("q", 6), ("w", 11)])]);
                assert_eq!(items(answer.one("ratelimit")), [item("queue", [("r", 0), ("t", 1)])]);
            }
            clock.advance(SECOND);
        }
    }
    let answer = ask(&x_ratelimit, get("/")).await;
    let [limit, remaining, reset] = ["limit", "remaining", "reset"].map(|name| format!("x-ratelimit-{name}"));
    assert_eq!([limit, remaining, reset].map(|name| answer.one(&name).to_owned()), ["6", "0", "1"]);
}

#[tokio::test]
async fn a_queue_of_a_direct_limiter_has_nothing_left_until_it_is_empty() {
    let clock = MockClock::new();
    let limiter = DirectLimiter::with_clock(QUEUE, clock.clone()).unwrap();
    passes_once_a_second(RateLimitLayer::new(Arc::new(limiter)), &clock).await;
}

#[tokio::test]
async fn a_queue_of_a_key_has_nothing_left_until_it_is_empty() {
    let clock = MockClock::new();
    let limiter = Limiter::<&str>::builder(QUEUE).clock(clock.clone()).build().unwrap();
    passes_once_a_second(RateLimitLayer::new(Arc::new(limiter)).key(constant("alice")), &clock).await;
}

#[tokio::test]
async fn a_queue_of_a_dimension_has_nothing_left_until_it_is_empty() {
    let clock = MockClock::new();
    let limiter = JointLimiter::builder().dimension("user", [QUEUE]).clock(clock.clone()).build().unwrap();
    passes_once_a_second(RateLimitLayer::new(Arc::new(limiter)).key((constant("alice"),)), &clock).await;
}

#[tokio::test]
async fn a_queue_beside_another_dimension_is_the_tightest_until_it_is_empty() {
    let clock = MockClock::new();
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_minute(2)])
        .dimension("address", [QUEUE])
        .clock(clock.clone())
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key((constant("alice"), constant(7)));
    let service = Inner::default().behind(&layer);
    let answer = ask(&service, get("/")).await;
    assert_eq!(items(answer.one("ratelimit")), [item("queue", [("r", 0), ("t", 1)])]);
    clock.advance(SECOND);
    let service = Inner::default().behind(&layer.all_limits(true));
    let answer = ask(&service, get("/")).await;
    let (user, queue) = (item("user", [("r", 0), ("t", 59)]), item("queue", [("r", 0), ("t", 1)]));
    assert_eq!(items(answer.one("ratelimit")), [user.clone(), queue.clone()]);
    // Both deny it.
    let answer = ask(&service, get("/")).await;
    assert_eq!((answer.status, answer.one("retry-after")), (StatusCode::TOO_MANY_REQUESTS, "59"));
    assert_eq!(items(answer.one("ratelimit")), [user.clone(), queue]);
    clock.advance(SECOND);
    let answer = ask(&service, get("/")).await;
    assert_eq!(items(answer.one("ratelimit")), [item("user", [("r", 0), ("t", 58)])]);
}

#[tokio::test]
async fn a_request_takes_as_many_places_as_it_costs_and_leaves_none() {
    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(QUEUE, clock.clone()).unwrap());
    let layer = RateLimitLayer::new(limiter).cost(|head| head.uri.path()[1..].parse().unwrap());
    let service = Inner::default().behind(&layer);
    for (cost, status) in [("/6", 200), ("/6", 429), ("/1", 429)] {
        let answer = ask(&service, get(cost)).await;
        assert_eq!(answer.status, status);
        assert_eq!(items(answer.one("ratelimit")), [item("queue", [("r", 0), ("t", 6)])], "{cost}");
    }
    clock.advance(6 * SECOND);
    assert_eq!(ask(&service, get("/6")).await.status, 200);
}

#[tokio::test]
async fn after_a_refund_the_queue_is_empty() {
    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(QUEUE, clock.clone()).unwrap());
    let direct = RateLimitLayer::new(limiter).refund_when(|answer| answer.status.is_server_error());
    let joint = JointLimiter::builder().dimension("user", [QUEUE]).clock(clock).build().unwrap();
    let joint = RateLimitLayer::new(Arc::new(joint)).key((constant("alice"),)).refund_when(|_| true);
    let (direct, joint) = (Inner::default().behind(&direct), Inner::default().behind(&joint));
    for _ in 0..3 {
        let all = [item("queue", [("r", 6), ("t", 11)])];
        assert_eq!(items(ask(&direct, with(get("/"), "answer", "503")).await.one("ratelimit")), all);
        assert_eq!(items(ask(&joint, get("/")).await.one("ratelimit")), all);
    }
}
