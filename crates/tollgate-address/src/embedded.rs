//! IPv6 addresses that embed the IPv4 address of a host.

use core::net::{Ipv4Addr, Ipv6Addr};

/// The IPv4 address behind an IPv6 address of a translator or tunnel, if it is one of these:
/// - NAT64, `64:ff9b::/96` (RFC 6052, section 2.1): the last 32 bits.
/// - 6to4, `2002::/16` (RFC 3056, section 2): the 32 bits after the prefix. The host has a /48.
/// - Teredo, `2001::/32` (RFC 4380, section 4): the last 32 bits, inverted. A /64 is a server, which
///   many hosts share, and of which a host can choose many.
///
/// Answers to all of them go to that IPv4 address, so a client with a connection has it.
pub(crate) fn ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let ipv4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(ipv4(high, low)),
        [0x2002, high, low, ..] => Some(ipv4(high, low)),
        [0x2001, 0, .., high, low] => Some(ipv4(!high, !low)),
        _ => None,
    }
}
