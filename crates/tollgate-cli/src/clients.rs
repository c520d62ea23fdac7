//! Who the clients of a log are: the rules of `[client]` or of options, on the columns of a log.

use core::net::{IpAddr, Ipv4Addr};
use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use tollgate_address::{ClientAddress, ipv6_network};

/// The rules, and the columns that the header field of proxies may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clients(Arc<Rules>);

#[derive(Debug, PartialEq, Eq)]
struct Rules {
    address: ClientAddress,
    columns: Vec<String>,
}

/// The names of a header field in logs: `*` is its name, and `@` its name with underscores. A dot
/// leads into an object of JSON.
const COLUMNS: [&str; 9] = [
    "*",
    "@",
    "http_@",
    "cs(*)",
    "request_*",
    "headers.*",
    "request.headers.*",
    "req.headers.*",
    "httpRequest.headers.*",
];

/// The columns that a header field may be in, the likeliest first.
pub(crate) fn columns_of(header: &str) -> Vec<String> {
    let with_underscores = header.replace('-', "_");
    COLUMNS.iter().map(|column| column.replace('*', header).replace('@', &with_underscores)).collect()
}

impl Default for Clients {
    fn default() -> Self {
        Self::new(ClientAddress::default())
    }
}

impl Clients {
    pub(crate) fn new(address: ClientAddress) -> Self {
        let columns = address.header().map(columns_of).unwrap_or_default();
        Self(Arc::new(Rules { address, columns }))
    }

    /// The rules.
    pub(crate) fn address(&self) -> &ClientAddress {
        &self.0.address
    }

    /// The columns that the header field of proxies may be in, the likeliest first.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.columns.iter().map(String::as_str)
    }

    /// The key of a client; its text as it is, if that has no address.
    pub(crate) fn key<'a>(&self, peer: &'a [u8], lines: &[impl AsRef<[u8]>]) -> Cow<'a, [u8]> {
        if self.is_as_written(peer) {
            return peer.into();
        }
        match self.0.address.key_of_text(peer, lines) {
            Ok(address) => text_of(address),
            Err(_) => peer.into(),
        }
    }

    /// The whole address of a client, by which matches find it; `None` if it has none.
    pub(crate) fn whole<'a>(&self, peer: &'a [u8], lines: &[impl AsRef<[u8]>]) -> Option<Cow<'a, [u8]>> {
        if self.is_as_written(peer) {
            return Some(peer.into());
        }
        self.0.address.address_of_text(peer, lines).ok().map(text_of)
    }

    /// Most lines have an IPv4 address that is no proxy: it is the key, and so written.
    fn is_as_written(&self, peer: &[u8]) -> bool {
        let ipv4 = std::str::from_utf8(peer).ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
        let proxies = self.0.address.proxies();
        ipv4.is_some_and(|ipv4| proxies.is_none_or(|proxies| !proxies.contains(ipv4.into())))
    }

    /// The IPv6 network of so many bits of a client; `None` if it has none.
    pub(crate) fn network(&self, bits: u8, peer: &[u8], lines: &[impl AsRef<[u8]>]) -> Option<Cow<'static, [u8]>> {
        match self.0.address.key_of_text(peer, lines) {
            Ok(IpAddr::V6(address)) => Some(text_of(ipv6_network(address, bits).into())),
            _ => None,
        }
    }
}

fn text_of(address: IpAddr) -> Cow<'static, [u8]> {
    // The longest address has 39 bytes.
    let mut text = Vec::with_capacity(40);
    // Writing to memory does not fail.
    let _ = write!(text, "{address}");
    text.into()
}

#[cfg(test)]
mod tests {
    use tollgate_address::TrustedProxies;

    use super::*;

    fn behind() -> Clients {
        Clients::new(ClientAddress::behind(TrustedProxies::new(["10.0.0.0/8"]).unwrap()))
    }

    #[test]
    fn a_client_is_the_key_of_its_address_and_another_text_as_it_is() {
        for (peer, lines, key) in [
            ("192.0.2.7:5353", &[][..], "192.0.2.7"),
            ("[2001:db8::7]:5353", &[], "2001:db8::"),
            ("2001:DB8:0:0:1::7", &[], "2001:db8::"),
            ("::ffff:192.0.2.7", &["203.0.113.9"], "192.0.2.7"),
            ("10.0.0.2", &["203.0.113.9, 192.0.2.7", "10.0.0.3"], "192.0.2.7"),
            ("203.0.113.9, 192.0.2.7, 10.0.0.2", &[], "192.0.2.7"),
            ("10.0.0.2", &["-"], "10.0.0.2"),
            ("10.0.0.2", &["unknown"], "10.0.0.2"),
            ("host:5353", &["203.0.113.9"], "host:5353"),
            ("", &[], ""),
        ] {
            assert_eq!(&*behind().key(peer.as_bytes(), lines), key.as_bytes(), "{peer}");
        }
        assert_eq!(&*Clients::default().key(b"203.0.113.9, 192.0.2.7", &[""; 0]), b"192.0.2.7");
    }

    #[test]
    fn a_network_is_of_an_ipv6_address_alone() {
        let network = |peer: &str| {
            let network = behind().network(48, peer.as_bytes(), &["2001:db8:7:8::9"]);
            network.map(|network| String::from_utf8(network.into_owned()).unwrap())
        };
        for (peer, expected) in [
            ("2001:DB8:1:ffff::7", Some("2001:db8:1::")),
            ("10.0.0.2", Some("2001:db8:7::")),
            ("192.0.2.7", None),
            ("::ffff:192.0.2.7", None),
            ("host", None),
        ] {
            assert_eq!(network(peer).as_deref(), expected, "{peer}");
        }
    }

    #[test]
    fn columns_are_named_by_the_header_field() {
        let expected = ["x-forwarded-for", "x_forwarded_for", "http_x_forwarded_for", "cs(x-forwarded-for)"];
        assert!(behind().columns().take(4).eq(expected));
        assert_eq!(Clients::default().columns().count(), 0);
    }
}
