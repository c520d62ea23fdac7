//! What a service answers in place of the layer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use tollgate::{DirectLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_tower::{DenialKind, KeyError, KeyExtractor, RateLimitLayer, from_head};

use crate::layer::support::{Inner, ask, get, with};

/// A layer whose limiter has one permit.
fn layer() -> RateLimitLayer<DirectLimiter<MockClock>> {
    let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new()).unwrap();
    RateLimitLayer::new(Arc::new(limiter))
}

/// The key that a request names, or the error that it asks for.
fn named() -> impl KeyExtractor<Key = String> {
    from_head(|head| match head.headers.get("key").map(|key| key.to_str().unwrap()) {
        None => Err(KeyError::not_sent()),
        Some("malformed") => Err(KeyError::malformed()),
        Some("not provided") => Err(KeyError::not_provided()),
        Some(key) => Ok(key.to_owned()),
    })
}

#[tokio::test]
async fn it_gets_the_standard_fields() {
    let layer = layer().on_denied(|denied| {
        assert_eq!(denied.retry_after(), Some(60));
        if denied.head().headers.get("accept").is_none_or(|accept| accept != "text/html") {
            return denied.answer();
        }
        let page = Response::builder()
            .status(StatusCode::SERVICE_UNAVAILABLE)
            .header("content-type", "text/html")
            .header("cache-control", "private")
            .header("retry-after", "1")
            .header("ratelimit", r#""mine";r=7;t=1"#);
        page.body("<h1>later</h1>".to_owned()).unwrap()
    });
    let service = Inner::default().behind(&layer);
    assert!(ask(&service, get("/")).await.status.is_success());
    let page = ask(&service, with(get("/"), "accept", "text/html")).await;
    assert_eq!((page.status.as_u16(), &page.body[..]), (503, &b"<h1>later</h1>"[..]));
    assert_eq!((page.one("content-type"), page.one("cache-control")), ("text/html", "private"));
    assert_eq!(page.one("retry-after"), "60");
    assert_eq!(page.all("ratelimit"), [r#""mine";r=7;t=1"#, r#""default";r=0;t=60"#]);
    assert_eq!(page.one("ratelimit-policy"), r#""default";q=1;w=60"#);
    // The standard answer is as without a callback.
    let standard = ask(&service, get("/")).await;
    assert_eq!((standard.status.as_u16(), standard.one("content-type")), (429, "application/problem+json"));
    assert_eq!((standard.one("cache-control"), standard.one("retry-after")), ("no-store", "60"));
    assert_eq!(standard.one("ratelimit"), r#""default";r=0;t=60"#);
    let problem: serde_json::Value = serde_json::from_slice(&standard.body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["default"]));
}

/// Status, reason, quota, limit, permits left, wait.
type Told = (u16, DenialKind, Option<String>, Option<u32>, Option<u32>, Option<u64>);

#[tokio::test]
async fn it_is_asked_for_each_status_and_told_the_reason_the_quota_and_the_wait() {
    let limiter = Limiter::<String>::builder(Quota::per_hour(3))
        .key_cap(1)
        .list_cap(1)
        .penalty(Penalty::new(2, Duration::from_secs(3_600), Duration::from_secs(7_200)))
        .clock(MockClock::new())
        .build()
        .unwrap();
    limiter.deny("listed").unwrap();
    let told: Arc<Mutex<Vec<Told>>> = Arc::default();
    let tell = Arc::clone(&told);
    let layer = RateLimitLayer::new(Arc::new(limiter))
        .key(named())
        .cost(|head| head.headers.get("cost").map_or(1, |cost| cost.to_str().unwrap().parse().unwrap()))
        .on_denied(move |denied| {
            let quota = denied.quota().map(str::to_owned);
            let (limit, remaining, wait) = (denied.limit(), denied.remaining(), denied.retry_after());
            assert_eq!(denied.wait().and_then(tollgate_http::retry_after), wait);
            tell.lock().unwrap().push((denied.status().as_u16(), denied.kind(), quota, limit, remaining, wait));
            Response::builder().status(denied.status()).body("own".to_owned()).unwrap()
        });
    let service = Inner::default().behind(&layer);
    let ask = async |key: &str, cost: &str| {
        let answer = ask(&service, with(with(get("/"), "key", key), "cost", cost)).await;
        assert_eq!((answer.status == 200, &answer.body[..] == b"own"), (answer.status == 200, answer.status != 200));
        assert!(answer.status == 200 || answer.one("cache-control") == "no-store");
        answer.status.as_u16()
    };
    assert_eq!(ask("alice", "2").await, 200);
    let hour = Some(3_600);
    let expected: [(&str, &str, Told); 7] = [
        ("alice", "2", (429, DenialKind::Quota, Some("default".into()), Some(3), Some(1), hour)),
        ("alice", "2", (429, DenialKind::Penalty, None, None, None, Some(7_200))),
        ("listed", "1", (403, DenialKind::DenyList, None, None, None, None)),
        ("bob", "4", (422, DenialKind::CostExceedsLimit, None, None, None, None)),
        ("bob", "1", (503, DenialKind::KeyCap, None, None, None, hour)),
        ("malformed", "1", (400, DenialKind::KeyMalformed, None, None, None, None)),
        ("not provided", "1", (500, DenialKind::KeyNotProvided, None, None, None, None)),
    ];
    for (key, cost, expected) in expected {
        assert_eq!(ask(key, cost).await, expected.0, "{key}");
        assert_eq!(told.lock().unwrap().pop().unwrap(), expected, "{key}");
    }
    assert_eq!(crate::layer::support::ask(&service, get("/")).await.status, 400);
    assert_eq!(told.lock().unwrap().pop().unwrap().1, DenialKind::KeyNotSent);
}

/// A body that never comes.
struct Never;

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn its_body_has_to_be_there() {
    let stream = || {
        let parts = ["a", "", "bc"].map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part))));
        Response::new(StreamBody::new(tokio_stream::iter(parts)))
    };
    let service = Inner::default().behind(&layer().on_denied(move |_| stream()));
    assert_eq!(&ask(&service, get("/")).await.body[..], b"inner");
    assert_eq!(&ask(&service, get("/")).await.body[..], b"abc");

    let service = Inner::default().behind(&layer().on_denied(|_| Response::new(Full::from("full"))));
    assert_eq!(&ask(&service, get("/")).await.body[..], b"inner");
    assert_eq!(&ask(&service, get("/")).await.body[..], b"full");

    let service = Inner::default().behind(&layer().on_denied(|_| Response::new(Never)));
    assert_eq!(&ask(&service, get("/")).await.body[..], b"inner");
    let standard = ask(&service, get("/")).await;
    assert_eq!((standard.status.as_u16(), standard.one("content-type")), (429, "application/problem+json"));
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn with_axum_it_is_anything_that_becomes_a_response() {
    use axum::Json;
    use axum::response::{Html, IntoResponse};

    let json = layer().on_denied(|denied| {
        (denied.status(), Json(serde_json::json!({"error": "slow down", "wait": denied.retry_after()})))
    });
    let service = Inner::default().behind(&json);
    assert_eq!(ask(&service, get("/")).await.status, 200);
    let answer = ask(&service, get("/")).await;
    assert_eq!((answer.status.as_u16(), answer.one("content-type")), (429, "application/json"));
    assert_eq!((answer.one("retry-after"), answer.one("cache-control")), ("60", "no-store"));
    assert_eq!(&answer.body[..], br#"{"error":"slow down","wait":60}"#);

    let either = layer().on_denied(|denied| {
        if denied.head().uri.path() == "/page" {
            (denied.status(), Html("<h1>later</h1>")).into_response()
        } else {
            denied.answer().into_response()
        }
    });
    let service = Inner::default().behind(&either);
    assert_eq!(ask(&service, get("/")).await.status, 200);
    assert_eq!(ask(&service, get("/page")).await.one("content-type"), "text/html; charset=utf-8");
    assert_eq!(ask(&service, get("/")).await.one("content-type"), "application/problem+json");
}
