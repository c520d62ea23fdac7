//! A sequence of changes at one instant leaves no more permits than its last quota alone would have:
//! a limiter that is changed to several quotas in turn admits no more than one that is changed to
//! the last at once.

use core::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Limiter, MockClock, Quota};

/// The numbers of a quota, which each algorithm takes as it can.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    limit: u32,
    rate: u32,
    period: u64,
    phase: u64,
}

/// A permit that expires under one quota is forgotten, so windows have one length.
const WINDOW: Duration = Duration::from_secs(60);

fn quota(algorithm: Algorithm, Numbers { limit, rate, period, phase }: Numbers) -> Quota {
    let (period, phase) = (Duration::from_millis(period), Duration::from_millis(phase));
    match algorithm {
        Algorithm::SlidingWindowLog => Quota::new(limit, WINDOW),
        Algorithm::TokenBucket => Quota::token_bucket(limit, rate, period),
        Algorithm::LeakyBucket => Quota::leaky_bucket(limit, rate, period),
        Algorithm::LeakyQueue => Quota::leaky_queue(rate, period, period * limit),
        Algorithm::FixedWindow => Quota::fixed_window(limit, WINDOW),
        Algorithm::SlidingCounter => Quota::sliding_counter(limit, WINDOW).aligned(phase),
        Algorithm::QuantisedLog => Quota::quantised_log(limit, WINDOW, Duration::from_secs(1)),
        Algorithm::WarmUp => Quota::warm_up(limit, rate, period, 20 * period),
        Algorithm::Concurrency => Quota::concurrent(limit),
        _ => panic!("give a {algorithm} its numbers"),
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    (1..40_u32, 1..12_u32, prop_oneof![1..40_u64, 1..30_000_u64], 0..60_000_u64)
        .prop_map(|(limit, rate, period, phase)| Numbers { limit, rate, period, phase })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_sequence_of_changes_leaves_no_more_than_its_last_quota_alone(
        algorithm in proptest::sample::select(Algorithm::ALL),
        first in numbers(),
        changes in proptest::collection::vec(numbers(), 1..6),
        requests in proptest::collection::vec((0..20_000_u64, 1..40_u32, 0..3_u64), 1..30),
    ) {
        let clock = MockClock::new();
        let limiter = || {
            let builder = Limiter::<u8>::builder(quota(algorithm, first)).clock(clock.clone());
            builder.build().expect("a good quota")
        };
        let [in_turn, at_once] = [limiter(), limiter()];
        let mut in_flight = Vec::new();
        for (gap, cost, ahead) in requests {
            clock.advance(Duration::from_millis(gap));
            if algorithm == Algorithm::Concurrency {
                in_flight.extend([in_turn.try_enter(0), at_once.try_enter(0)]);
                continue;
            }
            let cost = cost.min(first.limit).min(in_turn.peek(0).limit());
            for limiter in [&in_turn, &at_once] {
                let _ = limiter.reserve(0, cost, Duration::from_secs(20 * ahead)).map(|reserved| reserved.commit());
            }
        }
        for &change in &changes {
            in_turn.set_quotas(&[quota(algorithm, change)]).expect("the same algorithm");
        }
        at_once.set_quotas(&[quota(algorithm, *changes.last().expect("some"))]).expect("the same algorithm");
        for later in [0, 1, 500, 7_000, 29_000] {
            clock.advance(Duration::from_millis(later));
            let [left, most] = [&in_turn, &at_once].map(|limiter| limiter.peek(0));
            prop_assert!(left.remaining() <= most.remaining(), "{left:?}, and at once {most:?}");
            for cost in 1..=most.limit() {
                let wait = |limiter: &Limiter<u8, MockClock>| {
                    limiter.peek_n(0, cost).expect("within the limit").decision().retry_after().unwrap_or_default()
                };
                prop_assert!(wait(&in_turn) >= wait(&at_once), "cost {cost}: {left:?}, and at once {most:?}");
            }
        }
    }
}

/// Ten changes to and fro, and a bucket is used up each time that it is large.
#[test]
fn a_bucket_that_shrinks_and_grows_ten_times_grants_no_permit() {
    let [large, small] = [20, 10].map(|capacity| Quota::token_bucket(capacity, 1, Duration::from_secs(1)));
    let limiter = Limiter::<u8>::builder(large).clock(MockClock::new()).build().unwrap();
    let mut granted = 0;
    for _ in 0..=10 {
        granted += (0..20).filter(|_| limiter.try_acquire(0).is_admitted()).count();
        limiter.set_quotas(&[small]).unwrap();
        limiter.set_quotas(&[large]).unwrap();
    }
    assert_eq!(granted, 20);
    // It is owed under the smaller quota, too.
    limiter.set_quotas(&[small]).unwrap();
    assert_eq!(limiter.try_acquire(0).retry_after(), Some(Duration::from_secs(11)));
}
