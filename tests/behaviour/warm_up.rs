//! A warm-up through the limiters, against the waits that Guava's own tests state.

use std::time::Duration;

use tollgate::{Limiter, MockClock, Quota, QuotaError};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(clock: &MockClock) -> Limiter<u32, MockClock> {
    let quota = Quota::warm_up(3, 2, SECOND, 4 * SECOND);
    Limiter::builder(quota).clock(clock.clone()).build().unwrap()
}

/// The waits after each of some requests, in milliseconds.
fn waits(limiter: &Limiter<u32, MockClock>, costs: &[u32]) -> Vec<u128> {
    let wait = |&cost: &u32| {
        assert!(limiter.try_acquire_n(7, cost).unwrap().is_admitted());
        let wait = limiter.peek(7).retry_after().unwrap_or_default();
        limiter.clock().advance(wait);
        wait.as_millis()
    };
    costs.iter().map(wait).collect()
}

/// `RateLimiterTest.testWarmUp` of Guava, rounded there to hundredths of a second.
#[test]
fn a_cold_limiter_rises_to_its_rate_as_that_of_guava_does() {
    let clock = MockClock::new();
    let limiter = limiter(&clock);
    let rising = [1375, 1125, 875, 625, 500, 500, 500, 500];
    assert_eq!(waits(&limiter, &[1; 8]), rising);
    // Half a second of rest stores one permit, on the flat part.
    clock.advance(SECOND / 2);
    assert_eq!(waits(&limiter, &[1; 2]), [500, 500]);
    // After four seconds it is cold again.
    clock.advance(4 * SECOND);
    assert_eq!(waits(&limiter, &[1; 8]), rising);
}

#[test]
fn permits_take_as_long_together_as_one_by_one() {
    let limiter = limiter(&MockClock::new());
    assert_eq!(waits(&limiter, &[3, 1, 2]), [1375 + 1125 + 875, 625, 1000]);
    assert!(limiter.try_acquire_n(7, 4).is_err());
}

#[test]
fn a_warm_up_changes_with_what_it_has_stored() {
    let clock = MockClock::new();
    let limiter = limiter(&clock);
    assert_eq!(waits(&limiter, &[1; 5]), [1375, 1125, 875, 625, 500]);
    limiter.set_quotas(&[Quota::warm_up(3, 4, SECOND, 4 * SECOND)]).unwrap();
    // It is as warm as before, at the new rate.
    assert_eq!(waits(&limiter, &[1; 2]), [250, 250]);
}

#[test]
fn numbers_out_of_range_are_errors() {
    let warm_up = |rate, per, warm_up| Quota::warm_up(1, rate, per, warm_up).validate();
    assert_eq!(warm_up(2, SECOND, Duration::ZERO), Err(QuotaError::ZeroWarmUp));
    assert_eq!(warm_up(0, SECOND, SECOND), Err(QuotaError::ZeroRate));
    assert_eq!(warm_up(2, Duration::ZERO, SECOND), Err(QuotaError::ZeroPeriod));
    let long = Duration::from_secs(1 << 30);
    assert_eq!(warm_up(2, SECOND, long), Err(QuotaError::WarmUpTooLong { warm_up: long }));
    assert_eq!(warm_up(1, SECOND, long / 2), Ok(()));
}
