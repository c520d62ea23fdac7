//! What is checked when trusted networks, names of header fields and errors are made.

use std::net::IpAddr;

use tollgate_http::{ClientAddress, ClientConfigError, ClientError, TrustedProxies};

const NO_LINES: [&str; 0] = [];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap()
}

#[test]
fn networks_hold_the_addresses_of_their_prefix() {
    let holds = |network: &str, address| TrustedProxies::new([network]).unwrap().contains(ip(address));
    for (network, first, last, beside) in [
        ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", ["9.255.255.255", "11.0.0.0"]),
        ("192.0.2.64/26", "192.0.2.64", "192.0.2.127", ["192.0.2.63", "192.0.2.128"]),
        ("192.0.2.7", "192.0.2.7", "192.0.2.7", ["192.0.2.6", "192.0.2.8"]),
        ("192.0.2.7/32", "192.0.2.7", "192.0.2.7", ["192.0.2.6", "192.0.2.8"]),
        ("10.0.0.0/8", "::ffff:a00:0", "::ffff:aff:ffff", ["::a00:1", "2002:a00:1::"]),
        ("2001:db8::/33", "2001:db8::", "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff", ["2001:db8:8000::", "2001:db7::"]),
        ("2001:db8::1", "2001:db8::1", "2001:db8::1", ["2001:db8::", "2001:db8::2"]),
        ("2a00::/16", "2a00::", "2a00:ffff::", ["29ff:ffff::", "2a01::"]),
        ("fc00::/7", "fc00::", "fdff:ffff::", ["fbff::", "fe00::"]),
        ("fe80::/10", "fe80::1", "febf:ffff::", ["fec0::", "192.0.2.1"]),
        ("2002:a00::/24", "2002:a00:1::", "2002:aff:ffff::", ["10.0.0.1", "2002:b00::"]),
    ] {
        assert!(holds(network, first) && holds(network, last), "{network}");
        assert!(!holds(network, beside[0]) && !holds(network, beside[1]), "{network}");
    }
}

#[test]
fn networks_are_checked_when_they_are_built() {
    let error = |text: &str| TrustedProxies::new([text]).unwrap_err();
    for text in [
        "",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/-8",
        "10.0.0.0/ 8",
        "10.0.0.0/8/8",
        "10.0.0.0/99999999999",
        "10.0.0/8",
        "010.0.0.0/8",
        "2001:db8::/129",
        "[2001:db8::]/32",
        "example.com",
        "/8",
    ] {
        assert_eq!(error(text), ClientConfigError::NotANetwork { text: text.into() });
    }
    for text in ["10.0.0.1/8", "2001:db8::1/32", "::ffff:10.0.0.1/104"] {
        assert_eq!(error(text), ClientConfigError::BitsAfterPrefix { text: text.into() });
    }
    assert_eq!(TrustedProxies::new(NO_LINES).unwrap_err(), ClientConfigError::NoNetworks);
}

#[test]
fn networks_that_overlap_are_a_mistake() {
    for (networks, other) in [
        (["10.0.0.0/8", "10.1.2.3"], "10.0.0.0/8"),
        (["10.1.2.3", "10.0.0.0/8"], "10.1.2.3"),
        (["192.0.2.7", "::ffff:192.0.2.7"], "192.0.2.7"),
        (["2001:db8::/32", "2001:db8::/48"], "2001:db8::/32"),
    ] {
        let error = TrustedProxies::new(networks).unwrap_err();
        assert_eq!(error, ClientConfigError::Overlap { text: networks[1].into(), other: other.into() });
    }
    let proxies = TrustedProxies::new(["10.0.0.0/8", "11.0.0.0/8", "unix", "::a00:1", "::ffff:192.0.2.0/120"]).unwrap();
    assert_eq!(proxies.to_string(), "10.0.0.0/8, 11.0.0.0/8, ::a00:1, 192.0.2.0/24, unix");
    assert_eq!(TrustedProxies::new(proxies.to_texts()).as_ref(), Ok(&proxies));
    assert_eq!(TrustedProxies::new(["unix"]), Ok(TrustedProxies::unix_sockets()));
}

/// The Internet registries give their members at most a /8 of IPv4 and a /16 of IPv6.
#[test]
fn networks_are_not_wider_than_what_an_organisation_has() {
    for text in [
        "0.0.0.0/0",
        "0.0.0.0/1",
        "10.0.0.0/7",
        "10.0.0.0/0",
        "::ffff:0:0/96",
        "::ffff:10.0.0.0/103",
        "::/0",
        "::/1",
        "::/80",
        "2000::/3",
        "2a00::/12",
        "2a00::/15",
        "2001::/16",
        "8000::/1",
        "f000::/4",
        "fc00::/6",
        "fe80::/9",
        "fec0::/10",
        // All of IPv4, or more than a /8 of it, by another name.
        "2002::/16",
        "2002:a00::/23",
        "2001::/32",
        "2001::/64",
        "64:ff9b::/96",
        "64:ff9b::a00:0/103",
    ] {
        let error = TrustedProxies::new(["192.0.2.1", text]).unwrap_err();
        assert_eq!(error, ClientConfigError::TooWide { text: text.into() });
    }
    for text in ["10.0.0.0/8", "::ffff:10.0.0.0/104", "2a00::/16", "2001:db8::/32", "fc00::/7", "fd00::/8"] {
        assert!(TrustedProxies::new([text]).is_ok(), "{text}");
    }
    for text in ["fe80::/10", "2002:a00::/24", "64:ff9b::a00:0/104", "2001::3fff:fdd2/128"] {
        assert!(TrustedProxies::new([text]).is_ok(), "{text}");
    }
}

#[test]
fn names_of_header_fields_are_checked_when_they_are_built() {
    let error = |name| ClientAddress::behind_header(proxies(), name).unwrap_err();
    for name in ["", "x real ip", "x-real-ip:", "x-réal-ip", "x\r\n"] {
        assert_eq!(error(name), ClientConfigError::HeaderName { name: name.into() });
    }
    for name in ["X-Forwarded-For", "Forwarded"] {
        assert_eq!(error(name), ClientConfigError::ListHeader { name: name.to_ascii_lowercase().into() });
    }
    assert_eq!(ClientAddress::behind(proxies()).header(), Some("x-forwarded-for"));
    assert_eq!(ClientAddress::behind_forwarded(proxies()).header(), Some("forwarded"));
}

#[test]
fn every_error_has_a_remedy() {
    for (error, words) in [
        (ClientConfigError::NoNetworks, "at least one network"),
        (ClientConfigError::NotANetwork { text: "x".into() }, "'x' is not a network"),
        (ClientConfigError::BitsAfterPrefix { text: "x".into() }, "'x' has bits after its prefix"),
        (ClientConfigError::TooWide { text: "x".into() }, "'x' is too wide"),
        (ClientConfigError::Overlap { text: "x".into(), other: "y".into() }, "'x' overlaps with 'y': leave one"),
        (ClientConfigError::HeaderName { name: "x".into() }, "'x' cannot be the name"),
        (ClientConfigError::ListHeader { name: "x".into() }, "'x' is a list"),
        (ClientConfigError::Ipv6Prefix { prefix: 3 }, "prefix of 3 bits"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    for error in [ClientError::UnknownPeer, ClientError::UnixSocket, ClientError::RepeatedHeader] {
        assert!(!error.to_string().is_empty());
    }
}
