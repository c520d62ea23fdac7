//! By how much a sliding window counter errs, as its documentation says.

use std::time::Duration;

use tollgate::{DirectLimiter, MockClock, Quota};

/// Nanoseconds between requests at the even rate.
const STEP: u64 = 60;

/// A counter whose first window begins at the origin of its clock.
fn limiter(limit: u32, window: u64) -> (MockClock, DirectLimiter<MockClock>) {
    let (clock, quota) = (MockClock::new(), Quota::sliding_counter(limit, Duration::from_nanos(window)));
    (clock.clone(), DirectLimiter::with_clock(quota, clock).unwrap())
}

/// The times at which requests are admitted.
fn admitted(limit: u32, window: u64, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let (clock, limiter) = limiter(limit, window);
    let is_admitted = |&time: &u64| {
        clock.set(time);
        limiter.try_acquire().is_admitted()
    };
    times.into_iter().filter(is_admitted).collect()
}

#[test]
fn a_client_at_the_even_rate_is_admitted_all_but_one_of_its_requests_of_a_window() {
    for limit in 1..=50 {
        let window = u64::from(limit) * STEP;
        for phase in 0..STEP {
            let times = (0..12 * u64::from(limit)).map(|nth| phase + nth * STEP);
            let admitted = admitted(limit, window, times);
            // The first window has none before it.
            let in_windows = |from: u64, to: u64| {
                admitted.iter().filter(|&&time| (from * window..to * window).contains(&time)).count() as u64
            };
            let about = format!("a limit of {limit}, {phase} after the start of a window");
            assert_eq!(in_windows(0, 1), u64::from(limit), "{about}");
            for nth in (2..12).step_by(2) {
                let [one, other] = [in_windows(nth - 1, nth), in_windows(nth, nth + 1)];
                match limit {
                    1 => assert_eq!(one + other, 1, "{about}"),
                    _ => assert_eq!([one, other], [u64::from(limit) - 1; 2], "{about}"),
                }
            }
        }
    }
}

#[test]
fn a_client_that_sends_one_request_less_is_never_denied() {
    for limit in 2..=50 {
        let (window, least) = (u64::from(limit - 1) * STEP, 12 * u64::from(limit - 1));
        for phase in 0..STEP {
            let times: Vec<u64> = (0..least).map(|nth| phase + nth * STEP).collect();
            assert_eq!(admitted(limit, window, times.clone()), times, "a limit of {limit}, {phase}");
        }
    }
}

/// All permits of a window at its end, and as many as there are at the end of the next.
#[test]
fn a_moving_window_holds_up_to_two_limits_less_one() {
    for limit in 1..=50 {
        let window = u64::from(limit) * STEP;
        // At each nanosecond from the last of the first window on.
        let late = (0..limit).map(|_| window - 1).chain(window..2 * window - 1);
        let admitted = admitted(limit, window, late);
        assert_eq!(admitted.len() as u64, 2 * u64::from(limit) - 1, "a limit of {limit}");
    }
}
