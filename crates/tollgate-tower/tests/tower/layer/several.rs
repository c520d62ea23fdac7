//! Which of several limits header fields and bodies tell, and under which names.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{JointLimiter, Limiter, MockClock, Quota};
use tollgate_http::Headers;
use tollgate_tower::{ClientIp, RateLimitLayer, constant};

use crate::layer::support::{Answer, Inner, ask, from, get, item, items, with};

const SECOND: Duration = Duration::from_secs(1);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// A user with two quotas, an address and an endpoint.
fn three_dimensions(clock: &MockClock) -> Arc<JointLimiter<(&'static str, Ipv4Addr, &'static str), MockClock>> {
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
        .dimension("address", [Quota::per_minute(300)])
        .dimension("endpoint", [Quota::token_bucket(1_000, 100, SECOND)]);
    Arc::new(limiter.clock(clock.clone()).build().unwrap())
}

fn problem(answer: &Answer) -> serde_json::Value {
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn a_denial_by_one_of_four_quotas_tells_that_one() {
    let clock = MockClock::new();
    let key = (constant("alice"), constant(ADDRESS), constant("/login"));
    let layer = RateLimitLayer::new(three_dimensions(&clock)).key(key);
    let service = Inner::default().behind(&layer);
    // Ten in each of the first ten seconds.
    for _ in 0..10 {
        for _ in 0..10 {
            assert_eq!(ask(&service, get("/login")).await.status, 200);
        }
        clock.advance(SECOND);
    }
    clock.advance(Duration::from_millis(42_800));
    let denied = ask(&service, get("/login")).await;
    assert_eq!((denied.status.as_u16(), denied.one("retry-after")), (429, "8"));
    let policies = r#""user-1s";q=10;w=1, "user-1m";q=100;w=60, "address";q=300;w=60, "endpoint";q=1000;w=10"#;
    assert_eq!(denied.one("ratelimit-policy"), policies);
    assert_eq!(items(denied.one("ratelimit-policy")).len(), 4);
    assert_eq!(denied.one("ratelimit"), r#""user-1m";r=0;t=8"#);
    assert_eq!(denied.one("cache-control"), "no-store");
    assert_eq!(denied.one("content-type"), "application/problem+json");
    let body = concat!(
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
        r#""title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"#,
        r#""detail":"Try again in 8 seconds.","violated-policies":["user-1m"]}"#
    );
    assert_eq!(denied.body, body);
    clock.advance(Duration::from_secs(8));
    assert_eq!(ask(&service, get("/login")).await.status, 200);
}

#[tokio::test]
async fn an_admitted_request_is_told_the_tightest_limit_or_all() {
    let clock = MockClock::new();
    let layer = RateLimitLayer::new(three_dimensions(&clock));
    let layer = layer.key((constant("alice"), constant(ADDRESS), constant("/login")));
    let (tightest, all) = (Inner::default().behind(&layer), Inner::default().behind(&layer.all_limits(true)));
    let answer = ask(&tightest, get("/")).await;
    assert_eq!(items(answer.one("ratelimit")), [item("user-1s", [("r", 9), ("t", 1)])]);
    clock.advance(Duration::from_millis(2_500));
    let answer = ask(&all, get("/")).await;
    let expected = [
        item("user-1s", [("r", 9), ("t", 1)]),
        item("user-1m", [("r", 98), ("t", 59)]),
        item("address", [("r", 298), ("t", 60)]),
        item("endpoint", [("r", 999), ("t", 10)]),
    ];
    assert_eq!(items(answer.one("ratelimit")), expected);
    assert_eq!(items(answer.one("ratelimit-policy")).len(), 4);
}

#[tokio::test]
async fn all_limits_are_told_of_one_key_and_after_a_refund() {
    let limiter = Limiter::<&str>::builder(Quota::per_second(3)).and(Quota::per_minute(5)).clock(MockClock::new());
    let layer = RateLimitLayer::new(Arc::new(limiter.build().unwrap())).key(constant("alice")).all_limits(true);
    let service = Inner::default().behind(&layer.refund_when(|answer| answer.status.is_server_error()));
    let told = |r: [u64; 2], t: [u64; 2]| {
        [item("default-1s", [("r", r[0]), ("t", t[0])]), item("default-1m", [("r", r[1]), ("t", t[1])])]
    };
    let kept = ask(&service, get("/")).await;
    assert_eq!(items(kept.one("ratelimit")), told([2, 4], [1, 60]));
    let given_back = ask(&service, with(get("/"), "answer", "503")).await;
    assert_eq!(items(given_back.one("ratelimit")), told([2, 4], [1, 60]));
    let kept = ask(&service, get("/")).await;
    assert_eq!(items(kept.one("ratelimit")), told([1, 3], [1, 60]));
}

#[tokio::test]
async fn x_ratelimit_tells_the_tightest_of_all_dimensions() {
    let clock = MockClock::new();
    let layer = RateLimitLayer::new(three_dimensions(&clock));
    let layer = layer.key((constant("alice"), constant(ADDRESS), constant("/login"))).headers(Headers::XRateLimit);
    let answer = ask(&Inner::default().behind(&layer.all_limits(true)), get("/")).await;
    let fields = ["limit", "remaining", "reset"].map(|name| answer.one(&format!("x-ratelimit-{name}")).to_owned());
    assert_eq!(fields, ["10", "9", "1"]);
    assert!(!answer.fields.contains_key("ratelimit"));
}

/// The names of the violated policies, and those of the items of `RateLimit`.
fn violated(answer: &Answer) -> (Vec<String>, Vec<String>) {
    let names = problem(answer)["violated-policies"].as_array().unwrap().clone();
    let names = names.into_iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let told = answer.all("ratelimit").into_iter().flat_map(items).map(|(name, _)| name).collect();
    (names, told)
}

#[tokio::test]
async fn each_quota_in_the_way_is_told() {
    let clock = MockClock::new();
    let limiter = Limiter::<&str>::builder(Quota::per_second(4)).and(Quota::per_minute(6)).and(Quota::per_hour(90));
    let limiter = Arc::new(limiter.clock(clock.clone()).build().unwrap());
    let joint = JointLimiter::<(&str, &str)>::builder()
        .dimension("one", [Quota::per_second(4), Quota::per_minute(6), Quota::per_hour(90)])
        .dimension("two", [Quota::per_minute(7)])
        .clock(clock.clone());
    let joint = Arc::new(joint.build().unwrap());
    // A limiter that may give permits back reserves them.
    for refunds in [false, true] {
        limiter.clear();
        joint.clear();
        let cost =
            |head: &tollgate_tower::Head<'_>| head.headers.get("cost").map_or(1, |cost| cost.as_bytes()[0] - b'0');
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(constant("alice")).refund_unanswered(refunds);
        let single = Inner::default().behind(&layer.cost(move |head| cost(head).into()));
        let layer = RateLimitLayer::new(Arc::clone(&joint)).key((constant("alice"), constant("home")));
        let joint = Inner::default().behind(&layer.refund_unanswered(refunds).cost(move |head| cost(head).into()));
        let of_cost = |cost| with(get("/"), "cost", cost);
        assert_eq!(ask(&single, of_cost("4")).await.status, 200);
        assert_eq!(ask(&joint, of_cost("4")).await.status, 200);

        let denied = ask(&single, of_cost("3")).await;
        let both = vec!["default-1s".to_owned(), "default-1m".to_owned()];
        assert_eq!(violated(&denied), (both.clone(), both));
        let expected = [item("default-1s", [("r", 0), ("t", 1)]), item("default-1m", [("r", 2), ("t", 60)])];
        assert_eq!(items(denied.one("ratelimit")), expected, "{refunds}");
        assert_eq!(denied.one("retry-after"), "60");

        let denied = ask(&single, of_cost("1")).await;
        assert_eq!(violated(&denied).0, ["default-1s"]);
        assert_eq!(denied.one("retry-after"), "1");

        let denied = ask(&joint, of_cost("4")).await;
        let three = ["one-1s", "one-1m", "two"].map(str::to_owned).to_vec();
        assert_eq!(violated(&denied), (three.clone(), three));
        let denied = ask(&joint, of_cost("3")).await;
        assert_eq!(violated(&denied).0, ["one-1s", "one-1m"], "three are left of the other");
    }
}

#[tokio::test]
async fn the_body_names_all_violated_policies_without_header_fields_too() {
    let limiter = Limiter::<&str>::builder(Quota::per_second(2)).and(Quota::per_minute(2)).clock(MockClock::new());
    let layer = RateLimitLayer::new(Arc::new(limiter.build().unwrap())).key(constant("alice"));
    let service = Inner::default().behind(&layer.headers(Headers::Off).cost(|_| 2));
    assert_eq!(ask(&service, get("/")).await.status, 200);
    let denied = ask(&service, get("/")).await;
    assert_eq!(problem(&denied)["violated-policies"], serde_json::json!(["default-1s", "default-1m"]));
    assert!(!denied.fields.contains_key("ratelimit"));
}

#[tokio::test]
async fn quotas_are_told_by_the_names_that_they_were_given() {
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_second(2).named("burst"), Quota::per_minute(3)])
        .dimension("address", [Quota::per_minute(9).named("user-1m")])
        .dimension("burst", [Quota::per_minute(9)])
        .dimension("endpoint", [Quota::per_minute(9).named("burst")])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let key = (constant("alice"), constant(ADDRESS), constant(1), constant("/"));
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::new(limiter)).key(key).cost(|_| 2));
    let admitted = ask(&service, get("/")).await;
    let names: Vec<String> = items(admitted.one("ratelimit-policy")).into_iter().map(|(name, _)| name).collect();
    // Names that are given go before those that are made up; the second of two gets a number.
    assert_eq!(names, ["burst", "user-1m-2", "user-1m", "burst-2", "burst-3"]);
    assert_eq!(items(admitted.one("ratelimit")), [item("burst", [("r", 0), ("t", 1)])]);
    let denied = ask(&service, get("/")).await;
    assert_eq!(violated(&denied).0, ["burst", "user-1m-2"]);
}

#[tokio::test]
async fn keys_with_quotas_of_their_own_are_told_those() {
    let limiter = JointLimiter::<(IpAddr, &str)>::builder()
        .dimension("address", [Quota::per_minute(10)])
        .dimension("endpoint", [Quota::per_minute(50)])
        .keys_with_quotas(10);
    let limiter = Arc::new(limiter.build().unwrap());
    // As many in another window.
    limiter.set_quotas_of((IpAddr::from([192, 0, 2, 9]), tollgate::Absent), &[Quota::per_hour(10)]).unwrap();
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key((ClientIp::peer(), constant("/")));
    let service = Inner::default().behind(&layer);
    for (peer, address) in [("192.0.2.1", r#""address";q=10;w=60"#), ("192.0.2.9", r#""address";q=10;w=3600"#)] {
        for _ in 0..3 {
            let answer = ask(&service, from(peer)).await;
            assert_eq!(answer.one("ratelimit-policy"), format!(r#"{address}, "endpoint";q=50;w=60"#));
        }
    }
}

/// Of each quota, the stamps that count at an instant.
fn live(stamps: &[u64], now: u64, (_, window): (u32, u64)) -> impl Iterator<Item = u64> {
    stamps.iter().copied().filter(move |stamp| now - stamp < window)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Windows are in milliseconds.
    #[test]
    fn header_fields_agree_with_a_list_of_stamps(
        quotas in prop::collection::vec((1_u32..6, 1_u64..9_000), 1..4),
        requests in prop::collection::vec((0_u64..2_000, 1_u32..4), 1..40),
        refunds: bool,
    ) {
        let quota = |&(limit, window): &(u32, u64)| Quota::new(limit, Duration::from_millis(window));
        let clock = MockClock::new();
        let builder = quotas[1..].iter().fold(Limiter::<&str>::builder(quota(&quotas[0])), |builder, each| {
            builder.and(quota(each))
        });
        let limiter = Arc::new(builder.clock(clock.clone()).build().unwrap());
        let (mut stamps, mut now): (Vec<u64>, u64) = (Vec::new(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (after, cost) in requests {
            clock.advance(Duration::from_millis(after));
            now += after;
            let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(constant("alice")).all_limits(true);
            let layer = layer.cost(move |_| cost).refund_unanswered(refunds);
            let answer = runtime.block_on(ask(&Inner::default().behind(&layer), get("/")));
            if quotas.iter().any(|&(limit, _)| cost > limit) {
                prop_assert_eq!(answer.status, 422);
                continue;
            }
            let free = |stamps: &[u64], quota: (u32, u64)| quota.0 - u32::try_from(live(stamps, now, quota).count()).unwrap();
            let violated: Vec<usize> = (0..quotas.len()).filter(|&at| free(&stamps, quotas[at]) < cost).collect();
            let told: Vec<u32> = answer.all("ratelimit").into_iter().flat_map(items).map(|(_, parameters)| {
                parameters[0].1.parse().unwrap()
            }).collect();
            if violated.is_empty() {
                stamps.extend((0..cost).map(|_| now));
                let expected: Vec<u32> = quotas.iter().map(|&quota| free(&stamps, quota)).collect();
                prop_assert_eq!((answer.status.as_u16(), told), (200, expected));
            } else {
                let expected: Vec<u32> = violated.iter().map(|&at| free(&stamps, quotas[at])).collect();
                prop_assert_eq!((answer.status.as_u16(), told), (429, expected));
                // Until so many have left each window that the request fits.
                let waits = violated.iter().map(|&at| {
                    let missing = usize::try_from(cost - free(&stamps, quotas[at])).unwrap();
                    live(&stamps, now, quotas[at]).nth(missing - 1).unwrap() + quotas[at].1 - now
                });
                let seconds = waits.max().unwrap().div_ceil(1_000);
                prop_assert_eq!(answer.one("retry-after"), seconds.to_string());
            }
        }
    }
}
