//! What a proxy of the guide does, whichever it is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::place::{Place, by_both};
use crate::processes::{guided, proxy, service};
use crate::support::{Answer, agent, problem_of};

/// A proxy that `start` starts by the configuration admits a hundred requests and answers the next
/// with 429 and the wait.
pub(crate) fn is_guarded(configuration: &str, start: impl Fn(&str, &Path) -> Command) {
    by_both(|place| is_guarded_by(place, configuration, &start));
}

fn is_guarded_by(place: &Place, configuration: &str, start: impl Fn(&str, &Path) -> Command) {
    let (tollgate, clock) = guided(place);
    let (_envoy, address, _folder) = proxy(configuration, [tollgate.address, service()], start);
    let ask = |path: &str| Answer::of(agent().get(format!("http://{address}{path}")).call().unwrap());
    for left in (0..100).rev() {
        let path = if left == 50 { "/forbidden" } else { "/page?x=y" };
        let admitted = ask(path);
        let of_service = if left == 50 { (403, "forbidden by the service\n") } else { (200, "hello\n") };
        assert_eq!((admitted.status, admitted.body.as_str()), of_service);
        assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"address\";r={left};t=")), "{admitted:?}");
        assert_eq!(admitted.field("ratelimit-policy"), Some(r#""address";q=100;w=60"#));
    }
    clock.advance(Duration::from_millis(52_800));
    for _ in 0..2 {
        let denied = ask("/page");
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("8")), "{denied:?}");
        assert_eq!(denied.field("ratelimit"), Some(r#""address";r=0;t=8"#));
        assert_eq!(denied.field("cache-control"), Some("no-store"));
        assert_eq!(denied.field("content-type"), Some("application/problem+json"), "{denied:?}");
        assert_eq!(problem_of(&denied.body, 429)["violated-policies"], serde_json::json!(["address"]));
    }
    // What a client writes counts for nothing.
    let forged = agent().get(format!("http://{address}/")).header("x-tollgate-client", "192.0.2.9").call().unwrap();
    assert_eq!(forged.status().as_u16(), 429);
    clock.advance(Duration::from_secs(8));
    assert_eq!(ask("/page").status, 200);
    let posted = agent().post(format!("http://{address}/page")).send("a body").unwrap();
    assert_eq!(posted.status().as_u16(), 200);
    assert_eq!(tollgate.metric(r#"tollgate_requests_total{result="admitted"}"#), 102);
    // Without a server, requests pass.
    tollgate.stop();
    assert_eq!(ask("/page").status, 200);
}

/// The status of a request to the proxy once the store of the server has gone away; `None` without a
/// program for the store.
#[cfg(feature = "redis")]
pub(crate) fn without_its_store(configuration: &str, start: impl Fn(&str, &Path) -> Command) -> Option<u16> {
    let mut place = Place::on_store()?;
    let (tollgate, _clock) = guided(&place);
    let (_proxy, address, _folder) = proxy(configuration, [tollgate.address, service()], start);
    let ask = || agent().get(format!("http://{address}/page")).call().unwrap().status().as_u16();
    assert_eq!(ask(), 200);
    place.goes_away();
    let status = ask();
    assert_eq!(tollgate.metric(r#"tollgate_requests_total{result="undecided"}"#), 1);
    Some(status)
}
