//! Logs that count refused requests, against a list of all requests: the answers must be the same,
//! to the nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{ChangeError, DirectLimiter, Limiter, Quota};

use tollgate_kit::clocks::CountedClock;
use tollgate_kit::reservations::Naive;
use tollgate_kit::reservations::account::Account;

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_requests_count(
        quotas in prop::collection::vec((1..10_u32, 1..60_u64), 1..4),
        requests in prop::collection::vec((1..5_u32, prop_oneof![0..3_u64, 0..30_u64, 0..200_u64]), 1..60),
    ) {
        let clock = CountedClock::new();
        let given: Vec<Quota> = quotas
            .iter()
            .map(|&(limit, window)| Quota::new(limit, nanos(window)).counting_refused())
            .collect();
        let mut builder = Limiter::<str>::builder(given[0]).clock(clock.clone());
        for &quota in &given[1..] {
            builder = builder.and(quota);
        }
        let (limiter, direct) = (builder.build().expect("logs"), DirectLimiter::with_quotas(&given, clock.clone()).expect("logs"));
        let (mut naive, mut now) = (Account::of_logs(quotas.clone(), true), 0);
        let most = quotas.iter().map(|&(limit, _)| limit).min().expect("a quota");
        for (cost, pass) in requests {
            clock.advance(nanos(pass));
            now += pass;
            let cost = cost.min(most);
            let looks = cost <= naive.remaining(now);
            prop_assert_eq!(limiter.peek_n("alice", cost).expect("small").is_admitted(), looks);
            let expected = naive.request(now, cost, None).err().map(nanos);
            for decision in [limiter.try_acquire_n("alice", cost), direct.try_acquire_n(cost)] {
                prop_assert_eq!(decision.expect("small").retry_after(), expected, "{} at {}", cost, now);
            }
        }
    }
}

/// Permits that were granted count for as long as they are live, whatever limit they were refused
/// others by meanwhile.
#[test]
fn a_refusal_under_a_smaller_limit_forgets_no_permits_of_a_larger_one() {
    let quota = |limit| Quota::per_minute(limit).counting_refused();
    let limiter = Limiter::<str>::builder(quota(10)).clock(CountedClock::new()).build().expect("a log");
    assert!(limiter.try_acquire_n("alice", 10).expect("the limit").is_admitted());
    limiter.set_quotas(&[quota(2)]).expect("a log");
    assert!(limiter.try_acquire("alice").is_denied());
    limiter.set_quotas(&[quota(10)]).expect("a log");
    assert_eq!(limiter.peek("alice").remaining(), 0);
    assert!(limiter.try_acquire("alice").is_denied());
}

/// A request that was refused counts, and a refund takes nothing off that.
#[test]
fn a_refund_returns_granted_permits_and_no_refused_requests() {
    for pass in [0, 1] {
        let clock = CountedClock::new();
        let quota = Quota::per_minute(2).counting_refused();
        let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().expect("a log");
        let granted = limiter.reserve("alice", 2, Duration::ZERO).expect("two are left").commit();
        clock.advance(nanos(pass));
        assert!(limiter.try_acquire("alice").is_denied());
        assert_eq!(limiter.refund(granted).expect("of this limiter"), 2);
        assert_eq!(limiter.peek("alice").remaining(), 1, "{pass} ns later");
    }
}

/// Refusals without end: a key remembers a bounded number of them.
#[test]
fn of_refused_requests_a_key_remembers_twice_its_largest_limit() {
    let quota = |limit| Quota::per_minute(limit).counting_refused();
    let limiter = Limiter::<str>::builder(quota(4)).clock(CountedClock::new()).build().expect("a log");
    (0..1000).for_each(|request| assert_eq!(limiter.try_acquire("alice").is_admitted(), request < 4));
    limiter.set_quotas(&[quota(2)]).expect("a log");
    (0..1000).for_each(|_| assert!(limiter.try_acquire("alice").is_denied()));
    limiter.set_quotas(&[quota(10)]).expect("a log");
    assert_eq!(limiter.peek("alice").remaining(), 2);
}

/// Of a log that counts refused requests, a reservation is for now, and counts if it is refused.
#[test]
fn a_refused_reservation_counts_and_none_is_ahead() {
    let clock = CountedClock::new();
    let quota = Quota::new(1, nanos(10)).counting_refused();
    let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().expect("a log");
    assert!(limiter.try_acquire("alice").is_admitted());
    clock.advance(nanos(4));
    let refused = limiter.reserve("alice", 1, nanos(100)).expect_err("nothing is reserved ahead");
    assert_eq!(refused.denial().map(|denial| denial.retry_after()), Some(nanos(10)));
    // The permit is free again, and the refused request is not.
    clock.advance(nanos(6));
    assert!(limiter.peek("alice").is_denied());
}

#[test]
fn whether_refused_requests_count_does_not_change() {
    let (plain, counting) = (Quota::per_minute(2), Quota::per_minute(2).counting_refused());
    for (is, asked) in [(plain, counting), (counting, plain)] {
        let limiter = Limiter::<str>::builder(is).keys_with_quotas(1).build().expect("a log");
        assert_eq!(limiter.set_quotas(&[asked]), Err(ChangeError::OtherRefused));
        assert_eq!(limiter.set_quotas_of("alice", &[asked]), Err(ChangeError::OtherRefused));
        assert_eq!(*limiter.quotas(), [is]);
    }
}
