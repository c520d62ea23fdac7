//! Reserving and giving back, by each kind of limiter: what a dropped reservation does, and what a
//! receipt is good for.

mod clocks;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{DirectLimiter, JointError, JointLimiter, Limiter, MockClock, Quota, Receipt, ReserveError};
use tollgate_kit::clocks::HookedClock;

const SECOND: Duration = Duration::from_secs(1);
const TEN: Duration = Duration::from_secs(10);
const NOW: Duration = Duration::ZERO;

fn limiter(limit: u32) -> (Limiter<str, MockClock>, MockClock) {
    let clock = MockClock::new();
    (Limiter::builder(Quota::new(limit, TEN)).clock(clock.clone()).build().unwrap(), clock)
}

fn joint() -> (JointLimiter<[i32], MockClock>, MockClock) {
    let clock = MockClock::new();
    let builder = JointLimiter::<[i32]>::builder()
        .dimension("user", [Quota::new(2, TEN)])
        .dimension("endpoint", [Quota::token_bucket(3, 1, SECOND)]);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn direct() -> DirectLimiter<MockClock> {
    DirectLimiter::with_clock(Quota::new(2, TEN), MockClock::new()).unwrap()
}

#[test]
fn a_dropped_reservation_is_refunded() {
    let (limiter, _) = limiter(3);
    let reservation = limiter.reserve("a", 2, NOW).unwrap();
    assert_eq!((reservation.delay(), limiter.peek("a").remaining()), (NOW, 1));
    drop(reservation);
    assert_eq!(limiter.peek("a").remaining(), 3);
}

#[test]
fn a_reservation_is_refunded_when_its_scope_ends_by_an_error_or_a_panic() {
    let (limiter, _) = limiter(3);
    let fails = || -> Result<(), std::num::ParseIntError> {
        let reservation = limiter.reserve("a", 3, NOW).unwrap();
        let _: u32 = "not a number".parse()?;
        drop(reservation.commit());
        Ok(())
    };
    assert!(fails().is_err());
    assert_eq!(limiter.peek("a").remaining(), 3);
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _reservation = limiter.reserve("a", 3, NOW).unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panics.is_err());
    assert_eq!(limiter.peek("a").remaining(), 3);
}

#[test]
fn a_cancelled_reservation_returns_the_number_of_refunded_permits() {
    let (limiter, clock) = limiter(3);
    assert_eq!(limiter.reserve("a", 2, NOW).unwrap().cancel(), 2);
    let late = limiter.reserve("a", 2, NOW).unwrap();
    clock.advance(TEN);
    assert_eq!(late.cancel(), 0, "they have left their window");
}

#[test]
fn committed_permits_stay_charged_until_their_receipt_is_refunded() {
    let (limiter, _) = limiter(3);
    let receipt = limiter.reserve("a", 2, NOW).unwrap().commit();
    assert_eq!((receipt.cost(), limiter.peek("a").remaining()), (2, 1));
    assert_eq!(limiter.refund(receipt).unwrap(), 2);
    assert_eq!(limiter.peek("a").remaining(), 3);
    drop(limiter.reserve("a", 2, NOW).unwrap().commit());
    assert_eq!(limiter.peek("a").remaining(), 1, "a receipt that is dropped does nothing");
}

#[test]
fn another_limiter_returns_the_receipt() {
    let ((one, _), (other, _)) = (limiter(3), limiter(3));
    let receipt = one.reserve("a", 2, NOW).unwrap().commit();
    assert!(other.try_acquire_n("a", 2).unwrap().is_admitted());
    let error = other.refund(receipt).unwrap_err();
    assert!(error.to_string().contains("another limiter"), "{error}");
    assert_eq!(other.peek("a").remaining(), 1);
    assert_eq!(one.refund(error.into_receipt()).unwrap(), 2);
    assert_eq!(one.peek("a").remaining(), 3);
}

#[test]
fn a_receipt_is_refused_by_a_limiter_of_another_kind() {
    let ((keyed, _), direct, (joint, _)) = (limiter(3), direct(), joint());
    let receipt: Receipt = keyed.reserve("a", 1, NOW).unwrap().commit();
    let receipt = direct.refund(receipt).unwrap_err().into_receipt();
    let receipt = joint.refund(receipt).unwrap_err().into_receipt();
    assert_eq!(keyed.refund(receipt).unwrap(), 1);
    let receipt = joint.reserve([1, 1], 1).unwrap().commit();
    let receipt = keyed.refund(receipt).unwrap_err().into_receipt();
    let receipt = direct.refund(receipt).unwrap_err().into_receipt();
    assert_eq!(joint.refund(receipt).unwrap(), 1);
}

#[test]
fn a_denied_reservation_says_when_the_same_succeeds() {
    let (limiter, clock) = limiter(2);
    let too_many = limiter.reserve("a", 3, TEN).unwrap_err();
    assert!(matches!(too_many, ReserveError::CostExceedsLimit(cost) if cost.cost() == 3 && cost.limit() == 2));
    assert_eq!(too_many.denial(), None);
    assert!(limiter.try_acquire_n("a", 2).unwrap().is_admitted());
    let denial = limiter.reserve("a", 1, 4 * SECOND).unwrap_err().denial().unwrap();
    assert_eq!(denial.retry_after(), 6 * SECOND);
    clock.advance(6 * SECOND);
    assert_eq!(limiter.reserve("a", 1, 4 * SECOND).unwrap().delay(), 4 * SECOND);
}

#[test]
fn a_cost_of_zero_reserves_nothing() {
    let (limiter, _) = limiter(2);
    let receipt = limiter.reserve("a", 0, TEN).unwrap().commit();
    assert_eq!((receipt.cost(), limiter.refund(receipt).unwrap(), limiter.peek("a").remaining()), (0, 0, 2));
}

#[test]
fn a_forgotten_key_is_refunded_nothing() {
    for quota in [Quota::new(2, TEN), Quota::token_bucket(2, 1, TEN), Quota::fixed_window(2, TEN)] {
        for cost in [1, 2] {
            let limiter = Limiter::<str>::builder(quota).clock(MockClock::new()).build().unwrap();
            let receipt = limiter.reserve("a", cost, NOW).unwrap().commit();
            assert!(limiter.forget("a"));
            assert!(limiter.try_acquire("a").is_admitted());
            assert_eq!((limiter.refund(receipt).unwrap(), limiter.peek("a").remaining()), (0, 1), "{quota}");
        }
    }
}

#[test]
fn several_forgotten_keys_are_refunded_nothing() {
    let dimension = || [Quota::new(2, TEN)];
    let limiter =
        JointLimiter::<(String, String)>::builder().dimension("one", dimension()).dimension("other", dimension());
    let limiter = limiter.clock(MockClock::new()).build().unwrap();
    let reserved = limiter.reserve(("a", "b"), 1).unwrap();
    limiter.forget(("a", "b")).unwrap();
    assert!(limiter.try_acquire(("a", "b")).unwrap().is_admitted());
    assert_eq!(reserved.cancel(), 0);
    assert!(limiter.peek_n(("a", "c"), 2).unwrap().is_denied());
    assert!(limiter.peek_n(("c", "b"), 2).unwrap().is_denied());
}

#[test]
fn a_direct_limiter_reserves_and_refunds() {
    let limiter = direct();
    drop(limiter.reserve(2, NOW).unwrap());
    assert_eq!(limiter.peek().remaining(), 2);
    let receipt = limiter.reserve(2, NOW).unwrap().commit();
    assert_eq!(limiter.peek().remaining(), 0);
    assert!(limiter.reserve(1, NOW).unwrap_err().denial().is_some());
    let ahead = limiter.reserve(1, TEN).unwrap();
    assert_eq!((ahead.delay(), ahead.cancel()), (TEN, 1));
    let receipt = direct().refund(receipt).unwrap_err().into_receipt();
    assert_eq!((limiter.refund(receipt).unwrap(), limiter.peek().remaining()), (2, 2));
}

#[test]
fn a_joint_limiter_reserves_all_or_nothing_and_refunds_all_of_it() {
    let (limiter, clock) = joint();
    let left = |user: i32| (0..=2).rev().find(|&cost| limiter.peek_n([user, 1], cost).unwrap().is_admitted());
    drop(limiter.reserve([1, 1], 2).unwrap());
    assert_eq!(left(1), Some(2));
    let receipt = limiter.reserve([1, 1], 2).unwrap().commit();
    // The endpoint has one left: nothing is taken of the second user.
    assert!(limiter.reserve([2, 1], 2).unwrap_err().denial().is_some());
    assert!(limiter.reserve([1, 2], 1).unwrap_err().denial().is_some());
    assert_eq!(limiter.refund(receipt).unwrap(), 2);
    let receipt = limiter.reserve([2, 1], 2).unwrap().commit();
    clock.advance(2 * SECOND);
    // The bucket is full again, the user's window is not over: the most that came back of one
    // dimension.
    assert_eq!(limiter.refund(receipt).unwrap(), 2);
    assert_eq!(left(2), Some(2));
}

#[test]
fn a_joint_limiter_names_reasons_not_to_reserve() {
    let (limiter, _) = joint();
    let one = limiter.reserve([1], 1).unwrap_err();
    assert_eq!(one, ReserveError::Joint(JointError::WrongNumberOfKeys { keys: 1, dimensions: 2 }));
    let many = limiter.reserve([1, 1], 3).unwrap_err();
    assert!(matches!(many, ReserveError::Joint(JointError::Cost(cost)) if cost.limit() == 2), "{many:?}");
    // Only the dimensions that are asked.
    let receipt = limiter.reserve([None, Some(1)], 3).unwrap().commit();
    assert_eq!(limiter.refund(receipt).unwrap(), 3);
}

#[test]
fn a_refund_frees_a_place_at_the_cap() {
    for quota in [Quota::new(10, TEN), Quota::fixed_window(10, TEN), Quota::token_bucket(10, 1, SECOND)] {
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(quota).key_cap(1).clock(clock.clone()).build().unwrap();
        let reservation = limiter.reserve("a", 5, NOW).unwrap();
        (0..3).for_each(|_| assert!(limiter.try_acquire("b").is_denied()));
        assert_eq!(reservation.cancel(), 5);
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.try_acquire("b").is_admitted(), "{quota:?}");
    }
}

#[test]
fn a_receipt_of_a_bucket_is_good_thousands_of_permits_later() {
    let clock = MockClock::new();
    let quota = Quota::token_bucket(10, 1, SECOND);
    let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap();
    let receipt = limiter.reserve("a", 5, NOW).unwrap().commit();
    for _ in 0..3000 {
        assert!(limiter.try_acquire("a").is_admitted());
        clock.advance(SECOND);
    }
    assert_eq!((limiter.peek("a").remaining(), limiter.refund(receipt).unwrap()), (5, 5));
    assert_eq!(limiter.peek("a").remaining(), 10);
}

#[test]
fn a_reservation_keeps_the_status_that_it_came_with() {
    let clock = MockClock::new();
    let log = Quota::new(3, Duration::from_secs(10));
    let limiter = Limiter::<str>::builder(log).and(Quota::per_minute(5)).clock(clock.clone()).build().unwrap();
    let numbers = |status: &tollgate::Status| -> Vec<(u32, u64, u64)> {
        let quotas = status.quotas();
        quotas.map(|it| (it.remaining(), it.next_after().as_secs(), it.reset_after().as_secs())).collect()
    };
    let first = limiter.reserve("a", 2, Duration::ZERO).unwrap();
    assert_eq!(numbers(first.status()), [(1, 10, 10), (3, 60, 60)]);
    clock.advance(Duration::from_secs(4));
    let ahead = limiter.reserve("a", 2, Duration::from_secs(30)).unwrap();
    assert_eq!((ahead.delay().as_secs(), ahead.status().is_admitted()), (6, true));
    // Nothing overtakes what is reserved; of three permits one is free then, and of five one.
    assert_eq!(numbers(ahead.status()), [(0, 6, 16), (0, 6, 66)]);
    assert_eq!(numbers(first.status())[0], (1, 10, 10), "as of then");

    let joint = JointLimiter::<(u32, u32)>::builder()
        .dimension("user", [log])
        .dimension("address", [log, Quota::per_minute(5)]);
    let joint = joint.clock(clock.clone()).build().unwrap();
    let reserved = joint.reserve((&1, &2), 2).unwrap();
    let items = reserved.status().quotas().map(|it| (it.dimension(), it.quota(), it.remaining(), it.is_violated()));
    assert_eq!(items.collect::<Vec<_>>(), [(0, 0, 1, false), (1, 0, 1, false), (1, 1, 3, false)]);
    assert_eq!(reserved.cancel(), 2);
    let nothing = joint.reserve((&1, &2), 0).unwrap();
    assert!(nothing.status().quotas().all(|it| it.remaining() == it.limit()));
    let direct = DirectLimiter::with_clock(log, clock).unwrap();
    assert_eq!(direct.reserve(3, Duration::ZERO).unwrap().status().remaining(), 0);
}

#[test]
fn a_reservation_can_own_its_limiter_and_go_to_another_thread() {
    fn is_static<T: Send + 'static>(it: T) -> T {
        it
    }
    let limiter = Arc::new(limiter(3).0);
    let (one, other) = (limiter.reserve_owned("a", 2, NOW).unwrap(), limiter.reserve_owned("a", 1, NOW).unwrap());
    assert!(limiter.reserve_owned("a", 1, NOW).unwrap_err().denial().is_some());
    let (one, other) = (is_static(one), is_static(other));
    std::thread::spawn(move || drop(one)).join().unwrap();
    assert_eq!(limiter.peek("a").remaining(), 2, "dropped, it gave its permits back");
    let receipt = std::thread::spawn(move || other.commit()).join().unwrap();
    assert_eq!(limiter.peek("a").remaining(), 2);
    assert_eq!(limiter.refund(receipt).unwrap(), 1);

    let limiter = Arc::new(direct());
    let reserved = is_static(limiter.reserve_owned(2, NOW).unwrap());
    assert!(limiter.try_acquire().is_denied());
    assert_eq!((reserved.cancel(), limiter.peek().remaining()), (2, 2));

    let limiter = Arc::new(joint().0);
    let reserved = is_static(limiter.reserve_owned([1, 1], 2).unwrap());
    assert!(limiter.try_acquire([1, 1]).unwrap().is_denied());
    drop(reserved);
    assert!(limiter.try_acquire([1, 1]).unwrap().is_admitted());
    // The reservation outlives every other owner of the limiter.
    let reserved = limiter.reserve_owned([1, 1], 1).unwrap();
    drop(limiter);
    assert_eq!(reserved.cancel(), 1);
}
