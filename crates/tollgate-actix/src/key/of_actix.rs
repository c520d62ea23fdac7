//! What the extractors are in the types of actix-web.

use actix_web::http::header::HeaderName;

use super::framework::Actix;
use super::head::Head;

tollgate_http::extractors! {
    /// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
    /// [`ClientAddress`](crate::ClientAddress) has the rules. To decide by it, such as whom not to limit,
    /// take [`address`](tollgate_http::middleware::ClientIp::address).
    ///
    /// The peer is the [`Peer`](crate::Peer) in the request's extensions, if an outer middleware inserts
    /// one, and [`HttpRequest::peer_addr`](actix_web::HttpRequest::peer_addr) otherwise. Use
    /// [`peer_from`](tollgate_http::middleware::ClientIp::peer_from) for other sources. The `connection_info` of
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
    HeaderName, RateLimit, in "tollgate_actix" for Actix
}
