//! Reservations and refunds by clocks that lag, go back or stand still.

use super::*;

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
            assert!(["b", "c"].iter().all(|key| limiter.try_acquire(*key).is_admitted()), "their places are free");
            assert!(limiter.forget("c"));
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
fn a_clock_that_goes_back_refunds_what_is_live_by_it_and_admits_no_more() {
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
    // By this clock it is live, and nothing was granted at 200.
    assert_eq!(limiter.refund(expired).unwrap(), 1);
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
    assert_eq!(other.cancel(), 1);
    let ahead = limiter.reserve("a", 1, TEN).unwrap();
    assert_eq!((ahead.delay(), ahead.cancel()), (Duration::from_nanos(13), 1));
    assert!(limiter.try_acquire("a").is_denied(), "two permits at one time");
    clock.set(101);
    assert!(limiter.try_acquire("a").is_admitted());
}

#[test]
fn a_thread_that_stalls_as_it_cancels_postpones_no_permit_that_expires_meanwhile() {
    let clock = HookedClock::new();
    let quota = Quota::new(1, Duration::from_nanos(2));
    let limiter = Arc::new(Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap());
    assert!(limiter.try_acquire("a").is_admitted());
    clock.set(1);
    let ahead = limiter.reserve("a", 1, TEN).unwrap();
    assert_eq!(ahead.delay(), Duration::from_nanos(1));
    let (others, time) = (Arc::clone(&limiter), clock.clone());
    clock.at_next_reading(move || {
        time.set(2);
        // Another key's rings are replaced, which raises the timestamp floor.
        (0..2).for_each(|_| assert_eq!(others.reserve("z", 1, NOW).unwrap().cancel(), 1));
    });
    assert_eq!(ahead.cancel(), 1);
    assert!(limiter.try_acquire("a").is_admitted(), "denied, and nothing is live or reserved");
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
