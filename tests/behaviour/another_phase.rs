//! A change of the phase of aligned windows: the permits of a window that runs still count.

use std::time::Duration;

use tollgate::{Limiter, MockClock, Quota};

const MINUTE: Duration = Duration::from_secs(60);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn limiter(quota: Quota) -> (Limiter<u32, MockClock>, MockClock) {
    let clock = MockClock::new();
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

fn fixed(phase: u64) -> Quota {
    Quota::fixed_window(5, MINUTE).aligned(seconds(phase))
}

#[test]
fn an_open_fixed_window_is_not_forgotten() {
    for before in [fixed(0), Quota::fixed_window(5, MINUTE)] {
        let (limiter, clock) = limiter(before);
        clock.advance(seconds(10));
        assert!(limiter.try_acquire_n(1, 4).unwrap().is_admitted());
        clock.advance(seconds(30));
        assert!(limiter.try_acquire(1).is_admitted());
        // By the new phase a window began at 30 s.
        limiter.set_quotas(&[fixed(30)]).unwrap();
        for _ in 0..2 {
            // The first by the account as it is, the second by the account written anew.
            assert_eq!(limiter.peek(1).retry_after(), Some(seconds(50)), "{before}");
            assert_eq!(limiter.try_acquire(1).retry_after(), Some(seconds(50)), "{before}");
        }
        assert!(limiter.try_acquire(2).is_admitted());
        clock.advance(seconds(50));
        assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted(), "at 90 s the next window begins");
        assert_eq!(limiter.try_acquire(1).retry_after(), Some(MINUTE));
    }
}

#[test]
fn a_window_that_is_over_stays_over() {
    let (limiter, clock) = limiter(fixed(0));
    assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
    clock.advance(MINUTE);
    limiter.set_quotas(&[fixed(30)]).unwrap();
    assert_eq!(limiter.peek(1).remaining(), 5);
    assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
    // The window from 30 s to 90 s.
    assert_eq!(limiter.try_acquire(1).retry_after(), Some(seconds(30)));
}

#[test]
fn several_changes_of_the_phase_forget_nothing_either() {
    for is_asked in [false, true] {
        let (limiter, clock) = limiter(fixed(0));
        assert!(limiter.try_acquire_n(1, 3).unwrap().is_admitted());
        for (now, phase, wait) in [(40, 30, 50), (50, 45, 55), (100, 20, 40), (110, 50, 60)] {
            clock.set(seconds(now).as_nanos().try_into().unwrap());
            limiter.set_quotas(&[fixed(phase)]).unwrap();
            // A request writes the account anew.
            assert!(!is_asked || limiter.try_acquire_n(1, 3).unwrap().is_denied());
            let status = limiter.peek(1);
            assert_eq!((status.remaining(), status.reset_after()), (2, seconds(wait)), "at {now} s");
        }
        // Then another limit, and no phase: the window goes on from the last change.
        limiter.set_quotas(&[Quota::fixed_window(7, MINUTE)]).unwrap();
        assert!(limiter.try_acquire_n(1, 4).unwrap().is_admitted());
        assert!(limiter.try_acquire(1).is_denied());
    }
}

#[test]
fn the_counts_of_a_sliding_counter_weigh_no_less() {
    let counter = |phase| Quota::sliding_counter(100, MINUTE).aligned(seconds(phase));
    for phase in 1..60 {
        let (limiter, clock) = limiter(counter(0));
        assert!(limiter.try_acquire_n(1, 80).unwrap().is_admitted());
        clock.advance(seconds(75));
        // 80 weigh 45 of 60 seconds.
        assert_eq!(limiter.peek(1).remaining(), 40);
        limiter.set_quotas(&[counter(phase)]).unwrap();
        assert!(limiter.peek(1).remaining() <= 40, "phase {phase}: {:?}", limiter.peek(1));
        let remaining = limiter.peek(1).remaining();
        assert!(remaining > 0 || limiter.try_acquire(1).is_denied());
        assert!(limiter.try_acquire_n(1, remaining).unwrap().is_admitted(), "phase {phase}");
        assert!(limiter.try_acquire(1).is_denied(), "phase {phase}");
        clock.advance(2 * MINUTE);
        assert_eq!(limiter.peek(1).remaining(), 100, "phase {phase}");
    }
}
