//! Requests that wait, under paused time.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, fn_service};
use actix_web::rt::{System, spawn};
use actix_web::test::TestRequest;
use actix_web::{Error, HttpMessage, HttpResponse};
use tokio::task::yield_now;
use tokio::time::{Instant, pause, sleep};
use tollgate::{DirectLimiter, Quota, TokioClock};
use tollgate_actix::{Admitted, RateLimit, RateLimitMiddleware};

const SECOND: Duration = Duration::from_secs(1);

fn direct(quota: Quota) -> Arc<DirectLimiter<TokioClock>> {
    Arc::new(DirectLimiter::with_clock(quota, TokioClock::new()).unwrap())
}

async fn hello(request: ServiceRequest) -> Result<ServiceResponse<BoxBody>, Error> {
    assert!(request.extensions().contains::<Admitted>());
    Ok(request.into_response(HttpResponse::Ok().finish()))
}

/// The status of an answer, the seconds until it came, and `Retry-After`.
type Answer = (u16, u64, Option<String>);

/// A service of one worker behind a limit.
async fn service(limit: RateLimit<DirectLimiter<TokioClock>>) -> impl AsyncFn() -> Answer + Clone {
    let Ok(service) = limit.tell_handlers(true).new_transform(fn_service(hello)).await else { unreachable!() };
    let service: Rc<RateLimitMiddleware<_, _>> = Rc::new(service);
    async move || {
        let start = Instant::now();
        let answer = service.call(TestRequest::get().to_srv_request()).await.unwrap();
        let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), start.elapsed().as_secs(), retry_after)
    }
}

#[test]
fn requests_over_the_limit_wait_in_order_and_those_too_far_away_are_denied_at_once() {
    System::new().block_on(async {
        pause();
        let limiter = direct(Quota::new(2, SECOND));
        let ask = service(RateLimit::new(limiter).wait(Duration::from_millis(1500))).await;
        let mut all = Vec::new();
        for _ in 0..6 {
            let ask = ask.clone();
            all.push(spawn(async move { ask().await }));
        }
        let mut answers = Vec::new();
        for answer in all {
            answers.push(answer.await.unwrap());
        }
        let denied = (429, 0, Some("2".to_owned()));
        assert_eq!(answers[..4], [(200, 0, None), (200, 0, None), (200, 1, None), (200, 1, None)]);
        assert_eq!(answers[4..], [denied.clone(), denied]);
    });
}

#[test]
fn a_request_that_is_dropped_leaves_no_trace() {
    System::new().block_on(async {
        pause();
        let limiter = direct(Quota::new(1, SECOND));
        let limit = RateLimit::new(Arc::clone(&limiter)).wait(60 * SECOND).max_waiters(1, 9);
        let ask = service(limit).await;
        assert_eq!(ask().await, (200, 0, None));
        for _ in 0..3 {
            let ask = ask.clone();
            let waiting = spawn(async move { ask().await });
            yield_now().await;
            assert!(!waiting.is_finished(), "the place in the line was free");
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
        }
        assert_eq!(ask().await, (200, 1, None));
        sleep(SECOND).await;
        assert_eq!(limiter.peek().remaining(), 1);
    });
}

#[test]
fn requests_wait_in_order_until_one_in_flight_ends() {
    System::new().block_on(async {
        pause();
        let limit = RateLimit::new(direct(Quota::concurrent(1))).wait(60 * SECOND);
        let answer = async |request: ServiceRequest| Ok(request.into_response(HttpResponse::Ok().body("text")));
        let Ok(service) = limit.new_transform(fn_service(answer)).await else { unreachable!() };
        let service = Rc::new(service);
        // A request is in flight until its answer is dropped.
        let ask = || {
            let service = Rc::clone(&service);
            spawn(async move { service.call(TestRequest::get().to_srv_request()).await.unwrap() })
        };
        let mut in_flight = ask().await.unwrap();
        let mut waiting = VecDeque::new();
        for _ in 0..3 {
            waiting.push_back(ask());
            yield_now().await;
        }
        while let Some(next) = waiting.pop_front() {
            sleep(9 * SECOND).await;
            assert!(!next.is_finished() && waiting.iter().all(|other| !other.is_finished()));
            drop(in_flight);
            in_flight = next.await.unwrap();
            assert_eq!(in_flight.status(), 200);
        }
        // The last is in flight for longer than another may wait.
        let start = Instant::now();
        let denied = ask().await.unwrap();
        assert_eq!((denied.status().as_u16(), start.elapsed().as_secs()), (429, 60));
        drop(in_flight);
    });
}
