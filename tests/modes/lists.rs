//! The lists: what comes first, how long it lasts, and that a place which is given up can be had
//! again.

use std::time::Duration;

use tollgate::{Decision, DenialReason, Limiter, LimiterBuilder, ListError, MockClock, Penalty, Quota};

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
