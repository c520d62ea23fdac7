//! The address of the client as a key.

use core::fmt;
use core::net::IpAddr;
use std::borrow::Cow;
use std::sync::Arc;

use http::{Extensions, HeaderName, HeaderValue};
use tollgate_http::{ClientAddress, Peer, TrustedProxies};

use super::{Head, KeyError, KeyExtractor};

/// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
/// [`ClientAddress`] has the rules. To decide by it, such as whom not to limit, take
/// [`address`](Self::address).
///
/// The peer's address is an extension of the request, of type [`Peer`], which the server or an
/// outer layer inserts. With the feature `axum`, axum's `ConnectInfo<SocketAddr>` is found as well,
/// and `MockConnectInfo<SocketAddr>` in tests. Use [`peer_from`](Self::peer_from) for all other
/// types.
///
/// Without a peer's address the key is [not provided](KeyError::not_provided), so the answer is
/// 500, unless [`Missing`](crate::Missing) sets another treatment. The same holds for a request by
/// a Unix socket, unless the socket is [trusted](TrustedProxies::unix_sockets) and names an
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
#[derive(Clone)]
pub struct ClientIp {
    clients: ClientAddress,
    /// The name of the field to read.
    header: Option<HeaderName>,
    peer: Option<Arc<PeerFrom>>,
}

type PeerFrom = dyn Fn(&Extensions) -> Option<Peer> + Send + Sync;

impl ClientIp {
    /// The key in words. They do not tell which header field is trusted.
    pub(crate) const WORDS: &str = "the address of the client";

    /// The address of the peer. Header fields are ignored.
    #[must_use]
    pub fn peer() -> Self {
        Self::new(ClientAddress::peer())
    }

    /// The address that these proxies write in `X-Forwarded-For`.
    #[must_use]
    pub fn behind(proxies: TrustedProxies) -> Self {
        Self::new(ClientAddress::behind(proxies))
    }

    /// The address that these rules find: another header field, or another length of IPv6 prefixes.
    #[must_use]
    pub fn new(clients: ClientAddress) -> Self {
        // The name was checked to be that of a header field.
        let header = clients.header().and_then(|name| HeaderName::try_from(name).ok());
        Self { clients, header, peer: None }
    }

    /// Finds the peer by this function, in place of all other ways.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use tollgate_tower::ClientIp;
    ///
    /// /// What a server leaves with each request; tonic's is `TcpConnectInfo`.
    /// #[derive(Clone)]
    /// struct Connection { remote: Option<SocketAddr> }
    ///
    /// let clients = ClientIp::peer().peer_from(|extensions| {
    ///     extensions.get::<Connection>()?.remote.map(Into::into)
    /// });
    /// # let _ = clients;
    /// ```
    #[must_use]
    pub fn peer_from(self, peer: impl Fn(&Extensions) -> Option<Peer> + Send + Sync + 'static) -> Self {
        Self { peer: Some(Arc::new(peer)), ..self }
    }

    /// The address of the client, to decide by. It is no [key](KeyExtractor::extract): a key is a
    /// network of IPv6, or the IPv4 address that an address of NAT64, 6to4 or Teredo embeds.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use std::sync::Arc;
    /// use tollgate_tower::{ClientIp, Limiter, Quota, RateLimitLayer, TrustedProxies};
    ///
    /// // Own networks and `/health` are not limited.
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
    /// # Errors
    ///
    /// [`KeyError`] as for the key.
    pub fn address(&self, head: &Head<'_>) -> Result<IpAddr, KeyError> {
        self.clients.address(self.peer_of(head.extensions), self.lines(head)).map_err(KeyError::from)
    }

    /// The values of the header field that counts.
    fn lines<'a>(&self, head: &Head<'a>) -> impl DoubleEndedIterator<Item = &'a HeaderValue> {
        self.header.iter().flat_map(|name| head.headers.get_all(name))
    }

    fn peer_of(&self, extensions: &Extensions) -> Peer {
        let peer = match &self.peer {
            Some(peer) => peer(extensions),
            None => extensions.get().copied().or_else(|| framework_peer(extensions)),
        };
        peer.unwrap_or(Peer::Unknown)
    }
}

/// The peer as axum provides it.
#[cfg(feature = "axum")]
fn framework_peer(extensions: &Extensions) -> Option<Peer> {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
    use core::net::SocketAddr;

    let real = extensions.get().map(|&ConnectInfo::<SocketAddr>(peer)| peer);
    let mock = || extensions.get().map(|&MockConnectInfo::<SocketAddr>(peer)| peer);
    real.or_else(mock).map(Peer::from)
}

#[cfg(not(feature = "axum"))]
const fn framework_peer(_: &Extensions) -> Option<Peer> {
    None
}

impl KeyExtractor for ClientIp {
    type Key = IpAddr;

    fn extract(&self, head: &Head<'_>) -> Result<IpAddr, KeyError> {
        self.clients.key(self.peer_of(head.extensions), self.lines(head)).map_err(KeyError::from)
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(Self::WORDS.into())
    }
}

impl fmt::Debug for ClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIp").field("clients", &self.clients).finish_non_exhaustive()
    }
}
