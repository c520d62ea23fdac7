//! [`Client`]: the address of the client as an argument of a handler of axum.

use core::net::IpAddr;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use tollgate_http::Problem;
use tollgate_http::middleware::CLIENT_IN_WORDS;

use crate::key::{ClientIp, Head, KeyExtractor as _};

/// The address of the client as an argument of a handler of axum, by the same rules as in a layer.
/// The service's state holds the rules, a [`ClientIp`], once. (Feature `axum`.)
///
/// An IPv6 address is that of the network, /64 by default. Without an address the answer is 500 or
/// 400, as that of a layer.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate_tower::{Client, ClientIp, TrustedProxies};
///
/// async fn address(Client(address): Client) -> String {
///     address.to_string()
/// }
///
/// // With a state of your own: `#[derive(FromRef)]`, and a field of type `ClientIp`.
/// let clients = ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"])?);
/// let app: Router = Router::new().route("/", get(address)).with_state(clients);
/// # let _ = app;
/// # Ok::<(), tollgate_tower::ClientConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub IpAddr);

impl<S> FromRequestParts<S> for Client
where
    S: Send + Sync,
    ClientIp: FromRef<S>,
{
    type Rejection = Problem<'static>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let clients = ClientIp::from_ref(state);
        clients.extract(&Head::of_parts(parts)).map(Self).map_err(|error| Problem::from(error).wanting(CLIENT_IN_WORDS))
    }
}
