//! Limits of whole IPv6 networks.

use tollgate::MockClock;

use crate::place::by_both;
use crate::support::{Running, agent, server};

/// A permit for each client, for so long that none comes back.
const POLICY: &str = r#"
    [[dimension]]
    name = "address"
    key = ["client"]
    quota = [{ limit = 1, per = "1d" }]
"#;

/// The statuses of a request of each client.
fn ask(served: &Running, clients: impl IntoIterator<Item = String>) -> Vec<u16> {
    let (agent, url) = (agent(), served.url("/acquire"));
    let ask = |client: String| {
        let body = format!(r#"{{"keys": {{"client": "{client}"}}}}"#);
        let mut answer = agent.post(&url).header("content-type", "application/json").send(&body).unwrap();
        answer.body_mut().read_to_string().unwrap();
        answer.status().as_u16()
    };
    clients.into_iter().map(ask).collect()
}

/// So many networks of 64 bits in each of the 32 networks of 48 bits of one of 43 bits.
fn of_a_43(each: u16) -> impl Iterator<Item = String> {
    (0..32).flat_map(move |site| (0..each).map(move |network| format!("2001:db8:{site:x}:{network:x}::1")))
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|it| **it == status).count()
}

#[test]
fn a_client_with_an_ipv6_network_of_43_bits_fills_no_key_cap() {
    let served = |before: &str| {
        let server = server(&format!("{before}\nkey_cap = 1200\n{POLICY}"));
        Running::start(server.address("client").unwrap().clock(MockClock::new()))
    };
    let running = served("");
    let statuses = ask(&running, of_a_43(40));
    assert_eq!((count(&statuses, 200), count(&statuses, 429)), (1_000, 280));
    // The clients, their sites, and the provider.
    assert_eq!(running.metric("tollgate_live_keys"), 1_000 + 25 + 1);
    assert_eq!(ask(&running, ["192.0.2.1", "2001:db9::1"].map(str::to_owned)), [200, 200]);
    // One line of the policy turns it off.
    let running = served("network_limits = false");
    let statuses = ask(&running, of_a_43(40));
    assert_eq!((count(&statuses, 200), count(&statuses, 503)), (1_200, 80));
    assert_eq!(ask(&running, ["192.0.2.1".to_owned()]), [503]);
}

#[test]
fn a_site_has_a_hundred_times_the_limit_of_a_client_and_an_ipv4_address_is_alone() {
    let served = Running::start(server(POLICY).address("client").unwrap().clock(MockClock::new()));
    let of_site = |site: u16| (0..101).map(move |network| format!("2001:db8:{site:x}:{network:x}::1"));
    for site in [1, 2] {
        let statuses = ask(&served, of_site(site));
        assert_eq!((count(&statuses[..100], 200), statuses[100]), (100, 429));
    }
    let denied = served.acquire(r#"{"keys": {"client": "2001:db8:1:ffff::1"}}"#);
    assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["client/48"]));
    let policies = r#""address";q=1;w=86400, "client/48";q=100;w=86400, "client/32";q=1000;w=86400"#;
    let ipv6 = served.acquire(r#"{"keys": {"client": "2001:db8:3::1"}}"#);
    assert_eq!((ipv6.status, ipv6.field("ratelimit-policy")), (200, Some(policies)));
    let ipv4 = served.acquire(r#"{"keys": {"client": "192.0.2.1"}}"#);
    assert_eq!((ipv4.status, ipv4.field("ratelimit-policy")), (200, Some(r#""address";q=1;w=86400"#)));
}

#[test]
fn a_policy_limits_networks_of_its_own_choice() {
    by_both(|place| {
        let site = "[[dimension]]\nname = \"site\"\nkey = [\"client/56\"]\nquota = [{ limit = 2, per = \"1d\" }]";
        let served = Running::start(place.server(&format!("{POLICY}\n{site}")).address("client").unwrap());
        // The first byte of the fourth group is of the prefix.
        let clients = ["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:ff::1", "2001:db8:0:100::1", "192.0.2.1"];
        assert_eq!(ask(&served, clients.map(str::to_owned)), [200, 200, 429, 200, 200]);
        let denied = served.acquire(r#"{"keys": {"client": "2001:db8:0:2::1"}}"#);
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["site"]));
    });
}

#[test]
fn a_network_of_no_address_keeps_the_server_from_starting() {
    let refused = |key: &str, client: &str| {
        let policy = format!(
            "{client}\n{POLICY}\n[[dimension]]\nname = \"site\"\nkey = [\"{key}\"]\nquota = [{{ limit = 2, per = \"1d\" }}]"
        );
        let server = server(&policy);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let bound = runtime.block_on(server.bind(&["127.0.0.1:0".parse().unwrap()]));
        bound.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(refused("client/48", ""), Ok(()));
    assert_eq!(refused("client/56", "[client]\nipv6_prefix = 56"), Ok(()));
    for (key, client) in [
        ("user/48", ""),
        ("client/0", ""),
        ("client/65", ""),
        ("client/999", ""),
        ("client/57", "[client]\nipv6_prefix = 56"),
    ] {
        let error = refused(key, client).unwrap_err();
        assert!(error.contains("that must be an address, and a network has 1 bit or more"), "{key}: {error}");
    }
}
