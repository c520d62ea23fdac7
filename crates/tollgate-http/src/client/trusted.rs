//! Networks of trusted proxies.

use core::net::IpAddr;

use super::{ClientConfigError, Peer};

/// The proxies whose header fields are trusted.
///
/// Networks are in CIDR notation (`10.0.0.0/8`, `2001:db8::/32`), or single addresses. IPv4 in IPv6
/// is IPv4: `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
///
/// ```
/// use tollgate_http::TrustedProxies;
///
/// let proxies = TrustedProxies::new(["10.0.0.0/8", "2001:db8::1"])?;
/// assert!(proxies.contains("10.1.2.3".parse()?));
/// assert!(proxies.contains("::ffff:10.1.2.3".parse()?));
/// assert!(!proxies.contains("2001:db8::2".parse()?));
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
    /// after its prefix or holds all IPv4 addresses.
    pub fn new<T: AsRef<str>>(networks: impl IntoIterator<Item = T>) -> Result<Self, ClientConfigError> {
        let networks: Box<[Network]> =
            networks.into_iter().map(|text| Network::parse(text.as_ref())).collect::<Result<_, _>>()?;
        if networks.is_empty() {
            return Err(ClientConfigError::NoNetworks);
        }
        Ok(Self { networks, unix_sockets: false })
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

    /// Whether one of the networks holds this address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = bits(address);
        self.networks.iter().any(|network| bits & network.mask == network.bits)
    }

    pub(super) fn trust(&self, peer: Peer) -> bool {
        match peer {
            Peer::Address(address) => self.contains(address),
            Peer::UnixSocket => self.unix_sockets,
            Peer::Unknown => false,
        }
    }
}

/// A network of IPv6. An IPv4 network is its part of `::ffff:0:0/96`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    bits: u128,
    mask: u128,
}

impl Network {
    fn parse(text: &str) -> Result<Self, ClientConfigError> {
        let (network, prefix) = Self::read(text).ok_or_else(|| ClientConfigError::NotANetwork { text: text.into() })?;
        // A prefix of zero shifts by all 128 bits.
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        let bits = bits(network);
        let ipv4 = bits_of_ipv4_zero();
        if prefix <= 96 && ipv4 & mask == bits & mask {
            return Err(ClientConfigError::EveryAddress { text: text.into() });
        }
        if bits & !mask != 0 {
            return Err(ClientConfigError::BitsAfterPrefix { text: text.into() });
        }
        Ok(Self { bits, mask })
    }

    /// The address, and the length of the prefix as that of an IPv6 address.
    fn read(text: &str) -> Option<(IpAddr, u32)> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // No sign, which `parse` would take.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
            None => longest,
        };
        (prefix <= longest).then_some((address, 128 - longest + prefix))
    }
}

/// The address as an IPv6 address.
const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// `::ffff:0.0.0.0`.
const fn bits_of_ipv4_zero() -> u128 {
    core::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().to_bits()
}
