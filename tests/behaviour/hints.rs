//! Statuses that a hint denies: beside a look, which reads no hint.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Limiter, MockClock, Quota, Status};
use tollgate_kit::clocks::HookedClock;

fn told(status: &Status) -> (Option<Duration>, u32, Duration, Duration) {
    (status.retry_after(), status.remaining(), status.next_after(), status.reset_after())
}

/// The newest stamp stays in the word when its permit is refunded, and goes to the next table. There
/// a lower limit makes the key full.
#[test]
fn a_status_by_a_hint_tells_no_end_of_a_permit_that_was_refunded() {
    const SECOND: Duration = Duration::from_secs(1);
    let kinds: [fn(u32) -> Quota; 2] =
        [|limit| Quota::new(limit, 100 * SECOND), |limit| Quota::quantised_log(limit, 100 * SECOND, 10 * SECOND)];
    for of in kinds {
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(of(3)).clock(clock.clone()).build().unwrap();
        for _ in 0..2 {
            clock.advance(10 * SECOND);
            assert!(limiter.try_acquire("alice").is_admitted());
        }
        clock.advance(10 * SECOND);
        limiter.reserve("alice", 1, Duration::ZERO).unwrap().cancel();
        limiter.set_quotas(&[of(2)]).unwrap();
        clock.advance(10 * SECOND);
        let looked = limiter.peek("alice");
        for _ in 0..2 {
            assert_eq!(told(&limiter.try_acquire_status("alice")), told(&looked));
        }
    }
}

#[test]
fn a_status_by_a_hint_of_a_later_word_is_of_one_instant() {
    let quota = Quota::new(2, Duration::from_nanos(100));
    let clock = HookedClock::new();
    let limiter = Arc::new(Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap());
    for time in [5, 10] {
        clock.set(time);
        assert!(limiter.try_acquire("alice").is_admitted());
    }
    clock.set(50);
    let (others, time) = (Arc::clone(&limiter), clock.clone());
    clock.at_next_reading(move || {
        for (now, admits) in [(106, true), (111, true), (112, false)] {
            time.set(now);
            assert_eq!(others.try_acquire("alice").is_admitted(), admits, "at {now}");
        }
    });
    let status = limiter.try_acquire_status("alice");
    assert!(status.is_denied());
    // The stamps are 106 and 111, whichever reading the waits are counted from.
    assert_eq!(status.reset_after().checked_sub(status.next_after()), Some(Duration::from_nanos(5)), "{status:?}");
}

/// A hint is for one permit. More are free later.
#[test]
fn a_request_for_more_is_not_told_the_wait_of_a_hint() {
    const SECOND: Duration = Duration::from_secs(1);
    for of in [Quota::new(3, 60 * SECOND), Quota::quantised_log(3, 60 * SECOND, SECOND)] {
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(of).clock(clock.clone()).build().unwrap();
        for _ in 0..3 {
            assert!(limiter.try_acquire("alice").is_admitted());
            clock.advance(10 * SECOND);
        }
        let wait = |cost: u32| limiter.try_acquire_n("alice", cost).unwrap().retry_after();
        assert_eq!([1, 2, 3].map(wait), [30, 40, 50].map(|seconds| Some(seconds * SECOND)));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Look,
    Ask(u32),
    Reserve(u64),
    Refund(prop::sample::Index),
    Change(u32),
    Forget,
    Wait(u64),
    GoBack(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Look),
        1 => (1..3_u32).prop_map(Step::Ask),
        2 => (0..50_u64).prop_map(Step::Reserve),
        1 => any::<prop::sample::Index>().prop_map(Step::Refund),
        1 => (1..6_u32).prop_map(Step::Change),
        1 => Just(Step::Forget),
        2 => (0..30_u64).prop_map(Step::Wait),
        1 => (0..40_u64).prop_map(Step::GoBack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn a_status_by_a_hint_is_that_by_the_ring(
        resolution in prop_oneof![Just(0), Just(1), Just(6), Just(60_u64)],
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let ns = Duration::from_nanos;
        let of = |limit| match resolution {
            0 => Quota::new(limit, ns(60)),
            resolution => Quota::quantised_log(limit, ns(60), ns(resolution)),
        };
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(of(3)).clock(clock.clone()).build().unwrap();
        let (mut now, mut receipts) = (1000_u64, Vec::new());
        for step in steps {
            clock.set(now);
            match step {
                Step::Look => {
                    let looked = limiter.peek("alice");
                    let status = limiter.try_acquire_status("alice");
                    prop_assert_eq!(status.is_denied(), looked.is_denied());
                    if status.is_denied() {
                        prop_assert_eq!(told(&status), told(&looked));
                        prop_assert_eq!(told(&limiter.try_acquire_status("alice")), told(&looked));
                    }
                }
                Step::Ask(cost) => drop(limiter.try_acquire_n("alice", cost)),
                Step::Reserve(within) => {
                    receipts.extend(limiter.reserve("alice", 1, ns(within)).ok().map(|reserved| reserved.commit()));
                }
                Step::Refund(which) if !receipts.is_empty() => {
                    let _ = limiter.refund(receipts.swap_remove(which.index(receipts.len())));
                }
                Step::Refund(_) => {}
                Step::Change(limit) => limiter.set_quotas(&[of(limit)]).unwrap(),
                Step::Forget => drop(limiter.forget("alice")),
                Step::Wait(time) => now += time,
                Step::GoBack(time) => now = now.saturating_sub(time),
            }
        }
    }
}
