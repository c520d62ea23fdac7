//! Networks of trusted proxies.

use core::fmt;
use core::net::IpAddr;

use crate::error::ClientConfigError;
use crate::network::Network;
use crate::peer::Peer;

/// The word for peers by Unix sockets.
const UNIX: &str = "unix";

/// The proxies whose header fields are trusted.
///
/// Networks are in CIDR notation (`10.0.0.0/8`, `2001:db8::/32`), or single addresses. IPv4 in IPv6
/// is IPv4: `::ffff:10.0.0.0/104` is `10.0.0.0/8`. The word `unix` stands for all peers that connect
/// by a Unix socket. `Display` writes such a list.
///
/// A network is at most as wide as one that an organisation can have, because a wider one holds
/// clients, and each of them could claim any address. The Internet registries give their members at
/// most a /8 of IPv4 and a /16 of IPv6. Only the local networks `fc00::/7` and `fe80::/10` may be
/// wider. Networks of 6to4 (`2002::/16`), Teredo (`2001::/32`) and NAT64 (`64:ff9b::/96`) are as wide
/// as the IPv4 networks that they stand for.
///
/// ```
/// use tollgate_address::{ClientConfigError, TrustedProxies};
///
/// let proxies = TrustedProxies::new(["10.0.0.0/8", "2001:db8::1"])?;
/// assert!(proxies.contains("10.1.2.3".parse()?));
/// assert!(proxies.contains("::ffff:10.1.2.3".parse()?));
/// assert!(!proxies.contains("2001:db8::2".parse()?));
///
/// // All addresses of today's IPv6 Internet.
/// let error = TrustedProxies::new(["2000::/3"]).unwrap_err();
/// assert_eq!(error, ClientConfigError::TooWide { text: "2000::/3".into() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Box<[Network]>,
    unix_sockets: bool,
}

impl TrustedProxies {
    /// The proxies in these networks.
    ///
    /// # Errors
    ///
    /// [`ClientConfigError`] when there is no network, or when a network cannot be parsed, has bits
    /// after its prefix, is too wide or overlaps with one before it.
    pub fn new<T: AsRef<str>>(networks: impl IntoIterator<Item = T>) -> Result<Self, ClientConfigError> {
        let (mut found, mut unix_sockets) = (Vec::<Network>::new(), false);
        for text in networks {
            let text = text.as_ref();
            if text == UNIX {
                unix_sockets = true;
                continue;
            }
            let network = Network::parse(text)?;
            if let Some(other) = found.iter().find(|other| other.overlaps(network)) {
                return Err(ClientConfigError::Overlap { text: text.into(), other: other.to_string().into() });
            }
            found.push(network);
        }
        if found.is_empty() && !unix_sockets {
            return Err(ClientConfigError::NoNetworks);
        }
        Ok(Self { networks: found.into(), unix_sockets })
    }

    /// All peers that connect by a Unix socket, and no network.
    #[must_use]
    pub fn unix_sockets() -> Self {
        Self { networks: Box::default(), unix_sockets: true }
    }

    /// The same proxies, and all peers that connect by a Unix socket.
    #[must_use]
    pub fn and_unix_sockets(self) -> Self {
        Self { unix_sockets: true, ..self }
    }

    /// The networks, as [`new`](Self::new) takes them.
    #[must_use]
    pub fn to_texts(&self) -> Vec<String> {
        let networks = self.networks.iter().map(Network::to_string);
        networks.chain(self.unix_sockets.then(|| UNIX.to_owned())).collect()
    }

    /// Whether one of the networks holds this address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    pub(crate) fn trust(&self, peer: Peer) -> bool {
        match peer {
            Peer::Address(address) => self.contains(address),
            Peer::UnixSocket => self.unix_sockets,
            Peer::Unknown => false,
        }
    }
}

impl fmt::Display for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_texts().join(", "))
    }
}
