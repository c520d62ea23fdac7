//! Errors of client addresses, and of their configuration.

use core::fmt;

/// Why a [`ClientAddress`](crate::ClientAddress) or [`TrustedProxies`](crate::TrustedProxies)
/// cannot be made.
///
/// ```
/// use tollgate_address::{ClientConfigError, TrustedProxies};
///
/// let error = TrustedProxies::new(["10.0.0.0/33"]).unwrap_err();
/// assert_eq!(error, ClientConfigError::NotANetwork { text: "10.0.0.0/33".into() });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientConfigError {
    /// No network was given. Without proxies, use
    /// [`ClientAddress::peer`](crate::ClientAddress::peer).
    NoNetworks,
    /// The text is neither an address nor a network such as `10.0.0.0/8`.
    NotANetwork {
        /// The text.
        text: Box<str>,
    },
    /// The address of a network has bits after its prefix.
    BitsAfterPrefix {
        /// The text.
        text: Box<str>,
    },
    /// The network is wider than what one organisation has. [`TrustedProxies`](crate::TrustedProxies)
    /// has the bounds.
    TooWide {
        /// The text.
        text: Box<str>,
    },
    /// The network has addresses of another one.
    Overlap {
        /// The text.
        text: Box<str>,
        /// The other network.
        other: Box<str>,
    },
    /// No header field can have this name.
    HeaderName {
        /// The text.
        name: Box<str>,
    },
    /// The header field has a list of addresses instead of one address.
    ListHeader {
        /// Its name.
        name: Box<str>,
    },
    /// The length of an IPv6 prefix is not from 32 to 128.
    Ipv6Prefix {
        /// The length.
        prefix: u8,
    },
}

impl fmt::Display for ClientConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNetworks => f.write_str("no proxy is trusted: give at least one network"),
            Self::NotANetwork { text } => {
                write!(f, "'{text}' is not a network: give an address, or a network such as 10.0.0.0/8")
            }
            Self::BitsAfterPrefix { text } => {
                write!(f, "the address of the network '{text}' has bits after its prefix: set them to zero")
            }
            Self::TooWide { text } => {
                write!(f, "the network '{text}' is too wide for proxies of one organisation: name only your own")
            }
            Self::Overlap { text, other } => {
                write!(f, "the network '{text}' overlaps with '{other}': leave one of them out")
            }
            Self::HeaderName { name } => write!(f, "'{name}' cannot be the name of a header field"),
            Self::ListHeader { name } => write!(f, "the header field '{name}' is a list and has its own constructor"),
            Self::Ipv6Prefix { prefix } => {
                write!(f, "an IPv6 prefix of {prefix} bits is not possible: give 32 to 128")
            }
        }
    }
}

impl core::error::Error for ClientConfigError {}

/// Why a request has no client address.
///
/// ```
/// use tollgate_address::{ClientAddress, ClientError, Peer};
///
/// let clients = ClientAddress::peer();
/// let no_lines: [&str; 0] = [];
/// assert_eq!(clients.key(Peer::UnixSocket, no_lines), Err(ClientError::UnixSocket));
/// assert!(ClientError::UnixSocket.is_missing());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientError {
    /// The server did not provide the peer's address.
    UnknownPeer,
    /// The peer is a Unix socket that is not trusted or names no address.
    UnixSocket,
    /// A header field with one address came twice.
    RepeatedHeader,
}

impl ClientError {
    /// Whether the address is missing, which is a matter of the server's configuration. Otherwise
    /// the request is malformed.
    #[must_use]
    pub const fn is_missing(self) -> bool {
        matches!(self, Self::UnknownPeer | Self::UnixSocket)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPeer => "the server did not provide the peer's address",
            Self::UnixSocket => "the peer is a Unix socket, which has no address",
            Self::RepeatedHeader => "the header field with the client's address came twice",
        })
    }
}

impl core::error::Error for ClientError {}
