//! A layer whose limiter is that of a policy: the same code in process and on a store.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate::MockClock;
use tollgate_policy::Policy;
use tollgate_tower::{
    ClientIp, DenialKind, Headers, KeyError, PolicyLimiter, RateLimit, RateLimitLayer, ShadowSwitch, from_head, header,
};

use crate::layer::support::{Answer, Inner, InnerService, ask, from, get, served, with};
use tollgate_kit::layered;
use tollgate_kit::limited::{self, POLICY, Service, USER};
use tollgate_kit::redis::{PolicyStore, runtime};

type Keys = (IpAddr, String);
type Extractors = (ClientIp, tollgate_tower::Header);
type Layered = RateLimit<InnerService, PolicyLimiter<Keys>, Extractors>;

/// All that a service has to say of it.
fn layer(policy: &str) -> RateLimitLayer<PolicyLimiter<Keys>, Extractors> {
    let limiter = PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap();
    RateLimitLayer::new(Arc::new(limiter)).key(keys())
}

fn keys() -> Extractors {
    (ClientIp::peer(), header(USER))
}

fn service(policy: &str) -> Layered {
    Inner::default().behind(&layer(policy))
}

fn request(peer: &str, key: &str) -> Request<Full<Bytes>> {
    with(from(peer), USER, key)
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.fields.get(name).map(|value| value.to_str().unwrap())
}

/// A service behind a layer, and the limiter if it may be on a store.
struct InFront {
    send: layered::Send,
    limiter: Option<Arc<PolicyLimiter<Keys>>>,
}

impl Service for InFront {
    const BODY: &'static str = "inner";

    fn start(policy: &Policy) -> Self {
        let limiter = Arc::new(PolicyLimiter::new(policy).unwrap());
        Self { send: served(&RateLimitLayer::new(Arc::clone(&limiter)).key(keys())), limiter: Some(limiter) }
    }

    fn by_clock(policy: &Policy, clock: MockClock) -> Self {
        let limiter = policy.builder::<Keys>().unwrap().clock(clock).build().unwrap();
        Self { send: served(&RateLimitLayer::new(Arc::new(limiter)).key(keys())), limiter: None }
    }

    fn send(&self, fields: &[(&str, &str)]) -> limited::Answer {
        (self.send)("GET", "/", fields)
    }

    fn by_store(&self) -> (u64, u64) {
        let counts = self.limiter.as_ref().unwrap().on_store().unwrap().counts();
        (counts.admitted, counts.unavailable)
    }
}

tollgate_kit::limited_by_a_policy!(InFront);

#[test]
fn a_grpc_call_is_answered_with_its_status_while_the_store_is_away() {
    let Some(store) = PolicyStore::start() else { return };
    let service = service(&store.policy("", POLICY));
    runtime().block_on(async {
        let mut request = with(request("192.0.2.1", "alice"), "content-type", "application/grpc");
        *request.method_mut() = http::Method::POST;
        assert_eq!(ask(&service, request.clone()).await.status, 200);
        drop(store);
        let away = ask(&service, request).await;
        assert_eq!((away.status.as_u16(), field(&away, "grpc-status")), (200, Some("14")));
    });
}

#[test]
fn cached_denials_costs_and_the_switch_are_as_in_process() {
    let Some(store) = PolicyStore::start() else { return };
    let switch = ShadowSwitch::off();
    let layer = layer(&store.policy("cache_denials = 100", POLICY)).shadow(switch.clone()).headers(Headers::XRateLimit);
    let layer = layer.cost(|head| if head.headers.contains_key("large") { 4 } else { 1 });
    let service: Layered = Inner::default().behind(&layer);
    runtime().block_on(async {
        let alice = || request("192.0.2.1", "alice");
        assert_eq!(ask(&service, with(alice(), "large", "1")).await.status, 422);
        for left in ["2", "1", "0"] {
            assert_eq!(field(&ask(&service, alice()).await, "x-ratelimit-remaining"), Some(left));
        }
        for _ in 0..3 {
            let denied = ask(&service, alice()).await;
            assert_eq!((denied.status.as_u16(), field(&denied, "x-ratelimit-remaining")), (429, Some("0")));
        }
        let counts = layer.limiter().on_store().unwrap().counts();
        assert_eq!((counts.admitted, counts.denied, counts.denied_by_cache), (3, 1, 2));
        switch.set(true);
        assert_eq!(ask(&service, alice()).await.status, 200);
    });
}

/// Most requests of a busy key take no call, and what is left is told as this node knows it.
#[test]
fn a_layer_spends_leases_and_tells_what_is_left() {
    let Some(store) = PolicyStore::start() else { return };
    // A step of a day: it does not end while this runs.
    let quota = r#"quota = [{ algorithm = "quantised-log", limit = 200, per = "1d", resolution = "1d" }]"#;
    let dimension = format!("[[dimension]]\nname = \"address\"\n{quota}");
    let policy = store.policy("lease = { most = 50, slots = 64 }", &dimension);
    let limiter = PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(&policy).unwrap()).unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key((ClientIp::peer(),));
    let service = Inner::default().behind::<_, RateLimit<InnerService, _, _>>(&layer);
    runtime().block_on(async {
        for spent in 1..=200 {
            let admitted = ask(&service, from("192.0.2.1")).await;
            let told = format!("\"address\";r={};t=", 200 - spent);
            assert!(field(&admitted, "ratelimit").unwrap().starts_with(&told), "{spent}: {admitted:?}");
        }
        let denied = ask(&service, from("192.0.2.1")).await;
        assert!(denied.status == 429 && field(&denied, "ratelimit").unwrap().starts_with("\"address\";r=0;t="));
        let limiter = layer.limiter().on_store().unwrap();
        let counts = limiter.counts();
        assert_eq!((counts.admitted + counts.admitted_by_lease, counts.denied), (200, 1));
        assert!(counts.admitted_by_lease > 120, "{counts:?}");
        assert_eq!(limiter.give_back_leases().await, Ok(0));
    });
}

#[test]
fn another_number_of_keys_and_what_no_store_keeps_are_errors() {
    let policy = Policy::from_toml(POLICY).unwrap();
    assert!(PolicyLimiter::<(IpAddr,)>::new(&policy).is_err());
    let Some(store) = PolicyStore::start() else { return };
    let policy = |text: &str| PolicyLimiter::<Keys>::new(&Policy::from_toml(text).unwrap()).map(drop);
    assert!(policy(&store.policy("", POLICY)).is_ok());
    assert!(PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(&store.policy("", POLICY)).unwrap()).is_err());
    let shadow = format!("shadow = true\n{}", store.policy("", POLICY));
    assert_eq!(policy(&shadow), Err(tollgate_redis::BuildError::NotOnAStore { what: "shadow" }));
    // Nobody waits there, and a queue admits what has to wait.
    let queue = r#"{ algorithm = "leaky-queue", leak = 1, per = "10s", max_delay = "60s" }"#;
    let queued = store.policy("", POLICY).replace("{ limit = 3, per = \"1d\" }", queue);
    let error = policy(&queued).unwrap_err();
    assert_eq!(error, tollgate_redis::BuildError::QueueOnStore { dimension: "user".into() });
    assert!(error.to_string().contains("take a leaky bucket"), "{error}");
    let (_, in_process) = queued.split_once("[[dimension]]").unwrap();
    assert_eq!(policy(&format!("[[dimension]]{in_process}")), Ok(()));
}

type ByUser = RateLimitLayer<PolicyLimiter<(String,)>>;

/// A layer for handlers, as each instance makes one.
fn for_handlers(policy: &str) -> ByUser {
    RateLimitLayer::new(Arc::new(PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap()))
}

const TOKENS: &str = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 1000, per = \"1d\" }]";

fn alice() -> (Option<String>,) {
    (Some("alice".to_owned()),)
}

/// Charges an estimate, which is settled at the actual cost. Gives the field of the answer.
async fn generate(layer: &ByUser, estimate: u32, actual: u32) -> Option<String> {
    let charge = layer.charge_n_async(alice(), estimate).await.unwrap();
    let mut fields = HeaderMap::new();
    charge.settle(actual).write_to(&mut fields);
    fields.get("ratelimit").map(|field| field.to_str().unwrap().split(";t=").next().unwrap().to_owned())
}

/// Waits until the tasks have settled so that so many are left, as an instance sees it.
async fn leaves(layer: &ByUser, expected: u32) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = layer.limiter().on_store().unwrap().peek(&[Some(b"alice")], 0).await.unwrap();
        if status.remaining() == expected {
            return;
        }
        assert!(Instant::now() < until, "{status:?}, and not {expected}");
        tokio::task::yield_now().await;
    }
}

#[test]
fn what_a_handler_settles_is_charged_on_the_store() {
    let Some(store) = PolicyStore::start() else { return };
    let [first, second] = [(); 2].map(|()| for_handlers(&store.policy("", TOKENS)));
    let told = |left: u32| Some(format!("\"user\";r={left}"));
    runtime().block_on(async {
        // What was left before it cost less.
        assert_eq!(generate(&first, 300, 120).await, told(700));
        leaves(&second, 880).await;
        assert_eq!(generate(&second, 100, 0).await, told(780));
        leaves(&first, 880).await;
        assert_eq!(generate(&first, 80, 80).await, told(800));
        // What is left is not known, and the debt is that of all instances.
        assert_eq!(generate(&first, 100, 1900).await, None);
        leaves(&second, 0).await;
        let denied = second.charge_async(alice()).await.unwrap_err();
        assert_eq!((denied.status().as_u16(), denied.kind()), (429, DenialKind::Quota));
        assert_eq!(second.charge_n_async(alice(), 1001).await.unwrap_err().status(), 422);
        // Nobody settles it, so it stays charged.
        let bob = || (Some("bob".to_owned()),);
        drop(first.charge_n_async(bob(), 1000).await.unwrap());
        assert!(second.charge_async(bob()).await.is_err());
        assert_eq!(first.limiter().on_store().unwrap().counts().unsettled, 0);
    });
}

#[test]
fn an_answer_refunds_on_the_store_and_one_that_never_comes_may() {
    let Some(store) = PolicyStore::start() else { return };
    let dimension = TOKENS.replace("user", "key");
    let limiter = || {
        let policy = Policy::from_toml(&store.policy("", &dimension)).unwrap();
        Arc::new(PolicyLimiter::<(String,)>::new(&policy).unwrap())
    };
    let layer = RateLimitLayer::new(limiter()).key((header(USER),)).cost(|_| 10);
    let layer = layer.refund_when(|answer| answer.status != 401).tell_handlers(true);
    let other = RateLimitLayer::new(limiter());
    let request = || with(get("/"), USER, "alice");
    runtime().block_on(async {
        let service = Inner::default().behind::<_, RateLimit<InnerService, _, _>>(&layer);
        let welcome = ask(&service, request()).await;
        // What was left before the refund.
        assert_eq!(field(&welcome, "ratelimit").unwrap().split(";t=").next(), Some("\"key\";r=990"));
        leaves(&other, 1000).await;
        assert_eq!(ask(&service, with(request(), "answer", "401")).await.status, 401);
        leaves(&other, 990).await;

        for (refunds, left) in [(false, 980), (true, 980)] {
            let layer = layer.clone().refund_unanswered(refunds);
            // It is called, and never answers.
            let (called, mut calls) = tokio::sync::mpsc::unbounded_channel();
            let inner = tower::service_fn(move |_: Request<Full<Bytes>>| {
                called.send(()).unwrap();
                std::future::pending::<Result<http::Response<Full<Bytes>>, Infallible>>()
            });
            let call = tokio::spawn(tower::ServiceExt::oneshot(tower::Layer::layer(&layer, inner), request()));
            calls.recv().await.unwrap();
            leaves(&other, left - if refunds { 10 } else { 0 }).await;
            call.abort();
            assert!(call.await.is_err());
            leaves(&other, left).await;
        }
        assert_eq!(layer.limiter().on_store().unwrap().counts().unsettled, 0);
    });
}

#[test]
fn what_a_handler_settles_while_the_store_is_away_is_counted() {
    let ways = ["on_failure = \"closed\"", "on_failure = \"open\"", "on_failure = \"local\"\nnodes = 1"];
    for on_failure in ways {
        let Some(store) = PolicyStore::start() else { return };
        let layer = for_handlers(&store.policy(on_failure, TOKENS));
        let limiter = layer.limiter().on_store().unwrap();
        runtime().block_on(async {
            let charge = layer.charge_n_async(alice(), 300).await.unwrap();
            drop(store);
            let _ = charge.settle(120);
            while limiter.counts().unsettled == 0 {
                tokio::task::yield_now().await;
            }
            let away = layer.charge_async(alice()).await;
            match on_failure {
                way if way == ways[0] => assert_eq!(away.unwrap_err().kind(), DenialKind::Undecided),
                // There is nothing to settle.
                _ => drop(away.unwrap().settle(5)),
            }
            assert_eq!(limiter.counts().unsettled, 1, "{on_failure}");
        });
    }
}

/// The same code, without a store: it settles at once.
#[test]
fn what_a_handler_settles_is_charged_in_process_at_once() {
    let layer = for_handlers(TOKENS);
    runtime().block_on(async {
        assert_eq!(generate(&layer, 300, 120).await, Some("\"user\";r=880".to_owned()));
        assert_eq!(generate(&layer, 100, 1900).await, Some("\"user\";r=0".to_owned()));
        assert!(layer.charge_async(alice()).await.is_err());
        assert_eq!(generate(&layer, 0, 5).await, None);
    });
}

/// A key of the program's own, and a future that threads may share.
#[test]
fn layers_take_keys_of_the_program() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Tenant(u64);

    impl tollgate_tower::StoreKey for Tenant {
        fn put(&self, bytes: &mut Vec<u8>) {
            self.0.put(bytes);
        }
    }

    fn is_shared<T: Send + Sync>(_: &T) {}

    let policy = Policy::from_toml("[[dimension]]\nname = \"tenant\"\nquota = [{ limit = 1, per = \"1d\" }]").unwrap();
    let limiter = Arc::new(PolicyLimiter::new(&policy).unwrap());
    let layer = RateLimitLayer::new(limiter).key((from_head(|_| Ok::<_, KeyError>(Tenant(7))),));
    let service = Inner::default().behind::<_, RateLimit<InnerService, _, _>>(&layer);
    runtime().block_on(async {
        let answer = ask(&service, get("/"));
        is_shared(&tower::Service::call(&mut service.clone(), get("/")));
        assert_eq!(answer.await.status, 429);
    });
}
