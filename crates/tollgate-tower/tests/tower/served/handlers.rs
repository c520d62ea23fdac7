//! What handlers of axum have of the layer, in a real server: a charge, and the client's address.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http_body_util::{BodyExt, Full};
use tollgate_tower::{Admitted, Client, ClientIp, Limiter, Quota, RateLimitLayer, Rejected, TrustedProxies};
use tower::ServiceExt;

use crate::common::items;
use crate::served::support::{Connection, raw, serve};

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
