//! [`ClientAddress`]: the address of a client, from the peer or from trusted proxies.

use core::fmt;
use core::net::IpAddr;

use crate::embedded;
use crate::error::{ClientConfigError, ClientError};
use crate::forwarded;
use crate::network::ipv6_network;
use crate::node;
use crate::peer::Peer;
use crate::trusted::TrustedProxies;

/// Finds the address of a client, and the key for it.
///
/// By default only the peer's address counts, because a client can write any header field. Behind
/// proxies, name their networks. Then *one* header field counts, and of it only the entries that
/// those proxies have appended. It is read from the right, past trusted addresses. The first
/// address that is not trusted is the client's. If all are trusted, it is the leftmost. Reading
/// stops at an entry that is not an address, and after [`MAX_HOPS`](Self::MAX_HOPS) entries or
/// [`MAX_BYTES`](Self::MAX_BYTES). Then the last trusted address counts. Empty elements are ignored
/// (RFC 9110, section 5.6.1), so a proxy must never append one in place of an address. A client in a
/// trusted network can claim any address.
///
/// An IPv6 host can use any address of its network, so the key is the network: /64 by default. IPv4
/// in IPv6 (`::ffff:192.0.2.7`) always counts as IPv4. Addresses of translators and tunnels have the
/// key of the IPv4 address that they embed, whatever the prefix: NAT64 (`64:ff9b::/96`, RFC 6052),
/// 6to4 (`2002::/16`, RFC 3056) and Teredo (`2001::/32`, RFC 4380). Of 6to4, a host has 65,536
/// networks of /64. Of Teredo, a /64 is a server with all of its clients. Only keys follow this
/// rule: a trusted IPv4 network does not hold such addresses. IPv4 clients behind a translator with
/// a prefix of its own are one key, unless the [prefix](Self::ipv6_prefix) is longer than 96 bits.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_address::{ClientAddress, TrustedProxies};
///
/// let peer: IpAddr = "10.0.0.2".parse()?;
/// let clients = ClientAddress::behind(TrustedProxies::new(["10.0.0.0/8"])?);
/// assert_eq!(clients.header(), Some("x-forwarded-for"));
///
/// // All lines of that header field, in order. Entries that the client wrote are on the left.
/// let lines = ["203.0.113.99, 192.0.2.7", "10.1.2.3"];
/// assert_eq!(clients.key(peer, lines)?.to_string(), "192.0.2.7");
///
/// let lines = ["2001:db8:1:2:3:4:5:6"];
/// assert_eq!(clients.key(peer, lines)?.to_string(), "2001:db8:1:2::");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAddress {
    proxies: Option<(TrustedProxies, Source)>,
    ipv6_prefix: u8,
}

/// The header field that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    XForwardedFor,
    Forwarded,
    Single(Box<str>),
}

impl Default for ClientAddress {
    fn default() -> Self {
        Self::peer()
    }
}

impl ClientAddress {
    /// The most entries of a list that are read, from the right.
    pub const MAX_HOPS: usize = 32;

    /// The most bytes of a header field that are read, from the right, over all its lines.
    pub const MAX_BYTES: usize = 4096;

    /// The address of the peer. Header fields are ignored.
    #[must_use]
    pub const fn peer() -> Self {
        Self { proxies: None, ipv6_prefix: 64 }
    }

    /// The address that these proxies write in `X-Forwarded-For`.
    #[must_use]
    pub fn behind(proxies: TrustedProxies) -> Self {
        Self { proxies: Some((proxies, Source::XForwardedFor)), ..Self::peer() }
    }

    /// The address that these proxies write in `Forwarded` (RFC 7239), as the `for` of an element.
    /// A `for` that RFC 7239 does not allow is not an address, for example IPv6 without brackets.
    #[must_use]
    pub fn behind_forwarded(proxies: TrustedProxies) -> Self {
        Self { proxies: Some((proxies, Source::Forwarded)), ..Self::peer() }
    }

    /// The address that these proxies write in the header field of this name, such as `X-Real-IP`.
    /// It must have one address and replace the client's field.
    ///
    /// # Errors
    ///
    /// [`ClientConfigError`] when no header field can have this name, or the field is a list.
    pub fn behind_header(proxies: TrustedProxies, name: &str) -> Result<Self, ClientConfigError> {
        if name.is_empty() || !name.bytes().all(forwarded::is_token_byte) {
            return Err(ClientConfigError::HeaderName { name: name.into() });
        }
        let name = name.to_ascii_lowercase();
        if name == "x-forwarded-for" || name == "forwarded" {
            return Err(ClientConfigError::ListHeader { name: name.into() });
        }
        Ok(Self { proxies: Some((proxies, Source::Single(name.into()))), ..Self::peer() })
    }

    /// The length of the IPv6 prefix that is one key; 64 by default. Addresses that embed an IPv4
    /// address have its key at any length.
    ///
    /// # Errors
    ///
    /// [`ClientConfigError`] when the length is not from 32 to 128.
    pub fn ipv6_prefix(self, prefix: u8) -> Result<Self, ClientConfigError> {
        if !(32..=128).contains(&prefix) {
            return Err(ClientConfigError::Ipv6Prefix { prefix });
        }
        Ok(Self { ipv6_prefix: prefix, ..self })
    }

    /// The name of the header field to read, in lower case; `None` when only the peer counts.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.proxies.as_ref().map(|(_, source)| match source {
            Source::XForwardedFor => "x-forwarded-for",
            Source::Forwarded => "forwarded",
            Source::Single(name) => name,
        })
    }

    /// The trusted proxies; `None` when only the peer counts.
    #[must_use]
    pub fn proxies(&self) -> Option<&TrustedProxies> {
        self.proxies.as_ref().map(|(proxies, _)| proxies)
    }

    /// The length of the IPv6 prefix that is one key.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// The key of the client: its [`address`](Self::address); if it is IPv6, the IPv4 address that it
    /// embeds, or the first address of its network. Allocates nothing.
    ///
    /// # Errors
    ///
    /// As [`address`](Self::address).
    pub fn key<L>(&self, peer: impl Into<Peer>, lines: L) -> Result<IpAddr, ClientError>
    where
        L: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        Ok(self.key_of(self.address(peer, lines)?))
    }

    /// The [`key`](Self::key) of the client with this [`address`](Self::address).
    #[must_use]
    pub fn key_of(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => embedded::ipv4(v6).map_or_else(|| ipv6_network(v6, self.ipv6_prefix).into(), IpAddr::V4),
        }
    }

    /// The [`key`](Self::key) of a client whose peer is text, as logs and other programs write it: an
    /// address with or without a port, `unix:` for a Unix socket, or a list of addresses that ends
    /// with the peer's. What is before it in the list is the last of the `lines`. Allocates nothing.
    ///
    /// ```
    /// use tollgate_address::{ClientAddress, TrustedProxies};
    ///
    /// let clients = ClientAddress::behind(TrustedProxies::new(["10.0.0.0/8"])?);
    /// let key = |hops: &str, lines: &[&str]| clients.key_of_text(hops.as_bytes(), lines).map(|key| key.to_string());
    /// assert_eq!(key("192.0.2.7:5353", &[]).as_deref(), Ok("192.0.2.7"));
    /// assert_eq!(key("10.0.0.2", &["203.0.113.99, 192.0.2.7"]).as_deref(), Ok("192.0.2.7"));
    /// assert_eq!(key("203.0.113.99, 192.0.2.7, 10.0.0.2", &[]).as_deref(), Ok("192.0.2.7"));
    /// assert!(key("a name", &[]).is_err());
    /// # Ok::<(), tollgate_address::ClientConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`address`](Self::address); [`ClientError::UnknownPeer`] for a text that is no address.
    pub fn key_of_text<L>(&self, peer: &[u8], lines: L) -> Result<IpAddr, ClientError>
    where
        L: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        Ok(self.key_of(self.address_of_text(peer, lines)?))
    }

    /// The [`address`](Self::address) of a client whose peer is text, as [`key_of_text`](Self::key_of_text)
    /// reads it.
    ///
    /// # Errors
    ///
    /// As [`key_of_text`](Self::key_of_text).
    pub fn address_of_text<L>(&self, peer: &[u8], lines: L) -> Result<IpAddr, ClientError>
    where
        L: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        let comma = last_comma(peer);
        let last = node::trim(comma.map_or(peer, |comma| &peer[comma + 1..]));
        let address = match last {
            b"unix:" => Peer::UnixSocket,
            _ => node::in_list(last).map_or(Peer::Unknown, Peer::Address),
        };
        match comma {
            None => self.address(address, lines),
            Some(comma) => self.address(address, lines.into_iter().map(Line::Of).chain([Line::Before(&peer[..comma])])),
        }
    }

    /// The address of the client, in its canonical form. `lines` are the values of all fields with
    /// the name [`header`](Self::header), in the order of the request. They are read only if the
    /// peer is trusted. Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when neither the peer nor the header field has an address, or a header field
    /// with one address comes twice.
    pub fn address<L>(&self, peer: impl Into<Peer>, lines: L) -> Result<IpAddr, ClientError>
    where
        L: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        let peer = peer.into();
        let address = match peer {
            Peer::Address(address) => Some(address.to_canonical()),
            Peer::UnixSocket | Peer::Unknown => None,
        };
        let said = match &self.proxies {
            Some((proxies, source)) if proxies.trust(peer) => {
                let mut lines = lines.into_iter();
                match source {
                    Source::XForwardedFor => walk(proxies, lines, last_comma, node::in_list),
                    Source::Forwarded => walk(proxies, lines, forwarded::last_comma, forwarded::node),
                    Source::Single(_) => {
                        let line = lines.next();
                        if lines.next().is_some() {
                            return Err(ClientError::RepeatedHeader);
                        }
                        line.and_then(|line| single(line.as_ref()))
                    }
                }
            }
            _ => None,
        };
        said.or(address).ok_or(match peer {
            Peer::UnixSocket => ClientError::UnixSocket,
            Peer::Address(_) | Peer::Unknown => ClientError::UnknownPeer,
        })
    }
}

/// The rules in words: `IPv6 by /64; behind 10.0.0.0/8, by x-forwarded-for`.
impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv6 by /{}", self.ipv6_prefix)?;
        match (self.proxies(), self.header()) {
            (Some(proxies), Some(header)) => write!(f, "; behind {proxies}, by {header}"),
            _ => Ok(()),
        }
    }
}

/// A line of a header field, or the addresses before the peer's in a list.
enum Line<'a, L> {
    Of(L),
    Before(&'a [u8]),
}

impl<L: AsRef<[u8]>> AsRef<[u8]> for Line<'_, L> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Of(line) => line.as_ref(),
            Self::Before(list) => list,
        }
    }
}

/// Reads a list from the right. Returns the first address that is not trusted, or else the last
/// that is, if there is any.
fn walk(
    proxies: &TrustedProxies,
    lines: impl DoubleEndedIterator<Item: AsRef<[u8]>>,
    last_comma: fn(&[u8]) -> Option<usize>,
    parse: fn(&[u8]) -> Option<IpAddr>,
) -> Option<IpAddr> {
    let (mut hops, mut bytes) = (ClientAddress::MAX_HOPS, ClientAddress::MAX_BYTES);
    let mut last = None;
    for line in lines.rev() {
        let mut rest = Some(line.as_ref());
        while let Some(list) = rest {
            if hops == 0 {
                return last;
            }
            hops -= 1;
            // An entry that begins before this is cut off, so it is not an address.
            let start = list.len().saturating_sub(bytes);
            let comma = last_comma(&list[start..]).map(|at| start + at);
            if comma.is_none() && start > 0 {
                return last;
            }
            let entry = comma.map_or(list, |comma| &list[comma + 1..]);
            bytes = bytes.saturating_sub(entry.len() + 1);
            let entry = node::trim(entry);
            match parse(entry) {
                Some(address) if proxies.contains(address) => last = Some(address),
                Some(address) => return Some(address),
                None if entry.is_empty() => {}
                None => return last,
            }
            rest = comma.map(|comma| &list[..comma]);
        }
    }
    last
}

/// The one address of a header field.
fn single(line: &[u8]) -> Option<IpAddr> {
    (line.len() <= ClientAddress::MAX_BYTES).then(|| node::in_list(node::trim(line)))?
}

fn last_comma(list: &[u8]) -> Option<usize> {
    list.iter().rposition(|&byte| byte == b',')
}
