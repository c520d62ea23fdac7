//! Shadow mode, in one dimension and in several. (That it decides as ever is compared in
//! `against_oracle`.)

use std::time::Duration;

use tollgate::{Absent, AtKeyCap, Decision, DenialReason, DirectLimiter, JointLimiter, Limiter, MockClock, Quota};

fn overruled(decision: Decision) -> Option<(DenialReason, Duration)> {
    match decision {
        Decision::Admitted(admission) => {
            let denial = admission.overruled()?;
            assert!(!admission.is_counted() && admission.delay().is_zero());
            Some((denial.reason(), denial.retry_after()))
        }
        Decision::Denied(denial) => panic!("a shadow denied: {denial}"),
    }
}

#[test]
fn denials_become_admissions_and_are_reported_and_counted() {
    let clock = MockClock::new();
    let minute = Duration::from_secs(60);
    let limiter =
        Limiter::<str>::builder(Quota::per_minute(2)).shadow(true).clock(clock.clone()).build().expect("good");
    for _ in 0..2 {
        assert_eq!(overruled(limiter.try_acquire("alice")), None);
    }
    for _ in 0..3 {
        assert_eq!(overruled(limiter.try_acquire("alice")), Some((DenialReason::Quota, minute)));
    }
    // A peek tells the same, and does not count. Nothing was charged for what was overruled.
    assert_eq!(overruled(limiter.peek("alice").decision()), Some((DenialReason::Quota, minute)));
    let counts = limiter.counts();
    assert_eq!((counts.overruled, counts.decisions), (3, None));
    clock.advance(minute);
    assert_eq!(limiter.peek("alice").remaining(), 2);
    assert_eq!(limiter.try_acquire("alice").retry_after(), None);
}

#[test]
fn the_key_cap_is_overruled_too() {
    let builder = Limiter::<str>::builder(Quota::per_minute(1)).shadow(true).clock(MockClock::new());
    let limiter = builder.key_cap(1).at_key_cap(AtKeyCap::Deny).build().expect("good");
    assert_eq!(overruled(limiter.try_acquire("alice")), None);
    assert!(matches!(overruled(limiter.try_acquire("bob")), Some((DenialReason::KeyCap, _))));
}

#[test]
fn without_shadow_nothing_is_overruled() {
    let limiter =
        Limiter::<str>::builder(Quota::per_minute(1)).shadow(true).shadow(false).build().expect("a good quota");
    assert!(limiter.try_acquire("alice").is_admitted());
    assert!(limiter.try_acquire("alice").is_denied());
    assert_eq!(limiter.counts().overruled, 0);
}

#[test]
fn several_dimensions() {
    let clock = MockClock::new();
    let limiter = |shadow: bool| {
        let builder = JointLimiter::<(u64, u64)>::builder().clock(clock.clone()).count_decisions(true).shadow(shadow);
        let builder = builder.dimension("user", [Quota::per_minute(3)]).dimension("address", [Quota::per_minute(2)]);
        builder.build().expect("good")
    };
    let (strict, shadow) = (limiter(false), limiter(true));
    let mut denied = 0;
    for step in 0..40_u64 {
        clock.advance(Duration::from_secs(step % 7));
        let (user, address) = (step % 2, step % 3);
        let right = strict.try_acquire((&user, &address)).expect("two keys");
        let said = shadow.try_acquire((&user, &address)).expect("two keys");
        let Decision::Admitted(admission) = said else { panic!("a shadow denied") };
        assert_eq!(admission.overruled().map(Decision::Denied), right.is_denied().then_some(right), "step {step}");
        assert_eq!(admission.is_counted(), right.is_admitted());
        denied += u64::from(right.is_denied());
        let Decision::Admitted(peeked) = shadow.peek_n((&user, &address), 1).expect("two keys").decision() else {
            panic!("a shadow would deny")
        };
        let right = strict.peek_n((&user, &address), 1).expect("two keys").decision();
        assert_eq!(peeked.overruled().map(Decision::Denied), right.is_denied().then_some(right));
    }
    assert!(denied > 5, "{denied}");
    assert_eq!(strict.counts().decisions, shadow.counts().decisions);
    assert_eq!((strict.counts().overruled, shadow.counts().overruled), (0, denied));
}

/// No wait helps a cost above the limit, so the overruled denial has none.
#[test]
fn a_cost_above_the_limit_is_overruled_too() {
    let never = Some((DenialReason::Quota, Duration::MAX));
    let limiter = Limiter::<str>::builder(Quota::per_minute(5)).and(Quota::per_second(2)).shadow(true);
    let limiter = limiter.clock(MockClock::new()).build().expect("good");
    for cost in [3, 6, u32::MAX] {
        assert_eq!(overruled(limiter.try_acquire_n("alice", cost).expect("an answer")), never, "{cost}");
        assert_eq!(overruled(limiter.peek_n("alice", cost).expect("an answer").decision()), never);
        let status = limiter.try_acquire_n_status("alice", cost).expect("an answer");
        assert_eq!((overruled(status.decision()), status.remaining()), (never, 2), "nothing was charged");
        let reserved = limiter.reserve("alice", cost, Duration::MAX).expect("a shadow denies nothing");
        assert_eq!(limiter.refund(reserved.commit()).expect("its own"), 0);
    }
    assert_eq!((limiter.counts().overruled, limiter.counts().live_keys), (9, 0));
    let Ok(Decision::Admitted(admission)) = limiter.try_acquire_n("alice", 3) else { panic!("a shadow denied") };
    assert_eq!(admission.overruled().map(|denial| denial.quota()), Some(1), "the quota that it exceeds");

    let direct = DirectLimiter::builder(Quota::per_minute(5)).shadow(true).build().expect("good");
    assert_eq!(overruled(direct.try_acquire_n(6).expect("an answer")), never);

    let builder = JointLimiter::<(u32, u32)>::builder().dimension("user", [Quota::per_minute(9)]);
    let joint = builder.dimension("tenant", [Quota::per_minute(5)]).shadow(true).build().expect("good");
    for decision in [
        joint.try_acquire_n((1, 1), 6).expect("an answer"),
        joint.peek_n((1, 1), 6).expect("an answer").decision(),
        joint.try_acquire_n_status((1, 1), 6).expect("an answer").decision(),
    ] {
        assert_eq!(overruled(decision), never);
        let Decision::Admitted(admission) = decision else { unreachable!() };
        let denial = admission.overruled().expect("a denial");
        assert_eq!((denial.dimension(), denial.violated().collect::<Vec<_>>()), (1, vec![1]));
    }
    assert!(joint.reserve((1, 1), 6).is_ok());
    assert_eq!((joint.counts().overruled, joint.counts().live_keys), (3, 0));
}

/// The request is none that is an error, so it is the first of the bucket's key.
#[test]
fn a_cost_above_one_limit_begins_the_bucket_of_another_key_that_starts_low() {
    let (clock, second) = (MockClock::new(), Duration::from_secs(1));
    let low = Quota::token_bucket(9, 1, second).starting_with(0);
    let builder = JointLimiter::<(u64, u64)>::builder().clock(clock.clone()).shadow(true);
    let limiter = builder.dimension("user", [Quota::per_minute(2)]).dimension("tenant", [low]).build().expect("good");
    let decision = limiter.try_acquire_n((1, 7), 3).expect("a shadow has no errors");
    assert_eq!(overruled(decision), Some((DenialReason::Quota, Duration::MAX)));
    clock.advance(3 * second);
    assert_eq!(overruled(limiter.try_acquire_n((Absent, 7), 3).expect("fits")), None);
}
