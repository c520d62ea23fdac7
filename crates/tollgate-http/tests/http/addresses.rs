//! Which address a client has, case by case.

use std::net::{IpAddr, SocketAddr};

use tollgate_http::{ClientAddress, ClientConfigError, ClientError, Peer, TrustedProxies};

const NO_LINES: [&str; 0] = [];
const PROXY: &str = "10.0.0.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap()
}

#[track_caller]
fn check(clients: &ClientAddress, peer: &str, lines: &[&str], expected: &str) {
    let address = clients.address(ip(peer), lines);
    assert_eq!(address, Ok(ip(expected)), "{lines:?}");
}

#[track_caller]
fn x_forwarded_for(lines: &[&str], expected: &str) {
    check(&ClientAddress::behind(proxies()), PROXY, lines, expected);
}

#[track_caller]
fn forwarded(lines: &[&str], expected: &str) {
    check(&ClientAddress::behind_forwarded(proxies()), PROXY, lines, expected);
}

#[test]
fn only_the_peer_counts_by_default() {
    let clients = ClientAddress::default();
    assert_eq!(clients, ClientAddress::peer());
    assert_eq!(clients.header(), None);
    check(&clients, "192.0.2.1", &["203.0.113.9"], "192.0.2.1");
    check(&clients, PROXY, &["203.0.113.9"], PROXY);
}

#[test]
fn a_peer_that_is_not_trusted_is_the_client() {
    for clients in [
        ClientAddress::behind(proxies()),
        ClientAddress::behind_forwarded(proxies()),
        ClientAddress::behind_header(proxies(), "x-real-ip").unwrap(),
    ] {
        check(&clients, "192.0.2.1", &["203.0.113.9"], "192.0.2.1");
        check(&clients, "192.0.2.1", &["for=203.0.113.9"], "192.0.2.1");
    }
}

#[test]
fn the_first_address_from_the_right_that_is_not_trusted_is_the_client() {
    x_forwarded_for(&["192.0.2.7"], "192.0.2.7");
    x_forwarded_for(&["203.0.113.9, 192.0.2.7"], "192.0.2.7");
    x_forwarded_for(&["203.0.113.9,192.0.2.7 ,\t10.0.0.3,10.0.0.2"], "192.0.2.7");
    x_forwarded_for(&["2001:db8::9, 2001:db8:ffff::1"], "2001:db8::9");
}

#[test]
fn all_lines_are_one_list() {
    x_forwarded_for(&["203.0.113.9", "192.0.2.7"], "192.0.2.7");
    x_forwarded_for(&["203.0.113.9, 192.0.2.7", "10.0.0.3", "10.0.0.2"], "192.0.2.7");
    forwarded(&["for=203.0.113.9", "for=192.0.2.7, for=10.0.0.3", "for=10.0.0.2"], "192.0.2.7");
}

#[test]
fn if_all_are_trusted_the_leftmost_is_the_client_and_without_any_the_peer() {
    x_forwarded_for(&["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4");
    x_forwarded_for(&[], PROXY);
    forwarded(&["for=10.0.0.4, for=10.0.0.3"], "10.0.0.4");
    forwarded(&[], PROXY);
}

#[test]
fn reading_stops_at_an_entry_that_is_not_an_address() {
    for stop in [
        "unknown",
        "_hidden",
        "example.com",
        "192.0.2.256",
        "192.0.2.07",
        "192.0.2.7:",
        "192.0.2.7:65536",
        "192.0.2.7:+80",
        "192.0.2.7:80:80",
        "192.0.2.7:_port",
        "[2001:db8::7",
        "[2001:db8::7]80",
        "[2001:db8::7]:",
        "[192.0.2.7]",
        "2001:db8::7]",
        "fe80::1%eth0",
        "\"192.0.2.7\"",
        "192.0.2.7 192.0.2.8",
        "for=192.0.2.7",
        "192.0.2.7\u{a0}",
    ] {
        // Further left is what the client wrote.
        x_forwarded_for(&[&format!("203.0.113.9, {stop}, 10.0.0.2")], "10.0.0.2");
        x_forwarded_for(&["203.0.113.9", stop, "10.0.0.3", "10.0.0.2"], "10.0.0.3");
        x_forwarded_for(&["203.0.113.9", stop], PROXY);
    }
    let clients = ClientAddress::behind(proxies());
    assert_eq!(clients.address(ip(PROXY), [b"203.0.113.9, \xff".as_slice()]), Ok(ip(PROXY)));
}

#[test]
fn empty_elements_of_a_list_are_ignored() {
    for list in ["X,", "X, ", ",X", "203.0.113.9,,X", "X,,10.0.0.2", ",,X,\t, ,10.0.0.2, ,", " ,\tX ,"] {
        x_forwarded_for(&[&list.replace('X', "192.0.2.7")], "192.0.2.7");
        let elements = list.replace('X', "192.0.2.7").replace("192", "for=192").replace("203", "for=203");
        forwarded(&[&elements.replace("10.", "for=10.")], "192.0.2.7");
    }
    // Also those that are a line.
    x_forwarded_for(&["203.0.113.9", "192.0.2.7", "", "10.0.0.2", " "], "192.0.2.7");
    forwarded(&["for=203.0.113.9", "for=192.0.2.7", "", "for=10.0.0.2", " "], "192.0.2.7");
    for none in ["", " ", ",", " ,\t, "] {
        x_forwarded_for(&[none], PROXY);
        forwarded(&[none, none], PROXY);
    }
}

#[test]
fn empty_elements_count_as_entries() {
    let commas = |count| ",".repeat(count);
    x_forwarded_for(&[&format!("192.0.2.7{}", commas(ClientAddress::MAX_HOPS - 1))], "192.0.2.7");
    x_forwarded_for(&[&format!("192.0.2.7{}", commas(ClientAddress::MAX_HOPS))], PROXY);
    forwarded(&[&format!("for=192.0.2.7{}", commas(ClientAddress::MAX_HOPS))], PROXY);
}

#[test]
fn ports_are_understood() {
    x_forwarded_for(&["192.0.2.7:1"], "192.0.2.7");
    x_forwarded_for(&["192.0.2.7:65535, 10.0.0.3:80"], "192.0.2.7");
    x_forwarded_for(&["[2001:db8::7]:443"], "2001:db8::7");
    x_forwarded_for(&["[2001:db8::7]"], "2001:db8::7");
    x_forwarded_for(&["2001:db8::7"], "2001:db8::7");
    forwarded(&["for=\"192.0.2.7:80\""], "192.0.2.7");
    forwarded(&["for=\"192.0.2.7:_a.b-C_1\""], "192.0.2.7");
    forwarded(&["for=\"[2001:db8::7]:443\""], "2001:db8::7");
    forwarded(&["for=\"[2001:db8::7]:_x\""], "2001:db8::7");
}

#[test]
fn the_examples_of_rfc_7239() {
    forwarded(&["for=\"_gazonk\""], PROXY);
    forwarded(&["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17");
    forwarded(&["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60");
    forwarded(&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17");
    forwarded(&["for=_hidden, for=_SEVKISEK"], PROXY);
    forwarded(&["for=192.0.2.43,for=\"[2001:db8:cafe::17]\",for=unknown"], PROXY);
    forwarded(&["for=192.0.2.43, for=\"[2001:db8:ffff::17]\""], "192.0.2.43");
}

#[test]
fn an_element_of_forwarded_has_any_order_and_case() {
    forwarded(&["proto=https;by=\"_a,b;c\\\"\";FOR=192.0.2.7"], "192.0.2.7");
    forwarded(&["proto=https ; for=192.0.2.7 ; host=\"a,for=203.0.113.9\""], "192.0.2.7");
    forwarded(&["for=192.0.2.7;"], "192.0.2.7");
    forwarded(&[";;for=192.0.2.7;x=\"\""], "192.0.2.7");
    forwarded(&["for=192.0.2.7;x=\"a\\\\\\\"\""], "192.0.2.7");
}

#[test]
fn reading_stops_at_an_element_that_rfc_7239_does_not_allow() {
    for stop in [
        ";",
        "proto=http",
        "for",
        "for=",
        "for=\"\"",
        "=192.0.2.7",
        "192.0.2.7",
        "for =192.0.2.7",
        "for= 192.0.2.7",
        "for=192.0.2.7 proto=http",
        "for=192.0.2.7;for=192.0.2.8",
        "for=192.0.2.7;for=unknown",
        "for=2001:db8::7",
        "for=\"2001:db8::7\"",
        "for=[2001:db8::7]",
        "for=192.0.2.7:80",
        "for=\"192.0.2.7:_\"",
        "for=\"192.0.2.7:_a b\"",
        "for=\"192.0.2.\\7\"",
        "for=\"192.0.2.7",
        "for=192.0.2.7\"",
        "for=192.0.2.7;x=\"a\\\"",
        "for=192.0.2.7;x=\"\u{1}\"",
        "for=192.0.2.7;x=\u{e9}",
        "for=192.0.2.7;b\u{e9}=c",
    ] {
        forwarded(&[&format!("for=203.0.113.9, {stop}, for=10.0.0.2")], "10.0.0.2");
        forwarded(&["for=203.0.113.9", stop], PROXY);
    }
}

#[test]
fn a_quote_that_the_client_never_closed_hides_nothing() {
    for front in ["for=\"", "for=\"a\\\"", "\"", "for=203.0.113.9;by=\"x", "\\", "for=\"203.0.113.9\\"] {
        forwarded(&[&format!("{front}, for=192.0.2.7")], "192.0.2.7");
        forwarded(&[&format!("{front}, for=\"192.0.2.7:80\", for=\"10.0.0.3:80\"")], "192.0.2.7");
    }
}

#[test]
fn one_named_header_field_has_one_address() {
    let clients = ClientAddress::behind_header(proxies(), "X-Real-IP").unwrap();
    assert_eq!(clients.header(), Some("x-real-ip"));
    check(&clients, PROXY, &["192.0.2.7"], "192.0.2.7");
    check(&clients, PROXY, &[" [2001:db8::7]:80\t"], "2001:db8::7");
    check(&clients, PROXY, &[], PROXY);
    for stop in ["203.0.113.9, 192.0.2.7", "unknown", "", "for=192.0.2.7"] {
        check(&clients, PROXY, &[stop], PROXY);
    }
    let long = format!("{}192.0.2.7", " ".repeat(ClientAddress::MAX_BYTES));
    check(&clients, PROXY, &[&long], PROXY);
}

#[test]
fn a_header_field_with_one_address_that_comes_twice_is_refused() {
    let clients = ClientAddress::behind_header(proxies(), "x-real-ip").unwrap();
    let twice = ["192.0.2.7", "192.0.2.7"];
    assert_eq!(clients.key(ip(PROXY), twice), Err(ClientError::RepeatedHeader));
    assert!(!ClientError::RepeatedHeader.is_missing());
    // It says nothing where it is not looked at.
    assert_eq!(clients.key(ip("192.0.2.1"), twice), Ok(ip("192.0.2.1")));
}

#[test]
fn at_most_32_entries_are_read() {
    let mut lines = vec!["10.0.0.9"; ClientAddress::MAX_HOPS - 1];
    lines.insert(0, "192.0.2.7");
    x_forwarded_for(&lines, "192.0.2.7");
    x_forwarded_for(&[&lines.join(",")], "192.0.2.7");
    lines.push("10.0.0.2");
    x_forwarded_for(&lines, "10.0.0.9");
    x_forwarded_for(&[&lines.join(",")], "10.0.0.9");
    x_forwarded_for(&[&lines[..9].join(","), &lines[9..].join(",")], "10.0.0.9");
}

#[test]
fn at_most_4_kib_are_read() {
    let (client, hop) = ("192.0.2.7", ",10.0.0.2");
    let room = ClientAddress::MAX_BYTES - client.len() - hop.len();
    for (spaces, expected) in [(room, client), (room + 1, "10.0.0.2"), (100_000, "10.0.0.2")] {
        let spaces = " ".repeat(spaces);
        x_forwarded_for(&[&format!("{client}{spaces}{hop}")], expected);
        x_forwarded_for(&[&format!("{client}{spaces}"), &hop[1..]], expected);
        x_forwarded_for(&[client, &format!("{spaces}{hop}")], "10.0.0.2");
    }
    // What is further left does not matter to an entry that is read whole.
    x_forwarded_for(&[&format!("{},{client}{hop}", "1".repeat(100_000))], client);
    forwarded(&[&format!("{},for=192.0.2.7", "\"".repeat(100_001))], client);
    forwarded(&[&format!("for=192.0.2.7;x=\"{}\"", "a".repeat(ClientAddress::MAX_BYTES))], PROXY);
}

#[test]
fn addresses_are_put_into_canonical_form_first() {
    let clients = ClientAddress::behind(proxies());
    // An IPv4 client of a socket that is bound to `[::]`.
    assert_eq!(clients.key(ip("::ffff:192.0.2.1"), NO_LINES), Ok(ip("192.0.2.1")));
    check(&clients, "::ffff:10.0.0.1", &["192.0.2.7"], "192.0.2.7");
    x_forwarded_for(&["::ffff:192.0.2.7, ::ffff:10.0.0.3"], "192.0.2.7");
    x_forwarded_for(&["[::ffff:192.0.2.7]:80"], "192.0.2.7");
    x_forwarded_for(&["::ffff:c000:207"], "192.0.2.7");
    forwarded(&["for=\"[::ffff:192.0.2.7]\", for=\"[::ffff:10.0.0.3]:80\""], "192.0.2.7");

    let mapped = TrustedProxies::new(["::ffff:10.0.0.0/104"]).unwrap();
    assert_eq!(mapped, TrustedProxies::new(["10.0.0.0/8"]).unwrap());
    check(&ClientAddress::behind(mapped), PROXY, &["192.0.2.7"], "192.0.2.7");
}

#[test]
fn ipv6_clients_are_networks() {
    let clients = ClientAddress::peer();
    let key = |clients: &ClientAddress| clients.key(ip("2001:db8:1:2:3:4:5:6"), NO_LINES).unwrap().to_string();
    assert_eq!(key(&clients), "2001:db8:1:2::");
    for (prefix, expected) in [
        (32, "2001:db8::"),
        (48, "2001:db8:1::"),
        (56, "2001:db8:1::"),
        (63, "2001:db8:1:2::"),
        (127, "2001:db8:1:2:3:4:5:6"),
        (128, "2001:db8:1:2:3:4:5:6"),
    ] {
        assert_eq!(key(&clients.clone().ipv6_prefix(prefix).unwrap()), expected);
    }
    for prefix in [0, 31, 129, 255] {
        let error = clients.clone().ipv6_prefix(prefix).unwrap_err();
        assert_eq!(error, ClientConfigError::Ipv6Prefix { prefix });
    }
    // Not masked to `::`, all of IPv4 one key.
    assert_eq!(clients.key(ip("::ffff:192.0.2.7"), NO_LINES), Ok(ip("192.0.2.7")));
    assert_eq!(clients.key(ip("192.0.2.7"), NO_LINES), Ok(ip("192.0.2.7")));
    // The address itself is whole.
    check(&clients, "2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2:3:4:5:6");
}

#[test]
fn addresses_that_embed_an_ipv4_address_have_its_key() {
    for (prefix, from) in [(32, ClientAddress::peer()), (64, ClientAddress::peer()), (128, ClientAddress::peer())] {
        let clients = from.ipv6_prefix(prefix).unwrap();
        for (address, expected) in [
            // RFC 3056, section 2: the /48 of a site has its IPv4 address.
            ("2002:c000:207::1", "192.0.2.7"),
            ("2002:c000:207:ffff:1:2:3:4", "192.0.2.7"),
            ("2002:c000:208::1", "192.0.2.8"),
            // The example of RFC 4380, section 4: of the client, not of the server, and inverted.
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45"),
            ("2001:0:cb00:7109:0:1:3fff:fdd2", "192.0.2.45"),
            // RFC 6052, section 2.4.
            ("64:ff9b::192.0.2.33", "192.0.2.33"),
        ] {
            assert_eq!(clients.key(ip(address), NO_LINES), Ok(ip(expected)), "{address} with /{prefix}");
            // The address itself is whole.
            check(&clients, address, &[], address);
        }
    }
    // Beside those networks.
    for (address, expected) in [
        ("2003:c000:207:1::1", "2003:c000:207:1::"),
        ("2001:1:4136:e378:8000:63bf:3fff:fdd2", "2001:1:4136:e378::"),
        ("64:ff9b::1:192.0.2.33", "64:ff9b::"),
        ("64:ff9b:1::192.0.2.33", "64:ff9b:1::"),
    ] {
        assert_eq!(ClientAddress::peer().key(ip(address), NO_LINES), Ok(ip(expected)), "{address}");
    }
}

/// Whoever is at the other end of a tunnel is not the proxy of that IPv4 address.
#[test]
fn an_embedded_ipv4_address_is_not_trusted() {
    let clients = ClientAddress::behind(proxies());
    for address in ["2002:a00:1::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "64:ff9b::10.0.0.1"] {
        assert!(!proxies().contains(ip(address)));
        assert_eq!(clients.address(ip(address), ["203.0.113.9"]), Ok(ip(address)));
        x_forwarded_for(&[&format!("203.0.113.9, {address}")], address);
    }
}

#[test]
fn a_unix_socket_is_trusted_only_if_configured_so() {
    let lines = ["203.0.113.9, 192.0.2.7"];
    let missing = Err(ClientError::UnixSocket);
    assert_eq!(ClientAddress::peer().key(Peer::UnixSocket, lines), missing);
    assert_eq!(ClientAddress::behind(proxies()).key(Peer::UnixSocket, lines), missing);
    for proxies in [TrustedProxies::unix_sockets(), proxies().and_unix_sockets()] {
        let clients = ClientAddress::behind(proxies);
        assert_eq!(clients.key(Peer::UnixSocket, lines), Ok(ip("192.0.2.7")));
        assert_eq!(clients.key(Peer::UnixSocket, NO_LINES), missing);
        assert_eq!(clients.key(Peer::UnixSocket, ["203.0.113.9, unknown"]), missing);
        // A server that does not tell is not a Unix socket.
        assert_eq!(clients.key(Peer::Unknown, lines), Err(ClientError::UnknownPeer));
    }
    assert!(ClientError::UnixSocket.is_missing() && ClientError::UnknownPeer.is_missing());
}

#[test]
fn a_peer_is_an_address_without_its_port() {
    let socket: SocketAddr = "192.0.2.1:80".parse().unwrap();
    assert_eq!(ClientAddress::peer().key(socket, NO_LINES), Ok(ip("192.0.2.1")));
}
