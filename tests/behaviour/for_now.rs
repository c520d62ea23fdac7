//! Requests that accept no delay, and keys that are blocked when they reserve: what they are told
//! is what the next request finds.

use std::time::Duration;

use tollgate::{Decision, JointLimiter, JointLimiterBuilder, Limiter, MockClock, Penalty, Quota, ReserveError};

const SECOND: Duration = Duration::from_secs(1);

/// One place in the queue for each second, at most two seconds ahead.
fn queue() -> Quota {
    Quota::leaky_queue(1, SECOND, 2 * SECOND)
}

fn joint(quota: Quota) -> (JointLimiterBuilder<(u8,), MockClock>, MockClock) {
    let clock = MockClock::new();
    (JointLimiter::builder().dimension("key", [quota]).clock(clock.clone()), clock)
}

fn wait(error: &ReserveError) -> Duration {
    let ReserveError::Denied(denial) = error else { panic!("{error:?}") };
    denial.retry_after()
}

fn delay(decision: Decision) -> Duration {
    let Decision::Admitted(admission) = decision else { panic!("{decision:?}") };
    admission.delay()
}

#[test]
fn a_joint_reservation_takes_no_later_place_in_a_queue() {
    let (builder, clock) = joint(queue());
    let limiter = builder.build().unwrap();
    let first = limiter.reserve((1,), 1).unwrap();
    assert_eq!(first.delay(), Duration::ZERO);
    first.commit();
    for _ in 0..5 {
        assert_eq!(wait(&limiter.reserve((1,), 1).unwrap_err()), SECOND);
    }
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(wait(&limiter.reserve((1,), 1).unwrap_err()), Duration::from_nanos(1));
    clock.advance(Duration::from_nanos(1));
    // The denied requests took no place.
    assert_eq!(limiter.reserve((1,), 1).unwrap().delay(), Duration::ZERO);
    // A request that accepts a delay gets the next one.
    assert_eq!(delay(limiter.try_acquire((1,)).unwrap()), Duration::ZERO);
    assert_eq!(delay(limiter.try_acquire((1,)).unwrap()), SECOND);
}

#[test]
fn the_wait_for_a_joint_reservation_is_until_the_queue_is_empty() {
    let (builder, clock) = joint(queue());
    let limiter = builder.build().unwrap();
    limiter.reserve((1,), 3).unwrap().commit();
    for gone in 0..3 {
        assert_eq!(wait(&limiter.reserve((1,), 1).unwrap_err()), (3 - gone) * SECOND, "{gone}");
        clock.advance(SECOND);
    }
    assert!(limiter.reserve((1,), 1).is_ok());
}

#[test]
fn a_joint_reservation_in_shadow_mode_is_overruled() {
    let (builder, _) = joint(queue());
    let limiter = builder.shadow(true).count_decisions(true).build().unwrap();
    limiter.reserve((1,), 1).unwrap().commit();
    let overruled = limiter.reserve((1,), 1).unwrap();
    let told = overruled.status().quotas().next().unwrap();
    assert!(told.is_violated());
    assert_eq!((told.remaining(), told.next_after()), (0, SECOND));
    overruled.commit();
    let counts = limiter.counts();
    assert_eq!(counts.overruled, 1);
}

#[test]
fn denials_for_now_count_for_a_penalty() {
    let (builder, clock) = joint(queue());
    let limiter = builder.penalty(0, Penalty::new(2, 10 * SECOND, 60 * SECOND)).count_decisions(true).build().unwrap();
    limiter.reserve((1,), 1).unwrap().commit();
    let waits: Vec<_> = (0..4).map(|_| wait(&limiter.reserve((1,), 1).unwrap_err())).collect();
    assert_eq!(waits, [SECOND, 60 * SECOND, 60 * SECOND, 60 * SECOND]);
    let decisions = limiter.counts().decisions.unwrap();
    assert_eq!((decisions.admitted, decisions.denied), (1, 4));
    clock.advance(60 * SECOND);
    assert!(limiter.reserve((1,), 1).is_ok());
}

/// A key is blocked, and asks to reserve. The wait that it is told is the first after which the
/// same reservation succeeds.
#[test]
fn a_blocked_key_is_told_when_its_reservation_succeeds() {
    let ten = 10 * SECOND;
    let quotas = [
        Quota::new(1, 3 * ten),
        Quota::token_bucket(1, 1, 3 * ten),
        Quota::leaky_bucket(1, 1, 3 * ten),
        Quota::leaky_queue(1, ten, 5 * ten),
        Quota::fixed_window(1, 3 * ten),
        Quota::quantised_log(1, 3 * ten, SECOND),
    ];
    for quota in quotas {
        for (within, blocked_for) in [0, 5, 10, 25, 40].into_iter().zip([1, 20, 7, 40, 20].into_iter().cycle()) {
            let (within, blocked_for) = (within * SECOND, blocked_for * SECOND);
            let limiter = |clock: &MockClock| {
                let penalty = Penalty::new(1, 1000 * SECOND, blocked_for);
                let limiter = Limiter::<u8>::builder(quota).penalty(penalty).clock(clock.clone()).build().unwrap();
                assert!(limiter.try_acquire(1).is_admitted());
                // Beyond the longest queue.
                while limiter.try_acquire(1).is_admitted() {}
                limiter
            };
            let clock = MockClock::new();
            let told = wait(&limiter(&clock).reserve(1, 1, within).map(|_| ()).unwrap_err());
            let after = |wait: Duration| {
                let clock = MockClock::new();
                let limiter = limiter(&clock);
                clock.advance(wait);
                limiter.reserve(1, 1, within).is_ok()
            };
            assert!(after(told), "{quota:?} within {within:?}, blocked for {blocked_for:?}: {told:?}");
            assert!(!after(told - Duration::from_nanos(1)), "{quota:?} within {within:?}: {told:?}");
        }
    }
}
