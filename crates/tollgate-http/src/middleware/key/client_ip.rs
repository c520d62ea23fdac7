//! The address of the client as a key.

use core::fmt;
use core::net::IpAddr;
use std::borrow::Cow;
use std::sync::Arc;

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::Framework;
use tollgate_address::{ClientAddress, Peer, TrustedProxies};

/// The address of the client as a key, from the peer or from trusted proxies. IPv6 counts by network.
/// [`ClientAddress`] has the rules. To decide by it, such as whom not to limit, take
/// [`address`](Self::address).
///
/// ```
/// use tollgate_http::TrustedProxies;
/// use tollgate_http::middleware::{ClientIp, Framework};
///
/// fn behind_own_proxies<W: Framework>() -> ClientIp<W> {
///     ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"]).expect("a network"))
/// }
/// ```
pub struct ClientIp<W: Framework> {
    clients: ClientAddress,
    /// The name of the field to read.
    header: Option<W::Name>,
    peer: Option<Arc<PeerFrom<W>>>,
}

type PeerFrom<W> = dyn Fn(&<W as Framework>::Connection) -> Option<Peer> + Send + Sync;

/// The address of a client in words. They do not tell which header field is trusted.
pub const CLIENT_IN_WORDS: &str = "the address of the client";

impl<W: Framework> ClientIp<W> {
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

    /// The address that these rules find: another header field, another length of IPv6 prefixes, or
    /// those of a policy file (`Policy::client` of `tollgate-policy`).
    #[must_use]
    pub fn new(clients: ClientAddress) -> Self {
        // The name was checked to be that of a header field.
        let header = clients.header().and_then(W::name);
        Self { clients, header, peer: None }
    }

    /// Finds the peer by this function, in place of all other ways.
    #[must_use]
    pub fn peer_from(self, peer: impl Fn(&W::Connection) -> Option<Peer> + Send + Sync + 'static) -> Self {
        Self { peer: Some(Arc::new(peer)), ..self }
    }

    /// The address of the client, to decide by. It is no key: a key is a network of IPv6, or the IPv4
    /// address that an address of NAT64, 6to4 or Teredo embeds.
    ///
    /// # Errors
    ///
    /// [`KeyError`] as for the key.
    pub fn address(&self, head: &W::Head<'_>) -> Result<IpAddr, KeyError> {
        self.clients.address(self.peer_of(head), self.lines(head)).map_err(KeyError::from)
    }

    /// The values of the header field that counts.
    fn lines<'h>(&self, head: &'h W::Head<'_>) -> impl DoubleEndedIterator<Item = &'h W::Value> {
        self.header.iter().flat_map(|name| W::values(head, name))
    }

    fn peer_of(&self, head: &W::Head<'_>) -> Peer {
        let connection = W::connection(head);
        let peer = self.peer.as_ref().map_or_else(|| W::peer(connection), |peer| peer(connection));
        peer.unwrap_or(Peer::Unknown)
    }
}

impl<W: Framework<Name: Send + Sync>> Extractor<W> for ClientIp<W> {
    type Key = IpAddr;

    fn extract(&self, head: &W::Head<'_>) -> Result<IpAddr, KeyError> {
        self.clients.key(self.peer_of(head), self.lines(head)).map_err(KeyError::from)
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(CLIENT_IN_WORDS.into())
    }
}

impl<W: Framework> Clone for ClientIp<W> {
    fn clone(&self) -> Self {
        Self { clients: self.clients.clone(), header: self.header.clone(), peer: self.peer.clone() }
    }
}

impl<W: Framework> fmt::Debug for ClientIp<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIp").field("clients", &self.clients).finish_non_exhaustive()
    }
}
