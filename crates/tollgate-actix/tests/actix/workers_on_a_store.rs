//! Limits of a policy around services of a real server: the same code in process and on a store.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use crate::server::{Answer, Server};
use actix_web::{App, HttpResponse, web};
use tollgate::rate_limit;
use tollgate_actix::{
    ClientIp, Denied, Headers, KeyError, PathKey, PolicyLimiter, RateLimit, Route, ShadowSwitch, StoreKey, from_head,
    header, matched_path, path,
};
use tollgate_policy::Policy;

const POLICY: &str = r#"
    [[dimension]]
    name = "address"
    quota = [{ limit = 5, per = "1d" }]

    [[dimension]]
    name = "key"
    quota = [{ limit = 3, per = "1d" }]
"#;

type Keys = (IpAddr, String);
type Limit = RateLimit<PolicyLimiter<Keys>, (ClientIp, tollgate_actix::Header)>;

/// A server of Redis, and the secret of those who ask it.
struct Store {
    redis: tollgate_kit::redis::Server,
    folder: tempfile::TempDir,
}

impl Store {
    fn start() -> Option<Self> {
        let store = Self { redis: tollgate_kit::redis::Server::start(&[])?, folder: tempfile::tempdir().unwrap() };
        std::fs::write(store.folder.path().join("secret"), "the secret of all nodes\n").unwrap();
        Some(store)
    }

    /// The dimensions there, with these lines in the `[store]`.
    fn policy(&self, more: &str, dimensions: &str) -> String {
        let secret = self.folder.path().join("secret");
        let (url, secret) = (self.redis.address(), secret.display());
        let breaker = "breaker = { failures = 3, pause = \"1h\" }\ntimeout = \"20s\"";
        format!("[store]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{breaker}\n{more}\n{dimensions}")
    }
}

/// All that a service has to say of it.
fn limit(policy: &str) -> Limit {
    let limiter = PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap();
    RateLimit::new(Arc::new(limiter)).key((ClientIp::peer(), header("x-api-key")))
}

fn served(limit: &Limit) -> Server {
    let limit = limit.clone();
    Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(async || "hello")))
}

fn ask(server: &Server, key: &str) -> Answer {
    server.get("/", &[("x-api-key", key)])
}

/// The table of a policy, by a service in process or on a store.
fn is_limited(policy: &str) {
    let server = served(&limit(policy));
    for left in ["2", "1", "0"] {
        let admitted = ask(&server, "alice");
        assert_eq!((admitted.status, &*admitted.body), (200, "hello"));
        assert_eq!(admitted.field("ratelimit-policy"), Some(r#""address";q=5;w=86400, "key";q=3;w=86400"#));
        assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"key\";r={left};t=")));
    }
    let denied = ask(&server, "alice");
    assert_eq!((denied.status, denied.field("content-type")), (429, Some("application/problem+json")));
    assert!(denied.field("ratelimit").unwrap().starts_with("\"key\";r=0;t="));
    let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    assert!((80_000..=86_400).contains(&wait), "{wait}");
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["key"]));
    // The denial has charged neither: of the address 2 are left.
    for (key, status) in [("bob", 200), ("bob", 200), ("carol", 429)] {
        assert_eq!(ask(&server, key).status, status, "{key}");
    }
    assert_eq!(ask(&server, "carol").json()["violated-policies"], serde_json::json!(["address"]));
    assert_eq!(server.status("/"), 400, "without a key");
}

#[test]
fn the_same_table_holds_in_process_and_on_a_store() {
    is_limited(POLICY);
    let Some(store) = Store::start() else { return };
    is_limited(&store.policy("", POLICY));
}

/// Four workers each: every one has a runtime of its own, and they share a connection.
#[test]
fn services_and_their_workers_share_one_limit_exactly() {
    let Some(store) = Store::start() else { return };
    let policy = store.policy("", "[[dimension]]\nname = \"address\"\nquota = [{ limit = 100, per = \"1d\" }]");
    let service = || {
        let limiter = PolicyLimiter::<(IpAddr,)>::new(&Policy::from_toml(&policy).unwrap()).unwrap();
        let limit = RateLimit::new(Arc::new(limiter)).key((ClientIp::peer(),));
        Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(async || "hello")))
    };
    let services = [service(), service()];
    let admitted: usize = std::thread::scope(|scope| {
        let tasks = services.each_ref().map(|service| scope.spawn(|| service.admitted_of(200, 8, "/")));
        tasks.into_iter().map(|task| task.join().unwrap()).sum()
    });
    assert_eq!(admitted, 100);
}

/// What becomes of a request once the store is away.
fn left_alone(more: &str) -> Option<Answer> {
    let store = Store::start()?;
    let limit = limit(&store.policy(more, POLICY));
    let server = served(&limit);
    assert_eq!(ask(&server, "alice").status, 200);
    drop(store);
    let answer = ask(&server, "alice");
    let counts = limit.limiter().on_store().unwrap().counts();
    assert_eq!((counts.admitted, counts.unavailable), (1, 1));
    Some(answer)
}

#[test]
fn a_store_that_is_away_is_answered_with_503_and_the_service_is_not_called() {
    let Some(away) = left_alone("") else { return };
    assert_eq!((away.status, away.field("retry-after"), away.field("ratelimit")), (503, None, None));
    assert_eq!(away.body, r#"{"title":"Service Unavailable","status":503}"#);
}

#[test]
fn a_store_that_is_away_admits_or_leaves_a_share_as_the_policy_says() {
    let Some(open) = left_alone("on_failure = \"open\"") else { return };
    assert_eq!((open.status, &*open.body, open.field("ratelimit")), (200, "hello", None));
    let local = left_alone("on_failure = \"local\"\nnodes = 3").unwrap();
    assert_eq!((local.status, &*local.body), (200, "hello"));
}

#[test]
fn cached_denials_costs_answers_and_the_switch_are_as_in_process() {
    let Some(store) = Store::start() else { return };
    let switch = ShadowSwitch::off();
    let limit = limit(&store.policy("cache_denials = 100", POLICY)).shadow(switch.clone());
    let limit = limit.headers(Headers::XRateLimit).skip(|head| head.uri.path() == "/health");
    let limit = limit.cost(|head| if head.headers.contains_key("large") { 4 } else { 1 });
    let limit = limit.on_denied(|denied| HttpResponse::build(denied.status()).body("no"));
    let server = served(&limit);
    assert_eq!(server.get("/", &[("x-api-key", "alice"), ("large", "1")]).status, 422);
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

    let Some(store) = Store::start() else { return };
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

static HANDLED: OnceLock<PolicyLimiter<(String,)>> = OnceLock::new();

#[rate_limit(store = HANDLED.get().unwrap(), keys = (user,), cost = cost)]
async fn handled(user: &str, cost: u32) -> Result<&'static str, Denied> {
    Ok("handled")
}

#[test]
fn a_handler_with_the_attribute_answers_what_the_middleware_answers() {
    let Some(store) = Store::start() else { return };
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
