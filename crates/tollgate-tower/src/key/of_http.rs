//! What the extractors are in the types of `http`.

use http::HeaderName;

use super::framework::Tower;
use super::head::Head;

tollgate_http::extractors! {
    /// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
    /// [`ClientAddress`](crate::ClientAddress) has the rules. To decide by it, such as whom not to limit,
    /// take [`address`](tollgate_http::middleware::ClientIp::address).
    ///
    /// The peer's address is an extension of the request, of type [`Peer`](crate::Peer), which the server
    /// or an outer layer inserts. With the feature `axum`, axum's `ConnectInfo<SocketAddr>` is found as
    /// well, and `MockConnectInfo<SocketAddr>` in tests. Use
    /// [`peer_from`](tollgate_http::middleware::ClientIp::peer_from) for all other types.
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
    HeaderName, RateLimitLayer, in "tollgate_tower" for Tower
}
