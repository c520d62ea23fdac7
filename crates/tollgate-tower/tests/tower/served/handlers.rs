//! What handlers of axum have of the layer, in a real server: a charge, and the client's address.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRef, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http_body_util::{BodyExt, Full};
use tollgate::{DirectLimiter, JointLimiter, MockClock, rate_limit};
use tollgate_http::Problem;
use tollgate_tower::{Admitted, Client, ClientIp, Limiter, Quota, RateLimitLayer, Rejected, TrustedProxies};
use tower::ServiceExt;

use crate::common::{item, items};
use crate::served::support::{self, Connection, raw, serve};

type Attempts = RateLimitLayer<Limiter<(String, IpAddr)>>;

#[derive(Clone)]
struct Service {
    attempts: Attempts,
    clients: ClientIp,
}

impl FromRef<Service> for Attempts {
    fn from_ref(service: &Service) -> Self {
        service.attempts.clone()
    }
}

impl FromRef<Service> for ClientIp {
    fn from_ref(service: &Service) -> Self {
        service.clients.clone()
    }
}

async fn log_in(
    State(attempts): State<Attempts>,
    Client(address): Client,
    password: String,
) -> Result<Response, Rejected> {
    let charge = attempts.charge(("alice".to_owned(), address))?;
    Ok(if password == "open sesame" {
        (charge.refund(), "welcome").into_response()
    } else {
        (StatusCode::UNAUTHORIZED, charge.keep(), "wrong").into_response()
    })
}

#[tokio::test]
async fn a_log_in_charges_by_the_name_in_the_body_and_the_address() {
    let attempts = RateLimitLayer::new(Arc::new(Limiter::new(Quota::per_hour(2)).unwrap()));
    let clients = ClientIp::behind(TrustedProxies::new(["127.0.0.0/8"]).unwrap());
    let app = Router::new().route("/login", post(log_in)).with_state(Service { attempts, clients });
    let mut connection = Connection::open(serve(app).await).await;
    for (client, password, status, left) in [
        ("192.0.2.1", "open sesame", 200, 2),
        ("192.0.2.1", "guess", 401, 1),
        ("192.0.2.1", "open sesame", 200, 1),
        ("192.0.2.1", "guess", 401, 0),
        ("192.0.2.1", "open sesame", 429, 0),
        ("192.0.2.2", "open sesame", 200, 2),
    ] {
        let request = Request::post("/login").header("host", "a").header("x-forwarded-for", client);
        let answer = connection.send(request.body(Full::from(password)).unwrap()).await;
        assert_eq!(answer.status, status);
        let [(name, parameters)] = &items(answer.one("ratelimit"))[..] else { panic!("one limit") };
        assert_eq!((&**name, &parameters[0]), ("default", &("r".to_owned(), left.to_string())));
        assert_eq!(answer.one("ratelimit-policy"), r#""default";q=2;w=3600"#);
    }
}

#[tokio::test]
async fn without_the_address_of_the_peer_the_answer_is_500_and_tells_nothing() {
    let app = Router::new().route("/", get(|Client(address): Client| async move { address.to_string() }));
    let app: Router = app.with_state(ClientIp::peer());
    let answer = app.clone().oneshot(Request::new(Body::empty())).await.unwrap();
    assert_eq!(answer.status(), 500);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"title":"Internal Server Error","status":500}"#);
    assert!(raw(serve(app).await, "GET / HTTP/1.1\nHost: a\n").await.ends_with("127.0.0.1"));
}

#[tokio::test]
async fn a_handler_is_told_the_permits_left() {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(3)).unwrap());
    let limit = RateLimitLayer::new(limiter).key(ClientIp::peer()).tell_handlers(true);
    let left = |Extension(admitted): Extension<Admitted>| async move { format!("{} left", admitted.remaining()) };
    let address = serve(Router::new().route("/", get(left)).layer(limit)).await;
    for expected in ["2 left", "1 left", "0 left"] {
        assert!(raw(address, "GET / HTTP/1.1\nHost: a\n").await.ends_with(expected));
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Its own limiter, with a quota that has a name and one that has none.
#[rate_limit(policy = [Quota::new(2, MINUTE), Quota::per_hour(900).named("hourly")], key = uri.path())]
async fn r#priced(uri: axum::http::Uri) -> Result<&'static str, Problem<'static>> {
    Ok("priced")
}

static JOINT: LazyLock<JointLimiter<(u8, u8), MockClock>> = LazyLock::new(|| {
    let builder = JointLimiter::builder().dimension("user", [Quota::per_minute(9)]);
    builder.dimension("report", [Quota::per_minute(1)]).clock(MockClock::new()).build().unwrap()
});

/// The caller's limiter, whose dimensions have names.
#[rate_limit(limiter = JOINT, keys = (&1, &2), on_error = |_| unreachable!())]
async fn report() -> Result<&'static str, Problem<'static>> {
    Ok("report")
}

static DIRECT: LazyLock<DirectLimiter<MockClock>> =
    LazyLock::new(|| DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new()).unwrap());

/// The caller's limiter without a name.
#[rate_limit(limiter = DIRECT, on_denied = |denial| Problem::from(denial).into_response())]
async fn stamp() -> Response {
    "stamp".into_response()
}

#[tokio::test]
async fn a_denial_by_an_attribute_inside_a_layer_shows_its_own_limit_too() {
    let outer = Arc::new(DirectLimiter::with_clock(Quota::per_minute(50), MockClock::new()).unwrap());
    let app = Router::new().route("/priced", get(priced)).route("/report", get(report)).route("/stamp", get(stamp));
    let mut connection = Connection::open(serve(app.layer(RateLimitLayer::new(outer))).await).await;
    let mut outer_left = 50;
    for (path, admitted, inner_policies, violated) in [
        (
            "/priced",
            2,
            vec![item("priced-1m", [("q", 2), ("w", 60)]), item("hourly", [("q", 900), ("w", 3600)])],
            "priced-1m",
        ),
        ("/report", 1, vec![item("user", [("q", 9), ("w", 60)]), item("report", [("q", 1), ("w", 60)])], "report"),
        ("/stamp", 1, vec![item("stamp", [("q", 1), ("w", 60)])], "stamp"),
    ] {
        for _ in 0..admitted {
            assert_eq!(connection.send(support::get(path)).await.status, 200, "{path}");
        }
        let denied = connection.send(support::get(path)).await;
        outer_left -= admitted + 1;
        assert_eq!(denied.status, 429, "{path}");
        let wait: u64 = denied.one("retry-after").parse().unwrap();
        let all = |name| denied.all(name).into_iter().flat_map(items).collect::<Vec<_>>();
        let policies = [inner_policies, vec![item("default", [("q", 50), ("w", 60)])]].concat();
        assert_eq!(all("ratelimit-policy"), policies, "{path}");
        let limits = [item(violated, [("r", 0), ("t", wait)]), item("default", [("r", outer_left), ("t", 60)])];
        assert_eq!(all("ratelimit"), limits, "{path}");
        let body: serde_json::Value = serde_json::from_slice(&denied.body).unwrap();
        assert_eq!(body["violated-policies"], serde_json::json!([violated]), "{path}");
    }
}
