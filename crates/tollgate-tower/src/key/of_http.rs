//! What the extractors are in the types of `http`.

use http::HeaderName;
use tollgate_http::middleware;

use super::framework::Tower;
use super::head::Head;

/// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
/// [`ClientAddress`](crate::ClientAddress) has the rules. To decide by it, such as whom not to limit,
/// take [`address`](middleware::ClientIp::address).
///
/// The peer's address is an extension of the request, of type [`Peer`](crate::Peer), which the server
/// or an outer layer inserts. With the feature `axum`, axum's `ConnectInfo<SocketAddr>` is found as
/// well, and `MockConnectInfo<SocketAddr>` in tests. Use
/// [`peer_from`](middleware::ClientIp::peer_from) for all other types.
///
/// Without a peer's address the key is [not provided](crate::KeyError::not_provided), so the answer is
/// 500, unless [`Missing`](crate::Missing) sets another treatment. The same holds for a request by
/// a Unix socket, unless the socket is [trusted](crate::TrustedProxies::unix_sockets) and names an
/// address.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_http::{Peer, TrustedProxies};
/// use tollgate_tower::{ClientIp, Head, KeyExtractor};
///
/// let clients = ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"])?);
///
/// // Entries that the client wrote are on the left.
/// let lines = "203.0.113.99, 192.0.2.7";
/// let mut request = http::Request::builder().header("x-forwarded-for", lines).body(())?;
/// request.extensions_mut().insert(Peer::Address("10.0.0.2".parse()?));
/// assert_eq!(clients.extract(&Head::of(&request)), Ok("192.0.2.7".parse::<IpAddr>()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The peer from what a server leaves with each request; tonic's is `TcpConnectInfo`:
///
/// ```
/// use std::net::SocketAddr;
/// use tollgate_tower::ClientIp;
///
/// #[derive(Clone)]
/// struct Connection { remote: Option<SocketAddr> }
///
/// let clients = ClientIp::peer().peer_from(|extensions| {
///     extensions.get::<Connection>()?.remote.map(Into::into)
/// });
/// # let _ = clients;
/// ```
///
/// Own networks and `/health` are not limited:
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_tower::{ClientIp, Limiter, Quota, RateLimitLayer, TrustedProxies};
///
/// let (clients, own) = (ClientIp::peer(), TrustedProxies::new(["10.0.0.0/8", "2001:db8:7::/48"])?);
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(60))?);
/// let layer = RateLimitLayer::new(limiter)
///     .key(clients.clone())
///     .skip(move |head| {
///         let is_own = clients.address(head).is_ok_and(|address| own.contains(address));
///         is_own || head.uri.path() == "/health"
///     });
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The rules of a policy file, which `tollgate serve` and `tollgate replay` take clients by, too:
///
/// ```
/// use tollgate_tower::ClientIp;
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml(r#"
///     [client]
///     trusted_proxies = ["10.0.0.0/8"]
///
///     [[dimension]]
///     name = "client"
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// let clients = ClientIp::new(policy.client().clone());
/// # let _ = clients;
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
pub type ClientIp = middleware::ClientIp<Tower>;

/// The keys of a request as a policy file names them: its fields, rules, matches and tiers.
/// [`PolicyKey`](middleware::PolicyKey) has the rules. (Feature `policy`.)
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::Policy;
/// use tollgate_tower::{PolicyKey, RateLimitLayer};
///
/// let policy = Policy::from_toml(r#"
///     [[rule]]
///     match = { path = "/health" }
///     action = "admit"
///
///     [[dimension]]
///     name = "tenant"
///     quota = [{ limit = 100, per = "1m" }]
///     tier_by = "header.x-plan"
///
///     [[dimension.tier]]
///     name = "premium"
///     quota = [{ limit = 1000, per = "1m" }]
/// "#)?;
/// let limiter = policy.request_limiter()?;
/// let key = PolicyKey::new(&limiter).field("tenant", |head| {
///     let host = head.headers.get("host")?.to_str().ok()?;
///     host.split('.').next().map(str::to_owned)
/// });
/// let layer = RateLimitLayer::new(Arc::clone(limiter.limiter())).key(key);
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "policy")]
pub type PolicyKey = middleware::PolicyKey<Tower>;

tollgate_http::extractors!(HeaderName, RateLimitLayer, in "tollgate_tower" for Tower);
