//! Wrongs that earlier versions had, found by random play and by users.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{ChangeError, Clock, Decision, DenialReason, JointLimiter, Limiter, MockClock, Penalty, Quota};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

fn limiter(quota: Quota) -> (Limiter<str, MockClock>, MockClock) {
    let clock = MockClock::new();
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn a_change_that_fails_has_changed_no_key() {
    let limiter = JointLimiter::<(String, String)>::builder()
        .dimension("user", [Quota::new(2, SECOND)])
        .dimension("endpoint", [Quota::leaky_bucket(2, 1, SECOND)])
        .keys_with_quotas(4)
        .clock(MockClock::new())
        .build()
        .unwrap();
    let five = [Quota::new(5, SECOND)];
    let error = limiter.set_quotas_of(("alice", "/"), &five).unwrap_err();
    assert!(matches!(error, ChangeError::OtherAlgorithm { .. }), "{error:?}");
    assert_eq!(limiter.quotas_of(("alice", "/")).unwrap()[0], Some([Quota::new(2, SECOND)].into()));
    assert!(limiter.try_acquire_n(("alice", "/"), 3).is_err(), "more than the old limit");
}

#[test]
fn the_same_quota_every_few_milliseconds_keeps_no_bucket_from_refilling_and_no_queue_from_draining() {
    for quota in [
        Quota::token_bucket(10, 1, SECOND),
        Quota::leaky_bucket(10, 1, SECOND),
        Quota::leaky_queue(1, SECOND, 9 * SECOND),
        Quota::fixed_window(10, 10 * SECOND),
        Quota::sliding_counter(10, 5 * SECOND),
        Quota::new(10, 10 * SECOND),
        Quota::quantised_log(10, 5 * SECOND, SECOND),
    ] {
        let (limiter, clock) = limiter(quota);
        assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
        for step in 0..1000 {
            clock.advance(SECOND / 100);
            // The name changes, or nothing does.
            limiter.set_quotas(&[if step % 3 == 0 { quota.named("other") } else { quota }]).unwrap();
        }
        assert_eq!(limiter.peek("a").remaining(), 10, "{quota}");
    }
}

#[test]
fn another_name_alone_changes_nothing_and_leaves_receipts_their_worth() {
    for quota in [
        Quota::token_bucket(10, 1, SECOND),
        Quota::leaky_queue(1, SECOND, 9 * SECOND),
        Quota::fixed_window(10, MINUTE),
        Quota::fixed_window(10, MINUTE).aligned(7 * SECOND),
        Quota::sliding_counter(10, MINUTE),
        Quota::new(10, MINUTE),
    ] {
        let (limiter, clock) = limiter(quota);
        let receipt = limiter.reserve("a", 3, NOW).unwrap().commit();
        clock.advance(SECOND / 3);
        let before = limiter.peek("a");
        limiter.set_quotas(&[quota.named("other")]).unwrap();
        assert_eq!(limiter.quotas()[0].name(), Some("other"));
        assert_eq!(format!("{:?}", limiter.peek("a")), format!("{before:?}"), "{quota}");
        assert_eq!(limiter.refund(receipt).unwrap(), 3, "{quota}");
        assert_eq!(limiter.peek("a").remaining(), 10, "{quota}");
    }
}

#[test]
fn a_change_brings_back_no_window_of_a_sliding_counter_that_is_over() {
    let (limiter, clock) = limiter(Quota::sliding_counter(5, SECOND));
    drop(limiter.reserve("a", 5, NOW).unwrap());
    let kept = limiter.reserve("b", 5, NOW).unwrap().commit();
    limiter.set_quotas(&[Quota::sliding_counter(6, SECOND)]).unwrap();
    assert_eq!(limiter.peek("a").remaining(), 6);
    assert_eq!(limiter.refund(kept).unwrap(), 5);
    assert_eq!(limiter.peek("b").remaining(), 6);
    assert!(limiter.try_acquire_n("a", 6).unwrap().is_admitted());
    clock.advance(2 * SECOND);
    limiter.set_quotas(&[Quota::sliding_counter(5, 10 * SECOND)]).unwrap();
    assert_eq!(limiter.peek("a").remaining(), 5);
}

#[test]
fn a_window_that_is_no_longer_aligned_keeps_its_start() {
    let (limiter, clock) = limiter(Quota::fixed_window(5, MINUTE).aligned(NOW));
    clock.advance(10 * SECOND);
    assert!(limiter.try_acquire_n("a", 5).unwrap().is_admitted());
    clock.advance(10 * SECOND);
    limiter.set_quotas(&[Quota::fixed_window(5, MINUTE)]).unwrap();
    assert_eq!(limiter.try_acquire("a").retry_after(), Some(40 * SECOND));
}

#[test]
fn fewer_quotas_forget_no_requests_that_were_refused() {
    let quota = |limit, window| Quota::new(limit, window).counting_refused();
    let clock = MockClock::new();
    let builder = Limiter::<str>::builder(quota(5, 10 * SECOND)).and(quota(3, MINUTE));
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let asked = |count: u32| (0..count).filter(|_| limiter.try_acquire("a").is_admitted()).count();
    assert_eq!(asked(10), 3);
    limiter.set_quotas(&[quota(5, 10 * SECOND)]).unwrap();
    assert_eq!(asked(5), 0);
}

#[test]
fn a_refund_of_a_permit_that_is_forgotten_takes_no_refused_request_away() {
    let clock = MockClock::new();
    let quota = Quota::new(2, MINUTE).counting_refused();
    let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap();
    let receipt = limiter.reserve("a", 2, NOW).unwrap().commit();
    clock.advance(SECOND);
    (0..100).for_each(|_| assert!(limiter.try_acquire("a").is_denied()));
    assert_eq!(limiter.refund(receipt).unwrap(), 0);
    assert_eq!(limiter.try_acquire("a").retry_after(), Some(MINUTE));
}

#[test]
fn requests_that_a_block_denies_count_if_refused_requests_do() {
    let clock = MockClock::new();
    let builder = Limiter::<str>::builder(Quota::new(1, 10 * SECOND).counting_refused());
    let limiter = builder.penalty(Penalty::new(1, MINUTE, 3 * SECOND)).clock(clock.clone()).build().unwrap();
    let ask = || limiter.try_acquire("a").into_result().map_err(|denial| (denial.reason(), denial.retry_after()));
    assert!(ask().is_ok());
    clock.advance(SECOND);
    assert_eq!(ask().map(drop), Err((DenialReason::Penalty, 10 * SECOND)));
    clock.advance(SECOND);
    // It counts, so the next is admitted ten seconds after it.
    assert_eq!(ask().map(drop), Err((DenialReason::Penalty, 10 * SECOND)));
    clock.advance(9 * SECOND);
    assert!(ask().is_err(), "ten seconds after the second, nine after the third");
}

#[test]
fn a_bucket_that_starts_low_begins_to_fill_whatever_denies_the_first_request() {
    let bucket = || [Quota::token_bucket(5, 1, SECOND).starting_with(0)];
    let clock = MockClock::new();
    let builder = JointLimiter::<(&str, &str)>::builder().dimension("user", [Quota::new(1, MINUTE)]);
    let limiter = builder.dimension("endpoint", bucket()).clock(clock.clone()).build().unwrap();
    // The other dimension denies.
    assert!(limiter.try_acquire(("alice", tollgate::Absent)).unwrap().is_admitted());
    assert!(limiter.try_acquire(("alice", "/")).unwrap().is_denied());
    clock.advance(SECOND);
    assert!(limiter.try_acquire(("bob", "/")).unwrap().is_admitted());
    // A penalty does.
    let builder = JointLimiter::<(&str, &str)>::builder().dimension("user", [Quota::new(1, MINUTE)]);
    let builder = builder.dimension("endpoint", bucket()).penalty(0, Penalty::new(1, MINUTE, MINUTE));
    let limiter = builder.clock(clock.clone()).build().unwrap();
    assert!(limiter.try_acquire(("alice", tollgate::Absent)).unwrap().is_admitted());
    assert!(limiter.try_acquire(("alice", tollgate::Absent)).unwrap().is_denied());
    assert!(limiter.try_acquire(("alice", "/")).unwrap().is_denied());
    clock.advance(SECOND);
    assert!(limiter.try_acquire(("bob", "/")).unwrap().is_admitted());
}

#[test]
fn a_cost_of_zero_is_told_no_delay_by_any_call() {
    let (limiter, _) = limiter(Quota::leaky_queue(1, SECOND, 5 * SECOND));
    (0..3).for_each(|_| assert!(limiter.try_acquire("a").is_admitted()));
    let delays = |decision: Decision| decision.into_result().unwrap().delay();
    assert_eq!(delays(limiter.try_acquire_n("a", 0).unwrap()), NOW);
    assert_eq!(delays(limiter.peek_n("a", 0).unwrap().decision()), NOW);
    assert_eq!(limiter.reserve("a", 0, SECOND).unwrap().delay(), NOW);
    let joint = JointLimiter::<(&str,)>::builder().dimension("one", [Quota::leaky_queue(1, SECOND, 5 * SECOND)]);
    let joint = joint.clock(MockClock::new()).build().unwrap();
    (0..3).for_each(|_| assert!(joint.try_acquire(("a",)).unwrap().is_admitted()));
    assert_eq!(delays(joint.try_acquire_n(("a",), 0).unwrap()), NOW);
    assert_eq!(delays(joint.peek_n(("a",), 0).unwrap().decision()), NOW);
    assert_eq!(delays(joint.try_acquire_n_status(("a",), 0).unwrap().decision()), NOW);
}

#[test]
fn a_key_that_is_blocked_has_no_permits_in_a_joint_status() {
    let clock = MockClock::new();
    let builder = JointLimiter::<(&str, &str)>::builder().dimension("user", [Quota::new(5, MINUTE)]);
    let builder = builder.dimension("endpoint", [Quota::new(1, 10 * SECOND)]);
    let limiter = builder.penalty(1, Penalty::new(1, MINUTE, 30 * SECOND)).clock(clock.clone()).build().unwrap();
    assert!(limiter.try_acquire(("alice", "/")).unwrap().is_admitted());
    assert!(limiter.try_acquire(("alice", "/")).unwrap().is_denied());
    // The quota would admit it.
    clock.advance(10 * SECOND);
    for status in [limiter.peek(("alice", "/")).unwrap(), limiter.try_acquire_status(("alice", "/")).unwrap()] {
        assert_eq!(status.retry_after(), Some(20 * SECOND));
        let items: Vec<_> =
            status.quotas().map(|item| (item.remaining(), item.next_after(), item.is_violated())).collect();
        assert_eq!(items, [(4, 50 * SECOND, false), (0, 20 * SECOND, true)]);
    }
}

#[test]
fn a_clock_that_panics_in_a_keys_first_request_loses_no_place() {
    struct Panics(AtomicBool);
    impl Clock for &Panics {
        fn now(&self) -> u64 {
            assert!(!self.0.load(Ordering::SeqCst), "no time");
            1 << 40
        }
    }
    let clock: &'static Panics = Box::leak(Box::new(Panics(AtomicBool::new(false))));
    let limiter = Limiter::<u32>::builder(Quota::per_hour(1)).key_cap(2).clock(clock).build().unwrap();
    clock.0.store(true, Ordering::SeqCst);
    for key in 0..100 {
        assert!(catch_unwind(AssertUnwindSafe(|| limiter.try_acquire(key))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| limiter.reserve(key, 1, NOW).map(drop))).is_err());
    }
    clock.0.store(false, Ordering::SeqCst);
    assert_eq!([200, 201, 202].map(|key| limiter.try_acquire(key).is_admitted()), [true, true, false]);
}

/// Also if the rings of the request make a rebuild due, which reads the clock once it is decided.
#[test]
fn a_clock_that_panics_in_a_joint_request_loses_and_frees_no_place() {
    struct Panics(AtomicU64);
    impl Clock for &Panics {
        fn now(&self) -> u64 {
            assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 1, "no time");
            1 << 40
        }
    }
    const MANY: u32 = 600;
    let (mut granted, mut panicked_late) = (0, 0);
    for reading in 1..60 {
        let clock: &'static Panics = Box::leak(Box::new(Panics(AtomicU64::new(0))));
        let builder = JointLimiter::<(u32, u32)>::builder().dimension("one", [Quota::per_hour(MANY)]);
        let limiter = builder.dimension("two", [Quota::per_hour(MANY)]).key_cap(4).clock(clock).build().unwrap();
        let ask = |keys| limiter.try_acquire_n(keys, MANY).unwrap().is_admitted();
        clock.0.store(reading, Ordering::SeqCst);
        let answer = catch_unwind(AssertUnwindSafe(|| ask((1, 1))));
        clock.0.store(0, Ordering::SeqCst);
        let has_permits = limiter.peek((1, 1)).unwrap().is_denied();
        assert!(answer.is_err() || has_permits, "reading {reading}");
        granted += u32::from(has_permits);
        panicked_late += u32::from(has_permits && answer.is_err());
        let more = [ask((2, 2)), ask((3, 3))];
        assert_eq!(more, [true, !has_permits], "reading {reading}");
    }
    assert!(granted > 1 && panicked_late > 0, "{granted} granted, {panicked_late} with a panic afterwards");
}

#[test]
fn no_permit_takes_longer_than_its_window_where_a_ring_grows() {
    let (limiter, clock) = limiter(Quota::new(1000, MINUTE));
    for granted in 1..=1000 {
        let status = limiter.try_acquire_status("a");
        assert!(status.is_admitted());
        assert_eq!(status.reset_after(), MINUTE, "{granted}");
        assert!(status.next_after() <= MINUTE);
        clock.advance(Duration::from_nanos(7));
    }
}

#[cfg(feature = "snapshot")]
#[test]
fn permits_are_restored_at_any_age() {
    let clock = MockClock::new();
    let quota = Quota::new(1, Quota::MAX_WINDOW);
    let before = Limiter::<str>::builder(quota).clock(clock.clone()).build().unwrap();
    assert!(before.try_acquire("a").is_admitted());
    for age in [1 << 58, (1 << 59) - 1, 1 << 59, (1 << 59) + 1, (1 << 60) - 2_u64] {
        clock.set(age);
        // The clock starts anew.
        let builder = Limiter::<str>::builder(quota).clock(MockClock::new());
        let after = builder.restore_after(&before.snapshot(), NOW).unwrap();
        assert_eq!(after.try_acquire("a").retry_after(), before.try_acquire("a").retry_after(), "{age}");
    }
}

#[test]
fn a_queue_with_all_its_places_waits_for_none() {
    let (limiter, _) = limiter(Quota::leaky_queue(1, SECOND, 5 * SECOND));
    let status = limiter.try_acquire_status("a");
    assert_eq!((status.remaining(), status.next_after(), status.reset_after()), (status.limit(), NOW, NOW));
}

#[test]
fn a_peek_at_a_log_that_counts_refused_requests_says_the_wait_of_the_request() {
    let (limiter, clock) = limiter(Quota::new(2, 10 * SECOND).counting_refused());
    assert!(limiter.try_acquire("a").is_admitted());
    clock.advance(SECOND);
    assert!(limiter.try_acquire("a").is_admitted());
    clock.advance(SECOND);
    for cost in [1, 2] {
        let peeked = limiter.peek_n("a", cost).unwrap().retry_after();
        assert_eq!(limiter.try_acquire_n("a", cost).unwrap().retry_after(), peeked, "{cost}");
    }
}

#[test]
fn a_key_on_the_allow_list_is_denied_no_cost() {
    let builder = Limiter::<str>::builder(Quota::new(2, SECOND)).list_cap(4);
    let limiter = builder.penalty(Penalty::new(1, MINUTE, MINUTE)).clock(MockClock::new()).build().unwrap();
    limiter.allow("vip").unwrap();
    for cost in [1, 2, 3, 1000] {
        assert!(limiter.try_acquire_n("vip", cost).unwrap().is_admitted(), "{cost}");
        assert!(limiter.peek_n("vip", cost).unwrap().is_admitted(), "{cost}");
        assert!(limiter.reserve("vip", cost, NOW).is_ok(), "{cost}");
    }
    assert!(limiter.try_acquire_n("other", 3).is_err());
}
