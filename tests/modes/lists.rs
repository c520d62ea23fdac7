//! The lists: what comes first, how long it lasts, and that a place which is given up can be had
//! again.

use std::time::Duration;

use tollgate::{
    Absent, Decision, DenialReason, JointError, JointLimiter, Limiter, LimiterBuilder, ListError, MockClock, Penalty,
    Quota,
};

fn builder(list_cap: usize) -> LimiterBuilder<u32, MockClock> {
    Limiter::<u32>::builder(Quota::per_minute(1)).list_cap(list_cap).clock(MockClock::new())
}

fn reason(decision: Decision) -> Option<DenialReason> {
    decision.into_result().err().map(|denial| denial.reason())
}

#[test]
fn deny_comes_before_allow_before_penalty_before_quota() {
    let minute = Duration::from_secs(60);
    let limiter = builder(10).penalty(Penalty::new(2, minute, 5 * minute)).build().expect("good");
    let ask = || reason(limiter.try_acquire(7));
    let told: Vec<_> = (0..4).map(|_| ask()).collect();
    let (quota, penalty) = (Some(DenialReason::Quota), Some(DenialReason::Penalty));
    assert_eq!(told, [None, quota, penalty, penalty]);
    limiter.allow(7).expect("room");
    assert_eq!(ask(), None);
    limiter.deny(7).expect("room");
    assert_eq!(ask(), Some(DenialReason::DenyList));
    assert_eq!(limiter.try_acquire(7).retry_after(), Some(Duration::MAX));
    assert_eq!(limiter.allow(7), Ok(false), "it is on that list already");
    assert_eq!(ask(), Some(DenialReason::DenyList), "the deny list comes first, whichever came later");
    assert!(limiter.unlist(7) && !limiter.unlist(7));
    assert_eq!(ask(), penalty, "lists end no penalty");
}

#[test]
fn lists_outlast_everything_but_unlist() {
    let clock = MockClock::new();
    let limiter = builder(10).clock(clock.clone()).build().expect("good");
    limiter.allow(1).expect("room");
    limiter.deny(2).expect("room");
    for time in [0, 1, u64::MAX / 8, u64::MAX, 3] {
        clock.set(time);
        limiter.clear();
        limiter.forget(1);
        limiter.forget(2);
        assert!((0..3).all(|_| limiter.try_acquire(1).is_admitted()), "at {time}");
        assert_eq!(reason(limiter.try_acquire(2)), Some(DenialReason::DenyList), "at {time}");
    }
    assert_eq!(limiter.counts().live_keys, 0, "nobody was charged");
    // The key that is neither is decided by its quota.
    assert_eq!(limiter.try_acquire(3).into_result().map(|admission| admission.is_counted()), Ok(true));
    assert!(limiter.try_acquire(3).is_denied());
}

#[test]
fn a_request_for_nothing_is_admitted_also_on_the_deny_list() {
    let limiter = builder(10).build().expect("good");
    limiter.deny(1).expect("room");
    assert!(limiter.try_acquire_n(1, 0).expect("fits").is_admitted());
    assert!(limiter.peek_n(1, 0).expect("fits").is_admitted());
    assert!(limiter.peek(1).decision().is_denied());
}

#[test]
fn exactly_as_many_as_there_is_room_for_and_places_are_used_again() {
    for list_cap in [1_u32, 2, 100, 5000] {
        let limiter = builder(usize::try_from(list_cap).expect("few")).build().expect("good");
        let full = Err(ListError::Full { list_cap: usize::try_from(list_cap).expect("few") });
        for key in 0..list_cap {
            assert_eq!(limiter.deny(key), Ok(true), "{key} of {list_cap}");
        }
        assert_eq!(limiter.deny(list_cap), full);
        assert!(limiter.try_acquire(list_cap).is_admitted(), "who is not listed is not denied");
        for round in 0..50 {
            // Any of them may be the one that makes way.
            let (out, back) = (round * 37 % list_cap, list_cap + round);
            assert!(limiter.unlist(out));
            assert_eq!(limiter.deny(back), Ok(true), "round {round} of {list_cap}");
            assert_eq!(limiter.allow(out), full);
            assert!(limiter.unlist(back));
            assert_eq!(limiter.deny(out), Ok(true), "round {round} of {list_cap}");
        }
        assert!((0..list_cap).all(|key| limiter.try_acquire(key).is_denied()));
        assert_eq!(limiter.counts().listed, usize::try_from(list_cap).expect("few"));
    }
}

/// A cost above the limit is an error only for keys whose quota is asked.
#[test]
fn lists_come_before_the_cost() {
    let limiter = builder(10).build().expect("good");
    limiter.allow(1).expect("room");
    limiter.deny(2).expect("room");
    for cost in [1, 2, u32::MAX] {
        let denied = Some(DenialReason::DenyList);
        let admission = limiter.try_acquire_n(1, cost).expect("an answer").into_result().expect("on the allow list");
        assert!(!admission.is_counted());
        assert_eq!(reason(limiter.try_acquire_n(2, cost).expect("an answer")), denied);
        let told = [limiter.try_acquire_n_status(1, cost), limiter.peek_n(1, cost)].map(|it| it.expect("an answer"));
        assert!(told.iter().all(|status| status.is_admitted() && status.remaining() == 1), "{told:?}");
        let told = [limiter.try_acquire_n_status(2, cost), limiter.peek_n(2, cost)].map(|it| it.expect("an answer"));
        assert!(told.iter().all(|status| reason(status.decision()) == denied && status.remaining() == 0), "{told:?}");
        let reserved = limiter.reserve(1, cost, Duration::ZERO).expect("on the allow list");
        assert_eq!(limiter.refund(reserved.commit()).expect("its own"), 0, "nothing was charged");
        let error = limiter.reserve(2, cost, Duration::MAX).expect_err("on the deny list");
        assert_eq!(error.denial().map(|denial| denial.reason()), denied);
    }
    assert!(limiter.try_acquire_n(3, 2).is_err() && limiter.peek_n(3, 2).is_err());
    assert!(limiter.unlist(1) && limiter.unlist(2));
    assert!(limiter.try_acquire_n(1, 2).is_err() && limiter.try_acquire_n(2, 2).is_err());
    assert_eq!(limiter.counts().live_keys, 0);
}

#[test]
fn lists_come_before_the_cost_in_each_dimension() {
    let builder = JointLimiter::<(u32, u32)>::builder().clock(MockClock::new()).list_cap(10);
    let builder = builder.dimension("user", [Quota::per_minute(1)]).dimension("tenant", [Quota::per_minute(5)]);
    let limiter = builder.build().expect("good");
    limiter.allow((1, Absent)).expect("room");
    limiter.deny((2, 2)).expect("room");
    // The tenant's quota has room for three, and the user is not asked.
    assert!(limiter.try_acquire_n((1, 1), 3).expect("an answer").is_admitted());
    assert_eq!(limiter.peek_n((1, 1), 2).expect("an answer").quotas().map(|item| item.remaining()).max(), Some(2));
    let cost = |result: Result<Decision, JointError>| match result {
        Err(JointError::Cost(error)) => Some(error.limit()),
        _ => None,
    };
    assert_eq!(cost(limiter.try_acquire_n((1, 1), 6)), Some(5), "the tenant is asked");
    assert_eq!(cost(limiter.try_acquire_n((3, 1), 2)), Some(1), "the user is asked");
    for keys in [(2, 1), (1, 2), (3, 2), (2, 2)] {
        for cost in [1, 2, 6] {
            let denied = Some(DenialReason::DenyList);
            assert_eq!(reason(limiter.try_acquire_n(keys, cost).expect("an answer")), denied, "{keys:?}, {cost}");
            assert_eq!(reason(limiter.peek_n(keys, cost).expect("an answer").decision()), denied);
            assert_eq!(reason(limiter.try_acquire_n_status(keys, cost).expect("an answer").decision()), denied);
            let error = limiter.reserve(keys, cost).expect_err("on the deny list");
            assert_eq!(error.denial().map(|denial| denial.reason()), denied);
        }
    }
    assert!(limiter.try_acquire_n((1, Absent), u32::MAX).expect("an answer").is_admitted());
}
