//! What is done for each request allocates nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use allocation_counter::measure;
use tollgate_http::{ClientAddress, DenialKind, Headers, Policies, Policy, Problem, TrustedProxies, Usage};

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn header_fields_and_answers_are_written_without_an_allocation() {
    let name = |at| format!("{at}{}", "\"".repeat(60));
    let policies = (0..20).map(|at| Policy::new(&name(at), 100, Duration::from_secs(60)).unwrap());
    let policies = Policies::new(policies).unwrap();
    let wait = Duration::from_secs(7);
    let usage = Usage { remaining: 3, next_after: wait };
    for headers in [Headers::Draft11, Headers::XRateLimit, Headers::Off] {
        let mut bytes = 0;
        let count = allocations(|| {
            bytes += headers.policy_field(&policies).map_or(0, |(_, value)| value.len());
            headers.write(policies.iter().map(|policy| policy.admitted(usage)), |_, value| bytes += value.len());
        });
        assert_eq!(count, 0);
        assert_eq!(bytes == 0, headers == Headers::Off);
    }

    let violated = [policies[0].violated(usage, wait), policies[1].violated(usage, wait)];
    let mut json = String::with_capacity(1_000);
    let count = allocations(|| {
        let problem = Problem::new(DenialKind::Quota, wait).violated(&violated);
        problem.write_fields(Headers::Draft11, |_, _| {});
        problem.write_grpc(|_, _| {});
        problem.write_json(&mut json).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn client_addresses_are_found_without_an_allocation() {
    let proxies = || TrustedProxies::new(["10.0.0.0/8"]).unwrap();
    let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    for (clients, lines) in [
        (ClientAddress::behind(proxies()), ["203.0.113.9, 192.0.2.7", "10.0.0.2:80"]),
        (ClientAddress::behind_forwarded(proxies()), ["for=203.0.113.9, for=192.0.2.7", "for=\"10.0.0.2:80\""]),
    ] {
        let mut key = None;
        assert_eq!(allocations(|| key = clients.key(peer, lines).ok()), 0);
        assert_eq!(key, Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))));
    }
}
