//! Permits that are given back, and those that are kept.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tollgate::{DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_tower::{RateLimitLayer, constant};
use tower::{Layer, Service, ServiceExt};

use crate::layer::support::{Inner, ask, get, item, items, with};

fn limiter(limit: u32) -> Arc<DirectLimiter<MockClock>> {
    Arc::new(DirectLimiter::with_clock(Quota::per_hour(limit), MockClock::new()).unwrap())
}

#[tokio::test]
async fn permits_come_back_by_the_status_of_the_answer() {
    let limiter = limiter(3);
    let layer =
        RateLimitLayer::new(Arc::clone(&limiter)).refund_when(|answer| answer.status != StatusCode::UNAUTHORIZED);
    let inner = Inner::default();
    let service = inner.behind(&layer);
    for _ in 0..10 {
        let answer = ask(&service, get("/")).await;
        assert_eq!(answer.status, 200);
        // The header fields know of the refund.
        assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", 3), ("t", 3_600)])]);
    }
    for left in [2, 1, 0] {
        let answer = ask(&service, with(get("/"), "answer", "401")).await;
        assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", left), ("t", 3_600)])]);
    }
    assert_eq!(ask(&service, get("/")).await.status, 429);
    assert_eq!(inner.calls(), 13);
    assert_eq!(limiter.peek().remaining(), 0);
}

#[tokio::test]
async fn permits_come_back_of_keyed_and_joint_limiters() {
    let keyed = Arc::new(Limiter::<&str>::new(Quota::per_hour(2)).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&keyed)).key(constant("alice"));
    let service = Inner::default().behind(&layer.cost(|_| 2).refund_when(|answer| answer.status.is_server_error()));
    assert_eq!(ask(&service, with(get("/"), "answer", "503")).await.status, 503);
    assert_eq!(keyed.peek("alice").remaining(), 2);
    assert_eq!(ask(&service, get("/")).await.status, 200);
    let denied = ask(&service, with(get("/"), "answer", "503")).await;
    assert_eq!((denied.status.as_u16(), denied.one("retry-after")), (429, "3600"));
    assert_eq!(items(denied.one("ratelimit")), [item("default", [("r", 0), ("t", 3_600)])]);

    let joint = JointLimiter::builder()
        .dimension("one", [Quota::per_hour(1)])
        .dimension("another", [Quota::per_hour(1)])
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(joint)).key((constant(1), constant(2)));
    let service = Inner::default().behind(&layer.refund_when(|answer| answer.status.is_server_error()));
    for _ in 0..3 {
        assert_eq!(ask(&service, with(get("/"), "answer", "500")).await.status, 500);
    }
    assert_eq!(ask(&service, get("/")).await.status, 200);
    assert_eq!(ask(&service, get("/")).await.status, 429);
}

/// A service whose answer never comes.
fn never()
-> impl Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send> + Clone {
    tower::service_fn(|_: Request<Full<Bytes>>| std::future::pending())
}

#[test]
fn a_cancelled_request_keeps_its_charge_unless_asked_otherwise() {
    for refund in [false, true] {
        // Also where permits come back for each answer.
        for by_status in [false, true] {
            let limiter = limiter(5);
            let layer = RateLimitLayer::new(Arc::clone(&limiter)).refund_unanswered(refund);
            let layer = if by_status { layer.refund_when(|_| true) } else { layer };
            let mut service = layer.layer(never());
            let mut future = Box::pin(service.call(get("/")));
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(future.as_mut().poll(&mut context), Poll::Pending));
            assert_eq!(limiter.peek().remaining(), 4);
            drop(future);
            assert_eq!(limiter.peek().remaining(), if refund { 5 } else { 4 }, "{refund} {by_status}");
        }
    }
}

#[tokio::test]
async fn a_service_that_fails_gives_no_answer() {
    for refund in [false, true] {
        let limiter = limiter(5);
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).refund_unanswered(refund).refund_when(|_| true);
        let fails = tower::service_fn(|_: Request<Full<Bytes>>| async { Err::<Response<Full<Bytes>>, _>("no") });
        assert_eq!(layer.layer(fails).oneshot(get("/")).await.unwrap_err(), "no");
        assert_eq!(limiter.peek().remaining(), if refund { 5 } else { 4 });
    }
}

fn panics<T>(run: impl FnOnce() -> T) -> bool {
    std::panic::catch_unwind(AssertUnwindSafe(run)).is_err()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_panic_before_the_decision_charges_nothing() {
    let limiter = limiter(5);
    let layer = || RateLimitLayer::new(Arc::clone(&limiter));
    let inner = Inner::default();
    let broken = [inner.behind(&layer().cost(|_| panic!("cost"))), inner.behind(&layer().skip(|_| panic!("skip")))];
    for service in broken {
        assert!(panics(|| block_on(ask(&service, get("/")))));
    }
    let keyed = Arc::new(Limiter::<u8>::builder(Quota::per_hour(5)).build().unwrap());
    let broken = tollgate_tower::from_head(|_| -> Result<u8, _> { panic!("extractor") });
    let service = inner.behind(&RateLimitLayer::new(Arc::clone(&keyed)).key(broken).refund_unanswered(true));
    assert!(panics(|| block_on(ask(&service, get("/")))));
    assert_eq!((limiter.peek().remaining(), keyed.counts().live_keys, inner.calls()), (5, 0, 0));
}

#[test]
fn a_panic_in_the_answer_to_a_denied_request_charges_nothing() {
    let limiter = limiter(1);
    let service = Inner::default()
        .behind(&RateLimitLayer::new(Arc::clone(&limiter)).on_denied(|_| -> Response<String> { panic!("answer") }));
    assert!(block_on(ask(&service, get("/"))).status.is_success());
    let before = limiter.peek();
    assert!(panics(|| block_on(ask(&service, get("/")))));
    assert_eq!(limiter.peek(), before);
}

#[test]
fn a_panic_where_refunds_are_decided_gives_the_permits_back() {
    let limiter = limiter(5);
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).cost(|_| 3).refund_when(|_| panic!("refund"));
    let inner = Inner::default();
    let service = inner.behind(&layer);
    for _ in 0..3 {
        assert!(panics(|| block_on(ask(&service, get("/")))));
        assert_eq!(limiter.peek().remaining(), 5);
    }
    assert_eq!(inner.calls(), 3);
}

#[test]
fn a_panic_of_the_inner_service_is_no_answer() {
    for refund in [false, true] {
        let limiter = limiter(9);
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).refund_unanswered(refund);
        let in_call = tower::service_fn(|request: Request<Full<Bytes>>| -> std::future::Ready<Result<_, Infallible>> {
            if request.uri().path() == "/call" {
                panic!("call")
            } else {
                std::future::ready(Ok(Response::new(Full::<Bytes>::default())))
            }
        });
        async fn panic(_: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
            panic!("in the future")
        }
        let in_future = tower::service_fn(panic);
        assert!(panics(|| block_on(layer.layer(in_call).oneshot(get("/call")))));
        assert!(panics(|| block_on(layer.layer(in_future).oneshot(get("/")))));
        assert_eq!(limiter.peek().remaining(), if refund { 9 } else { 7 });
    }
}
