//! What handlers have of the layer: a charge of their own, the decision, and their part in refunds and costs.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{Response, StatusCode};
use tollgate::{DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_tower::{Admitted, DenialKind, Headers, RateLimitLayer, Rejected, ShadowSwitch, constant};
use tower::Layer;

use crate::layer::support::{Inner, ask, get, with};

type ByName = Limiter<String, MockClock>;

/// A layer for handlers, and its limiter.
fn attempts(limit: u32) -> (RateLimitLayer<ByName>, Arc<ByName>) {
    let limiter = Limiter::builder(Quota::per_minute(limit)).clock(MockClock::new()).build().unwrap();
    let limiter = Arc::new(limiter);
    (RateLimitLayer::new(Arc::clone(&limiter)), limiter)
}

/// Checks a password, which takes until `checked` says so.
async fn log_in(
    attempts: &RateLimitLayer<ByName>,
    name: &str,
    checked: impl Future<Output = bool>,
) -> Result<Response<&'static str>, Rejected> {
    let charge = attempts.charge(name.to_owned())?;
    let (mut response, fields) = if checked.await {
        (Response::new("welcome"), charge.refund())
    } else {
        let mut response = Response::new("wrong");
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        (response, charge.keep())
    };
    fields.write_to(response.headers_mut());
    Ok(response)
}

#[tokio::test]
async fn a_charge_is_refunded_or_kept_and_the_answer_tells() {
    let (attempts, limiter) = attempts(2);
    for _ in 0..5 {
        let welcome = log_in(&attempts, "alice", async { true }).await.unwrap();
        assert_eq!(welcome.headers()["ratelimit"], r#""default";r=2;t=60"#);
        assert_eq!(welcome.headers()["ratelimit-policy"], r#""default";q=2;w=60"#);
    }
    for left in [1, 0] {
        let wrong = log_in(&attempts, "alice", async { false }).await.unwrap();
        assert_eq!((wrong.status().as_u16(), limiter.peek("alice").remaining()), (401, left));
        assert_eq!(wrong.headers()["ratelimit"], *format!("\"default\";r={left};t=60"));
    }
    let denied = log_in(&attempts, "alice", async { unreachable!("no password is checked") }).await.unwrap_err();
    assert_eq!((denied.status().as_u16(), denied.kind(), denied.retry_after()), (429, DenialKind::Quota, Some(60)));
    assert_eq!(denied.to_string(), "the call is denied: try again in 60 s");
    let answer = denied.into_response();
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(
        (&answer.headers()["retry-after"], &answer.headers()["ratelimit"]),
        (&"60".parse().unwrap(), &r#""default";r=0;t=60"#.parse().unwrap())
    );
    let problem: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["default"]));
    assert!(log_in(&attempts, "bob", async { true }).await.is_ok());
}

#[test]
fn hanging_up_while_the_password_is_checked_keeps_the_charge() {
    let (attempts, limiter) = attempts(5);
    let mut context = Context::from_waker(Waker::noop());
    let mut started = 0;
    for _ in 0..30 {
        let mut call = Box::pin(log_in(&attempts, "alice", std::future::pending()));
        // The client closes its connection, and the server drops the handler.
        started += usize::from(matches!(call.as_mut().poll(&mut context), Poll::Pending));
    }
    assert_eq!((started, limiter.peek("alice").remaining()), (5, 0));
}

#[test]
fn a_charge_works_with_each_kind_of_limiter_and_option() {
    let direct = Arc::new(DirectLimiter::with_clock(Quota::per_minute(3), MockClock::new()).unwrap());
    let limit = RateLimitLayer::new(Arc::clone(&direct));
    let mut charge = limit.charge_n((), 2).unwrap();
    charge.more(9);
    assert_eq!(direct.peek().remaining(), 0, "what was left is taken");
    let mut fields = http::HeaderMap::new();
    charge.keep().write_to(&mut fields);
    assert_eq!(fields["ratelimit"], r#""default";r=0;t=60"#);
    assert!(limit.charge(()).is_err());
    assert_eq!(limit.charge_n((), 4).unwrap_err().status(), 422);
    // No cost, no question.
    let mut free = limit.charge_n((), 0).unwrap();
    free.more(1);
    let _ = free.refund();

    let switch = ShadowSwitch::on();
    let shadow = limit.clone().shadow(switch.clone());
    let mut none = http::HeaderMap::new();
    shadow.charge(()).unwrap().keep().write_to(&mut none);
    assert_eq!((none.len(), switch.overruled()), (0, 1));

    let joint = JointLimiter::<(String, u64)>::builder()
        .dimension("name", [Quota::per_minute(1)])
        .dimension("tenant", [Quota::per_minute(9)])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let limit = RateLimitLayer::new(Arc::new(joint)).headers(Headers::XRateLimit);
    let _ = limit.charge((Some("alice".to_owned()), Some(7))).unwrap().keep();
    assert!(limit.charge((Some("alice".to_owned()), Some(7))).is_err());
    let mut fields = http::HeaderMap::new();
    limit.charge((None, Some(7))).unwrap().keep().write_to(&mut fields);
    assert_eq!(fields["x-ratelimit-remaining"], "7");
}

/// As much as is charged in the end is told: less than the estimate, or more than there is.
#[test]
fn a_charge_is_settled_at_the_actual_cost() {
    let limiter = Arc::new(DirectLimiter::with_clock(Quota::per_minute(10), MockClock::new()).unwrap());
    let limit = RateLimitLayer::new(Arc::clone(&limiter));
    for (estimate, actual, left) in [(6, 2, 8), (3, 3, 5), (1, 2, 3), (2, 30, 0)] {
        let mut fields = http::HeaderMap::new();
        limit.charge_n((), estimate).unwrap().settle(actual).write_to(&mut fields);
        assert_eq!(fields["ratelimit"], format!(r#""default";r={left};t=60"#));
        assert_eq!(limiter.peek().remaining(), left);
    }
    assert!(limit.charge(()).is_err());
    let _ = limit.charge_n((), 0).unwrap().settle(5);
}

fn limiter(limit: u32) -> Arc<DirectLimiter<MockClock>> {
    Arc::new(DirectLimiter::with_clock(Quota::per_hour(limit), MockClock::new()).unwrap())
}

/// An extension of the answer.
#[derive(Debug, Clone)]
struct Tokens(u32);

/// Answers with that extension.
fn tokens(
    tokens: u32,
) -> impl tower::Service<
    http::Request<http_body_util::Full<bytes::Bytes>>,
    Response = Response<http_body_util::Full<bytes::Bytes>>,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone {
    tower::service_fn(move |_| {
        let mut response = Response::new(http_body_util::Full::default());
        response.extensions_mut().insert(Tokens(tokens));
        std::future::ready(Ok(response))
    })
}

#[tokio::test]
async fn an_extension_of_the_answer_decides_the_refund() {
    let limiter = limiter(1);
    let layer = RateLimitLayer::new(Arc::clone(&limiter))
        .refund_when(|answer| answer.extensions.get::<Tokens>().is_some_and(|tokens| tokens.0 == 0));
    for _ in 0..3 {
        assert_eq!(ask(&layer.layer(tokens(0)), get("/")).await.one("ratelimit"), r#""default";r=1;t=3600"#);
    }
    assert_eq!(ask(&layer.layer(tokens(1)), get("/")).await.one("ratelimit"), r#""default";r=0;t=3600"#);
    assert_eq!(ask(&layer.layer(tokens(0)), get("/")).await.status, 429);
}

#[tokio::test]
async fn a_cost_that_the_answer_tells_is_charged_then() {
    let limiter = limiter(100);
    let cost = |answer: &http::response::Parts| answer.extensions.get().map_or(0, |&Tokens(tokens)| tokens);
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).cost_after(cost);
    assert_eq!(ask(&layer.layer(tokens(39)), get("/")).await.one("ratelimit"), r#""default";r=60;t=3600"#);
    // One, and what the answer says in its place.
    let exact = layer.clone().refund_when(|_| true);
    assert_eq!(ask(&exact.layer(tokens(40)), get("/")).await.one("ratelimit"), r#""default";r=20;t=3600"#);
    // More than is left.
    assert_eq!(ask(&layer.layer(tokens(1_000)), get("/")).await.one("ratelimit"), r#""default";r=0;t=3600"#);
    assert_eq!(ask(&layer.layer(tokens(0)), get("/")).await.status, 429);
}

#[tokio::test]
async fn the_rest_is_taken_also_of_the_tightest_of_several_dimensions() {
    let joint = JointLimiter::builder()
        .dimension("wide", [Quota::per_hour(100)])
        .dimension("tight", [Quota::per_hour(10)])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Arc::new(joint)).key((constant(1), constant(2))).all_limits(true);
    let answer = ask(&layer.cost_after(|_| 50).layer(tokens(0)), get("/")).await;
    assert_eq!(answer.one("ratelimit"), r#""wide";r=90;t=3600, "tight";r=0;t=3600"#);
}

#[tokio::test]
async fn handlers_are_told_the_decision_if_they_want_it() {
    let echo = tower::service_fn(|request: http::Request<http_body_util::Full<bytes::Bytes>>| {
        let told = request
            .extensions()
            .get::<Admitted>()
            .map(|told| format!("{} of {}, next in {:?}", told.remaining(), told.limit(), told.next_after()));
        std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(
            http_body_util::Full::<bytes::Bytes>::from(told.unwrap_or_default()),
        )))
    });
    for headers in [Headers::Draft11, Headers::Off] {
        let layer = RateLimitLayer::new(limiter(5)).headers(headers).skip(|head| head.uri.path() == "/skipped");
        assert_eq!(&ask(&layer.clone().layer(echo), get("/")).await.body[..], b"");
        let telling = layer.tell_handlers(true).layer(echo);
        let answer = ask(&telling, get("/")).await;
        assert_eq!(answer.body, "3 of 5, next in 3600s");
        assert_eq!(answer.fields.contains_key("ratelimit"), headers == Headers::Draft11);
        assert_eq!(&ask(&telling, get("/skipped")).await.body[..], b"");
    }
}

#[tokio::test]
async fn the_policy_may_be_told_on_denials_only() {
    let service = Inner::default().behind(&RateLimitLayer::new(limiter(1)).policy_on_denial(true));
    let admitted = ask(&service, get("/")).await;
    assert_eq!((admitted.one("ratelimit"), admitted.all("ratelimit-policy").len()), (r#""default";r=0;t=3600"#, 0));
    let denied = ask(&service, with(get("/"), "accept", "*/*")).await;
    assert_eq!(denied.one("ratelimit-policy"), r#""default";q=1;w=3600"#);
}
