//! A layer decides the corpus of policies as the limiter in process does.

use std::sync::Arc;

use tollgate::MockClock;
use tollgate_kit::corpus::{self, Answer, Case, FORWARDED, PLAN, Request, USER};
use tollgate_kit::redis::runtime;
use tollgate_policy::{Policy, RequestLimiter};
use tollgate_tower::{Gate, Peer, PolicyKey, RateLimitLayer, Tower};

use crate::layer::support::{Inner, ask};

fn decide<L>(limiter: &RequestLimiter<L>, clock: &MockClock, requests: &[Request]) -> Vec<Answer>
where
    L: Gate<Tower, PolicyKey, Keys: Send + Sync> + Send + Sync,
{
    let key = PolicyKey::new(limiter).field("user", |head| {
        let user = head.headers.get(USER)?.to_str().ok()?;
        Some(user.to_owned())
    });
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::clone(limiter.limiter())).key(key));
    // The connection to a store is of one runtime.
    let runtime = runtime();
    let answer = |request: &Request| {
        clock.set(request.nanos());
        let mut sent = http::Request::builder().method(request.method).uri(request.target);
        sent = sent.header("host", request.host).header(USER, request.user).extension(Peer::Address(request.peer));
        for (name, value) in [(FORWARDED, request.forwarded), (PLAN, request.plan)] {
            sent = value.into_iter().fold(sent, |sent, value| sent.header(name, value));
        }
        let answer = runtime.block_on(ask(&service, sent.body(Default::default()).expect("a request")));
        request.answered(answer.status.as_u16())
    };
    requests.iter().map(answer).collect()
}

#[test]
fn a_layer_decides_each_policy_of_the_corpus_as_in_process() {
    let decide = |policy: &Policy, requests: &[Request]| {
        let clock = MockClock::new();
        let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).expect("a limiter");
        decide(&limiter, &clock, requests)
    };
    let played = corpus::check(|_| true, decide);
    assert!(played >= 60, "{played}");
}

#[cfg(feature = "redis")]
#[test]
fn a_layer_on_a_store_decides_the_corpus_as_in_process() {
    use std::cell::Cell;

    use tollgate_kit::redis::PolicyStore;
    use tollgate_policy::Key;
    use tollgate_redis::{PolicyLimiter, RedisJointLimiter, Store};

    let Some(server) = PolicyStore::start() else { return };
    let number = Cell::new(0);
    let decide = |policy: &Policy, requests: &[Request]| {
        number.set(number.get() + 1);
        let text = policy.to_string().replace("network_limits = false\n", "");
        let policy: Policy = server.policy(&format!("name = \"{}\"", number.get()), &text).parse().expect("a policy");
        let clock = MockClock::new();
        let store = Store::from_policy(&policy).expect("a store").log_clock(clock.clone()).build().expect("a store");
        let limiter =
            RedisJointLimiter::from_policy_on(&store, &policy).expect("a limiter").build().expect("a limiter");
        let limiter: PolicyLimiter<[Key]> = limiter.into();
        decide(&RequestLimiter::new(&policy, Arc::new(limiter), |_, _| None), &clock, requests)
    };
    let played = corpus::check(Case::is_for_a_store, decide);
    assert!(played >= 60, "{played}");
}
