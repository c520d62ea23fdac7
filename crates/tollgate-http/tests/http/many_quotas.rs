//! Many different quotas at a time: what is prepared for one stays prepared.

use std::sync::Arc;

use allocation_counter::measure;
use bytes::Bytes;
use tollgate::{JointLimiter, Limiter, Quota};
use tollgate_http::middleware::{AskedWith, Limits, Options, Outcome, Told};

const SETS: u32 = 1_000;

/// The value of `RateLimit-Policy` for each key, and the allocations of the last request of all
/// keys, after others.
fn ask_twice<L, K>(limiter: L, key: impl Fn(u32) -> K) -> (Vec<Bytes>, u64)
where
    L: AskedWith<K>,
{
    let limits = Limits::<_, Bytes>::new(Arc::new(limiter), Options::default());
    let ask = |n| match limits.decide(key(n), 1) {
        Outcome::Admitted(Some(charge)) => match charge.told() {
            Some(Told::Draft11 { policies: Some(policies), .. }) => policies,
            told => panic!("{told:?}"),
        },
        _ => panic!("denied, or not counted"),
    };
    for _ in 0..3 {
        // Rings grow with the first few requests.
        (0..SETS).for_each(|n| drop(ask(n)));
    }
    let mut told = Vec::with_capacity(SETS as usize);
    let count = measure(|| told.extend((0..SETS).map(ask))).count_total;
    (told, count)
}

#[test]
fn with_a_thousand_sets_of_quotas_a_request_allocates_nothing() {
    let limiter = Limiter::<u32>::builder(Quota::per_minute(10)).keys_with_quotas(1_000).build().unwrap();
    for n in 1..SETS {
        limiter.set_quotas_of(n, &[Quota::per_minute(10 + n)]).unwrap();
    }
    let (told, count) = ask_twice(limiter, |n| n);
    for (n, told) in told.iter().enumerate() {
        assert_eq!(told, &format!(r#""default";q={};w=60"#, 10 + n));
    }
    // The values share memory, a chunk of it for many.
    assert!(count < u64::from(SETS) / 10, "{count} allocations");
}

#[test]
fn keys_with_the_same_quotas_share_what_is_prepared() {
    let limiter = JointLimiter::<(u32, &str)>::builder()
        .dimension("user", [Quota::per_minute(10)])
        .dimension("page", [Quota::per_minute(100_000)])
        .keys_with_quotas(1_000)
        .build()
        .unwrap();
    for n in 1..SETS {
        limiter.set_quotas_of((n, tollgate::Absent), &[Quota::per_hour(10 + n % 7)]).unwrap();
    }
    let (told, count) = ask_twice(limiter, |n| (Some(n), Some("/")));
    for (n, told) in (0..SETS).zip(told).skip(1) {
        assert_eq!(told, format!(r#""user";q={};w=3600, "page";q=100000;w=60"#, 10 + n % 7));
    }
    // The limiter lists the quotas of all dimensions, twice.
    assert!(count < u64::from(SETS) * 21 / 10, "{count} allocations");
}
