//! A thread may stall between its reading of the clock and its look at the key, while others go on.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{DirectLimiter, Quota};
use tollgate_kit::clocks::HookedClock;

/// The bucket holds at least two permits all the time: 2 at zero, 7 at 500, and 2 when five of them
/// have been taken.
#[test]
fn a_reading_that_is_long_past_denies_nothing_that_was_there_all_the_time() {
    let clock = HookedClock::new();
    let quota = Quota::token_bucket(8, 1, Duration::from_nanos(100));
    let limiter = Arc::new(DirectLimiter::with_clock(quota, clock.clone()).expect("a good quota"));
    assert!(limiter.try_acquire_n(6).expect("less than the limit").is_admitted());
    assert_eq!(limiter.peek().remaining(), 2);
    let (others, time) = (Arc::clone(&limiter), clock.clone());
    clock.at_next_reading(move || {
        time.set(500);
        assert!(others.try_acquire_n(5).expect("less than the limit").is_admitted());
    });
    assert!(limiter.try_acquire().is_admitted());
    assert_eq!(limiter.peek().remaining(), 1);
}
