//! Networks, and the IPv6 network of an address.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use crate::error::ClientConfigError;

/// The first address of the network of so many bits that has this address. From 128 bits on it is
/// the address itself.
///
/// ```
/// use tollgate_address::ipv6_network;
///
/// assert_eq!(ipv6_network("2001:db8:1:2::3".parse()?, 48).to_string(), "2001:db8:1::");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub const fn ipv6_network(address: Ipv6Addr, bits: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & mask(bits as u32))
}

/// A network of IPv6. An IPv4 network is its part of `::ffff:0:0/96`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
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
    pub(crate) fn parse(text: &str) -> Result<Self, ClientConfigError> {
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

    /// Whether it holds this address.
    pub(crate) const fn contains(self, address: IpAddr) -> bool {
        bits(address) & self.mask == self.bits
    }

    /// Whether there are addresses that both hold.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        (self.bits ^ other.bits) & self.mask & other.mask == 0
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
    match u128::MAX.checked_shl(128_u32.saturating_sub(prefix)) {
        Some(mask) => mask,
        None => 0,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, prefix) = (Ipv6Addr::from_bits(self.bits), self.mask.count_ones());
        match address.to_ipv4_mapped() {
            Some(v4) if prefix == 128 => write!(f, "{v4}"),
            Some(v4) => write!(f, "{v4}/{}", prefix.saturating_sub(96)),
            None if prefix == 128 => write!(f, "{address}"),
            None => write!(f, "{address}/{prefix}"),
        }
    }
}
