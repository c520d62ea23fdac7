//! Costs that are known afterwards: what is less is given back, what is more is debt, and nothing
//! comes in between.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::{AtKeyCap, DirectLimiter, JointLimiter, Limiter, MockClock, Quota};
use tollgate_kit::clocks::HookedClock;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

fn limiter(quota: Quota) -> (Limiter<str, MockClock>, MockClock) {
    let clock = MockClock::new();
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

/// One of each algorithm, with so many permits at once and a permit back after about a minute for
/// each.
fn quotas(limit: u32) -> [Quota; 5] {
    [
        Quota::new(limit, MINUTE),
        Quota::quantised_log(limit, MINUTE, SECOND),
        Quota::token_bucket(limit, limit, MINUTE),
        Quota::fixed_window(limit, MINUTE),
        Quota::sliding_counter(limit, MINUTE),
    ]
}

/// A request that was charged 1,000 uses 900. Whenever the limiter reads its clock, another one
/// takes what it gets.
#[test]
fn of_1000_no_more_than_1000_are_used_while_another_takes_what_it_gets() {
    for quota in quotas(1000) {
        let clock = HookedClock::new();
        let limiter = Limiter::<str, _>::builder(quota).clock(clock.clone()).build().unwrap();
        let (limiter, taken) = (Arc::new(limiter), Arc::new(Mutex::new(0)));
        let receipt = limiter.reserve("a", 1000, NOW).unwrap().commit();
        let take = {
            let (limiter, taken) = (Arc::clone(&limiter), Arc::clone(&taken));
            move || {
                for cost in [1000, 100, 1] {
                    if limiter.try_acquire_n("a", cost).unwrap().is_admitted() {
                        *taken.lock().unwrap() += cost;
                    }
                }
            }
        };
        clock.at_next_reading(take.clone());
        assert_eq!(limiter.settle(receipt, 900).unwrap(), 900, "{quota}");
        take();
        assert_eq!(*taken.lock().unwrap(), 100, "{quota}");
    }
}

/// The same work by a refund and a second charge: the other one takes all that the refund gave
/// back.
#[test]
fn a_refund_and_a_second_charge_leave_a_gap() {
    let (limiter, _) = limiter(Quota::new(1000, MINUTE));
    let receipt = limiter.reserve("a", 1000, NOW).unwrap().commit();
    assert_eq!(limiter.refund(receipt).unwrap(), 1000);
    assert!(limiter.try_acquire_n("a", 1000).unwrap().is_admitted());
    assert!(limiter.try_acquire_n("a", 900).unwrap().is_denied(), "it has used 900 all the same");
}

#[test]
fn what_is_more_than_there_is_is_debt_that_requests_wait_for() {
    // The time until a permit is free, once 1,900 of 1,000 are charged.
    let waits = [MINUTE, MINUTE, MINUTE * 901 / 1000, MINUTE, MINUTE + MINUTE * 901 / 1900];
    for (quota, wait) in quotas(1000).into_iter().zip(waits) {
        let (limiter, clock) = limiter(quota);
        clock.advance(MINUTE);
        let receipt = limiter.reserve("a", 1000, NOW).unwrap().commit();
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.settle(receipt, 1900).unwrap(), 1900, "{quota}");
        assert_eq!(limiter.peek("a").remaining(), 0, "{quota}");
        let told = limiter.try_acquire("a").retry_after().unwrap();
        assert!(told.abs_diff(wait) <= Duration::from_millis(1), "{quota}: {told:?}, {wait:?}");
        clock.advance(told - Duration::from_nanos(1));
        assert!(limiter.try_acquire("a").is_denied(), "{quota}");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.try_acquire("a").is_admitted(), "{quota}");
    }
}

#[test]
fn a_cost_above_the_limit_is_debt_when_it_is_settled_and_an_error_when_it_is_asked_for() {
    for quota in quotas(10) {
        let (limiter, _) = limiter(quota);
        assert!(limiter.try_acquire_n("a", 11).is_err(), "{quota}");
        assert_eq!(limiter.reserve("a", 1, NOW).unwrap().settle(u32::MAX), u32::MAX, "{quota}");
        assert!(limiter.try_acquire("a").is_denied(), "{quota}");
        assert!(limiter.try_acquire_n("a", 11).is_err(), "{quota}");
    }
}

/// A bucket and a queue pay at their rate.
#[test]
fn debt_of_many_limits_is_paid_at_the_rate() {
    for quota in [Quota::token_bucket(10, 10, MINUTE), Quota::leaky_queue(10, MINUTE, NOW)] {
        let (limiter, clock) = limiter(quota);
        assert_eq!(limiter.reserve("a", 1, NOW).unwrap().settle(100), 100);
        let wait = limiter.try_acquire("a").retry_after().unwrap();
        let expected = if quota.limit() == 10 { MINUTE * 91 / 10 } else { MINUTE * 10 };
        assert_eq!(wait, expected, "{quota}");
        clock.advance(wait);
        assert!(limiter.try_acquire("a").is_admitted(), "{quota}");
    }
}

/// A denial may have left the wait as of before.
#[test]
fn a_denial_after_a_settled_cost_tells_its_wait() {
    let (limiter, clock) = limiter(Quota::new(10, MINUTE));
    let receipt = limiter.reserve("a", 5, NOW).unwrap().commit();
    clock.advance(SECOND);
    assert!(limiter.try_acquire_n("a", 5).unwrap().is_admitted());
    let wait = || limiter.try_acquire("a").retry_after();
    assert_eq!(wait(), Some(MINUTE - SECOND));
    clock.advance(SECOND);
    assert_eq!(limiter.settle(receipt, 12).unwrap(), 12);
    assert_eq!(wait(), Some(MINUTE - SECOND), "until the five of the second second are free");
    clock.advance(SECOND);
    assert_eq!(limiter.reserve("a", 0, NOW).unwrap().settle(40), 40);
    assert_eq!(wait(), Some(MINUTE));
}

#[test]
fn what_a_request_costs_as_charged_changes_nothing() {
    for quota in quotas(10) {
        let (limiter, clock) = limiter(quota);
        let receipt = limiter.reserve("a", 3, NOW).unwrap().commit();
        assert_eq!((limiter.settle(receipt, 3).unwrap(), limiter.peek("a").remaining()), (3, 7), "{quota}");
        // It would take a place for nothing.
        let late = limiter.reserve("b", 3, NOW).unwrap().commit();
        clock.advance(10 * MINUTE);
        limiter.forget("b");
        assert_eq!((limiter.settle(late, 3).unwrap(), limiter.forget("b")), (3, false), "{quota}");
    }
}

#[test]
fn permits_that_no_longer_count_are_not_given_back_and_more_is_charged_as_of_now() {
    for quota in quotas(10) {
        let (limiter, clock) = limiter(quota);
        let [less, more] = [(); 2].map(|()| limiter.reserve("a", 3, NOW).unwrap().commit());
        clock.advance(10 * MINUTE);
        assert_eq!((limiter.settle(less, 1).unwrap(), limiter.peek("a").remaining()), (3, 10), "{quota}");
        assert_eq!((limiter.settle(more, 7).unwrap(), limiter.peek("a").remaining()), (7, 6), "{quota}");
    }
}

#[test]
fn a_key_that_was_forgotten_is_charged_what_is_more_and_given_back_nothing() {
    for quota in quotas(10) {
        let (limiter, _) = limiter(quota);
        let [less, more] = [(); 2].map(|()| limiter.reserve("a", 3, NOW).unwrap().commit());
        assert!(limiter.forget("a"));
        assert!(limiter.try_acquire("a").is_admitted());
        assert_eq!((limiter.settle(less, 1).unwrap(), limiter.peek("a").remaining()), (3, 9), "{quota}");
        assert_eq!((limiter.settle(more, 7).unwrap(), limiter.peek("a").remaining()), (7, 5), "{quota}");
    }
}

/// Work that cannot be refused is charged by a receipt of no permits.
#[test]
fn a_receipt_of_no_permits_charges_what_cannot_be_refused() {
    for quota in quotas(10) {
        let (limiter, _) = limiter(quota);
        assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
        let receipt = limiter.reserve("a", 0, NOW).unwrap().commit();
        assert_eq!((receipt.cost(), limiter.settle(receipt, 5).unwrap()), (0, 5), "{quota}");
        assert!(limiter.try_acquire("a").is_denied());
    }
    let direct = DirectLimiter::with_clock(Quota::token_bucket(10, 10, MINUTE), MockClock::new()).unwrap();
    assert_eq!(direct.reserve(0, NOW).unwrap().settle(30), 30);
    assert_eq!(direct.try_acquire().retry_after().unwrap(), MINUTE * 21 / 10);
}

/// Beside a request that has cost more than there is, others have cost less.
#[test]
fn a_bucket_in_debt_gives_back_what_others_did_not_use() {
    let (limiter, _) = limiter(Quota::token_bucket(1000, 1000, MINUTE));
    let [more, less] = [(); 2].map(|()| limiter.reserve("a", 500, NOW).unwrap().commit());
    assert_eq!(limiter.settle(more, 3000).unwrap(), 3000);
    assert_eq!(limiter.settle(less, 100).unwrap(), 100);
    // 3,100 are charged, so 2,101 must flow in.
    assert_eq!(limiter.try_acquire("a").retry_after().unwrap(), MINUTE * 2101 / 1000);
}

/// What [`Limiter::refund`] says of an interval that begins between the charge and the refund: no
/// less, and no more.
#[test]
fn a_bucket_grants_what_flowed_in_beside_a_charge_that_is_refunded() {
    for actual in [0, 4] {
        let (limiter, clock) = limiter(Quota::token_bucket(10, 10, MINUTE));
        let receipt = limiter.reserve("a", 10, NOW).unwrap().commit();
        clock.advance(MINUTE * 9 / 10);
        let lacks = 10 - limiter.peek("a").remaining();
        assert_eq!(lacks, 1);
        let granted = |cost| limiter.try_acquire_n("a", cost).unwrap().is_admitted();
        assert!(granted(9));
        assert_eq!(limiter.settle(receipt, actual).unwrap(), actual);
        let refunded = 10 - actual;
        // Of one instant, for which the bound is the capacity.
        assert!(granted(10 + refunded - lacks - 9), "{refunded}");
        assert!(!granted(1), "{refunded}");
    }
}

#[test]
fn a_reservation_for_later_costs_less_or_more() {
    let (limiter, clock) = limiter(Quota::new(10, MINUTE));
    assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
    clock.advance(SECOND);
    let [less, more] = [(); 2].map(|()| limiter.reserve("a", 5, MINUTE).unwrap());
    assert_eq!([less.delay(), more.delay()], [MINUTE - SECOND; 2]);
    assert_eq!((less.settle(1), more.settle(7)), (1, 7));
    clock.advance(MINUTE - SECOND);
    assert_eq!(limiter.peek("a").remaining(), 2);
}

#[test]
fn a_queue_gives_back_its_last_place_and_takes_what_is_more() {
    let (limiter, _) = limiter(Quota::leaky_queue(1, SECOND, MINUTE));
    let first = limiter.reserve("a", 5, MINUTE).unwrap().commit();
    let second = limiter.reserve("a", 5, MINUTE).unwrap().commit();
    assert_eq!(limiter.settle(first, 1).unwrap(), 5, "the second has its delay");
    assert_eq!(limiter.settle(second, 2).unwrap(), 2);
    assert_eq!(limiter.reserve("a", 1, MINUTE).unwrap().delay(), 7 * SECOND);
    assert_eq!(limiter.reserve("a", 1, MINUTE).unwrap().settle(80), 80);
    assert_eq!(limiter.try_acquire("a").retry_after().unwrap(), 27 * SECOND);
}

fn joint(quota: Quota) -> (JointLimiter<[&'static str], HookedClock>, HookedClock) {
    let clock = HookedClock::new();
    let builder = JointLimiter::<[&'static str]>::builder().dimension("user", [quota]).dimension("tenant", [quota]);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

/// Whenever the limiter reads its clock, both dimensions have as many permits left.
#[test]
fn all_dimensions_are_settled_at_once() {
    for (quota, actual) in quotas(10).into_iter().flat_map(|quota| [(quota, 2), (quota, 7)]) {
        let (limiter, clock) = joint(quota);
        let limiter = Arc::new(limiter);
        let receipt = limiter.reserve(["a", "t"].as_slice(), 4).unwrap().commit();
        let seen = Arc::new(Mutex::new(None));
        clock.at_next_reading({
            let (limiter, seen) = (Arc::clone(&limiter), Arc::clone(&seen));
            move || {
                // As many permits as were left: that both words have changed makes the settlement
                // try again.
                let admitted = limiter.try_acquire_n(["a", "t"].as_slice(), 6).unwrap().is_admitted();
                *seen.lock().unwrap() = Some(admitted);
            }
        });
        assert_eq!(limiter.settle(receipt, actual).unwrap(), actual, "{quota}");
        assert_eq!(*seen.lock().unwrap(), Some(true), "{quota}");
        let left = limiter.peek(["a", "t"].as_slice()).unwrap();
        let left: Vec<_> = left.quotas().map(|quota| quota.remaining()).collect();
        assert_eq!(left, [4_u32.saturating_sub(actual); 2], "{quota}");
    }
}

/// In one dimension the permits no longer count.
#[test]
fn the_dimension_with_the_fewest_permits_is_told() {
    let clock = MockClock::new();
    let builder = JointLimiter::<[&'static str]>::builder()
        .dimension("user", [Quota::new(10, SECOND)])
        .dimension("tenant", [Quota::new(10, MINUTE)]);
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let keys = ["a", "t"];
    let receipts = [(); 2].map(|()| limiter.reserve(keys.as_slice(), 4).unwrap().commit());
    clock.advance(SECOND);
    let [first, second] = receipts;
    assert_eq!(limiter.settle(first, 1).unwrap(), 1);
    assert_eq!(limiter.refund(second).unwrap(), 4);
    let left = limiter.peek(keys.as_slice()).unwrap();
    assert_eq!(left.quotas().map(|quota| quota.remaining()).collect::<Vec<_>>(), [10, 9]);
}

/// Work that is on the allow list costs nothing, whatever it costs.
#[test]
fn keys_on_the_allow_list_are_charged_nothing() {
    let limiter = Limiter::<str>::builder(Quota::new(10, MINUTE)).list_cap(16).build().unwrap();
    limiter.allow("a").unwrap();
    for estimate in [0, 3] {
        let receipt = limiter.reserve("a", estimate, NOW).unwrap().commit();
        assert_eq!(limiter.settle(receipt, 8).unwrap(), estimate);
    }
    limiter.unlist("a");
    assert_eq!(limiter.peek("a").remaining(), 10);
}

/// The place of a key whose permits have expired may be another's.
#[test]
fn a_key_without_a_place_is_charged_no_more() {
    for policy in [AtKeyCap::Deny, AtKeyCap::Admit] {
        let clock = MockClock::new();
        let builder = Limiter::<str>::builder(Quota::new(10, MINUTE)).key_cap(1).at_key_cap(policy);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        let [first, second] = [(); 2].map(|()| limiter.reserve("a", 3, NOW).unwrap().commit());
        clock.advance(MINUTE);
        assert!(limiter.try_acquire("b").is_admitted());
        assert_eq!(limiter.settle(first, 8).unwrap(), 3, "the other key has the place");
        clock.advance(MINUTE);
        assert_eq!(limiter.settle(second, 8).unwrap(), 8, "the other key has expired");
        assert_eq!(limiter.peek("a").remaining(), 5);
        assert_eq!(limiter.counts().live_keys, 1);
    }
}

#[test]
fn a_receipt_of_another_limiter_settles_nothing() {
    let [(one, _), (other, _)] = [(); 2].map(|()| limiter(Quota::new(10, MINUTE)));
    let receipt = one.reserve("a", 3, NOW).unwrap().commit();
    let receipt = other.settle(receipt, 8).unwrap_err().into_receipt();
    assert_eq!((one.settle(receipt, 8).unwrap(), one.peek("a").remaining()), (8, 2));
}

/// Debt that would be more than a state can hold.
#[test]
fn debt_without_end_is_owed_and_nothing_overflows() {
    let longest = Duration::from_secs(400_000_000);
    let quotas = [
        Quota::token_bucket(1, 1, longest),
        Quota::leaky_queue(1, longest, NOW),
        Quota::warm_up(1, 1, longest, longest),
        Quota::fixed_window(1, longest),
        Quota::sliding_counter(1, longest),
        Quota::quantised_log(Quota::MAX_CAPACITY, longest, longest),
        Quota::new(4, longest),
    ];
    for quota in quotas {
        let (limiter, clock) = limiter(quota);
        for _ in 0..4 {
            assert_eq!(limiter.reserve("a", 0, NOW).unwrap().settle(u32::MAX), u32::MAX, "{quota}");
            clock.advance(SECOND);
        }
        assert!(limiter.try_acquire("a").is_denied(), "{quota}");
        assert_eq!(limiter.peek("a").remaining(), 0, "{quota}");
    }
}

/// Debt goes on after a restart.
#[cfg(feature = "snapshot")]
#[test]
fn debt_is_in_a_snapshot() {
    for quota in quotas(10) {
        let (limiter, clock) = limiter(quota);
        clock.advance(MINUTE);
        assert_eq!(limiter.reserve("a", 3, NOW).unwrap().settle(17), 17);
        let snapshot = limiter.snapshot();
        let restored = Limiter::<str>::builder(quota).clock(clock.clone()).restore_after(&snapshot, NOW).unwrap();
        let wait = |limiter: &Limiter<str, MockClock>| limiter.try_acquire("a").retry_after().unwrap();
        assert_eq!(wait(&restored), wait(&limiter), "{quota}");
    }
}

/// As if it had cost so much from the first: a cold limiter, that is to take as long to be free again.
#[test]
fn the_last_request_of_a_warm_up_costs_what_it_costs() {
    let quota = Quota::warm_up(50, 10, SECOND, MINUTE);
    let wait = |estimate, actual| {
        let (limiter, _) = limiter(quota);
        let receipt = limiter.reserve("a", estimate, NOW).unwrap();
        assert_eq!(receipt.settle(actual), actual);
        limiter.try_acquire("a").retry_after().unwrap()
    };
    let by_actual = [1, 7, 30].map(|actual| wait(actual, actual));
    assert_eq!([1, 7, 30].map(|actual| wait(50, actual)), by_actual);
    assert!(wait(1, 50) > by_actual[2]);
}
