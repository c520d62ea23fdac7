//! A layer decides the corpus of policies as the limiter in process does.

use std::sync::Arc;

use tollgate::MockClock;
use tollgate_kit::corpus::{self, Answer, FORWARDED, PLAN, Request, USER};
use tollgate_kit::redis::runtime;
use tollgate_policy::Policy;
use tollgate_tower::{Peer, PolicyKey, RateLimitLayer};

use crate::layer::support::{Inner, ask};

fn decide(policy: &Policy, requests: &[Request]) -> Vec<Answer> {
    let clock = MockClock::new();
    let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).expect("a limiter");
    let key = PolicyKey::new(&limiter).field("user", |head| {
        let user = head.headers.get(USER)?.to_str().ok()?;
        Some(user.to_owned())
    });
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::clone(limiter.limiter())).key(key));
    let answer = |request: &Request| {
        clock.set(u64::try_from(request.at.as_nanos()).expect("some years"));
        let mut sent = http::Request::builder().method(request.method).uri(request.target);
        sent = sent.header("host", request.host).header(USER, request.user).extension(Peer::Address(request.peer));
        for (name, value) in [(FORWARDED, request.forwarded), (PLAN, request.plan)] {
            sent = value.into_iter().fold(sent, |sent, value| sent.header(name, value));
        }
        match runtime().block_on(ask(&service, sent.body(Default::default()).expect("a request"))).status.as_u16() {
            200 => Answer::Admitted,
            429 => Answer::Denied,
            403 => Answer::ByRule,
            status => panic!("{status}: {request:?}"),
        }
    };
    requests.iter().map(answer).collect()
}

#[test]
fn a_layer_decides_each_policy_of_the_corpus_as_in_process() {
    let played = corpus::check(|_| true, decide);
    assert!(played >= 60, "{played}");
}
