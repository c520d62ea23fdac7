//! The places of requests whose inner service fails or panics, whose body fails, or whose future or body is
//! dropped.

use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::{RateLimitLayer, RequestInFlight, ResponseBody};
use tower::{Layer, Service, service_fn};

use crate::layer::support::get;

fn limit() -> (Arc<DirectLimiter>, RateLimitLayer<DirectLimiter>) {
    let limiter = Arc::new(DirectLimiter::new(Quota::concurrent(1)).unwrap());
    (Arc::clone(&limiter), RateLimitLayer::new(limiter))
}

/// A body of two parts, of which the second may be an error.
fn parts(last: Result<&'static str, &'static str>) -> Body {
    let parts = ["first"].map(Ok).into_iter().chain([last]);
    Body::from_stream(tokio_stream::iter(parts.collect::<Vec<_>>()))
}

#[tokio::test]
async fn a_request_that_fails_is_over_while_its_future_is_kept() {
    let (limiter, layer) = limit();
    let mut service = layer.layer(service_fn(|_: Request<_>| async { Err::<Response<Body>, _>("it fails") }));
    let mut future = pin!(service.call(get("/")));
    assert_eq!(limiter.peek().remaining(), 0);
    assert_eq!(future.as_mut().await.unwrap_err(), "it fails");
    assert_eq!(limiter.peek().remaining(), 1);
}

#[tokio::test]
async fn a_panic_and_a_dropped_future_end_a_request() {
    let (limiter, layer) = limit();
    let panics = async |_: Request<_>| -> Result<Response<Body>, Infallible> { panic!("in the service") };
    let mut service = layer.layer(service_fn(panics));
    let panicked = tokio::spawn(service.call(get("/"))).await;
    assert!(panicked.is_err_and(|error| error.is_panic()));
    assert_eq!(limiter.peek().remaining(), 1);

    let mut service =
        layer.layer(service_fn(|_: Request<_>| std::future::pending::<Result<Response<Body>, Infallible>>()));
    let mut future = Box::pin(service.call(get("/")));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(limiter.peek().remaining(), 0);
    drop(future);
    assert_eq!(limiter.peek().remaining(), 1);
}

/// Also while the server keeps the body that has ended or failed.
#[tokio::test]
async fn a_body_that_ends_or_fails_ends_its_request() {
    for last in [Ok("last"), Err("it fails")] {
        let (limiter, layer) = limit();
        let mut service =
            layer.layer(service_fn(|_: Request<_>| ready(Ok::<_, Infallible>(Response::new(parts(last))))));
        let mut body = service.call(get("/")).await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!((first.into_data().unwrap(), limiter.peek().remaining()), (Bytes::from("first"), 0));
        assert_eq!(body.frame().await.unwrap().is_ok(), last.is_ok());
        assert!(last.is_err() || body.frame().await.is_none());
        assert_eq!(limiter.peek().remaining(), 1);
        assert!(body.frame().await.is_none());

        let body = service.call(get("/")).await.unwrap().into_body();
        assert_eq!(limiter.peek().remaining(), 0);
        drop(body);
        assert_eq!(limiter.peek().remaining(), 1);
    }
}

/// The last part of a body of known length is its end, and an empty body ends with the head.
#[tokio::test]
async fn no_end_is_waited_for_where_the_body_says_that_it_is_the_last() {
    let (limiter, layer) = limit();
    let answer = |text: &'static str| {
        service_fn(move |_: Request<_>| ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))))
    };
    let mut body = layer.layer(answer("whole")).call(get("/")).await.unwrap().into_body();
    assert_eq!(limiter.peek().remaining(), 0);
    assert!(body.frame().await.unwrap().is_ok());
    assert_eq!(limiter.peek().remaining(), 1);
    let _empty = layer.layer(answer("")).call(get("/")).await.unwrap();
    assert_eq!(limiter.peek().remaining(), 1);
}

/// Such as a connection after an upgrade, of which a layer sees no end.
#[tokio::test]
async fn work_that_outlives_the_answer_may_keep_the_place() {
    let (limiter, layer) = limit();
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let handler = |request: Request<Full<Bytes>>| {
        send.send(request.extensions().get::<RequestInFlight>().cloned()).unwrap();
        ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
    };
    let _ = layer.clone().layer(service_fn(handler)).call(get("/")).await.unwrap();
    assert!(receive.recv().await.unwrap().is_none(), "unless it is asked for");
    let _ = layer.tell_handlers(true).layer(service_fn(handler)).call(get("/")).await.unwrap();
    let kept = receive.recv().await.unwrap().expect("its place");
    assert_eq!(limiter.peek().remaining(), 0);
    drop(kept);
    assert_eq!(limiter.peek().remaining(), 1);
}

/// What a body would be without room for a place.
#[expect(dead_code, reason = "only its size counts")]
enum Without<B> {
    Inner(B),
    Own(Bytes),
}

#[test]
fn the_body_of_axum_has_room_for_a_place() {
    assert_eq!(size_of::<ResponseBody<Body>>(), size_of::<Without<Body>>());
    assert_eq!(size_of::<ResponseBody<Full<Bytes>>>(), size_of::<Without<Full<Bytes>>>() + 8);
}
