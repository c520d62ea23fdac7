//! `try_acquire_many` answers as so many calls of `try_acquire` do, one after the other.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, Decision, DefaultFingerprinter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_kit::clocks::CountedClock;

fn limiter(quota: Quota, clock: &MockClock, key_cap: usize) -> Limiter<u16, MockClock> {
    let builder = Limiter::builder(quota).clock(clock.clone()).key_cap(key_cap).at_key_cap(AtKeyCap::Deny);
    builder.fingerprinter(DefaultFingerprinter::with_seed(1, 2)).build().expect("a quota that is allowed")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_are_decided_as_one_after_the_other(
        batches in prop::collection::vec((prop::collection::vec(0..200_u16, 0..150), 0..30_u64), 1..6),
        limit in 1..5_u32,
        key_cap in prop_oneof![Just(20_usize), Just(1000)],
        is_bucket: bool,
    ) {
        let window = Duration::from_nanos(20);
        let quota = if is_bucket { Quota::token_bucket(limit, 1, window) } else { Quota::new(limit, window) };
        let clock = MockClock::new();
        let (many, one) = (limiter(quota, &clock, key_cap), limiter(quota, &clock, key_cap));
        for (keys, pass) in batches {
            clock.advance(Duration::from_nanos(pass));
            let expected: Vec<Decision> = keys.iter().map(|key| one.try_acquire(key)).collect();
            prop_assert_eq!(many.try_acquire_many(&keys), expected);
        }
    }
}

/// Keys of two algorithms lie in one table, so a key may be where another one was looked for.
#[test]
fn keys_of_a_log_and_of_a_bucket_are_decided_together() {
    let builder = JointLimiter::<(u32, u32)>::builder().dimension("log", [Quota::per_hour(1)]);
    let bucket = Quota::token_bucket(1, 1, Duration::from_secs(3600));
    let limiter = builder.dimension("bucket", [bucket]).build().unwrap();
    for batch in 0..100 {
        let new = (0..100).map(|key| (100 * batch + key, 100 * batch + key));
        assert!(limiter.try_acquire_many(new).iter().all(|decision| decision.unwrap().is_admitted()));
    }
}

/// Each key needs a ring that alone takes more room than a small table has for rings.
#[test]
fn keys_of_one_table_that_need_large_rings_are_granted_together() {
    let quotas = || [Quota::per_hour(1_000)];
    // So few keys have one table.
    let builder = JointLimiter::<(u32, u32, u32)>::builder().key_cap(63).dimension("user", quotas());
    let builder = builder.dimension("tenant", quotas()).dimension("path", quotas());
    let limiter = builder.clock(CountedClock::new()).build().unwrap();
    for key in 0..10 {
        assert!(limiter.try_acquire_n((key, key, key), 600).unwrap().is_admitted());
        assert!(limiter.try_acquire_n((key, key, key), 600).unwrap().is_denied());
        assert!(limiter.try_acquire_n((key, key, key), 400).unwrap().is_admitted());
    }
}

#[test]
fn a_cost_above_the_limit_is_an_error_also_without_a_place() {
    for at_cap in [AtKeyCap::Deny, AtKeyCap::Admit] {
        let builder = Limiter::<str>::builder(Quota::per_minute(5)).key_cap(1).at_key_cap(at_cap);
        let limiter = builder.clock(CountedClock::new()).build().expect("a good quota");
        assert!(limiter.try_acquire("alice").is_admitted());
        assert!(limiter.try_acquire_n("bob", 6).is_err());
        assert!(limiter.try_acquire_n_status("bob", 6).is_err());
        assert!(limiter.peek_n("bob", 6).is_err());
        assert!(limiter.reserve("bob", 6, Duration::ZERO).is_err());
        assert_eq!(limiter.counts().refused_at_cap, 0);
    }
}
