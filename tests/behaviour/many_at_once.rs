//! `try_acquire_many` answers as so many calls of `try_acquire` do, one after the other.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, Decision, DefaultFingerprinter, Limiter, MockClock, Quota};

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
