//! Shadow mode, in one dimension and in several. (That it decides as ever is compared in
//! `against_oracle`.)

use std::time::Duration;

use tollgate::{AtKeyCap, Decision, DenialReason, JointLimiter, Limiter, MockClock, Quota};

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
