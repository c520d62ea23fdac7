//! Networks of trusted proxies.

use core::net::{IpAddr, Ipv6Addr};

use super::{ClientConfigError, Peer};

/// The proxies whose header fields are trusted.
///
/// Networks are in CIDR notation (`10.0.0.0/8`, `2001:db8::/32`), or single addresses. IPv4 in IPv6
/// is IPv4: `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
///
/// A network is at most as wide as one that an organisation can have, because a wider one holds
/// clients, and each of them could claim any address. The Internet registries give their members at
/// most a /8 of IPv4 and a /16 of IPv6. Only the local networks `fc00::/7` and `fe80::/10` may be
/// wider. Networks of 6to4 (`2002::/16`), Teredo (`2001::/32`) and NAT64 (`64:ff9b::/96`) are as wide
/// as the IPv4 networks that they stand for.
///
/// ```
/// use tollgate_http::{ClientConfigError, TrustedProxies};
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
    /// after its prefix or is too wide.
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

/// The shortest prefix of a network outside the blocks below.
const SHORTEST: u32 = 16;

/// Blocks of addresses: the first address, the length of the prefix, and the shortest prefix of a
/// network that shares addresses with the block.
const BLOCKS: [(Ipv6Addr, u32, u32); 6] = [
    // IPv4, and what stands for it: a /8.
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 96 + 8),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 96 + 8),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 16 + 8),
    // The IPv4 address comes last.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 96 + 8),
    // Local networks.
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 7),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, 10),
];

impl Network {
    fn parse(text: &str) -> Result<Self, ClientConfigError> {
        let (network, prefix) = Self::read(text).ok_or_else(|| ClientConfigError::NotANetwork { text: text.into() })?;
        let (bits, mask) = (bits(network), mask(prefix));
        let shared = BLOCKS.into_iter().filter(|&(block, length, _)| {
            let common = mask & self::mask(length);
            block.to_bits() & common == bits & common
        });
        if prefix < shared.map(|(_, _, shortest)| shortest).max().unwrap_or(SHORTEST) {
            return Err(ClientConfigError::TooWide { text: text.into() });
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

/// The first bits, as many as a prefix has.
const fn mask(prefix: u32) -> u128 {
    // A prefix of zero shifts by all 128 bits.
    match u128::MAX.checked_shl(128 - prefix) {
        Some(mask) => mask,
        None => 0,
    }
}
