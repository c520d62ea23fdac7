//! What the extractors are in the types of actix-web.

use actix_web::http::header::HeaderName;
use tollgate_http::middleware;

use super::framework::Actix;
use super::head::Head;

/// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
/// [`ClientAddress`](crate::ClientAddress) has the rules. To decide by it, such as whom not to limit,
/// take [`address`](middleware::ClientIp::address).
///
/// The peer is the [`Peer`](crate::Peer) in the request's extensions, if an outer middleware inserts
/// one, and [`HttpRequest::peer_addr`](actix_web::HttpRequest::peer_addr) otherwise. Use
/// [`peer_from`](middleware::ClientIp::peer_from) for other sources. The `connection_info` of
/// actix-web is never used, because it trusts every proxy.
///
/// Without a peer's address the key is [not provided](crate::KeyError::not_provided), so the answer is
/// 500, unless [`Missing`](crate::Missing) sets another treatment. A request by a Unix socket has
/// an address only if `peer_from` returns [`Peer::UnixSocket`](crate::Peer::UnixSocket), the socket
/// is [trusted](crate::TrustedProxies::unix_sockets), and the request names an address.
///
/// ```
/// use std::net::IpAddr;
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{ClientIp, Head, KeyExtractor};
/// use tollgate_http::TrustedProxies;
///
/// let clients = ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"])?);
///
/// // Entries that the client wrote are on the left.
/// let lines = ("x-forwarded-for", "203.0.113.99, 192.0.2.7");
/// let request = TestRequest::get().peer_addr("10.0.0.2:4711".parse()?).insert_header(lines).to_http_request();
/// assert_eq!(clients.extract(&Head::of(&request)), Ok("192.0.2.7".parse::<IpAddr>()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// All requests come by a Unix socket, from a proxy:
///
/// ```
/// use tollgate_actix::ClientIp;
/// use tollgate_http::{Peer, TrustedProxies};
///
/// let clients = ClientIp::behind(TrustedProxies::unix_sockets()).peer_from(|_| Some(Peer::UnixSocket));
/// # let _ = clients;
/// ```
///
/// Own networks and `/health` are not limited:
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_actix::{ClientIp, Limiter, Quota, RateLimit, TrustedProxies};
///
/// let (clients, own) = (ClientIp::peer(), TrustedProxies::new(["10.0.0.0/8", "2001:db8:7::/48"])?);
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(60))?);
/// let limit = RateLimit::new(limiter)
///     .key(clients.clone())
///     .skip(move |head| {
///         let is_own = clients.address(head).is_ok_and(|address| own.contains(address));
///         is_own || head.request.path() == "/health"
///     });
/// # let _ = limit;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The rules of a policy file, which `tollgate serve` and `tollgate replay` take clients by, too:
///
/// ```
/// use tollgate_actix::ClientIp;
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
pub type ClientIp = middleware::ClientIp<Actix>;

/// The keys of a request as a policy file names them: its fields, rules, matches and tiers.
/// [`PolicyKey`](middleware::PolicyKey) has the rules. (Feature `policy`.)
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::Policy;
/// use tollgate_actix::{PolicyKey, RateLimit};
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
/// let layer = RateLimit::new(Arc::clone(limiter.limiter())).key(key);
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "policy")]
pub type PolicyKey = middleware::PolicyKey<Actix>;

tollgate_http::extractors!(HeaderName, RateLimit, in "tollgate_actix" for Actix);
