//! What the extractors are in the types of actix-web.

use core::fmt;
use core::hash::Hash;

use actix_web::http::header::HeaderName;
use tollgate_http::middleware::{self, FromHead, KeyError};

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
/// Without a peer's address the key is [not provided](KeyError::not_provided), so the answer is
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
pub type ClientIp = middleware::ClientIp<Actix>;

/// The key of a [`path`](crate::path).
pub type PathKey = middleware::PathKey<Actix>;

/// The text of a header field. [`header`] makes it.
pub type Header = middleware::Header<HeaderName>;

/// The text of the header field with this name, such as an API key. It is a key of a `Limiter<String>`.
///
/// **A client can invent such keys, and each has a quota of its own.** Use it for keys that an
/// outer middleware has checked, or together with the client's address: as another dimension of a
/// [`JointLimiter`](tollgate::JointLimiter), not in a tuple for one key.
///
/// A request is rejected with 400 if the field comes twice, is not UTF-8, or is longer than
/// [`MAX_BYTES`](middleware::Header::MAX_BYTES). Without the field, or if it is empty, the key is
/// [not sent](KeyError::not_sent). The answers name the field. The text costs an allocation.
///
/// # Panics
///
/// If no field can have this name, such as `"x api key"`. A name from a configuration is better
/// parsed as a `HeaderName` first, which is accepted as well.
///
/// ```
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyError, KeyExtractor, header};
///
/// let api_key = header("x-api-key");
/// let request = TestRequest::get().insert_header(("X-Api-Key", "k-123")).to_http_request();
/// assert_eq!(api_key.extract(&Head::of(&request)), Ok("k-123".to_owned()));
/// let twice = TestRequest::get().append_header(("x-api-key", "a")).append_header(("x-api-key", "b"));
/// let twice = twice.to_http_request();
/// assert_eq!(api_key.extract(&Head::of(&twice)), Err(KeyError::malformed()));
/// ```
#[must_use]
#[track_caller]
pub fn header(name: impl TryInto<HeaderName, Error: fmt::Display>) -> Header {
    match name.try_into() {
        Ok(name) => Header::new(name),
        Err(error) => panic!("no header field can have this name: {error}"),
    }
}

/// The key that a function returns for the head.
///
/// ```
/// use tollgate_actix::{KeyError, from_head};
///
/// let tenant = from_head(|head| {
///     let tenant = head.uri.path().strip_prefix("/tenants/").ok_or(KeyError::not_sent())?;
///     tenant.parse::<u32>().map_err(|_| KeyError::malformed())
/// });
/// // "The request needs the number of a tenant in the path."
/// let tenant = tenant.naming("the number of a tenant in the path");
/// # let _ = tenant;
/// ```
pub const fn from_head<T, K>(function: T) -> FromHead<T>
where
    T: Fn(&Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    FromHead::new(function)
}
