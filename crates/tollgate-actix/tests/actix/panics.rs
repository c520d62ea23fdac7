//! A panic in a callback, an extractor or the inner service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, HttpResponse, rt, web};
use tollgate::{DirectLimiter, Limiter, MockClock, Quota};
use tollgate_actix::{KeyExtractor, NoKey, RateLimit, from_head};

async fn handler() -> &'static str {
    "hello"
}

async fn panics() -> HttpResponse {
    panic!("in the handler")
}

fn limiter(limit: u32) -> Arc<DirectLimiter<MockClock>> {
    Arc::new(DirectLimiter::with_clock(Quota::per_hour(limit), MockClock::new()).unwrap())
}

/// The status of the answer to a request; `None` after a panic.
fn ask<L, X>(limit: &RateLimit<L, X>, path: &str) -> Option<u16>
where
    L: tollgate_actix::Gate<tollgate_actix::Actix, X> + 'static,
    X: KeyExtractor + 'static,
{
    let ask = async {
        let app = App::new().route("/panics", web::get().to(panics)).default_service(web::to(handler));
        let service = init_service(app.wrap(limit.clone())).await;
        call_service(&service, TestRequest::get().uri(path).to_request()).await.status().as_u16()
    };
    std::panic::catch_unwind(AssertUnwindSafe(|| rt::System::new().block_on(ask))).ok()
}

#[test]
fn a_panic_before_the_decision_charges_nothing() {
    let limiter = limiter(5);
    let limit = || RateLimit::new(Arc::clone(&limiter));
    for broken in [limit().cost(|_| panic!("cost")), limit().skip(|_| panic!("skip"))] {
        assert_eq!(ask(&broken, "/"), None);
    }
    assert_eq!(limiter.peek().remaining(), 5);
    let keyed = Arc::new(Limiter::<u8>::new(Quota::per_hour(5)).unwrap());
    let broken = from_head(|_| -> Result<u8, _> { panic!("extractor") });
    assert_eq!(ask(&RateLimit::new(Arc::clone(&keyed)).key(broken).refund_unanswered(true), "/"), None);
    assert_eq!(keyed.counts().live_keys, 0);
}

#[test]
fn a_panic_in_the_answer_to_a_denied_request_charges_nothing() {
    let limiter = limiter(1);
    let limit: RateLimit<_, NoKey> = RateLimit::new(Arc::clone(&limiter)).on_denied(|_| -> String { panic!("answer") });
    assert_eq!(ask(&limit, "/"), Some(200));
    let before = limiter.peek();
    assert_eq!(ask(&limit, "/"), None);
    assert_eq!(limiter.peek(), before);
}

#[test]
fn a_panic_where_refunds_are_decided_gives_the_permits_back() {
    let limiter = limiter(5);
    let limit = RateLimit::new(Arc::clone(&limiter)).cost(|_| 3).refund_when(|_| panic!("refund"));
    for _ in 0..3 {
        assert_eq!(ask(&limit, "/"), None);
        assert_eq!(limiter.peek().remaining(), 5);
    }
}

#[test]
fn a_panic_of_the_inner_service_is_no_answer() {
    for refund in [false, true] {
        let limiter = limiter(9);
        let limit = RateLimit::new(Arc::clone(&limiter)).refund_unanswered(refund).refund_when(|_| true);
        assert_eq!(ask(&limit, "/panics"), None);
        assert_eq!(limiter.peek().remaining(), if refund { 9 } else { 8 });
    }
}
