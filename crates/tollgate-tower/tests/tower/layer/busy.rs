//! Inner services that are busy: a denied request does not wait for them, and an admitted one does.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::Notify;
use tokio_test::{assert_pending, assert_ready, task};
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::{RateLimit, RateLimitLayer};
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::layer::support::get;

type Limited<S> = RateLimit<S, DirectLimiter>;
type Requests = Request<Full<Bytes>>;
type Responses = Response<Full<Bytes>>;

/// A service that answers when it is told, for as many requests at a time as it is told.
fn slow(places: usize, go_on: &Arc<Notify>) -> ConcurrencyLimit<BoxCloneService<Requests, Responses, Infallible>> {
    let go_on = Arc::clone(go_on);
    let service = service_fn(move |_| {
        let go_on = Arc::clone(&go_on);
        async move {
            go_on.notified().await;
            Ok(Response::new(Full::from("slow")))
        }
    });
    ConcurrencyLimit::new(BoxCloneService::new(service), places)
}

fn limit(permits: u32) -> (Arc<DirectLimiter>, RateLimitLayer<DirectLimiter>) {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(permits)).unwrap());
    (Arc::clone(&limiter), RateLimitLayer::new(limiter))
}

/// As servers do: by a clone, once it is ready.
fn send<S>(service: &Limited<S>) -> task::Spawn<impl Future<Output = Result<StatusCode, S::Error>> + use<S>>
where
    S: Service<Requests, Response = Responses> + Clone,
{
    let answer = service.clone().oneshot(get("/"));
    task::spawn(async { answer.await.map(|response| response.status()) })
}

#[tokio::test]
async fn a_denied_request_does_not_wait_for_a_busy_service() {
    let go_on = Arc::new(Notify::new());
    let service = limit(1).1.layer(slow(1, &go_on));
    let mut first = send(&service);
    assert_pending!(first.poll());
    for _ in 0..3 {
        assert_eq!(assert_ready!(send(&service).poll()), Ok(StatusCode::TOO_MANY_REQUESTS));
    }
    go_on.notify_one();
    assert_eq!(first.await, Ok(StatusCode::OK));
}

#[tokio::test]
async fn admitted_requests_wait_in_their_order() {
    let go_on = Arc::new(Notify::new());
    let (limiter, layer) = limit(4);
    let service = layer.layer(slow(1, &go_on));
    let mut sent: Vec<_> = (0..4).map(|_| send(&service)).collect();
    for request in &mut sent {
        assert_pending!(request.poll());
    }
    assert_eq!(limiter.peek().remaining(), 0);
    assert_eq!(assert_ready!(send(&service).poll()), Ok(StatusCode::TOO_MANY_REQUESTS));
    for done in 0..4 {
        go_on.notify_one();
        assert!(sent[done].is_woken(), "request {done}");
        assert_eq!(assert_ready!(sent[done].poll()), Ok(StatusCode::OK));
        for (waiting, request) in sent.iter_mut().enumerate().skip(done + 1) {
            // The next in line has the place, and begins.
            assert_eq!(request.is_woken(), waiting == done + 1, "request {waiting} after {done}");
            assert_pending!(request.poll());
        }
    }
}

/// The place of a request that goes away is the next one's.
#[tokio::test]
async fn a_request_that_is_cancelled_while_it_waits_holds_no_place() {
    for refund in [false, true] {
        let go_on = Arc::new(Notify::new());
        let (limiter, layer) = limit(3);
        let service = layer.refund_unanswered(refund).layer(slow(1, &go_on));
        let mut sent: Vec<_> = (0..3).map(|_| send(&service)).collect();
        for request in &mut sent {
            assert_pending!(request.poll());
        }
        drop(sent.remove(1));
        assert_eq!(limiter.peek().remaining(), u32::from(refund), "refund: {refund}");
        for mut request in sent {
            assert_pending!(request.poll());
            go_on.notify_one();
            assert_eq!(request.await, Ok(StatusCode::OK));
        }
    }
}

#[tokio::test]
async fn one_service_can_be_called_again_while_requests_wait() {
    let go_on = Arc::new(Notify::new());
    let mut service = limit(3).1.layer(slow(1, &go_on));
    let mut sent = Vec::new();
    for _ in 0..3 {
        let answer = service.ready().await.unwrap().call(get("/"));
        sent.push(task::spawn(async { answer.await.map(|response| response.status()) }));
    }
    for mut request in sent {
        assert_pending!(request.poll());
        go_on.notify_one();
        assert_eq!(request.await, Ok(StatusCode::OK));
    }
}

/// The layer is always ready, so what sheds load has to be inside it.
#[tokio::test]
async fn load_is_shed_by_a_layer_inside_this_one() {
    let go_on = Arc::new(Notify::new());
    let (limiter, layer) = limit(3);
    let service = layer.layer(LoadShed::new(slow(1, &go_on)));
    let mut first = send(&service);
    assert_pending!(first.poll());
    let shed = assert_ready!(send(&service).poll()).unwrap_err();
    assert!(shed.is::<tower::load_shed::error::Overloaded>(), "{shed}");
    // Work was asked for, so it is charged.
    assert_eq!(limiter.peek().remaining(), 1);
    go_on.notify_one();
    assert!(first.await.is_ok());
}

/// A service that fails before it is ready, and counts how often it is asked.
#[derive(Debug, Clone, Default)]
struct Broken {
    asked: Arc<AtomicUsize>,
}

impl Service<Requests> for Broken {
    type Response = Responses;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Responses, &'static str>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if self.asked.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Err("broken"))
    }

    fn call(&mut self, _: Requests) -> Self::Future {
        unreachable!("it is never ready")
    }
}

#[tokio::test]
async fn a_service_that_is_never_ready_fails_admitted_requests_alone() {
    for refund in [false, true] {
        let (limiter, layer) = limit(1);
        let inner = Broken::default();
        let service = layer.refund_unanswered(refund).layer(inner.clone());
        assert_eq!(send(&service).await, Err("broken"));
        assert_eq!(limiter.peek().remaining(), u32::from(refund));
        if !refund {
            let asked = inner.asked.load(Ordering::Relaxed);
            assert_eq!(send(&service).await, Ok(StatusCode::TOO_MANY_REQUESTS));
            assert_eq!(inner.asked.load(Ordering::Relaxed), asked, "a denied request asks nothing of it");
        }
    }
}
