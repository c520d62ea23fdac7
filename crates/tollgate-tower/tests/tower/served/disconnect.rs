//! Clients that go away while their request is being handled.

use std::sync::Arc;

use axum::Router;
use axum::routing::get as route;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::RateLimitLayer;

use crate::served::support::serve;

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// One thread, so that all of a request is dropped before the test goes on.
#[tokio::test]
async fn permits_are_kept_unless_asked_otherwise() {
    for refund in [false, true] {
        let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(5)).unwrap());
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).refund_unanswered(refund).refund_when(|_| true);
        let (entered, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = {
            let (entered, dropped) = (Arc::clone(&entered), Arc::clone(&dropped));
            move || {
                let (entered, guard) = (Arc::clone(&entered), Dropped(Arc::clone(&dropped)));
                async move {
                    let _guard = guard;
                    entered.notify_one();
                    std::future::pending::<()>().await;
                }
            }
        };
        let address = serve(Router::new().route("/", route(handler)).layer(layer)).await;
        for n in 1..=3 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            entered.notified().await;
            let before = if refund { 4 } else { 5 - n };
            assert_eq!(limiter.peek().remaining(), before);
            drop(stream);
            dropped.notified().await;
            assert_eq!(limiter.peek().remaining(), if refund { 5 } else { before }, "refund: {refund}");
        }
    }
}

/// The place in the line is free once the client has gone, and nothing is charged.
#[cfg(feature = "wait")]
#[tokio::test]
async fn a_client_that_goes_while_its_request_waits_leaves_no_trace() {
    use axum::extract::Request;
    use axum::middleware::{Next, from_fn};
    use std::time::Duration;
    use tollgate::MockClock;

    let clock = MockClock::new();
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_hour(1), clock.clone()).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).wait(Duration::from_secs(3600)).max_waiters(1, 1);
    let (entered, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let outer = {
        let (entered, dropped) = (Arc::clone(&entered), Arc::clone(&dropped));
        move |request: Request, next: Next| {
            let (entered, guard) = (Arc::clone(&entered), Dropped(Arc::clone(&dropped)));
            async move {
                let _guard = guard;
                let mut response = Box::pin(next.run(request));
                let first = std::future::poll_fn(|context| std::task::Poll::Ready(response.as_mut().poll(context)));
                if let std::task::Poll::Ready(response) = first.await {
                    return response;
                }
                entered.notify_one();
                response.await
            }
        }
    };
    let app = Router::new().route("/", route(|| async { "hello" })).layer(layer).layer(from_fn(outer));
    let address = serve(app).await;
    assert!(limiter.try_acquire().is_admitted());
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        // It waits, so the place was free.
        entered.notified().await;
        drop(stream);
        dropped.notified().await;
    }
    clock.advance(Duration::from_secs(3600));
    assert_eq!(limiter.peek().remaining(), 1);
}
