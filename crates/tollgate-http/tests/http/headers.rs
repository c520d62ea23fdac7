//! Every value of a header field, parsed back by an implementation of RFC 9651 by others; with the
//! draft's own examples.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use sfv::{BareItem, Item, List, ListEntry, Parser};
use tollgate::{Decision, DirectLimiter, MockClock, Quota};
use tollgate_http::{Headers, Policies, Policy, PolicyError, QuotaUnit, ServiceLimit, Usage};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy(name: &str, quota: u32, window: u64) -> Policy {
    Policy::new(name, quota, secs(window)).unwrap()
}

/// The names of a list, each with its parameters.
fn parse(value: impl AsRef<[u8]>) -> Vec<(String, BTreeMap<String, BareItem>)> {
    let list: List = Parser::new(value.as_ref()).parse().unwrap();
    let item = |entry: ListEntry| match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(name), params }) => {
            let params = params.into_iter().map(|(key, value)| (key.as_str().to_owned(), value));
            (name.as_str().to_owned(), params.collect())
        }
        other => panic!("{other:?} is no string"),
    };
    list.into_iter().map(item).collect()
}

/// All parameters that are integers.
fn integers<const N: usize>(expected: [(&str, i64); N]) -> BTreeMap<String, BareItem> {
    let value = |value| BareItem::Integer(value);
    expected.map(|(key, number)| (key.to_owned(), value(number.try_into().unwrap()))).into()
}

fn fields<'a>(headers: Headers, limits: impl IntoIterator<Item = ServiceLimit<'a>>) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    headers.write(limits, |name, value| fields.push((name, String::from_utf8(value.to_vec()).unwrap())));
    fields
}

fn usage(remaining: u32, next_after: Duration) -> Usage {
    Usage { remaining, next_after }
}

#[test]
fn the_policies_of_the_drafts_examples() {
    let two = Policies::new([policy("burst", 100, 60), policy("daily", 1000, 86_400)]).unwrap();
    let expected = [("burst", 100, 60), ("daily", 1000, 86_400)];
    let parsed = parse(two.value());
    assert_eq!(parsed.len(), expected.len());
    for ((name, params), (expected, q, w)) in parsed.into_iter().zip(expected) {
        assert_eq!((name.as_str(), params), (expected, integers([("q", q), ("w", w)])));
    }

    let one = Policies::new([policy("default", 100, 10)]).unwrap();
    assert_eq!(one.value(), r#""default";q=100;w=10"#);

    // Without its partition key: the value is the same for all keys.
    let bytes = Policies::new([policy("peruser", 65_535, 10).unit(QuotaUnit::ContentBytes)]).unwrap();
    assert_eq!(bytes.value(), r#""peruser";q=65535;qu="content-bytes";w=10"#);
    assert_eq!(parse(bytes.value())[0].1["qu"].as_string().unwrap().as_str(), "content-bytes");
}

#[test]
fn the_limits_of_the_drafts_examples() {
    // "99 quota units left for the next 50 seconds" of a fixed window, and so on: the draft's
    // numbers, of policies in which these seconds are the right advice.
    for (name, quota, window, remaining, next, expected) in [
        ("default", 100, 60, 50, 30, r#""default";r=50;t=30"#),
        ("fixedwindow", 100, 50, 99, 50, r#""fixedwindow";r=99;t=50"#),
        ("basic", 100, 60, 60, 58, r#""basic";r=60;t=58"#),
        ("basic", 100, 60, 20, 56, r#""basic";r=20;t=56"#),
        ("dayLimit", 5000, 86_400, 100, 36_000, r#""dayLimit";r=100;t=36000"#),
        ("default", 300_000_000, 60, 300_000_000, 0, r#""default";r=300000000;t=60"#),
    ] {
        let policy = policy(name, quota, window);
        let limit = policy.admitted(usage(remaining, secs(next)));
        assert_eq!(limit.to_string(), expected);
        let numbers = [("r", remaining.into()), ("t", limit.reset().unwrap().try_into().unwrap())];
        assert_eq!(parse(expected), [(name.to_owned(), integers(numbers))]);
    }
    // "The values of Retry-After and RateLimit reference the same moment."
    let denied = policy("default", 100, 60);
    assert_eq!(denied.violated(usage(0, secs(5)), secs(5)).to_string(), r#""default";r=0;t=5"#);
}

#[test]
fn a_remaining_quota_is_not_advertised_as_a_burst() {
    // The draft's "resource exhaustion": 10,000 a 1,000 seconds, all free. A `t` of 10 would invite
    // to a hundred times the rate.
    let policy = policy("somepolicy", 10_000, 1_000);
    assert_eq!(policy.admitted(usage(10_000, Duration::ZERO)).reset(), Some(1_000));
    assert_eq!(policy.admitted(usage(5_000, secs(10))).reset(), Some(500));
    assert_eq!(policy.admitted(usage(1, Duration::from_nanos(1))).reset(), Some(1));
}

#[test]
fn a_denial_advertises_no_longer_wait_than_retry_after() {
    // Three of a hundred are free, five are asked for.
    let policy = policy("user-1m", 100, 60);
    assert_eq!(policy.violated(usage(3, secs(1)), secs(40)).reset(), Some(2));
    assert_eq!(policy.violated(usage(99, secs(1)), secs(2)).reset(), Some(2));
    assert_eq!(policy.violated(usage(3, secs(9)), secs(5)).reset(), Some(5));
    assert_eq!(policy.violated(usage(99, secs(1)), Duration::MAX).reset(), Some(60));
}

/// The draft's unit `concurrent-requests`, by which a policy has no window. Nothing divides by it.
#[test]
fn requests_at_a_time_have_no_window_and_no_reset() {
    let streams = Policy::of("streams", &Quota::concurrent(4)).unwrap();
    assert_eq!((streams.to_string(), streams.window()), (r#""streams";q=4;qu="concurrent-requests""#.to_owned(), 0));
    assert_eq!(streams.clone().unit(QuotaUnit::ContentBytes), streams);
    assert_eq!(Policy::concurrent("streams", 0), Err(PolicyError::ZeroQuota));
    for next in [Duration::ZERO, Duration::MAX] {
        let limits = [streams.admitted(usage(3, next)), streams.violated(usage(3, next), Duration::MAX)];
        assert_eq!(
            limits.map(|limit| (limit.to_string(), limit.reset())),
            [(); 2].map(|()| (r#""streams";r=3"#.into(), None))
        );
    }
    let (rate, none) = (policy("rate", 100, 60), streams.violated(usage(0, Duration::MAX), Duration::MAX));
    let some = rate.admitted(usage(60, secs(10)));
    assert_eq!(
        fields(Headers::XRateLimit, [none]),
        [("x-ratelimit-limit", "4".into()), ("x-ratelimit-remaining", "0".into())]
    );
    // The permits of a rate are another kind, and have a reset.
    assert_eq!(ServiceLimit::tightest([none, some]), Some(some));
    assert_eq!(fields(Headers::Draft11, [some, none]), [("ratelimit", r#""rate";r=60;t=36, "streams";r=0"#.into())]);
}

#[test]
fn the_worked_examples() {
    let default = policy("default", 100, 60);
    let admitted = default.admitted(usage(60, Duration::from_millis(58_200)));
    assert_eq!(fields(Headers::Draft11, [admitted]), [("ratelimit", r#""default";r=60;t=59"#.to_owned())]);

    let policies = [
        policy("user-1s", 10, 1),
        policy("user-1m", 100, 60),
        policy("address", 300, 60),
        policy("endpoint", 1000, 10),
    ];
    let policies = Policies::new(policies).unwrap();
    assert_eq!(
        Headers::Draft11.policy_field(&policies),
        Some((
            "ratelimit-policy",
            r#""user-1s";q=10;w=1, "user-1m";q=100;w=60, "address";q=300;w=60, "endpoint";q=1000;w=10"#
        ))
    );
    let wait = Duration::from_millis(7_200);
    let denied = policies[1].violated(usage(0, wait), wait);
    assert_eq!(fields(Headers::Draft11, [denied]), [("ratelimit", r#""user-1m";r=0;t=8"#.to_owned())]);
}

#[test]
fn the_other_formats() {
    let policies = Policies::new([policy("wide", 100, 60), policy("tight", 10, 1)]).unwrap();
    let limits = [policies[0].admitted(usage(60, secs(30))), policies[1].admitted(usage(4, secs(1)))];
    let expected = [("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "4"), ("x-ratelimit-reset", "1")];
    let written = fields(Headers::XRateLimit, limits);
    assert_eq!(written, expected.map(|(name, value)| (name, value.to_owned())));
    for (_, value) in written {
        assert!(matches!(Parser::new(&value).parse::<Item>().unwrap().bare_item, BareItem::Integer(_)));
    }
    assert_eq!(fields(Headers::XRateLimit, []), []);
    assert_eq!(Headers::XRateLimit.policy_field(&policies), None);

    assert_eq!(fields(Headers::Off, limits), []);
    assert_eq!(Headers::Off.policy_field(&policies), None);
}

#[test]
fn the_tightest_limit_has_the_fewest_permits_and_then_the_longest_wait() {
    let policies = [policy("a", 10, 60), policy("b", 10, 60), policy("c", 10, 60)];
    let limits = [(5, 40), (4, 30), (4, 50)];
    let limits = [0, 1, 2].map(|at| policies[at].admitted(usage(limits[at].0, secs(limits[at].1))));
    assert_eq!(ServiceLimit::tightest(limits).unwrap().policy().name(), "c");
    assert_eq!(ServiceLimit::tightest([]), None);
}

#[test]
fn a_partition_key_is_a_byte_sequence() {
    let policy = policy("peruser", 100, 60);
    for hash in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let limit = policy.admitted(usage(1, secs(1))).partition_key(hash);
        let parsed = parse(limit.to_string());
        assert_eq!(parsed[0].1["pk"], BareItem::ByteSequence(hash.to_be_bytes().to_vec()));
    }
}

#[test]
fn names_are_checked_when_they_are_built() {
    let error = |name: &str| Policy::new(name, 1, secs(1)).unwrap_err();
    assert_eq!(error(""), PolicyError::EmptyName);
    assert_eq!(error("line\r\nset-cookie: a=b"), PolicyError::NameNotPrintable { at: 4 });
    assert_eq!(error("a\u{7f}"), PolicyError::NameNotPrintable { at: 1 });
    assert_eq!(error("ä"), PolicyError::NameNotPrintable { at: 0 });
    assert_eq!(error(&"a".repeat(65)), PolicyError::NameTooLong { bytes: 65 });
    assert!(Policy::new(&"a".repeat(64), 1, secs(1)).is_ok());
}

#[test]
fn quotas_and_windows_are_checked_when_they_are_built() {
    let new = |quota, window| Policy::new("a", quota, window);
    assert_eq!(new(0, secs(1)).unwrap_err(), PolicyError::ZeroQuota);
    assert_eq!(new(1, Duration::ZERO).unwrap_err(), PolicyError::ZeroWindow);
    let window = secs(u64::from(u32::MAX) + 1);
    assert_eq!(new(1, window).unwrap_err(), PolicyError::WindowTooLong { window });
    assert_eq!(new(1, Duration::from_nanos(1)).unwrap().window(), 1);
    assert_eq!(new(1, Duration::from_millis(1_001)).unwrap().window(), 2);
}

#[test]
fn lists_are_checked_when_they_are_built() {
    assert_eq!(Policies::new([]).unwrap_err(), PolicyError::NoPolicies);
    let twice = Policies::new([policy("a", 1, 1), policy("a", 2, 2)]);
    assert_eq!(twice.unwrap_err(), PolicyError::SameName { name: "a".into() });
}

#[test]
fn every_policy_error_says_its_numbers() {
    for (error, word) in [
        (PolicyError::EmptyName, "empty"),
        (PolicyError::NameTooLong { bytes: 65 }, "65"),
        (PolicyError::NameNotPrintable { at: 3 }, "3"),
        (PolicyError::ZeroQuota, "zero"),
        (PolicyError::ZeroWindow, "zero"),
        (PolicyError::WindowTooLong { window: secs(u64::MAX) }, "too long"),
        (PolicyError::NoPolicies, "at least one"),
        (PolicyError::SameName { name: "abc".into() }, "abc"),
    ] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn the_numbers_of_a_limiter() {
    let quota = Quota::per_minute(2);
    let clock = MockClock::new();
    let limiter = DirectLimiter::with_clock(quota, clock.clone()).unwrap();
    let policy = Policy::of("default", &quota).unwrap();

    let first = limiter.try_acquire_status();
    assert_eq!(policy.admitted((&first).into()).to_string(), r#""default";r=1;t=60"#);
    clock.advance(secs(20));
    assert!(limiter.try_acquire().is_admitted());
    clock.advance(secs(20));
    // All are free in 40 s, and the first of them in 20 s.
    let denied = limiter.try_acquire_status();
    let Decision::Denied(denial) = denied.decision() else { panic!("two a minute") };
    let limit = policy.violated((&denied).into(), denial.retry_after());
    assert_eq!(limit.to_string(), r#""default";r=0;t=20"#);
}

fn any_name() -> impl Strategy<Value = String> {
    proptest::collection::vec(b' '..=b'~', 1..=Policy::MAX_NAME).prop_map(|name| String::from_utf8(name).unwrap())
}

/// Names that are nothing but what must be escaped, as well.
fn any_policies() -> impl Strategy<Value = Policies> {
    let name = prop_oneof![4 => any_name(), 1 => r#"[\\"]{1,64}"#];
    let policy = (name, 1..=u32::MAX, any::<u32>(), 0..1_000_000_000_u32);
    proptest::collection::vec(policy, 1..20).prop_filter_map("the same name twice", |policies| {
        let policy = |(name, quota, secs, nanos): (String, u32, u32, u32)| {
            Policy::new(&name, quota, Duration::new(secs.saturating_sub(1).into(), nanos.max(1))).unwrap()
        };
        Policies::new(policies.into_iter().map(policy)).ok()
    })
}

fn any_wait() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..100_000_000_000_u64).prop_map(Duration::from_nanos),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        Just(Duration::MAX),
    ]
}

proptest! {
    #[test]
    fn policies_are_parsed_back(policies in any_policies()) {
        let parsed = parse(policies.value());
        prop_assert_eq!(parsed.len(), policies.len());
        for ((name, params), policy) in parsed.into_iter().zip(policies.iter()) {
            prop_assert_eq!(name, policy.name());
            prop_assert_eq!(params, integers([("q", policy.quota().into()), ("w", policy.window().into())]));
        }
    }

    #[test]
    fn limits_are_parsed_back(
        policies in any_policies(),
        left in proptest::collection::vec((any::<u32>(), any_wait(), any_wait(), any::<Option<u64>>()), 20),
    ) {
        let limits: Vec<ServiceLimit<'_>> = policies.iter().zip(left).map(|(policy, (remaining, next, wait, pk))| {
            let usage = usage(remaining, next);
            let limit = if wait < next { policy.admitted(usage) } else { policy.violated(usage, wait) };
            pk.map_or(limit, |pk| limit.partition_key(pk))
        }).collect();
        let mut parsed = Vec::new();
        for (name, value) in fields(Headers::Draft11, limits.iter().copied()) {
            prop_assert_eq!(name, "ratelimit");
            parsed.extend(parse(value));
        }
        prop_assert_eq!(parsed.len(), limits.len());
        for ((name, mut params), limit) in parsed.into_iter().zip(limits) {
            prop_assert_eq!(name, limit.policy().name());
            params.remove("pk");
            prop_assert_eq!(params, integers([("r", limit.remaining().into()), ("t", limit.reset().unwrap().try_into().unwrap())]));
        }
    }

    #[test]
    fn advice_keeps_to_the_rate(quota in 1..=u32::MAX, window in 1..=u32::MAX, remaining: u32, next in any_wait()) {
        let policy = Policy::new("a", quota, secs(window.into())).unwrap();
        let remaining = remaining.min(quota);
        let limit = policy.admitted(usage(remaining, next));
        // r / t <= q / w
        prop_assert!(u128::from(remaining) * u128::from(window) <= u128::from(quota) * u128::from(limit.reset().unwrap()));
        if remaining == quota && next.is_zero() {
            prop_assert_eq!(limit.reset(), Some(u64::from(window)));
        }
    }
}
