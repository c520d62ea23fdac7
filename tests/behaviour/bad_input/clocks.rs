//! Readings that no clock should give: at the end of time, decades on, and backwards.

use super::*;

#[test]
fn a_clock_that_goes_back_admits_no_more_and_the_wait_counts_from_its_reading() {
    let clock = MockClock::new();
    let quota = Quota::new(2, Duration::from_nanos(100));
    let limiters = each(&[quota], || clock.clone());
    let ask = || limiters.each_ref().map(|it| it.acquire_one(KEY));
    clock.set(1000);
    assert!(ask().iter().all(Decision::is_admitted));
    // 500 is before the newest stamp, and so the permit granted now is one of 1000.
    clock.set(500);
    assert!(ask().iter().all(Decision::is_admitted));
    // Both are free again at 1100.
    for (reading, wait) in [(500, 600), (0, 1100), (1099, 1)] {
        clock.set(reading);
        for decision in ask() {
            assert_eq!(decision.retry_after(), Some(Duration::from_nanos(wait)), "at {reading}");
        }
        for status in limiters.each_ref().map(|it| it.peek(KEY)) {
            assert_eq!((status.remaining(), status.reset_after()), (0, Duration::from_nanos(wait)), "at {reading}");
        }
    }
    clock.set(1100);
    assert!(ask().iter().all(Decision::is_admitted));
    assert!(ask().iter().all(Decision::is_admitted));
    assert!(ask().iter().all(Decision::is_denied));
}

#[test]
fn a_peek_writes_nothing_though_the_clock_goes_back_afterwards() {
    let clock = MockClock::new();
    for limiter in each(&[Quota::new(1, Duration::from_nanos(100))], || clock.clone()) {
        clock.set(1000);
        assert!(limiter.acquire_one(KEY).is_admitted());
        clock.set(2000);
        assert!(limiter.peek(KEY).is_admitted());
        assert_eq!(limiter.acquire(KEY, 0).map(|decision| decision.is_admitted()), Ok(true));
        // A peek writes nothing: at 1050 the permit of 1000 is live, whatever was seen at 2000.
        clock.set(1050);
        assert_eq!(limiter.acquire_one(KEY).retry_after(), Some(Duration::from_nanos(50)));
    }
}

#[test]
fn decades_of_uptime_change_nothing() {
    let clock = MockClock::new();
    let quota = Quota::new(2, Duration::from_secs(1));
    let limiters = each(&[quota], || clock.clone());
    let ask = || limiters.each_ref().map(|it| it.acquire_one(KEY));
    // Up to 100 years, in leaps of a decade.
    for _ in 0..10 {
        clock.advance(DECADE);
        assert!([ask(), ask()].as_flattened().iter().all(Decision::is_admitted));
        assert_eq!(ask().map(|decision| decision.retry_after()), [Some(quota.window()); 3]);
        clock.advance(quota.window() - NANOSECOND);
        assert_eq!(ask().map(|decision| decision.retry_after()), [Some(NANOSECOND); 3]);
    }
}

/// At the end of time nothing expires any more. What can be asked of a limiter is that it neither
/// panics nor gives away a permit too many, there and back again.
#[test]
fn a_clock_at_the_end_of_time_admits_no_more_than_the_limit_and_does_not_panic() {
    for window in [NANOSECOND, Duration::from_secs(1), Quota::MAX_WINDOW] {
        for first in [0, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX] {
            let clock = MockClock::new();
            let quota = Quota::new(3, window);
            for limiter in each(&[quota], || clock.clone()) {
                clock.set(first);
                assert!(limiter.acquire_one(KEY).is_admitted(), "a new key at {first}");
                clock.set(u64::MAX);
                clock.advance(Duration::MAX);
                assert_eq!(clock.now(), u64::MAX, "the mock clock stays at the end of time");
                let admitted = (0..10).filter(|_| limiter.acquire_one(KEY).is_admitted()).count();
                // Whether the first permit has expired by then is a matter of where the end is;
                // long before it has.
                let at_least = if first < 3 << 60 { 3 } else { 2 };
                assert!((at_least..=3).contains(&admitted), "{admitted} from {first}, {quota:?}");
                // Back again, the readings count as the newest stamp.
                clock.set(first);
                let decision = limiter.acquire_one(KEY);
                assert!(decision.is_denied(), "{decision:?} at {first} after the end, {quota:?}");
                assert_eq!((limiter.peek(KEY).remaining(), limiter.counts().live_keys), (0, 1));
            }
        }
    }
}
