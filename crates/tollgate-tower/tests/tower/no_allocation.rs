//! An admitted request costs no allocation, but for the text of a key from a header field.

use std::convert::Infallible;
use std::future::Ready;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{Either, Full};
use tollgate::{JointLimiter, Limiter, Quota};
use tollgate_http::{Headers, Peer, TrustedProxies};
use tollgate_tower::{ClientIp, RateLimitLayer, constant, header, path};
use tower::util::MapResponseLayer;
use tower::{Layer, Service};

#[derive(Debug, Clone)]
struct Inner;

impl Service<Request<()>> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let mut response = Response::new(Full::default());
        // So that the map of fields is there.
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
        std::future::ready(Ok(response))
    }
}

fn request<R: Default>() -> Request<R> {
    let mut request = Request::new(R::default());
    request.headers_mut().insert("x-forwarded-for", HeaderValue::from_static("192.0.2.7, 10.1.1.1"));
    request.headers_mut().insert("x-api-key", HeaderValue::from_static("k-123"));
    // It shares its text, as those do that servers read.
    *request.uri_mut() = Uri::from_static("/a/%62/../c");
    request.extensions_mut().insert(Peer::Address(IpAddr::from([10, 0, 0, 1])));
    request
}

/// The allocations of one request, after others.
fn allocations<S, R, B>(service: &mut S) -> u64
where
    S: Service<Request<R>, Response = Response<B>, Error = Infallible>,
    R: Default,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut once = || {
        let request = request();
        let mut response = None;
        let info = measure(|| {
            let mut future = std::pin::pin!(service.call(request));
            let Poll::Ready(Ok(answer)) = future.as_mut().poll(&mut context) else { panic!("the answer is ready") };
            response = Some(answer);
        });
        assert!(response.is_some_and(|response| response.status().is_success()));
        info.count_total
    };
    // The key is new, and its ring grows.
    for _ in 0..100 {
        once();
    }
    once()
}

/// The allocations of a request without any layer.
fn of_inner() -> u64 {
    allocations(&mut Inner)
}

/// The allocation of a key that is the text of a header field.
const TEXT_OF_KEY: u64 = 1;

fn clients() -> ClientIp {
    ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"]).unwrap())
}

#[test]
fn without_fields_there_is_none() {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(100_000)).unwrap());
    let layer = RateLimitLayer::new(limiter).key((clients(), constant("login"), path())).headers(Headers::Off);
    assert_eq!(allocations(&mut layer.layer(Inner)), of_inner());

    let joint = JointLimiter::builder()
        .dimension("key", [Quota::token_bucket(100_000, 1, std::time::Duration::from_secs(1))])
        .dimension("address", [Quota::token_bucket(100_000, 1, std::time::Duration::from_secs(1))])
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(joint)).key((header("x-api-key"), clients()));
    assert_eq!(allocations(&mut layer.headers(Headers::Off).layer(Inner)), of_inner() + TEXT_OF_KEY);
}

#[test]
fn with_fields_there_is_none() {
    for headers in [Headers::Draft11, Headers::XRateLimit] {
        let limiter = Arc::new(Limiter::new(Quota::per_hour(100_000)).unwrap());
        let layer = RateLimitLayer::new(limiter).key((clients(), path())).headers(headers);
        assert_eq!(allocations(&mut layer.layer(Inner)), of_inner(), "{headers:?}");
    }
}

#[test]
fn of_a_joint_limiter_with_fields_there_is_none_but_for_a_list_of_all_limits() {
    for (headers, all, list) in
        [(Headers::Draft11, false, 0), (Headers::XRateLimit, false, 0), (Headers::Draft11, true, 1)]
    {
        let quotas = [Quota::per_hour(100_000), Quota::per_day(1_000_000)];
        let joint = JointLimiter::builder().dimension("key", quotas).dimension("address", quotas).build().unwrap();
        let layer = RateLimitLayer::new(Arc::new(joint)).key((header("x-api-key"), clients()));
        let mut service = layer.headers(headers).all_limits(all).layer(Inner);
        assert_eq!(allocations(&mut service), of_inner() + TEXT_OF_KEY + list, "{headers:?}, all limits: {all}");
    }
}

/// The allocations of one request to an axum router, after others.
fn in_router(router: axum::Router) -> u64 {
    allocations(&mut router.into_service::<axum::body::Body>())
}

#[test]
fn in_an_axum_router_a_decision_and_its_fields_add_none_to_the_boxes_of_axum() {
    let router = || axum::Router::new().route("/{*path}", axum::routing::get(|| async { "hello" }));
    let limiter = Arc::new(Limiter::new(Quota::per_hour(100_000)).unwrap());
    let limit = RateLimitLayer::new(limiter).key(clients());
    let own_body = MapResponseLayer::new(|response: Response<axum::body::Body>| {
        response.map(Either::<axum::body::Body, Full<Bytes>>::Left)
    });
    let without = in_router(router());
    let skipped = in_router(router().layer(limit.clone().skip(|_| true)));
    let limited = in_router(router().layer(limit));
    let own_body = in_router(router().layer(own_body));
    // The figures of BENCHMARKS.md.
    assert_eq!([limited, skipped, own_body].map(|count| count - without), [5, 5, 4]);
}
