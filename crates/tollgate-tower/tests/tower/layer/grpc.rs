//! What the layer answers to gRPC calls, and to requests that only look like one.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use tollgate::{DirectLimiter, Limiter, MockClock, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer, header};

use crate::layer::support::{Answer, Inner, ask, get, with};

/// A layer whose limiter has one permit.
fn layer() -> RateLimitLayer<DirectLimiter<MockClock>> {
    let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new()).unwrap();
    RateLimitLayer::new(Arc::new(limiter))
}

fn call(method: Method, content_type: &str) -> Request<Full<Bytes>> {
    let mut request = with(get("/"), "content-type", content_type);
    *request.method_mut() = method;
    request
}

/// The answer to the second call.
async fn denied<L>(layer: &L, request: impl Fn() -> Request<Full<Bytes>>) -> Answer
where
    L: tower::Layer<crate::layer::support::InnerService>,
    L::Service: tower::Service<
            Request<Full<Bytes>>,
            Response = Response<tollgate_tower::ResponseBody<Full<Bytes>>>,
            Error = std::convert::Infallible,
        > + Clone,
{
    let service = Inner::default().behind(layer);
    assert!(ask(&service, request()).await.status.is_success());
    ask(&service, request()).await
}

#[tokio::test]
async fn a_call_is_answered_as_grpc_without_a_body() {
    for (sent, answered) in [
        ("application/grpc", "application/grpc"),
        ("application/grpc+proto", "application/grpc"),
        ("application/grpc-web+proto; charset=utf-8", "application/grpc-web"),
    ] {
        let answer = denied(&layer(), || call(Method::POST, sent)).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
        assert_eq!((answer.one("content-type"), answer.one("grpc-status")), (answered, "8"));
        assert_eq!(answer.one("grpc-retry-pushback-ms"), "60000");
        assert_eq!(answer.one("cache-control"), "no-store");
        assert!(!answer.fields.contains_key("ratelimit"));
    }
}

#[tokio::test]
async fn only_a_post_is_a_call() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::OPTIONS] {
        let answer = denied(&layer(), || call(method.clone(), "application/grpc")).await;
        assert_eq!((answer.status.as_u16(), answer.one("retry-after")), (429, "60"), "{method}");
        assert_eq!(answer.one("content-type"), "application/problem+json");
        assert_eq!(answer.one("cache-control"), "no-store");
        assert!(!answer.fields.contains_key("grpc-status"));
    }
}

#[tokio::test]
async fn a_request_without_a_key_is_a_call_only_if_it_is_a_post() {
    let limiter = Arc::new(Limiter::new(Quota::per_minute(1)).unwrap());
    let not_sent = RateLimitLayer::new(limiter).key(header("x-api-key"));
    let limiter = Arc::new(Limiter::new(Quota::per_minute(1)).unwrap());
    let not_provided = RateLimitLayer::new(limiter).key(ClientIp::peer());
    let services = (Inner::default().behind(&not_sent), Inner::default().behind(&not_provided));
    for (method, statuses, codes) in
        [(Method::GET, (400, 500), (None, None)), (Method::POST, (200, 200), (Some("3"), Some("13")))]
    {
        let of = |answer: &Answer| {
            assert_eq!(answer.one("cache-control"), "no-store", "{method}");
            let code = answer.fields.get("grpc-status").map(|code| code.to_str().unwrap().to_owned());
            (answer.status.as_u16(), code)
        };
        let not_sent = of(&ask(&services.0, call(method.clone(), "application/grpc")).await);
        let not_provided = of(&ask(&services.1, call(method.clone(), "application/grpc")).await);
        assert_eq!((not_sent.0, not_provided.0), statuses);
        assert_eq!((not_sent.1.as_deref(), not_provided.1.as_deref()), codes);
    }
}

#[tokio::test]
async fn a_call_gets_the_own_answer_of_the_service() {
    let layer = layer().on_denied(|denied| {
        assert!(denied.is_grpc());
        Response::builder().status(429).body("own".to_owned()).unwrap()
    });
    let answer = denied(&layer, || call(Method::POST, "application/grpc")).await;
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (429, &b"own"[..]));
    assert_eq!((answer.one("retry-after"), answer.one("cache-control")), ("60", "no-store"));
    assert!(!answer.fields.contains_key("grpc-status"));
}

#[tokio::test]
async fn a_service_without_grpc_has_no_such_answers() {
    let answer = denied(&layer().grpc(false), || call(Method::POST, "application/grpc")).await;
    assert_eq!((answer.status.as_u16(), answer.one("retry-after")), (429, "60"));
    assert!(!answer.fields.contains_key("grpc-status"));
}
