//! A client cannot choose its key by header fields.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::{HeaderValue, Request};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Limiter, MockClock, Quota};
use tollgate_http::{ClientAddress, Peer, TrustedProxies};
use tollgate_kit::clients;
use tollgate_policy::Policy;
use tollgate_tower::{ClientIp, Head, KeyExtractor, RateLimitLayer};

use crate::layer::support::{Inner, ask, from, get};

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8"]).unwrap()
}

/// A line of a header field that a client can send, also one that looks like a list of addresses.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'\t'), b' '..=b'~', 0x80..=0xff_u8];
    let entry = prop_oneof![
        any::<IpAddr>().prop_map(|address| address.to_string().into_bytes()),
        any::<u16>().prop_map(|n| format!("10.0.{}.{}", n >> 8, n & 255).into_bytes()),
        Just(b"\"".to_vec()),
        Just(b"for=\"[::1]\"".to_vec()),
        vec(byte.clone(), 0..12),
    ];
    prop_oneof![vec(byte, 0..60), vec(entry, 0..50).prop_map(|entries| entries.join(&b", "[..]))]
}

/// The key of a request that comes by a proxy, with lines as they are.
fn key(clients: &ClientIp, name: &'static str, lines: &[Vec<u8>]) -> IpAddr {
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer::Address(PROXY));
    for line in lines {
        request.headers_mut().append(name, HeaderValue::from_bytes(line).unwrap());
    }
    clients.extract(&Head::of(&request)).unwrap()
}

proptest! {
    #[test]
    fn text_that_a_client_writes_in_front_does_not_change_its_key(
        mut lines in vec(line(), 0..5),
        client in any::<Ipv4Addr>().prop_filter("no proxy", |client| client.octets()[0] != 10),
        hops in 0..3_usize,
        on_a_line_of_its_own: bool,
    ) {
        for (name, clients, entry) in [
            ("x-forwarded-for", ClientIp::behind(proxies()), client.to_string()),
            ("forwarded", ClientIp::new(ClientAddress::behind_forwarded(proxies())), format!("for={client}")),
        ] {
            // The first proxy appends the client's address, and each further one the proxy before.
            let mut appended = entry;
            for hop in 0..hops {
                let proxy = format!("10.9.9.{hop}");
                appended += &if name == "forwarded" { format!(", for={proxy}") } else { format!(", {proxy}") };
            }
            match lines.last_mut() {
                Some(last) if !on_a_line_of_its_own => {
                    last.extend_from_slice(b", ");
                    last.extend_from_slice(appended.as_bytes());
                }
                _ => lines.push(appended.into_bytes()),
            }
            prop_assert_eq!(key(&clients, name, &lines), client);
        }
    }

    #[test]
    fn without_trusted_proxies_no_field_counts(lines in vec(line(), 0..5)) {
        prop_assert_eq!(key(&ClientIp::peer(), "x-forwarded-for", &lines), PROXY);
        prop_assert_eq!(key(&ClientIp::peer(), "forwarded", &lines), PROXY);
        // Another than the configured field does not count either.
        prop_assert_eq!(key(&ClientIp::behind(proxies()), "forwarded", &lines), PROXY);
        prop_assert_eq!(key(&ClientIp::behind(proxies()), "x-real-ip", &lines), PROXY);
    }
}

#[tokio::test]
async fn requests_of_one_client_share_a_limit_with_any_header_fields() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(5)).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).key(ClientIp::behind(proxies())));
    for n in 0..20 {
        let mut request = get("/");
        request.extensions_mut().insert(Peer::Address(PROXY));
        for line in [format!("203.0.113.{n}"), "unknown".into(), format!("198.51.100.{n}, 192.0.2.7, 10.1.1.1")] {
            request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
        }
        assert_eq!(ask(&service, request).await.status.is_success(), n < 5, "request {n}");
    }
}

#[tokio::test]
async fn a_layer_takes_clients_as_all_programs_do() {
    let policy = Policy::from_toml(clients::POLICY).unwrap();
    let limiter = policy.builder_of::<IpAddr>("address").unwrap().clock(MockClock::new()).build().unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(ClientIp::new(policy.client().clone()));
    let service = Inner::default().behind(&layer);
    for asked in clients::requests() {
        let mut request = from(&asked.peer);
        if let Some(forwarded) = &asked.forwarded {
            request.headers_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
        }
        assert_eq!(ask(&service, request).await.status == 200, asked.is_admitted, "{}", asked.hops());
    }
}
