//! An address with or without a port.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An entry of `X-Forwarded-For`: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`, `[2001:db8::1]` or
/// `[2001:db8::1]:80`. In canonical form.
pub(crate) fn in_list(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    // Most entries have no port. The port of an IPv6 address without brackets is read as its last
    // part.
    let address = text.parse().ok().or_else(|| with_port(text, is_port))?;
    Some(address.to_canonical())
}

/// A node of `Forwarded` (RFC 7239, section 6): IPv6 has brackets, and a port may be obfuscated.
/// `unknown` and obfuscated names are not addresses. In canonical form.
pub(crate) fn in_forwarded(node: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(node).ok()?;
    let v4 = text.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    let address = v4.or_else(|| with_port(text, |port| is_port(port) || is_obfuscated(port)))?;
    Some(address.to_canonical())
}

/// IPv6 in brackets, or an address and a port.
fn with_port(text: &str, is_port: fn(&str) -> bool) -> Option<IpAddr> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, after) = bracketed.split_once(']')?;
        if !after.is_empty() && !after.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        return address.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let (address, port) = text.split_once(':')?;
    if !is_port(port) {
        return None;
    }
    address.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn is_port(text: &str) -> bool {
    // No sign, which `parse` would take.
    text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// `obfport`: an underscore, and letters, digits, dots, underscores and hyphens.
fn is_obfuscated(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.strip_prefix('_').is_some_and(|name| !name.is_empty() && name.bytes().all(allowed))
}

/// Removes white space around a value, as header fields define it.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}
