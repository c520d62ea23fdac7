//! The middleware decides the corpus of policies as the limiter in process does.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, HttpResponse, web};
use tollgate::MockClock;
use tollgate_actix::{PolicyKey, RateLimit};
use tollgate_kit::corpus::{self, Answer, FORWARDED, PLAN, Request, USER};
use tollgate_policy::Policy;

async fn answers(policy: &Policy, requests: &[Request]) -> Vec<Answer> {
    let clock = MockClock::new();
    let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).expect("a limiter");
    let key = PolicyKey::new(&limiter).field("user", |head| {
        let user = head.headers.get(USER)?.to_str().ok()?;
        Some(user.to_owned())
    });
    let limit = RateLimit::new(Arc::clone(limiter.limiter())).key(key);
    let app = App::new().wrap(limit).default_service(web::to(async || HttpResponse::Ok()));
    let service = init_service(app).await;
    let mut answers = Vec::new();
    for request in requests {
        clock.set(request.nanos());
        let method = Method::from_bytes(request.method.as_bytes()).expect("a method");
        let mut sent =
            TestRequest::with_uri(request.target).method(method).peer_addr(SocketAddr::new(request.peer, 5353));
        for (name, value) in [
            ("host", Some(request.host)),
            (USER, Some(request.user)),
            (FORWARDED, request.forwarded),
            (PLAN, request.plan),
        ] {
            sent = value.into_iter().fold(sent, |sent, value| sent.insert_header((name, value)));
        }
        answers.push(request.answered(call_service(&service, sent.to_request()).await.status().as_u16()));
    }
    answers
}

#[test]
fn the_middleware_decides_each_policy_of_the_corpus_as_in_process() {
    let decide =
        |policy: &Policy, requests: &[Request]| actix_web::rt::System::new().block_on(answers(policy, requests));
    let played = corpus::check(|_| true, decide);
    assert!(played >= 60, "{played}");
}
