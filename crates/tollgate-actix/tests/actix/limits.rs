//! The middleware around services of a real server with several workers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::server::{Server, item};
use actix_web::dev::Service;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::Html;
use actix_web::{App, Either, HttpMessage, web};
use tollgate::{DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_actix::{
    Actix, ClientIp, DenialKind, Gate, Head, Headers, KeyError, KeyExtractor, Missing, RateLimit, TrustedProxies,
    constant, extension, from_head, header, matched_path,
};
use tollgate_kit::{clients, layered};
use tollgate_policy::Policy;

async fn hello() -> &'static str {
    "hello"
}

fn direct(limit: u32) -> (Arc<DirectLimiter<MockClock>>, MockClock) {
    let clock = MockClock::new();
    let quota = Quota::new(limit, Duration::from_secs(60));
    (Arc::new(DirectLimiter::with_clock(quota, clock.clone()).unwrap()), clock)
}

/// The key of a host behind a tunnel is the IPv4 address that its own embeds.
#[test]
fn an_address_is_that_of_the_client_and_a_key_may_be_another() {
    let clients = ClientIp::peer();
    for (peer, key) in [
        ("10.1.2.3", "10.1.2.3"),
        ("64:ff9b::a01:203", "10.1.2.3"),
        ("2002:a01:203::1", "10.1.2.3"),
        ("2001:db8::7", "2001:db8::"),
    ] {
        let peer: IpAddr = peer.parse().unwrap();
        let request = TestRequest::get().peer_addr((peer, 4711).into()).to_http_request();
        assert_eq!(clients.address(&Head::of(&request)), Ok(peer));
        assert_eq!(clients.extract(&Head::of(&request)), Ok(key.parse::<IpAddr>().unwrap()));
    }
}

fn keyed(limit: u32) -> Arc<Limiter<IpAddr>> {
    Arc::new(Limiter::new(Quota::per_hour(limit)).unwrap())
}

/// A server behind this limit.
fn served<L, X>(limit: &RateLimit<L, X>) -> layered::Send
where
    L: Gate<Actix, X> + Send + Sync,
    X: KeyExtractor<Key: Send + Sync> + Send + Sync + 'static,
{
    let limit = limit.clone();
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    Box::new(move |method, path, fields| server.ask(method, path, fields).into())
}

tollgate_kit::limited_alike!(tollgate_actix::RateLimit, served);

#[test]
fn all_workers_and_connections_share_one_limiter() {
    let (limiter, clock) = direct(50);
    let limit = RateLimit::new(limiter);
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    assert_eq!(server.admitted_of(400, 16, "/"), 50);
    clock.advance(Duration::from_secs(60));
    assert_eq!(server.admitted_of(400, 16, "/"), 50);
}

#[test]
fn other_header_fields_or_none_can_be_chosen() {
    let (limiter, _) = direct(3);
    let (old, off) = (RateLimit::new(limiter.clone()), RateLimit::new(limiter));
    let (old, off) = (old.headers(Headers::XRateLimit), off.headers(Headers::Off));
    let server = Server::of(move || {
        App::new()
            .service(web::resource("/old").wrap(old.clone()).to(hello))
            .service(web::resource("/off").wrap(off.clone()).to(hello))
    });
    let answer = server.get("/old", &[]);
    assert_eq!((answer.field("x-ratelimit-limit"), answer.field("x-ratelimit-remaining")), (Some("3"), Some("2")));
    assert_eq!((answer.field("x-ratelimit-reset"), answer.field("ratelimit")), (Some("60"), None));
    let answer = server.get("/off", &[]);
    assert_eq!((answer.status, answer.field("ratelimit"), answer.field("x-ratelimit-limit")), (200, None, None));
    assert_eq!([server.status("/off"), server.status("/off")], [200, 429], "both limits share a limiter");
    let denied = server.get("/off", &[]);
    assert_eq!((denied.field("retry-after"), denied.field("ratelimit-policy")), (Some("60"), None));
}

#[test]
fn several_limits_are_told_by_their_names() {
    let burst = Quota::per_second(4).named("burst");
    let limiter = Limiter::<&str>::builder(burst).and(Quota::per_minute(5)).clock(MockClock::new()).build().unwrap();
    let tightest = RateLimit::new(Arc::new(limiter)).key(constant("alice")).cost(|_| 2).name("api").unwrap();
    let all = tightest.clone().all_limits(true);
    let server = Server::of(move || {
        App::new()
            .service(web::resource("/tightest").wrap(tightest.clone()).to(hello))
            .service(web::resource("/all").wrap(all.clone()).to(hello))
    });
    let told = |name, r, t| item(name, [("r", r), ("t", t)]);
    assert_eq!(server.get("/tightest", &[]).list("ratelimit"), [told("burst", 2, 1)]);
    let answer = server.get("/all", &[]);
    assert_eq!(answer.list("ratelimit"), [told("burst", 0, 1), told("api-1m", 1, 60)]);
    let policies = [item("burst", [("q", 4), ("w", 1)]), item("api-1m", [("q", 5), ("w", 60)])];
    assert_eq!(answer.list("ratelimit-policy"), policies);
    let denied = server.get("/tightest", &[]);
    assert_eq!((denied.status, denied.field("retry-after")), (429, Some("60")));
    assert_eq!(denied.list("ratelimit"), [told("burst", 0, 1), told("api-1m", 1, 60)]);
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["burst", "api-1m"]));
}

#[test]
fn limits_without_a_name_have_distinct_ones_from_the_first_answer_on() {
    let [inner, outer] = [9, 2].map(|permits| RateLimit::new(direct(permits).0));
    let server =
        Server::of(move || App::new().service(web::resource("/").wrap(inner.clone()).to(hello)).wrap(outer.clone()));
    let names = |field| server.get("/", &[]).all(field).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("ratelimit-policy"), ["default-2", "default"]);
    assert_eq!(names("ratelimit"), ["default-2", "default"]);
    assert_eq!(names("ratelimit"), ["default"], "denied by the outer limit");
}

#[test]
fn a_forged_header_field_does_not_change_the_key() {
    let trusting = RateLimit::new(keyed(2)).key(ClientIp::behind(TrustedProxies::new(["127.0.0.1"]).unwrap()));
    let wary = RateLimit::new(keyed(2)).key(ClientIp::peer());
    let server = Server::of(move || {
        App::new()
            .service(web::resource("/proxied").wrap(trusting.clone()).to(hello))
            .service(web::resource("/direct").wrap(wary.clone()).to(hello))
    });
    // The proxy on loopback appends the address that it sees to what the client wrote.
    let status = |path, forged: &str, seen: &str| {
        let lines = [("x-forwarded-for", forged), ("x-forwarded-for", seen)];
        server.get(path, &lines[usize::from(forged.is_empty())..]).status
    };
    assert_eq!(status("/proxied", "", "192.0.2.7"), 200);
    assert_eq!(status("/proxied", "198.51.100.1", "192.0.2.7"), 200);
    assert_eq!(status("/proxied", "198.51.100.2, 127.0.0.1", "192.0.2.7"), 429);
    assert_eq!(status("/proxied", "192.0.2.7", "192.0.2.8"), 200, "another client");

    assert_eq!(status("/direct", "", "192.0.2.1"), 200);
    assert_eq!(status("/direct", "", "192.0.2.2"), 200);
    assert_eq!(status("/direct", "192.0.2.4", "192.0.2.3"), 429, "without trusted proxies the peer counts");
}

#[actix_web::test]
async fn a_limit_takes_clients_as_all_programs_do() {
    let policy = Policy::from_toml(clients::POLICY).unwrap();
    let limiter = policy.builder_of::<IpAddr>("address").unwrap().clock(MockClock::new()).build().unwrap();
    let limit = RateLimit::new(Arc::new(limiter)).key(ClientIp::new(policy.client().clone()));
    let service = init_service(App::new().wrap(limit).default_service(web::to(hello))).await;
    for asked in clients::requests() {
        let peer: IpAddr = asked.peer.parse().unwrap();
        let mut request = TestRequest::get().peer_addr((peer, 4711).into());
        if let Some(forwarded) = asked.forwarded.as_deref() {
            request = request.insert_header(("x-forwarded-for", forwarded));
        }
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.status() == StatusCode::OK, asked.is_admitted, "{}", asked.hops());
    }
}

#[test]
fn a_tuple_is_one_key_or_those_of_the_dimensions() {
    let keyed = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    let one = RateLimit::new(keyed).key((ClientIp::peer(), matched_path()));
    let joint = JointLimiter::builder().dimension("address", [Quota::per_hour(3)]);
    let joint = joint.dimension("route", [Quota::per_hour(2), Quota::per_day(9)]).build().unwrap();
    let two = RateLimit::new(Arc::new(joint)).key((ClientIp::peer(), matched_path()));
    let server = Server::of(move || {
        let routes = |scope: &str| web::scope(scope).route("/u/{id}", web::get().to(hello));
        App::new()
            .service(routes("/one").route("/b", web::get().to(hello)).wrap(one.clone()))
            .service(routes("/two").route("/b", web::get().to(hello)).wrap(two.clone()))
    });
    assert_eq!([server.status("/one/u/1"), server.status("/one/u/2"), server.status("/one/b")], [200, 429, 200]);
    assert_eq!([server.status("/one/x"), server.status("/one/y")], [404, 429], "unmatched requests have one key");

    assert_eq!([server.status("/two/u/1"), server.status("/two/u/2")], [200, 200]);
    let denied = server.get("/two/u/3", &[]);
    let policies = [("address", 3, 3_600), ("route-1h", 2, 3_600), ("route-1d", 9, 86_400)];
    let policies = policies.map(|(name, q, w)| item(name, [("q", q), ("w", w)]));
    assert_eq!((denied.status, denied.list("ratelimit-policy")), (429, policies.into()));
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["route-1h"]));
    assert_eq!(server.status("/two/b"), 200, "the denied request charged the address nothing");
    assert_eq!(server.get("/two/b", &[]).json()["violated-policies"], serde_json::json!(["address"]));
}

/// The user that an outer middleware has authenticated.
struct User(String);

#[test]
fn requests_without_a_key_are_rejected_or_share_one_or_are_skipped() {
    let limiter = || Arc::new(Limiter::<String>::new(Quota::per_hour(1)).unwrap());
    let user = || extension(|user: &User| user.0.clone());
    let reject = RateLimit::new(limiter()).key(user());
    let share = RateLimit::new(limiter()).key(user()).on_missing(Missing::Share("nobody".into()));
    let skip = RateLimit::new(limiter()).key(user()).on_missing(Missing::Skip);
    let server = Server::of(move || {
        let app = App::new()
            .service(web::resource("/reject").wrap(reject.clone()).to(hello))
            .service(web::resource("/share").wrap(share.clone()).to(hello))
            .service(web::resource("/skip").wrap(skip.clone()).to(hello));
        app.wrap_fn(|request, inner| {
            if let Some(user) = request.headers().get("x-user").and_then(|user| user.to_str().ok()) {
                let user = User(user.to_owned());
                request.extensions_mut().insert(user);
            }
            inner.call(request)
        })
    });
    let statuses = |path: &str| [server.status(path), server.status(path)];
    assert_eq!(statuses("/reject"), [500, 500]);
    let rejected = server.get("/reject", &[]);
    assert_eq!(rejected.json(), serde_json::json!({ "title": "Internal Server Error", "status": 500 }));
    for name in ["retry-after", "ratelimit-policy", "ratelimit"] {
        assert_eq!(rejected.field(name), None, "{name}");
    }
    assert_eq!(statuses("/share"), [200, 429]);
    assert_eq!(statuses("/skip"), [200, 200]);
    assert_eq!(server.get("/skip", &[]).field("ratelimit-policy"), None, "not limited");
    for path in ["/reject", "/share", "/skip"] {
        let status = |user| server.get(path, &[("x-user", user)]).status;
        assert_eq!([status("alice"), status("alice"), status("bob")], [200, 429, 200], "{path}");
    }
}

#[test]
fn a_header_field_that_comes_twice_or_is_too_long_is_a_bad_request() {
    let limiter = Arc::new(Limiter::<String>::new(Quota::per_hour(1)).unwrap());
    let limit = RateLimit::new(limiter).key(header("x-api-key")).on_missing(Missing::Skip);
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    let status = |keys: &[&str]| {
        let fields: Vec<_> = keys.iter().map(|key| ("x-api-key", *key)).collect();
        server.get("/", &fields).status
    };
    assert_eq!([status(&["a"]), status(&["a"]), status(&["b"]), status(&[])], [200, 429, 200, 200]);
    assert_eq!([status(&["c", "d"]), status(&[&"x".repeat(1025)])], [400, 400]);
}

#[test]
fn a_header_field_that_is_no_text_is_not_a_key() {
    let value = |bytes: &[u8]| {
        let value = HeaderValue::from_bytes(bytes).unwrap();
        TestRequest::get().insert_header(("x-api-key", value)).to_http_request()
    };
    let key = header("X-Api-Key");
    assert_eq!(key.extract(&Head::of(&value(b"k-\xc3\xa9"))), Ok("k-é".to_owned()));
    assert_eq!(key.extract(&Head::of(&value(b"k\xff"))), Err(KeyError::malformed()));
}

#[test]
#[should_panic(expected = "no header field can have this name")]
fn a_name_that_no_header_field_can_have_is_refused() {
    let _ = header("x api key");
}

#[test]
fn costs_and_skipped_requests() {
    let (limiter, _) = direct(5);
    let limit = RateLimit::new(limiter)
        .skip(|head| head.uri.path() == "/health")
        .cost(|head| head.uri.path().trim_start_matches('/').parse().unwrap_or(1));
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    assert_eq!(server.status("/4"), 200);
    assert_eq!(server.status("/2"), 429);
    assert_eq!(server.status("/1"), 200, "the denied request was not charged");
    let never = server.get("/6", &[]);
    assert_eq!((never.status, never.field("retry-after")), (422, None));
    assert_eq!([server.status("/health"), server.status("/0")], [200, 200]);
}

#[test]
fn permits_are_given_back_by_status() {
    async fn log_in(status: web::Path<u16>) -> Result<&'static str, actix_web::Error> {
        let status = StatusCode::from_u16(*status).unwrap();
        if status.is_success() { Ok("welcome") } else { Err(actix_web::error::InternalError::new("", status).into()) }
    }
    let (limiter, _) = direct(2);
    let limit = RateLimit::new(limiter).refund_when(|answer| answer.status != StatusCode::UNAUTHORIZED);
    let server = Server::of(move || {
        let inner = App::new().route("/{status}", web::get().to(log_in));
        // An inner middleware that fails with an error, which is not yet an answer.
        let inner = inner.wrap_fn(|request, inner| {
            let fails = request.path() == "/inner";
            let answer = inner.call(request);
            async move { if fails { Err(actix_web::error::ErrorBadGateway("")) } else { answer.await } }
        });
        inner.wrap(limit.clone())
    });
    for _ in 0..5 {
        assert_eq!(server.status("/200"), 200);
        assert_eq!(server.status("/500"), 500);
        assert_eq!(server.status("/inner"), 502);
    }
    assert_eq!(server.get("/200", &[]).list("ratelimit"), [item("default", [("r", 2), ("t", 60)])]);
    assert_eq!([server.status("/401"), server.status("/200"), server.status("/401")], [401, 200, 401]);
    assert_eq!(server.status("/200"), 429);
}

#[test]
fn an_answer_of_the_service_gets_the_standard_fields() {
    let (limiter, _) = direct(1);
    let limit = RateLimit::new(limiter).on_denied(|denied| {
        let accept = denied.head().headers.get("accept").unwrap().to_str().unwrap();
        assert_eq!((denied.quota(), denied.limit(), denied.remaining()), (Some("default"), Some(1), Some(0)));
        assert_eq!((denied.kind(), denied.retry_after()), (DenialKind::Quota, Some(60)));
        if accept.contains("text/html") {
            Either::Left((Html::new("<h1>Busy</h1>"), StatusCode::SERVICE_UNAVAILABLE))
        } else {
            Either::Right(denied.answer())
        }
    });
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    let get = |accept| server.get("/", &[("accept", accept)]);
    assert_eq!(get("text/html").status, 200);
    let page = get("text/html");
    assert_eq!(
        (page.status, &*page.body, page.field("content-type")),
        (503, "<h1>Busy</h1>", Some("text/html; charset=utf-8"))
    );
    assert_eq!((page.field("retry-after"), page.field("cache-control")), (Some("60"), Some("no-store")));
    assert_eq!(page.list("ratelimit"), [item("default", [("r", 0), ("t", 60)])]);
    assert_eq!((get("text/plain").status, get("text/plain").json()["status"].as_u64()), (429, Some(429)));
}

#[test]
fn an_answer_of_the_service_covers_each_status() {
    let limiter = Limiter::<String>::builder(Quota::per_minute(1)).list_cap(1).build().unwrap();
    limiter.deny("listed").unwrap();
    let key = from_head(|head| match head.headers.get("key").map(|key| key.to_str().unwrap()) {
        None => Err(KeyError::not_sent()),
        Some("not provided") => Err(KeyError::not_provided()),
        Some(key) => Ok(key.to_owned()),
    });
    let limit = RateLimit::new(Arc::new(limiter))
        .key(key)
        .cost(|head| if head.headers.contains_key("huge") { 2 } else { 1 })
        .on_denied(|denied| (format!("{:?}", denied.kind()), denied.status()));
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(hello)));
    for (fields, status, kind) in [
        (&[("key", "listed")][..], 403, DenialKind::DenyList),
        (&[("key", "a"), ("huge", "yes")], 422, DenialKind::CostExceedsLimit),
        (&[], 400, DenialKind::KeyNotSent),
        (&[("key", "not provided")], 500, DenialKind::KeyNotProvided),
    ] {
        let answer = server.get("/", fields);
        assert_eq!((answer.status, &*answer.body), (status, &*format!("{kind:?}")));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
    }
}
