//! A layer whose limiter is that of a policy: the same code in process and on a store.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tollgate_policy::Policy;
use tollgate_tower::{
    ClientIp, Headers, KeyError, PolicyLimiter, RateLimit, RateLimitLayer, ShadowSwitch, from_head, header,
};

use crate::layer::support::{Answer, Inner, InnerService, ask, from, get, with};
use tollgate_kit::redis::{Server, runtime};

const POLICY: &str = r#"
    [[dimension]]
    name = "address"
    quota = [{ limit = 5, per = "1d" }]

    [[dimension]]
    name = "key"
    quota = [{ limit = 3, per = "1d" }]
"#;

type Keys = (IpAddr, String);
type Extractors = (ClientIp, tollgate_tower::Header);
type Layered = RateLimit<InnerService, PolicyLimiter<Keys>, Extractors>;

/// A server of Redis, and the secret of those who ask it.
struct Store {
    redis: Server,
    folder: tempfile::TempDir,
}

impl Store {
    fn start() -> Option<Self> {
        let store = Self { redis: Server::start(&[])?, folder: tempfile::tempdir().unwrap() };
        std::fs::write(store.folder.path().join("secret"), "the secret of all nodes\n").unwrap();
        Some(store)
    }

    /// The policy there, with these lines in its `[store]`.
    fn policy(&self, more: &str) -> String {
        let secret = self.folder.path().join("secret");
        let (url, secret) = (self.redis.address(), secret.display());
        let breaker = "breaker = { failures = 3, pause = \"1h\" }\ntimeout = \"20s\"";
        format!("[store]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{breaker}\n{more}\n{POLICY}")
    }
}

/// All that a service has to say of it.
fn layer(policy: &str) -> RateLimitLayer<PolicyLimiter<Keys>, Extractors> {
    let limiter = PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap();
    RateLimitLayer::new(Arc::new(limiter)).key((ClientIp::peer(), header("x-api-key")))
}

fn service(policy: &str) -> Layered {
    Inner::default().behind(&layer(policy))
}

fn request(peer: &str, key: &str) -> Request<Full<Bytes>> {
    with(from(peer), "x-api-key", key)
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.fields.get(name).map(|value| value.to_str().unwrap())
}

/// The table of a policy, by a service in process or on a store.
async fn is_limited(service: &Layered) {
    for left in ["2", "1", "0"] {
        let admitted = ask(service, request("192.0.2.1", "alice")).await;
        assert_eq!((admitted.status.as_u16(), &admitted.body[..]), (200, &b"inner"[..]));
        assert_eq!(field(&admitted, "ratelimit-policy"), Some(r#""address";q=5;w=86400, "key";q=3;w=86400"#));
        assert!(field(&admitted, "ratelimit").unwrap().starts_with(&format!("\"key\";r={left};t=")), "{admitted:?}");
    }
    let denied = ask(service, request("192.0.2.1", "alice")).await;
    assert_eq!(denied.status, 429);
    assert!(field(&denied, "ratelimit").unwrap().starts_with("\"key\";r=0;t="), "{denied:?}");
    let wait: u64 = field(&denied, "retry-after").unwrap().parse().unwrap();
    assert!((80_000..=86_400).contains(&wait), "{wait}");
    let problem: serde_json::Value = serde_json::from_slice(&denied.body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["key"]));
    // The denial has charged neither: of the address 2 are left.
    for (key, status) in [("bob", 200), ("bob", 200), ("carol", 429)] {
        assert_eq!(ask(service, request("192.0.2.1", key)).await.status, status, "{key}");
    }
    assert_eq!(ask(service, request("192.0.2.2", "carol")).await.status, 200);
    assert_eq!(ask(service, from("192.0.2.2")).await.status, 400);
}

#[test]
fn the_same_table_holds_in_process_and_on_a_store() {
    runtime().block_on(is_limited(&service(POLICY)));
    let Some(store) = Store::start() else { return };
    runtime().block_on(is_limited(&service(&store.policy(""))));
}

#[test]
fn services_on_one_store_share_one_limit_exactly() {
    let Some(store) = Store::start() else { return };
    let policy = store.policy("").replace("limit = 3", "limit = 100").replace("limit = 5", "limit = 1000");
    let services = [service(&policy), service(&policy)];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let admitted: usize = runtime.block_on(async {
        let tasks: Vec<_> = (0..200)
            .map(|at| {
                let service = services[at % 2].clone();
                tokio::spawn(async move { ask(&service, request("192.0.2.1", "alice")).await.status == 200 })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += usize::from(task.await.unwrap());
        }
        admitted
    });
    assert_eq!(admitted, 100);
}

/// What becomes of a request once the store is away.
fn left_alone(more: &str, change: impl Fn(Request<Full<Bytes>>) -> Request<Full<Bytes>>) -> Option<Answer> {
    let store = Store::start()?;
    let (layer, inner) = (layer(&store.policy(more)), Inner::default());
    let service: Layered = inner.behind(&layer);
    runtime().block_on(async {
        assert_eq!(ask(&service, request("192.0.2.1", "alice")).await.status, 200);
        drop(store);
        let answer = ask(&service, change(request("192.0.2.1", "alice"))).await;
        assert_eq!(inner.calls() == 2, &answer.body[..] == b"inner");
        let counts = layer.limiter().on_store().unwrap().counts();
        assert_eq!((counts.admitted, counts.unavailable), (1, 1));
        Some(answer)
    })
}

#[test]
fn a_store_that_is_away_is_answered_with_503_and_the_service_is_not_called() {
    let Some(away) = left_alone("", |request| request) else { return };
    assert_eq!((away.status.as_u16(), field(&away, "retry-after"), field(&away, "ratelimit")), (503, None, None));
    assert_eq!(&away.body[..], br#"{"title":"Service Unavailable","status":503}"#);
    let grpc = |mut request: Request<Full<Bytes>>| {
        *request.method_mut() = http::Method::POST;
        with(request, "content-type", "application/grpc")
    };
    let away = left_alone("", grpc).unwrap();
    assert_eq!((away.status.as_u16(), field(&away, "grpc-status")), (200, Some("14")));
}

#[test]
fn a_store_that_is_away_admits_or_leaves_a_share_as_the_policy_says() {
    let Some(open) = left_alone("on_failure = \"open\"", |request| request) else { return };
    assert_eq!((open.status.as_u16(), field(&open, "ratelimit")), (200, None));
    let local = left_alone("on_failure = \"local\"\nnodes = 3", |request| request).unwrap();
    assert_eq!((local.status.as_u16(), field(&local, "ratelimit")), (200, Some("\"address\";r=0;t=86400")));
}

#[test]
fn cached_denials_costs_and_the_switch_are_as_in_process() {
    let Some(store) = Store::start() else { return };
    let switch = ShadowSwitch::off();
    let layer = layer(&store.policy("cache_denials = 100")).shadow(switch.clone()).headers(Headers::XRateLimit);
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
    let Some(store) = Store::start() else { return };
    // A step of a day: it does not end while this runs.
    let quota = r#"quota = [{ algorithm = "quantised-log", limit = 200, per = "1d", resolution = "1d" }]"#;
    let dimension = format!("[[dimension]]\nname = \"address\"\n{quota}");
    let policy = store.policy("lease = { most = 50, slots = 64 }").replace(POLICY, &dimension);
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
    let Some(store) = Store::start() else { return };
    let policy = |text: &str| PolicyLimiter::<Keys>::new(&Policy::from_toml(text).unwrap()).map(drop);
    assert!(policy(&store.policy("")).is_ok());
    assert!(PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(&store.policy("")).unwrap()).is_err());
    let shadow = format!("shadow = true\n{}", store.policy(""));
    assert_eq!(policy(&shadow), Err(tollgate_redis::BuildError::NotOnAStore { what: "shadow" }));
    // Nobody waits there, and a queue admits what has to wait.
    let queue = r#"{ algorithm = "leaky-queue", leak = 1, per = "10s", max_delay = "60s" }"#;
    let queued = store.policy("").replace("{ limit = 3, per = \"1d\" }", queue);
    let error = policy(&queued).unwrap_err();
    assert_eq!(error, tollgate_redis::BuildError::QueueOnStore { dimension: "key".into() });
    assert!(error.to_string().contains("take a leaky bucket"), "{error}");
    let (_, in_process) = queued.split_once("[[dimension]]").unwrap();
    assert_eq!(policy(&format!("[[dimension]]{in_process}")), Ok(()));
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
