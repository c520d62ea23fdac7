//! Errors of middleware inside a limit, which become answers outside of it.

use std::sync::Arc;

use crate::server::{Server, item};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::error::ErrorBadGateway;
use actix_web::http::StatusCode;
use actix_web::{App, Error, web};
use tollgate::{DirectLimiter, MockClock, Quota};
use tollgate_actix::{LimitedError, RateLimit};
use tollgate_http::Headers;

/// Serves middleware that fails, inside two limits.
fn serve(inner: RateLimit<DirectLimiter<MockClock>>, outer: RateLimit<DirectLimiter<MockClock>>) -> Server {
    Server::of(move || {
        let app = App::new().default_service(web::to(|| async { "hello" }));
        let app = app.wrap_fn(|request, service| {
            let fails = request.path() == "/fails";
            let answer = service.call(request);
            async move { if fails { Err(ErrorBadGateway("not there")) } else { answer.await } }
        });
        app.wrap(inner.clone()).wrap_fn(|request, service| service.call(request)).wrap(outer.clone())
    })
}

fn limit(permits: u32) -> RateLimit<DirectLimiter<MockClock>> {
    RateLimit::new(Arc::new(DirectLimiter::with_clock(Quota::per_minute(permits), MockClock::new()).unwrap()))
}

#[test]
fn the_answer_of_an_error_shows_the_limits() {
    let server = serve(limit(5).name("inner").unwrap(), limit(9).name("outer").unwrap());
    for (path, status, body) in [("/", 200, "hello"), ("/fails", 502, "not there"), ("/", 200, "hello")] {
        let answer = server.get(path, &[]);
        assert_eq!((answer.status, &*answer.body), (status, body));
        let policies = answer.all("ratelimit-policy");
        assert_eq!(policies, [item("inner", [("q", 5), ("w", 60)]), item("outer", [("q", 9), ("w", 60)])], "{path}");
        assert_eq!(answer.all("ratelimit").len(), 2, "{path}");
    }
    assert_eq!(server.get("/fails", &[]).all("ratelimit")[0], item("inner", [("r", 1), ("t", 60)]));
}

#[test]
fn a_refund_by_the_status_of_an_error_is_told() {
    let refunds = limit(5).refund_when(|answer| answer.status == StatusCode::BAD_GATEWAY);
    let server = serve(refunds.headers(Headers::XRateLimit), limit(100));
    for (path, remaining) in [("/fails", "5"), ("/", "4"), ("/fails", "4")] {
        assert_eq!(server.get(path, &[]).field("x-ratelimit-remaining"), Some(remaining), "{path}");
    }
}

/// Middleware outside finds the error as it was.
#[actix_web::test]
async fn the_cause_is_there() {
    use actix_web::test::{TestRequest, init_service, try_call_service};

    for (headers, is_wrapped) in [(Headers::Draft11, true), (Headers::Off, false)] {
        let app = App::new()
            .wrap_fn(|_, _| async { Err::<ServiceResponse, _>(ErrorBadGateway("not there")) })
            .wrap(limit(5).headers(headers));
        let service = init_service(app).await;
        let error: Error = try_call_service(&service, TestRequest::get().to_request()).await.unwrap_err();
        let cause = error.as_error::<LimitedError>().map(LimitedError::cause);
        assert_eq!(cause.is_some(), is_wrapped);
        for error in [&error, cause.unwrap_or(&error)] {
            assert_eq!(error.as_response_error().status_code(), StatusCode::BAD_GATEWAY);
            assert_eq!((error.to_string(), format!("{error:?}")), ("not there".into(), "\"not there\"".into()));
        }
    }
}
