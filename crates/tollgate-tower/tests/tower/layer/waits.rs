//! Requests that wait, under paused time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::{Instant, sleep, timeout};
use tollgate::{DirectLimiter, JointLimiter, Limiter, Quota, TokioClock};
use tollgate_tower::{ClientIp, RateLimit, RateLimitLayer, ResponseBody, ShadowSwitch, constant};
use tower::{Layer, Service, service_fn};

use crate::layer::support::{Answer, Inner, InnerService, ask, from, get, item, items};

const SECOND: Duration = Duration::from_secs(1);

type Direct = RateLimit<InnerService, DirectLimiter<TokioClock>>;

fn direct(quota: Quota) -> Arc<DirectLimiter<TokioClock>> {
    Arc::new(DirectLimiter::with_clock(quota, TokioClock::new()).unwrap())
}

/// Asks so many times at once, in order. The answers are in the order in which they came, with their
/// requests' numbers and the times since the start.
async fn ask_all(service: &Direct, count: usize) -> Vec<(usize, Duration, Answer)> {
    let (start, answers) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let mut all = JoinSet::new();
    for number in 0..count {
        let (service, answers) = (service.clone(), Arc::clone(&answers));
        all.spawn(async move {
            let answer = ask(&service, get("/")).await;
            answers.lock().unwrap().push((number, start.elapsed(), answer));
        });
    }
    all.join_all().await;
    Arc::into_inner(answers).unwrap().into_inner().unwrap()
}

/// A request that waits: it is sent, and its future is still pending.
async fn sent(service: &Direct) -> tokio::task::JoinHandle<Answer> {
    let service = service.clone();
    let waiting = tokio::spawn(async move { ask(&service, get("/")).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    waiting
}

#[tokio::test(start_paused = true)]
async fn requests_over_the_limit_wait_in_order_and_those_too_far_away_are_denied_at_once() {
    let inner = Inner::default();
    let service: Direct =
        inner.behind(&RateLimitLayer::new(direct(Quota::new(2, SECOND))).wait(Duration::from_millis(2500)));
    let answers = ask_all(&service, 9).await;
    let (served, denied): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(.., answer)| answer.status == 200);
    assert_eq!(served.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(served.iter().map(|(_, time, _)| time.as_secs()).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(inner.calls(), 6);
    for (number, time, answer) in denied {
        assert!(number >= 6 && time < Duration::from_millis(10), "{number}: {time:?}");
        assert_eq!(answer.status, 429);
        assert_eq!(answer.one("retry-after"), "3");
        assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", 0), ("t", 1)])]);
    }
}

#[tokio::test(start_paused = true)]
async fn fields_tell_the_permits_after_the_wait() {
    let service = Inner::default().behind(&RateLimitLayer::new(direct(Quota::new(2, 9 * SECOND))).wait(60 * SECOND));
    ask_all(&service, 2).await;
    let answer = ask(&service, get("/")).await;
    // Both have come back, and this request has taken one.
    assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", 1), ("t", 9)])]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_leaves_no_trace() {
    let (limiter, inner) = (direct(Quota::new(1, SECOND)), Inner::default());
    let service: Direct = inner.behind(&RateLimitLayer::new(Arc::clone(&limiter)).wait(60 * SECOND));
    assert_eq!(ask(&service, get("/")).await.status, 200);
    let gone: Vec<_> = [sent(&service).await, sent(&service).await, sent(&service).await].into();
    let start = Instant::now();
    let last = sent(&service).await;
    for waiting in gone {
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
    }
    assert_eq!(last.await.unwrap().status, 200);
    // The next permit, not the fourth.
    assert_eq!((start.elapsed().as_secs(), inner.calls()), (1, 2));
    sleep(SECOND).await;
    assert_eq!(limiter.peek().remaining(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_waiting_requests_is_bounded() {
    let layer = RateLimitLayer::new(direct(Quota::new(1, SECOND))).wait(60 * SECOND);
    for layer in [layer.clone().max_waiters(2, 9), layer.max_waiters(9, 2)] {
        let service: Direct = Inner::default().behind(&layer);
        let answers = ask_all(&service, 5).await;
        let (served, denied): (Vec<_>, Vec<_>) = answers.iter().partition(|(.., answer)| answer.status == 200);
        assert_eq!((served.len(), denied.len()), (3, 2));
        assert!(denied.iter().all(|(_, time, _)| time.as_millis() == 0));
        sleep(9 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn where_all_places_are_taken_requests_within_their_limit_pass() {
    let limiter = Limiter::<IpAddr>::builder(Quota::new(1, SECOND)).clock(TokioClock::new()).build().unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(ClientIp::peer()).wait(60 * SECOND).max_waiters(9, 1);
    let service: RateLimit<InnerService, _, _> = Inner::default().behind(&layer);
    let status = async |peer: &str| ask(&service, from(peer)).await.status;
    assert_eq!(status("1.1.1.1").await, 200);
    let other = service.clone();
    let waiting = tokio::spawn(async move { ask(&other, from("1.1.1.1")).await });
    tokio::task::yield_now().await;
    assert_eq!(status("2.2.2.2").await, 200);
    assert_eq!(status("2.2.2.2").await, 429);
    assert_eq!(waiting.await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn permits_that_come_back_are_those_of_the_waiting() {
    let (limiter, inner) = (direct(Quota::new(1, SECOND)), Inner::default());
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).wait(10 * SECOND).max_waiters(1, 9);
    let service: Direct = inner.behind(&layer);
    let first = limiter.reserve(1, Duration::ZERO).unwrap();
    let waiting = sent(&service).await;
    // The permit is there again, and the request that waits for it still sleeps.
    drop(first);
    assert_eq!(limiter.peek().remaining(), 1);
    let answer = ask(&service, get("/")).await;
    assert_eq!(answer.status, 429);
    assert_eq!(items(answer.one("ratelimit")), [item("default", [("r", 0), ("t", 1)])]);
    assert_eq!(answer.one("retry-after"), "1");
    assert_eq!(waiting.await.unwrap().status, 200);
    assert_eq!(inner.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn several_dimensions_wait_and_tell_what_is_hopeless() {
    let limiter = JointLimiter::<(IpAddr, u8), _>::builder()
        .dimension("address", [Quota::new(2, SECOND)])
        .dimension("endpoint", [Quota::new(9, 60 * SECOND)])
        .clock(TokioClock::new())
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter))
        .key((ClientIp::peer(), constant(1_u8)))
        .wait(Duration::from_millis(2500));
    let service: RateLimit<InnerService, _, _> = Inner::default().behind(&layer);
    let start = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..9 {
        let service = service.clone();
        all.spawn(async move { (ask(&service, from("1.1.1.1")).await.status.as_u16(), start.elapsed().as_secs()) });
    }
    let mut answers = all.join_all().await;
    answers.sort_unstable();
    let denied = (429, 0);
    assert_eq!(answers, [(200, 0), (200, 0), (200, 1), (200, 1), (200, 2), (200, 2), denied, denied, denied]);
}

#[tokio::test(start_paused = true)]
async fn what_no_wait_helps_is_answered_at_once() {
    let limiter = direct(Quota::new(2, SECOND));
    let layer = RateLimitLayer::new(limiter).cost(|_| 3).wait(60 * SECOND);
    let service: Direct = Inner::default().behind(&layer);
    let start = Instant::now();
    let answer = ask(&service, get("/")).await;
    assert_eq!((answer.status.as_u16(), answer.fields.get("retry-after")), (422, None));
    // Nor does a request wait while the switch is on.
    let service: Direct = Inner::default().behind(&layer.cost(|_| 1).shadow(ShadowSwitch::on()));
    for _ in 0..4 {
        assert_eq!(ask(&service, get("/")).await.status, 200);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_limiter_counts_a_denial_where_no_other_request_waits() {
    let limiter = DirectLimiter::builder(Quota::new(1, 60 * SECOND)).clock(TokioClock::new()).count_decisions(true);
    let limiter = Arc::new(limiter.build().unwrap());
    let service: Direct = Inner::default().behind(&RateLimitLayer::new(Arc::clone(&limiter)).wait(SECOND));
    for status in [200, 429, 429] {
        assert_eq!(ask(&service, get("/")).await.status, status);
    }
    let decisions = limiter.counts().decisions.unwrap();
    assert_eq!((decisions.admitted, decisions.denied), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_leaky_queue_is_waited_for() {
    let service: Direct = Inner::default()
        .behind(&RateLimitLayer::new(direct(Quota::leaky_queue(1, SECOND, 9 * SECOND))).wait(9 * SECOND));
    let answers = ask_all(&service, 4).await;
    let times: Vec<_> = answers.iter().map(|(_, time, answer)| (answer.status.as_u16(), time.as_secs())).collect();
    assert_eq!(times, [(200, 0), (200, 1), (200, 2), (200, 3)]);
}

type Streamed = Response<ResponseBody<Full<Bytes>>>;

/// A request that is in flight until its answer is dropped, and the time of that answer.
fn streamed(limit: &RateLimitLayer<DirectLimiter<TokioClock>>) -> JoinHandle<(Streamed, Instant)> {
    let inner = service_fn(|_: Request<_>| ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("text")))));
    let mut service = limit.layer(inner);
    tokio::spawn(async move { (service.call(get("/")).await.unwrap(), Instant::now()) })
}

#[tokio::test(start_paused = true)]
async fn requests_wait_in_order_until_one_in_flight_ends() {
    let limit = RateLimitLayer::new(direct(Quota::concurrent(1))).wait(60 * SECOND);
    let (mut in_flight, _) = streamed(&limit).await.unwrap();
    let mut waiting = VecDeque::new();
    for _ in 0..3 {
        waiting.push_back(streamed(&limit));
        yield_now().await;
    }
    while let Some(next) = waiting.pop_front() {
        sleep(9 * SECOND).await;
        assert!(!next.is_finished() && waiting.iter().all(|other| !other.is_finished()));
        drop(in_flight);
        (in_flight, _) = next.await.unwrap();
        assert_eq!(in_flight.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_for_which_none_in_flight_ends_are_denied_once_their_time_is_over() {
    let limit = RateLimitLayer::new(direct(Quota::concurrent(1))).wait(SECOND).max_waiters(2, 9);
    let (_in_flight, start) = streamed(&limit).await.unwrap();
    let waiting = [streamed(&limit), streamed(&limit)];
    yield_now().await;
    // A third has no place in the line.
    let (denied, time) = streamed(&limit).await.unwrap();
    assert_eq!((denied.status().as_u16(), time - start), (429, Duration::ZERO));
    for waiting in waiting {
        let (denied, time) = waiting.await.unwrap();
        assert_eq!((denied.status().as_u16(), (time - start).as_secs()), (429, 1));
        assert!(!denied.headers().contains_key("retry-after"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_comes_free_is_that_of_the_first_in_line() {
    let limit = RateLimitLayer::new(direct(Quota::concurrent(1))).wait(60 * SECOND).max_waiters(1, 9);
    let (in_flight, _) = streamed(&limit).await.unwrap();
    let first = streamed(&limit);
    yield_now().await;
    drop(in_flight);
    // The line is full, and the request in it has not looked yet.
    let (denied, _) = streamed(&limit).await.unwrap();
    let field = |name| denied.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!(
        (denied.status().as_u16(), field("retry-after"), field("ratelimit")),
        (429, None, Some("\"default\";r=0"))
    );
    assert_eq!(first.await.unwrap().0.status(), 200);
}

/// Some requests are dropped at any time. The permits are those of the served.
#[tokio::test(start_paused = true)]
async fn every_permit_is_accounted_for_where_requests_are_dropped() {
    let (limiter, inner) = (direct(Quota::new(3, 1800 * SECOND)), Inner::default());
    let service: Direct = inner.behind(&RateLimitLayer::new(Arc::clone(&limiter)).wait(36_000 * SECOND));
    let mut all = JoinSet::new();
    for number in 0..60_u64 {
        let service = service.clone();
        all.spawn(async move {
            timeout(Duration::from_secs(number * 97 % 61 * 59), ask(&service, get("/")))
                .await
                .is_ok_and(|answer| answer.status == 200)
        });
    }
    let served = all.join_all().await.into_iter().filter(|served| *served).count();
    assert_eq!(inner.calls(), served);
    assert_eq!(served, 6, "three at once, and three of those that were there half an hour later");
}
