//! Client addresses of any header field: nothing that a client writes changes its key, and nothing
//! makes a parser panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use tollgate_http::{ClientAddress, TrustedProxies};

const PROXY: &str = "10.0.0.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap()
}

fn all_sources() -> [ClientAddress; 4] {
    [
        ClientAddress::peer(),
        ClientAddress::behind(proxies()),
        ClientAddress::behind_forwarded(proxies()),
        ClientAddress::behind_header(proxies(), "x-real-ip").unwrap(),
    ]
}

/// One entry, and the address that it has.
#[derive(Debug, Clone)]
struct Entry {
    text: String,
    address: Option<IpAddr>,
}

impl Entry {
    fn is_trusted(&self) -> bool {
        self.address.is_some_and(|address| match address {
            IpAddr::V4(v4) => v4.octets()[0] == 10,
            IpAddr::V6(v6) => v6.segments()[..3] == [0x2001, 0xdb8, 0xffff],
        })
    }
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 3]>().prop_map(|[b, c, d]| IpAddr::from([10, b, c, d])),
        any::<[u16; 5]>().prop_map(|[d, e, f, g, h]| IpAddr::from([0x2001, 0xdb8, 0xffff, d, e, f, g, h])),
        any::<[u16; 7]>().prop_map(|[b, c, d, e, f, g, h]| IpAddr::from([0x2001, b, c, d, e, f, g, h])),
    ]
}

fn is_trusted(address: &IpAddr) -> bool {
    Entry { text: String::new(), address: Some(*address) }.is_trusted()
}

/// An address that is not one of a trusted proxy.
fn any_client() -> impl Strategy<Value = IpAddr> {
    any_address().prop_filter("a proxy", |address| !is_trusted(address))
}

/// Both of one address: an entry of `X-Forwarded-For`, and an element of `Forwarded`.
fn texts_of(address: IpAddr, port: Option<u16>, quoted: bool) -> [String; 2] {
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let node = match address {
        IpAddr::V4(v4) => format!("{v4}{port}"),
        IpAddr::V6(v6) => format!("[{v6}]{port}"),
    };
    let quoted = quoted || node.contains([':', '[']);
    let element = if quoted { format!("by=\"a,\\\";b\";For=\"{node}\"") } else { format!("for={node};proto=http") };
    match address {
        IpAddr::V6(v6) if port.is_empty() => [v6.to_string(), element],
        _ => [node, element],
    }
}

fn any_entry() -> impl Strategy<Value = [Entry; 2]> {
    let good = (any_address(), any::<Option<u16>>(), any::<bool>()).prop_map(|(address, port, quoted)| {
        texts_of(address, port, quoted).map(|text| Entry { text, address: Some(address) })
    });
    let bad = prop_oneof![Just("unknown"), Just("_hidden"), Just(";"), Just("1.2.3"), Just("::ffff:1.2.3.4.5")];
    let bad =
        bad.prop_map(|text| [text.to_owned(), format!("for=\"{text}\"")].map(|text| Entry { text, address: None }));
    let empty = Just(["", ""].map(|text| Entry { text: text.to_owned(), address: None }));
    prop_oneof![20 => good, 1 => bad, 2 => empty]
}

/// The rule as documented, from a list of parsed entries.
fn client_of(entries: &[Entry]) -> IpAddr {
    let hops = || entries.iter().rev().take(ClientAddress::MAX_HOPS).filter(|entry| !entry.text.is_empty());
    let trusted = hops().take_while(|entry| entry.is_trusted());
    let last = trusted.clone().last().and_then(|entry| entry.address);
    let next = hops().nth(trusted.count()).and_then(|entry| entry.address);
    next.or(last).unwrap_or(ip(PROXY))
}

/// Entries as lines: joined by what separates them within a line, or by a new line.
fn lines_of(entries: &[Entry], separators: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (entry, separator) in entries.iter().zip(separators) {
        match (lines.last_mut(), separator % 4) {
            (Some(line), 1) => *line += &format!(",{}", entry.text),
            (Some(line), 2) => *line += &format!(", {}", entry.text),
            (Some(line), 3) => *line += &format!(" \t,\t {} ", entry.text),
            _ => lines.push(entry.text.clone()),
        }
    }
    lines
}

/// What a client may put into a header field, with what it may try.
fn front() -> impl Strategy<Value = Vec<u8>> {
    let tricks = prop_oneof![
        Just(", ".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just(";".to_owned()),
        Just("for=".to_owned()),
        Just("for=203.0.113.9".to_owned()),
        Just("10.0.0.7".to_owned()),
        Just("[".to_owned()),
        Just("203.0.113.9".to_owned()),
        Just(",".repeat(5_000)),
        ".{0,5}",
    ];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        proptest::collection::vec(tricks, 0..20).prop_map(|parts| parts.concat().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_list_is_walked_as_it_is_said(
        entries in proptest::collection::vec(any_entry(), 0..40),
        separators in proptest::collection::vec(any::<u8>(), 40),
    ) {
        let [x_forwarded_for, forwarded] = [0, 1].map(|at| {
            entries.iter().map(|both: &[Entry; 2]| both[at].clone()).collect::<Vec<_>>()
        });
        let expected = Ok(client_of(&x_forwarded_for));
        let lines = lines_of(&x_forwarded_for, &separators);
        prop_assert_eq!(ClientAddress::behind(proxies()).address(ip(PROXY), &lines), expected);
        let lines = lines_of(&forwarded, &separators);
        prop_assert_eq!(ClientAddress::behind_forwarded(proxies()).address(ip(PROXY), &lines), expected);
    }

    /// Proxies append the address that they see, to the same line or as a new one, and other
    /// proxies after them append their own.
    #[test]
    fn text_that_a_client_writes_in_front_does_not_change_its_key(
        fronts in proptest::collection::vec(front(), 0..4),
        same_line: bool,
        client in any_client(),
        hops in proptest::collection::vec(any_address(), 0..5),
    ) {
        let hops: Vec<IpAddr> = hops.into_iter().filter(is_trusted).collect();
        let sources = [ClientAddress::behind(proxies()), ClientAddress::behind_forwarded(proxies())];
        for (at, clients) in sources.into_iter().enumerate() {
            let mut chain = vec![client];
            chain.extend(&hops);
            let appended: Vec<String> = chain.iter().map(|&hop| texts_of(hop, None, false)[at].clone()).collect();
            let appended = appended.join(", ").into_bytes();
            let mut lines = fronts.clone();
            match lines.last_mut() {
                Some(line) if same_line => {
                    line.extend(b", ");
                    line.extend(appended);
                }
                _ => lines.push(appended),
            }
            let without = clients.key(ip(PROXY), [texts_of(client, None, false)[at].as_bytes()]);
            prop_assert_eq!(clients.key(ip(PROXY), &lines), without);
        }
    }

    #[test]
    fn a_client_that_connects_itself_cannot_change_its_key(
        lines in proptest::collection::vec(front(), 0..4),
        client in any_client(),
    ) {
        let key = ClientAddress::peer().key(client, &lines);
        for clients in all_sources() {
            prop_assert_eq!(clients.key(client, &lines), key);
        }
    }

    #[test]
    fn nothing_makes_a_parser_panic(
        lines in proptest::collection::vec(front(), 0..4),
        text: String,
    ) {
        for clients in all_sources() {
            let _ = clients.key(ip(PROXY), &lines);
            let _ = clients.key(ip(PROXY), [&text]);
        }
        let _ = TrustedProxies::new([&text]);
        let _ = ClientAddress::behind_header(proxies(), &text);
    }

    /// Bytes that the grammar of `Forwarded` gives a meaning, in any order.
    #[test]
    fn nothing_makes_the_parser_of_forwarded_panic(line in r#"[fFoOrR=";,:_\\\[\] 0-9a-f.]{0,200}"#) {
        let key = ClientAddress::behind_forwarded(proxies()).key(ip(PROXY), [&line]);
        prop_assert!(key.is_ok());
        let appended = format!("{line},for=192.0.2.7");
        prop_assert_eq!(ClientAddress::behind_forwarded(proxies()).key(ip(PROXY), [appended]), Ok(ip("192.0.2.7")));
    }

    /// Whatever a tunnel's other parts are: one host has one key.
    #[test]
    fn a_host_of_ipv4_has_one_key_behind_any_tunnel(v4: Ipv4Addr, other: u128, prefix in 32..=128_u8) {
        let bits = u128::from(v4.to_bits());
        let clients = ClientAddress::peer().ipv6_prefix(prefix).unwrap();
        for address in [
            (0x2002 << 112) | (bits << 80) | (other >> 48),
            (0x2001_0000 << 96) | ((other >> 64 << 32) & (u128::MAX >> 32)) | u128::from(!v4.to_bits()),
            (0x0064_ff9b << 96) | bits,
            (0xffff << 32) | bits,
        ] {
            let address = IpAddr::from(Ipv6Addr::from_bits(address));
            prop_assert_eq!(clients.key(address, [""; 0]), Ok(v4.into()), "{}", address);
        }
    }

    #[test]
    fn text_beyond_4_kib_does_not_matter(
        near in proptest::collection::vec(any::<u8>(), ClientAddress::MAX_BYTES..ClientAddress::MAX_BYTES + 100),
        far in front(),
        other in front(),
    ) {
        for clients in [ClientAddress::behind(proxies()), ClientAddress::behind_forwarded(proxies())] {
            let keys = [&far, &other].map(|far| {
                // Not empty, so that both lines are longer than what is read.
                let line = [b"a", far.as_slice(), &near].concat();
                clients.key(ip(PROXY), [line])
            });
            prop_assert_eq!(keys[0], keys[1]);
        }
    }

    #[test]
    fn networks_agree_with_std(address in any_address(), bits: u128, longer in 0..=24_u32) {
        // Of a registry, so that the shortest prefix is that of any organisation.
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => IpAddr::from(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX >> 16) | (0x2a00 << 112))),
        };
        let prefix = longer + if address.is_ipv4() { 8 } else { 16 };
        let network = match address {
            IpAddr::V4(v4) => IpAddr::from((v4.to_bits() & (u32::MAX << (32 - prefix))).to_be_bytes()),
            IpAddr::V6(v6) => IpAddr::from((v6.to_bits() & (u128::MAX << (128 - prefix))).to_be_bytes()),
        };
        // A random address has the first bits of the network now and then, if it has any.
        let other = match address {
            IpAddr::V4(v4) => {
                let bits = u32::try_from(bits >> 96).unwrap();
                IpAddr::from((v4.to_bits() ^ (bits >> (bits % 32))).to_be_bytes())
            }
            IpAddr::V6(v6) => IpAddr::from((v6.to_bits() ^ (bits >> (bits % 128))).to_be_bytes()),
        };
        let first = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits() >> (32 - prefix)),
            IpAddr::V6(v6) => v6.to_bits() >> (128 - prefix),
        };
        let proxies = TrustedProxies::new([format!("{network}/{prefix}")]).unwrap();
        prop_assert!(proxies.contains(address));
        prop_assert_eq!(proxies.contains(other), first(address) == first(other));
    }
}
