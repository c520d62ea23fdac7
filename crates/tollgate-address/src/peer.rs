//! [`Peer`]: the other end of the connection.

use core::net::{IpAddr, SocketAddr};

/// The other end of the connection.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use tollgate_address::Peer;
///
/// assert_eq!(Peer::from(IpAddr::V4(Ipv4Addr::LOCALHOST)), Peer::Address([127, 0, 0, 1].into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// Its address.
    Address(IpAddr),
    /// A Unix socket, which has no address.
    UnixSocket,
    /// The server did not provide it.
    Unknown,
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address.ip())
    }
}
