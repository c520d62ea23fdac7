//! Penalties, by example: what counts, when a block begins and ends, and what happens where there
//! is no room.

use std::time::Duration;

use tollgate::{AtKeyCap, Decision, DenialReason, Limiter, LimiterBuilder, MockClock, Penalty, Quota};

use tollgate_kit::clocks::CountedClock;

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// One permit in ten nanoseconds.
fn builder(denials: u32, within: u64, blocked_for: u64) -> (MockClock, LimiterBuilder<str, MockClock>) {
    let clock = MockClock::new();
    let penalty = Penalty::new(denials, ns(within), ns(blocked_for));
    (clock.clone(), Limiter::<str>::builder(Quota::new(1, ns(10))).penalty(penalty).clock(clock))
}

/// Why it was denied, and for how many nanoseconds.
fn told(decision: Decision) -> Option<(DenialReason, u128)> {
    decision.into_result().err().map(|denial| (denial.reason(), denial.retry_after().as_nanos()))
}

const QUOTA: DenialReason = DenialReason::Quota;
const PENALTY: DenialReason = DenialReason::Penalty;

#[test]
fn the_kth_denial_begins_the_block_and_tells_its_end() {
    let (clock, builder) = builder(3, 100, 50);
    let limiter = builder.build().expect("good");
    assert_eq!(told(limiter.try_acquire("a")), None);
    assert_eq!(told(limiter.try_acquire("a")), Some((QUOTA, 10)));
    clock.set(5);
    assert_eq!(told(limiter.try_acquire("a")), Some((QUOTA, 5)));
    clock.set(7);
    assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, 50)));
    assert_eq!(told(limiter.try_acquire("b")), None, "each key for itself");
    // Who keeps knocking does not prolong it.
    for time in [7, 10, 56] {
        clock.set(time);
        assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, u128::from(57 - time))));
        assert_eq!(limiter.peek("a").retry_after(), Some(ns(57 - time)));
        assert_eq!((limiter.peek("a").remaining(), limiter.peek("a").reset_after()), (0, ns(57 - time)));
    }
    clock.set(57);
    assert_eq!(told(limiter.try_acquire("a")), None);
    assert_eq!(limiter.counts().penalties, 1);
}

#[test]
fn the_window_of_the_denials_is_half_open() {
    for (third, reason) in [(99, PENALTY), (100, QUOTA)] {
        let (clock, builder) = builder(3, 100, 1000);
        let limiter = builder.build().expect("good");
        let denied_at = |time: u64| {
            clock.set(time);
            // A permit, unless one is still live, and then a denial.
            [(); 2].map(|()| told(limiter.try_acquire("a")).map(|(reason, _)| reason))[1]
        };
        assert_eq!([0, 50, third].map(denied_at), [Some(QUOTA), Some(QUOTA), Some(reason)], "the third at {third}");
    }
}

#[test]
fn the_wait_is_the_quotas_own_where_that_is_longer() {
    let clock = MockClock::new();
    let limiter = Limiter::<str>::builder(Quota::new(2, ns(1000)))
        .penalty(Penalty::new(1, ns(1), ns(50)))
        .clock(clock.clone())
        .build()
        .expect("good");
    assert_eq!(told(limiter.try_acquire("a")), None);
    clock.set(970);
    assert_eq!(told(limiter.try_acquire("a")), None);
    // One permit comes back in 30, the other in 1000, the block lasts for 50.
    assert_eq!(told(limiter.try_acquire_n("a", 2).expect("fits")), Some((PENALTY, 1000)));
    assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, 50)));
    clock.set(1019);
    assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, 1)));
    clock.set(1020);
    assert_eq!(told(limiter.try_acquire("a")), None);
}

#[test]
fn afterwards_a_short_block_is_followed_by_the_next_and_a_long_one_by_a_fresh_start() {
    let (clock, short) = builder(3, 100, 20);
    let short = short.build().expect("good");
    let asks = |limiter: &Limiter<str, MockClock>| [(); 4].map(|()| told(limiter.try_acquire("a")));
    assert_eq!(asks(&short), [None, Some((QUOTA, 10)), Some((QUOTA, 10)), Some((PENALTY, 20))]);
    clock.set(20);
    assert_eq!(asks(&short)[..2], [None, Some((PENALTY, 20))], "two denials are less than 100 old");
    clock.set(100);
    assert_eq!(asks(&short), [None, Some((QUOTA, 10)), Some((QUOTA, 10)), Some((PENALTY, 20))]);

    let (clock, long) = builder(3, 100, 100);
    let long = long.build().expect("good");
    for time in [0, 100, 200] {
        clock.set(time);
        assert_eq!(asks(&long), [None, Some((QUOTA, 10)), Some((QUOTA, 10)), Some((PENALTY, 100))], "at {time}");
    }
}

#[test]
fn neither_peeks_nor_requests_for_nothing_nor_the_block_itself_count() {
    let (clock, builder) = builder(2, 1000, 50);
    let limiter = builder.build().expect("good");
    assert_eq!(told(limiter.try_acquire("a")), None);
    for _ in 0..10 {
        assert_eq!(told(limiter.peek("a").decision()), Some((QUOTA, 10)));
        assert_eq!(told(limiter.try_acquire_n("a", 0).expect("fits")), None);
    }
    assert_eq!(told(limiter.try_acquire("a")), Some((QUOTA, 10)));
    // One more would begin a block, but to peek does not.
    assert_eq!(told(limiter.peek("a").decision()), Some((QUOTA, 10)));
    clock.set(10);
    assert_eq!(told(limiter.peek("a").decision()), None);
    assert_eq!(limiter.counts().penalties, 0);
}

#[test]
fn denials_by_the_block_do_not_count_towards_the_next() {
    let (clock, builder) = builder(3, 100, 50);
    let limiter = builder.build().expect("good");
    let last_of_two_at = |time: u64| {
        clock.set(time);
        [(); 2].map(|()| told(limiter.try_acquire("a")).map(|(reason, _)| reason))[1]
    };
    assert_eq!([0, 90].map(last_of_two_at), [Some(QUOTA); 2]);
    clock.set(95);
    assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, 50)));
    // The denial at 0 has left the window, so there is room for another, which those by the block
    // do not take.
    assert_eq!([105, 145].map(last_of_two_at), [Some(PENALTY), Some(QUOTA)]);
    assert_eq!(told(limiter.try_acquire("a")), Some((PENALTY, 50)), "at 90 and 145, and this one");
}

#[test]
fn denials_at_the_key_cap_do_not_count() {
    let (_, builder) = builder(2, 1000, 1000);
    let limiter = builder.key_cap(1).build().expect("good");
    assert_eq!(told(limiter.try_acquire("a")), None);
    for _ in 0..10 {
        let reason = told(limiter.try_acquire("b")).map(|(reason, _)| reason);
        assert_eq!(reason, Some(DenialReason::KeyCap));
    }
    assert_eq!((limiter.counts().penalties, limiter.counts().penalties_refused), (0, 0));
}

#[test]
fn forget_and_clear_end_a_penalty() {
    for clear in [false, true] {
        let (_, builder) = builder(2, 1000, 1000);
        let limiter = builder.build().expect("good");
        let asks = || [(); 3].map(|()| told(limiter.try_acquire("a")));
        let right = [None, Some((QUOTA, 10)), Some((PENALTY, 1000))];
        assert_eq!(asks(), right);
        if clear {
            limiter.clear();
        } else {
            assert!(limiter.forget("a"));
        }
        assert_eq!(asks(), right, "the denials are forgotten too");
    }
}

#[test]
fn where_there_is_no_room_for_a_penalty_the_quota_alone_denies() {
    let (clock, builder) = builder(2, 1000, 1000);
    let limiter = builder.key_cap(1).build().expect("good");
    let asks = |key: &str| [(); 3].map(|()| told(limiter.try_acquire(key)));
    assert_eq!(asks("a"), [None, Some((QUOTA, 10)), Some((PENALTY, 1000))]);
    // The permit of `a` is over, so `b` has a place. The places for penalties are both taken.
    clock.set(10);
    assert_eq!(asks("b"), [None, Some((QUOTA, 10)), Some((QUOTA, 10))]);
    assert_eq!((limiter.counts().penalties, limiter.counts().penalties_refused), (1, 2));
    clock.set(1000);
    assert_eq!(asks("b"), [None, Some((QUOTA, 10)), Some((PENALTY, 1000))]);
    assert_eq!(limiter.counts().penalties, 2);
}

/// A stream of keys of which each is denied and blocked, and never seen again.
#[test]
fn expired_keys_make_room() {
    let (clock, builder) = builder(2, 100, 100);
    let limiter = builder.key_cap(50).build().expect("good");
    for round in 0..200_u32 {
        for key in 0..50_u32 {
            let key = format!("{round} {key}");
            let told = [(); 3].map(|()| told(limiter.try_acquire(&*key)));
            assert_eq!(told, [None, Some((QUOTA, 10)), Some((PENALTY, 100))], "{key}");
        }
        clock.advance(ns(100));
    }
    assert_eq!((limiter.counts().penalties, limiter.counts().penalties_refused), (10_000, 0));
    assert!(limiter.counts().bytes < 60_000, "{} bytes", limiter.counts().bytes);
}

#[test]
fn other_algorithms_are_penalised_too() {
    let clock = MockClock::new();
    let limiter = Limiter::<str>::builder(Quota::token_bucket(1, 1, ns(10)))
        .penalty(Penalty::new(2, ns(100), ns(30)))
        .clock(clock.clone())
        .build()
        .expect("good");
    let told = [(); 4].map(|()| told(limiter.try_acquire("a")));
    assert_eq!(told, [None, Some((QUOTA, 10)), Some((PENALTY, 30)), Some((PENALTY, 30))]);
    clock.set(29);
    assert!(limiter.try_acquire("a").is_denied());
    clock.set(30);
    assert!(limiter.try_acquire("a").is_admitted());
}

/// A cost above the limit never fits: that is the answer at once, not the wait of the block. It is
/// so with a place and without one, and where refused requests count.
#[test]
fn a_blocked_key_is_told_at_once_that_a_cost_is_above_its_limit() {
    let quota = Quota::new(1, ns(10));
    for quota in [quota, quota.counting_refused()] {
        for (answer, has_place) in
            [(AtKeyCap::Admit, false), (AtKeyCap::Admit, true), (AtKeyCap::Deny, true), (AtKeyCap::Deny, false)]
        {
            for shadow in [false, true] {
                let about = format!("{quota}, {answer:?}, has a place: {has_place}, shadow: {shadow}");
                let clock = CountedClock::new();
                let builder = Limiter::<str>::builder(quota).key_cap(1).at_key_cap(answer).shadow(shadow);
                let builder = builder.penalty(Penalty::new(1, ns(1000), ns(1000)));
                let limiter = builder.clock(clock.clone()).build().expect("good");
                let _ = [(); 2].map(|()| limiter.try_acquire("a"));
                assert_eq!(limiter.counts().penalties, 1, "{about}");
                if !has_place {
                    clock.set(20);
                    assert!(limiter.try_acquire("b").is_admitted(), "{about}");
                }
                let decided = limiter.try_acquire_n("a", 2).map(|decision| decision.is_admitted()).ok();
                assert_eq!(decided, shadow.then_some(true), "{about}");
                let decided = limiter.try_acquire_n_status("a", 2).map(|status| status.is_admitted()).ok();
                assert_eq!(decided, shadow.then_some(true), "{about}");
                let reserved = limiter.reserve("a", 2, ns(0)).map(drop).map_err(|error| error.denial());
                assert_eq!(reserved, if shadow { Ok(()) } else { Err(None) }, "{about}");
                let peeked = limiter.peek_n("a", 2).map(|status| status.is_admitted()).ok();
                assert_eq!(peeked, shadow.then_some(true), "{about}");
            }
        }
    }
}

/// A refused request counts, also where it first has to take the place of an expired key.
#[test]
fn a_refused_request_that_takes_the_place_of_an_expired_key_counts() {
    let clock = CountedClock::new();
    let builder = Limiter::<str>::builder(Quota::new(1, ns(10)).counting_refused()).key_cap(1);
    let limiter = builder.penalty(Penalty::new(1, ns(100), ns(25))).clock(clock.clone()).build().expect("good");
    assert_eq!([(); 2].map(|()| told(limiter.try_acquire("a"))), [None, Some((PENALTY, 25))]);
    clock.set(10);
    assert!(limiter.try_acquire("b").is_admitted(), "it takes the place of a");
    clock.set(20);
    // The block ends in 5, and the refused request counts for 10.
    let status = limiter.try_acquire_status("a");
    assert_eq!(told(status.decision()), Some((PENALTY, 10)));
    assert_eq!((status.next_after(), status.reset_after()), (ns(10), ns(10)));
    clock.set(29);
    assert!(limiter.peek("a").is_denied());
    clock.set(30);
    assert!(limiter.peek("a").is_admitted());
}

#[test]
fn a_blocked_key_that_waits_longer_for_a_place_is_told_so() {
    let bucket = Quota::token_bucket(1, 1, ns(10)).starting_with(0);
    let builder = Limiter::<str>::builder(Quota::new(1, ns(70))).tier("low", [bucket]).key_cap(1);
    let limiter = builder.penalty(Penalty::new(1, ns(100), ns(50))).clock(MockClock::new()).build().expect("good");
    let low = limiter.tier("low").expect("given");
    assert_eq!([(); 2].map(|()| told(limiter.try_acquire("a"))), [None, Some((PENALTY, 70))]);
    assert_eq!(told(limiter.try_acquire(low.key("a"))), Some((DenialReason::KeyCap, 70)));
    assert_eq!(told(limiter.peek(low.key("a")).decision()), Some((DenialReason::KeyCap, 70)));
}

/// The block of a key is of all its tiers. A bucket that starts low fills from the first request on.
#[test]
fn the_first_request_of_a_blocked_key_begins_a_bucket_that_starts_low() {
    let bucket = Quota::token_bucket(5, 1, ns(10)).starting_with(0);
    let clock = CountedClock::new();
    let builder = Limiter::<str>::builder(Quota::new(1, ns(10))).tier("low", [bucket]);
    let limiter = builder.penalty(Penalty::new(1, ns(100), ns(15))).clock(clock.clone()).build().expect("good");
    let low = limiter.tier("low").expect("given");
    assert_eq!([(); 2].map(|()| told(limiter.try_acquire("a"))), [None, Some((PENALTY, 15))]);
    assert_eq!(told(limiter.try_acquire_n(low.key("a"), 2).expect("fits")), Some((PENALTY, 20)));
    clock.set(19);
    assert!(limiter.peek_n(low.key("a"), 2).expect("fits").is_denied());
    clock.set(20);
    assert!(limiter.try_acquire_n(low.key("a"), 2).expect("fits").is_admitted());
}
