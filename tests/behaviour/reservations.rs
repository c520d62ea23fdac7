//! Reserving and giving back, by each kind of limiter: what a dropped reservation does, and what a receipt is good for.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{Clock, DirectLimiter, JointError, JointLimiter, Limiter, MockClock, Quota, Receipt, ReserveError};

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
    // The bucket is full again, the user's window is not over: the most that came back of one dimension.
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
fn a_new_key_reserved_by_a_lagging_clock_begins_no_earlier_than_its_last_end() {
    let nanos = Duration::from_nanos;
    for quota in [
        Quota::fixed_window(10, nanos(100)),
        Quota::token_bucket(10, 1, nanos(10)),
        Quota::sliding_counter(10, nanos(50)),
        Quota::new(10, nanos(100)),
        Quota::quantised_log(10, nanos(100), nanos(10)),
    ] {
        let free_again = |reserve: bool| {
            let clock = MockClock::new();
            let limiter = Limiter::<str>::builder(quota).key_cap(2).clock(clock.clone()).build().unwrap();
            assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
            assert!(limiter.try_acquire("z").is_admitted());
            clock.set(100);
            assert!(limiter.try_acquire("b").is_admitted(), "their places are free");
            clock.set(50);
            if reserve {
                let _ = limiter.reserve("a", 10, NOW).unwrap().commit();
            } else {
                assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
            }
            (50..=300).find(|&at| {
                clock.set(at);
                limiter.peek_n("a", 10).unwrap().is_admitted()
            })
        };
        assert_eq!(free_again(true), free_again(false), "{quota:?}");
    }
}

/// A limiter whose clock shows nanoseconds, and can be set back.
fn by_the_nanosecond(limit: u32, window: u64) -> (Limiter<str, MockClock>, MockClock) {
    let clock = MockClock::new();
    let quota = Quota::new(limit, Duration::from_nanos(window));
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn a_clock_that_goes_back_beside_a_reservation_refunds_no_expired_permit() {
    let (limiter, clock) = by_the_nanosecond(1, 200);
    let expired = limiter.reserve("a", 1, NOW).unwrap().commit();
    clock.set(200);
    assert!(limiter.try_acquire("a").is_admitted());
    clock.set(210);
    let ahead = limiter.reserve("a", 1, TEN).unwrap();
    assert_eq!(ahead.delay(), Duration::from_nanos(190));
    clock.set(199);
    assert_eq!(limiter.refund(expired).unwrap(), 0, "its place was taken at 200");
    clock.set(210);
    assert_eq!(ahead.cancel(), 1);
    assert!(limiter.try_acquire("a").is_denied(), "two permits within ten nanoseconds");
    clock.set(400);
    assert!(limiter.try_acquire("a").is_admitted());
}

#[test]
fn a_clock_that_goes_back_after_a_cancellation_refunds_no_expired_permit() {
    let (limiter, clock) = by_the_nanosecond(2, 200);
    let expired = limiter.reserve("a", 1, NOW).unwrap().commit();
    clock.set(100);
    assert!(limiter.try_acquire("a").is_admitted());
    clock.set(200);
    // The newest stamp goes, and with it the proof in the ring that the time has been 200.
    assert_eq!(limiter.reserve("a", 1, NOW).unwrap().cancel(), 1);
    clock.set(199);
    assert_eq!(limiter.refund(expired).unwrap(), 0, "its place was taken at 200");
    clock.set(200);
    assert!(limiter.try_acquire_n("a", 2).unwrap().is_denied(), "three permits within 200 ns");
    assert!(limiter.try_acquire("a").is_admitted());
}

#[test]
fn a_clock_that_goes_back_refunds_no_permit_that_had_expired_at_another_refund() {
    let (limiter, clock) = by_the_nanosecond(3, 200);
    let expired = limiter.reserve("a", 1, NOW).unwrap().commit();
    clock.set(100);
    assert!(limiter.try_acquire("a").is_admitted());
    clock.set(150);
    let other = limiter.reserve("a", 1, NOW).unwrap();
    clock.set(200);
    // Nothing is granted at 200; the ring is replaced by one without the stamps that have expired.
    assert_eq!(other.cancel(), 1);
    clock.set(199);
    assert_eq!(limiter.refund(expired).unwrap(), 0, "it had expired at 200");
    clock.set(200);
    assert!(limiter.try_acquire_n("a", 3).unwrap().is_denied(), "four permits within 200 ns");
    assert!(limiter.try_acquire_n("a", 2).unwrap().is_admitted());
}

#[test]
fn a_reservation_by_a_clock_that_lags_behind_an_expiry_loses_no_permit() {
    let (limiter, clock) = by_the_nanosecond(1, 13);
    clock.set(100);
    let other = limiter.reserve("b", 1, NOW).unwrap();
    clock.set(87);
    assert!(limiter.try_acquire("a").is_admitted());
    assert_eq!(other.cancel(), 1, "the limiter knows of 100 from here on");
    let ahead = limiter.reserve("a", 1, TEN);
    assert!(ahead.as_ref().is_err_and(|error| error.denial().is_some_and(|denial| !denial.retry_after().is_zero())));
    drop(ahead);
    assert!(limiter.try_acquire("a").is_denied(), "two permits at one time");
    clock.set(101);
    assert!(limiter.try_acquire("a").is_admitted());
}

/// A clock at which a thread stops: between the reading and its use, other requests come.
struct Stops {
    shows: AtomicU64,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for &'static Stops {
    fn now(&self) -> u64 {
        let reading = self.shows.load(Ordering::SeqCst);
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        reading
    }
}

#[test]
fn a_thread_that_stalls_as_it_cancels_postpones_no_permit_that_expires_meanwhile() {
    let clock: &'static Stops = Box::leak(Box::new(Stops { shows: AtomicU64::new(0), meanwhile: Mutex::new(None) }));
    let quota = Quota::new(1, Duration::from_nanos(2));
    let limiter: &'static Limiter<str, &'static Stops> =
        Box::leak(Box::new(Limiter::builder(quota).clock(clock).build().unwrap()));
    assert!(limiter.try_acquire("a").is_admitted());
    clock.shows.store(1, Ordering::SeqCst);
    let ahead = limiter.reserve("a", 1, TEN).unwrap();
    assert_eq!(ahead.delay(), Duration::from_nanos(1));
    *clock.meanwhile.lock().unwrap() = Some(Box::new(|| {
        clock.shows.store(2, Ordering::SeqCst);
        // Another key's rings are replaced, which raises the timestamp floor.
        (0..2).for_each(|_| assert_eq!(limiter.reserve("z", 1, NOW).unwrap().cancel(), 1));
    }));
    assert_eq!(ahead.cancel(), 1);
    assert!(limiter.try_acquire("a").is_admitted(), "denied, and nothing is live or reserved");
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

/// A coarse clock stands still between its ticks.
#[test]
fn a_thousand_reservations_dropped_within_one_reading_postpone_nothing() {
    let interval = Duration::from_micros(10);
    for quota in [
        Quota::token_bucket(1, 1, interval),
        Quota::leaky_bucket(1, 1, interval),
        Quota::leaky_queue(1, interval, Duration::ZERO),
        Quota::fixed_window(1, interval),
        Quota::fixed_window(1, interval).aligned(NOW),
        Quota::new(1, interval),
        Quota::quantised_log(1, interval, interval),
        Quota::sliding_counter(1, interval),
    ] {
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap();
        let wait = limiter.try_acquire("b").retry_after().or(limiter.try_acquire("b").retry_after());
        for nth in 0..1000 {
            let reserved = limiter.reserve("a", 1, NOW).unwrap_or_else(|error| panic!("{nth} of {quota}: {error}"));
            assert_eq!((reserved.delay(), reserved.cancel()), (NOW, 1), "{nth} of {quota}");
        }
        assert!(limiter.try_acquire("a").is_admitted());
        assert_eq!(limiter.try_acquire("a").retry_after(), wait, "{quota}");
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
    let items = reserved.status().items().map(|it| (it.dimension(), it.quota(), it.remaining(), it.is_violated()));
    assert_eq!(items.collect::<Vec<_>>(), [(0, 0, 1, false), (1, 0, 1, false), (1, 1, 3, false)]);
    assert_eq!(reserved.cancel(), 2);
    let nothing = joint.reserve((&1, &2), 0).unwrap();
    assert!(nothing.status().items().all(|it| it.remaining() == it.limit()));
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
