//! A limit in the state of an axum application, asked in a handler: for keys that come from a body.
//! Failed log-ins count by name and address, and by address for all names.
//!
//! `curl -i --json '["alice", "guess"]' http://127.0.0.1:3000/login`

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{FromRef, Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use tollgate_tower::{BuildError, Client, ClientIp, JointLimiter, Quota, RateLimitLayer, Rejected};

/// By name and address together, and by address.
type Keys = ((String, IpAddr), IpAddr);

#[derive(Clone)]
struct Service {
    attempts: RateLimitLayer<JointLimiter<Keys>>,
    clients: ClientIp,
}

impl FromRef<Service> for ClientIp {
    fn from_ref(service: &Service) -> Self {
        service.clients.clone()
    }
}

async fn log_in(
    State(service): State<Service>,
    Client(address): Client,
    Json((name, password)): Json<(String, String)>,
) -> Result<Response, Rejected> {
    // One user is one key, however the name is written.
    let name = name.trim().to_lowercase();
    // Charged before the password is checked. A client that hangs up keeps the charge.
    let charge = service.attempts.charge((Some((name.clone(), address)), Some(address)))?;
    if is_right(&name, &password).await {
        Ok((charge.refund(), "welcome\n").into_response())
    } else {
        Ok((StatusCode::UNAUTHORIZED, charge.keep(), "wrong name or password\n").into_response())
    }
}

/// A real service reads a hash and computes another.
async fn is_right(name: &str, password: &str) -> bool {
    (name, password) == ("alice", "open sesame")
}

pub(crate) fn app() -> Result<Router, BuildError> {
    let limiter = JointLimiter::builder()
        .dimension("login", [Quota::per_minute(5)])
        .dimension("address", [Quota::per_minute(30), Quota::per_hour(200)])
        .build()?;
    let service = Service { attempts: RateLimitLayer::new(Arc::new(limiter)), clients: ClientIp::peer() };
    Ok(Router::new().route("/login", post(log_in)).with_state(service))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = app()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
