//! Limits of a policy around services of a real server: the same code in process and on a store.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::server::{Answer, Server};
use actix_web::{App, HttpResponse, Responder, web};
use tollgate::{MockClock, rate_limit};
use tollgate_actix::{
    Actix, ClientIp, Denied, Gate, Headers, KeyError, PathKey, PolicyLimiter, RateLimit, Rejected, Route, ShadowSwitch,
    StoreKey, from_head, header, matched_path, path,
};
use tollgate_kit::limited::{self, POLICY, Service, USER};
use tollgate_kit::redis::{PolicyStore, runtime};
use tollgate_policy::Policy;

type Keys = (IpAddr, String);
type Limit = RateLimit<PolicyLimiter<Keys>, (ClientIp, tollgate_actix::Header)>;

/// All that a service has to say of it.
fn limit(policy: &str) -> Limit {
    let limiter = PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap();
    RateLimit::new(Arc::new(limiter)).key(keys())
}

fn keys() -> (ClientIp, tollgate_actix::Header) {
    (ClientIp::peer(), header(USER))
}

fn served<L>(limit: &RateLimit<L, (ClientIp, tollgate_actix::Header)>) -> Server
where
    L: Gate<Actix, (ClientIp, tollgate_actix::Header)> + Send + Sync,
{
    let limit = limit.clone();
    Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(async || "hello")))
}

fn ask(server: &Server, key: &str) -> Answer {
    server.get("/", &[(USER, key)])
}

/// A server with four workers: every one has a runtime of its own, and they share a connection.
struct Workers {
    server: Server,
    limiter: Option<Arc<PolicyLimiter<Keys>>>,
}

impl Service for Workers {
    const BODY: &'static str = "hello";

    fn start(policy: &Policy) -> Self {
        let limiter = Arc::new(PolicyLimiter::new(policy).unwrap());
        Self { server: served(&RateLimit::new(Arc::clone(&limiter)).key(keys())), limiter: Some(limiter) }
    }

    fn by_clock(policy: &Policy, clock: MockClock) -> Self {
        let limiter = policy.builder::<Keys>().unwrap().clock(clock).build().unwrap();
        Self { server: served(&RateLimit::new(Arc::new(limiter)).key(keys())), limiter: None }
    }

    fn send(&self, fields: &[(&str, &str)]) -> limited::Answer {
        self.server.get("/", fields).into()
    }

    fn by_store(&self) -> (u64, u64) {
        let counts = self.limiter.as_ref().unwrap().on_store().unwrap().counts();
        (counts.admitted, counts.unavailable)
    }
}

tollgate_kit::limited_by_a_policy!(Workers);

#[test]
fn cached_denials_costs_answers_and_the_switch_are_as_in_process() {
    let Some(store) = PolicyStore::start() else { return };
    let switch = ShadowSwitch::off();
    let limit = limit(&store.policy("cache_denials = 100", POLICY)).shadow(switch.clone());
    let limit = limit.headers(Headers::XRateLimit).skip(|head| head.uri.path() == "/health");
    let limit = limit.cost(|head| if head.headers.contains_key("large") { 4 } else { 1 });
    let limit = limit.on_denied(|denied| HttpResponse::build(denied.status()).body("no"));
    let server = served(&limit);
    assert_eq!(server.get("/", &[(USER, "alice"), ("large", "1")]).status, 422);
    for left in ["2", "1", "0"] {
        assert_eq!(ask(&server, "alice").field("x-ratelimit-remaining"), Some(left));
    }
    for _ in 0..3 {
        let denied = ask(&server, "alice");
        assert_eq!((denied.status, &*denied.body, denied.field("x-ratelimit-remaining")), (429, "no", Some("0")));
    }
    let counts = limit.limiter().on_store().unwrap().counts();
    assert_eq!((counts.admitted, counts.denied, counts.denied_by_cache), (3, 1, 2));
    switch.set(true);
    assert_eq!(ask(&server, "alice").status, 200);
    assert_eq!(server.status("/health"), 200);
}

/// Paths, routes and keys of the program are the same keys on each node.
#[test]
fn paths_routes_and_keys_of_the_program_are_keys_of_a_store() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Tenant(u64);

    impl StoreKey for Tenant {
        fn put(&self, bytes: &mut Vec<u8>) {
            self.0.put(bytes);
        }
    }

    let Some(store) = PolicyStore::start() else { return };
    let dimensions = "
        dimension = [
            { name = \"path\", quota = [{ limit = 2, per = \"1d\" }] },
            { name = \"route\", quota = [{ limit = 3, per = \"1d\" }] },
            { name = \"tenant\", quota = [{ limit = 100, per = \"1d\" }] },
        ]";
    // An array of tables stands in front of other tables.
    let policy = format!("{dimensions}\n{}", store.policy("", ""));
    let server = || {
        let limiter = PolicyLimiter::<(PathKey, Route, Tenant)>::new(&Policy::from_toml(&policy).unwrap()).unwrap();
        let tenant = from_head(|_| Ok::<_, KeyError>(Tenant(7)));
        let limit = RateLimit::new(Arc::new(limiter)).key((path(), matched_path(), tenant));
        let hello = async || "hello";
        Server::of(move || App::new().wrap(limit.clone()).route("/users/{id}", web::get().to(hello)))
    };
    let [first, second] = [server(), server()];
    let status = |path: &str| [first.status(path), second.status(path)];
    assert_eq!(status("/users/1"), [200, 200]);
    assert_eq!(status("/users/x/../%31"), [429, 429], "the same path in another form");
    assert_eq!(status("/users/2"), [200, 429], "the route has 3");
    assert_eq!(status("/nowhere"), [404, 404]);
    assert_eq!(status("/nowhere"), [429, 429]);
    assert_eq!(status("/elsewhere"), [404, 429], "requests that match no route share one key");
}

type ByUser = RateLimit<PolicyLimiter<(String,)>>;

/// Charges an estimate, and settles it at the actual cost: `/estimate/actual`.
async fn generate(tokens: web::Data<ByUser>, costs: web::Path<(u32, u32)>) -> Result<impl Responder, Rejected> {
    let (estimate, actual) = *costs;
    let charge = tokens.charge_n_async((Some("alice".to_owned()),), estimate).await?;
    Ok(charge.settle(actual).on("generated"))
}

/// A task of the worker settles, and the other instances see it.
#[test]
fn what_a_handler_settles_is_charged_on_the_store() {
    let Some(store) = PolicyStore::start() else { return };
    let dimension = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 1000, per = \"1d\" }]";
    let policy = Policy::from_toml(&store.policy("", dimension)).unwrap();
    let limiter = || Arc::new(PolicyLimiter::<(String,)>::new(&policy).unwrap());
    let instance = |limiter: Arc<PolicyLimiter<(String,)>>| {
        let tokens = web::Data::new(RateLimit::new(limiter));
        Server::of(move || App::new().app_data(tokens.clone()).route("/{estimate}/{actual}", web::get().to(generate)))
    };
    let asked = limiter();
    let [first, second] = [instance(Arc::clone(&asked)), instance(limiter())];
    let (runtime, looks) = (runtime(), limiter());
    let leaves = |expected: u32| {
        let until = Instant::now() + Duration::from_secs(60);
        let remaining = async || looks.on_store().unwrap().peek(&[Some(b"alice")], 0).await.unwrap().remaining();
        while runtime.block_on(remaining()) != expected {
            assert!(Instant::now() < until, "not {expected}");
        }
    };
    assert_eq!(first.status("/300/120"), 200);
    leaves(880);
    assert_eq!(second.status("/100/0"), 200);
    leaves(880);
    let debt = first.get("/100/1900", &[]);
    // What is left is not known.
    assert_eq!((debt.status, debt.field("ratelimit")), (200, None));
    leaves(0);
    assert_eq!(second.status("/1/1"), 429);
    assert_eq!(second.status("/1001/1"), 422);
    drop(store);
    assert_eq!(first.status("/1/1"), 503);
    assert_eq!(asked.on_store().unwrap().counts().unsettled, 0);
}

#[test]
fn an_answer_refunds_on_the_store() {
    let Some(store) = PolicyStore::start() else { return };
    let limit = limit(&store.policy("", POLICY)).refund_when(|answer| answer.status.as_u16() != 401);
    let server = {
        let limit = limit.clone();
        let wrong = async || HttpResponse::Unauthorized().finish();
        Server::of(move || App::new().wrap(limit.clone()).route("/wrong", web::get().to(wrong)))
    };
    let asked = limit.limiter().on_store().unwrap();
    for refunded in 1..=10 {
        assert_eq!(server.get("/", &[(USER, "alice")]).status, 404);
        let until = Instant::now() + Duration::from_secs(60);
        while asked.counts().settled < refunded {
            assert!(Instant::now() < until, "{:?}", asked.counts());
            std::thread::yield_now();
        }
    }
    for status in [401, 401, 401, 429] {
        assert_eq!(server.get("/wrong", &[(USER, "alice")]).status, status);
    }
}

static HANDLED: OnceLock<PolicyLimiter<(String,)>> = OnceLock::new();

#[rate_limit(store = HANDLED.get().unwrap(), keys = (user,), cost = cost)]
async fn handled(user: &str, cost: u32) -> Result<&'static str, Denied> {
    Ok("handled")
}

#[test]
fn a_handler_with_the_attribute_answers_what_the_middleware_answers() {
    let Some(store) = PolicyStore::start() else { return };
    let dimension = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 3, per = \"1d\" }]";
    let policy = Policy::from_toml(&store.policy("", dimension)).unwrap();
    HANDLED.set(PolicyLimiter::new(&policy).unwrap()).unwrap();
    let server = Server::of(|| {
        let handler = async |path: web::Path<(String, u32)>| handled(&path.0, path.1).await;
        App::new().route("/{user}/{cost}", web::get().to(handler))
    });
    let told = |path: &str| {
        let answer = server.get(path, &[]);
        let wait = answer.field("retry-after").map(|wait| (80_000..=86_400).contains(&wait.parse().unwrap()));
        (answer.status, wait)
    };
    assert_eq!(told("/alice/2"), (200, None));
    assert_eq!(told("/alice/2"), (429, Some(true)));
    assert_eq!(told("/alice/1"), (200, None));
    assert_eq!(told("/alice/4"), (422, None));
    assert_eq!(told("/bob/3"), (200, None));
    drop(store);
    assert_eq!(told("/carol/1"), (503, None));
}
