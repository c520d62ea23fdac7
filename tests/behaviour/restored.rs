//! Changed quotas, quotas of single keys and penalties across a restart: the restored limiter goes
//! on as the live one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    Absent, DenialReason, JointLimiter, Limiter, LimiterBuilder, MockClock, Penalty, Quota, RestoreError, Snapshot,
};
use tollgate_kit::clocks::HookedClock;

const SECOND: Duration = Duration::from_secs(1);
const KEYS: u32 = 4;

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// Quotas of each kind. Their windows and rates change with the limit, where they can.
fn quotas(kind: usize, limit: u32) -> Vec<Quota> {
    let length = nanos(20 + 7 * u64::from(limit));
    match kind {
        0 => vec![Quota::new(limit, length)],
        1 => vec![Quota::new(limit, length / 2), Quota::new(2 * limit, 2 * length).named("long")],
        2 => vec![Quota::new(limit, length).counting_refused()],
        3 => vec![Quota::token_bucket(limit, 1 + limit / 2, nanos(20))],
        4 => vec![Quota::token_bucket(limit, 1 + limit / 2, nanos(20)).starting_with(limit / 2)],
        5 => vec![Quota::leaky_bucket(limit, 1, length / 10)],
        6 => vec![Quota::leaky_queue(limit, length, length)],
        7 => vec![Quota::fixed_window(limit, length)],
        8 => vec![Quota::fixed_window(limit, length).aligned(nanos(3))],
        9 => vec![Quota::sliding_counter(limit, length)],
        _ => vec![Quota::quantised_log(limit, nanos(40), nanos(5))],
    }
}

const KINDS: usize = 11;

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire {
        key: u32,
        cost: u32,
    },
    Advance(u64),
    Forget(u32),
    /// Quotas with this limit for all keys.
    SetAll(u32),
    SetOf {
        key: u32,
        limit: u32,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (0..KEYS, 1_u32..4).prop_map(|(key, cost)| Op::Acquire { key, cost }),
        6 => (0_u64..25).prop_map(Op::Advance),
        1 => (0..KEYS).prop_map(Op::Forget),
        2 => (1_u32..9).prop_map(Op::SetAll),
        2 => (0..KEYS, 1_u32..9).prop_map(|(key, limit)| Op::SetOf { key, limit }),
    ];
    prop::collection::vec(op, 1..60)
}

/// All that the limiter tells.
fn apply(limiter: &Limiter<u32, MockClock>, kind: usize, op: Op) -> String {
    match op {
        Op::Acquire { key, cost } => format!("{:?}", limiter.try_acquire_n_status(key, cost)),
        Op::Advance(_) => String::new(),
        Op::Forget(key) => {
            // Whether it had a cell does not matter.
            limiter.forget(key);
            String::new()
        }
        Op::SetAll(limit) => format!("{:?}", limiter.set_quotas(&quotas(kind, limit))),
        Op::SetOf { key, limit } => format!("{:?}", limiter.set_quotas_of(key, &quotas(kind, limit))),
    }
}

/// Does the same with both.
fn go_on_alike(
    both: &[&Limiter<u32, MockClock>; 2],
    kind: usize,
    op: Op,
    clock: &MockClock,
) -> Result<(), TestCaseError> {
    let [restored, live] = both;
    prop_assert_eq!(apply(restored, kind, op), apply(live, kind, op), "{:?}", op);
    if let Op::Advance(by) = op {
        clock.advance(nanos(by));
    }
    for key in 0..KEYS {
        prop_assert_eq!(format!("{:?}", restored.peek(key)), format!("{:?}", live.peek(key)), "{}", key);
    }
    Ok(())
}

fn builder(quotas: &[Quota], penalty: Option<Penalty>, clock: &MockClock) -> LimiterBuilder<u32, MockClock> {
    let builder = quotas[1..].iter().fold(Limiter::builder(quotas[0]), |builder, quota| builder.and(*quota));
    let builder = builder.keys_with_quotas(8).clock(clock.clone());
    if let Some(penalty) = penalty { builder.penalty(penalty) } else { builder }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The restored limiter tells what the live one does, to the nanosecond, whatever is asked and
    /// changed afterwards.
    #[test]
    fn a_restored_limiter_goes_on_as_the_live_one(
        kind in 0..KINDS,
        limit in 1_u32..9,
        penalty in prop::option::of((1_u32..4, 1_u64..60, 1_u64..60)),
        growth in prop::option::of((1_u32..4, 0_u64..100, 1_u64..100)),
        (before, after) in (ops(), ops()),
        down in 0_u64..60,
    ) {
        let penalty = penalty.map(|(denials, within, block)| {
            let penalty = Penalty::new(denials, nanos(within), nanos(block));
            growth.map_or(penalty, |(factor, more, quiet)| penalty.growing(factor, nanos(block + more), nanos(quiet)))
        });
        let clock = MockClock::new();
        clock.set(1 << 40);
        let live = builder(&quotas(kind, limit), penalty, &clock).build().expect("good quotas");
        for op in before {
            apply(&live, kind, op);
            if let Op::Advance(by) = op {
                clock.advance(nanos(by));
            }
        }
        let snapshot = Snapshot::from_bytes(&live.snapshot().to_bytes()).expect("just written");
        clock.advance(nanos(down));
        let restored = builder(&live.quotas(), penalty, &clock).restore_after(&snapshot, nanos(down));
        let restored = restored.expect("the quotas in force");
        for key in 0..KEYS {
            prop_assert_eq!(restored.quotas_of(key), live.quotas_of(key));
        }
        // Of refused requests, the live one may remember more for a larger limit.
        let is_left_out = |op: &Op| kind == 2 && matches!(op, Op::SetAll(_) | Op::SetOf { .. });
        for op in after.into_iter().filter(|op| !is_left_out(op)) {
            go_on_alike(&[&restored, &live], kind, op, &clock)?;
        }
    }
}

/// A change to a slower queue leaves longer waits than its own requests would.
#[test]
fn a_queue_that_is_longer_after_a_change_is_restored_as_long() {
    let clock = MockClock::new();
    let live = builder(&quotas(6, 6), None, &clock).build().expect("good quotas");
    for cost in [1, 3, 2, 3] {
        let _ = live.try_acquire_n(0, cost).expect("within the limit");
    }
    live.set_quotas(&quotas(6, 1)).expect("good quotas");
    let restored = builder(&quotas(6, 1), None, &clock).restore_after(&live.snapshot(), Duration::ZERO);
    assert_eq!(restored.expect("the quotas in force").peek(0), live.peek(0));
}

#[test]
fn a_window_stays_full_though_there_is_no_room_for_all_that_it_granted() {
    let kinds: [fn(u32) -> Quota; 2] =
        [|limit| Quota::fixed_window(limit, 60 * SECOND), |limit| Quota::quantised_log(limit, 60 * SECOND, SECOND)];
    for quota in kinds {
        let clock = MockClock::new();
        let live = builder(&[quota(1 << 25)], None, &clock).build().unwrap();
        assert!(live.try_acquire_n(1, 1 << 24).unwrap().is_admitted());
        live.set_quotas(&[quota(5)]).unwrap();
        let restored = builder(&[quota(5)], None, &clock).restore_after(&live.snapshot(), Duration::ZERO).unwrap();
        assert_eq!(restored.peek(1).retry_after(), Some(60 * SECOND), "{}", quota(5));
        restored.set_quotas(&[quota((1 << 20) - 1)]).unwrap();
        assert!(restored.peek(1).is_denied(), "{}", quota(5));
    }
}

#[test]
fn what_was_granted_counts_under_a_limit_that_is_less_over_a_restart_only() {
    let kinds: [fn(u32) -> Quota; 5] = [
        |limit| Quota::new(limit, 60 * SECOND),
        |limit| Quota::new(limit, 60 * SECOND).counting_refused(),
        |limit| Quota::quantised_log(limit, 60 * SECOND, SECOND),
        |limit| Quota::fixed_window(limit, 60 * SECOND),
        |limit| Quota::sliding_counter(limit, 60 * SECOND),
    ];
    for quota in kinds {
        let clock = MockClock::new();
        let live = builder(&[quota(8)], None, &clock).build().unwrap();
        assert!(live.try_acquire_n(1, 8).unwrap().is_admitted());
        live.set_quotas(&[quota(2)]).unwrap();
        let restored = builder(&[quota(2)], None, &clock).restore_after(&live.snapshot(), Duration::ZERO).unwrap();
        (0..20).for_each(|_| assert!(restored.try_acquire(1).is_denied()));
        restored.set_quotas(&[quota(8)]).unwrap();
        assert!(restored.peek(1).is_denied(), "{}", quota(8));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A log that is restored under other quotas tells what a live one does whose quotas are changed to
    /// them, with permits that are reserved ahead, too.
    #[test]
    fn a_log_restored_under_other_quotas_goes_on_as_a_live_one_that_gets_them(
        kind in 0..2_usize,
        (limit, other) in (1_u32..9, 1_u32..9),
        reserved in prop::collection::vec((0..KEYS, 1_u32..4, 0_u64..25), 0..20),
        after in ops(),
        down in 0_u64..60,
    ) {
        let clock = MockClock::new();
        clock.set(1 << 40);
        let live = builder(&quotas(kind, limit), None, &clock).build().expect("good quotas");
        for (key, cost, pause) in reserved {
            if let Ok(reservation) = live.reserve(key, cost.min(limit), Duration::MAX) {
                reservation.commit();
            }
            clock.advance(nanos(pause));
        }
        let snapshot = Snapshot::from_bytes(&live.snapshot().to_bytes()).expect("just written");
        live.set_quotas(&quotas(kind, other)).expect("good quotas");
        clock.advance(nanos(down));
        let restored = builder(&quotas(kind, other), None, &clock).restore_after(&snapshot, nanos(down));
        let restored = restored.expect("a log may have other limits and windows");
        for op in after {
            go_on_alike(&[&restored, &live], kind, op, &clock)?;
        }
    }
}

/// The permits that are reserved keep their time: no other request is granted one in a window with
/// them.
#[test]
fn a_reservation_is_not_overtaken_after_a_restore_under_a_shorter_window() {
    let short = Quota::new(1, 10 * SECOND);
    for quota in [short, short.counting_refused()] {
        let clock = MockClock::new();
        let live = builder(&[Quota::new(1, 60 * SECOND)], None, &clock).keys_with_quotas(0).build().unwrap();
        assert!(live.try_acquire(1).is_admitted());
        let reserved = live.reserve(1, 1, Duration::MAX).expect("a window ahead");
        assert_eq!(reserved.delay(), 60 * SECOND);
        reserved.commit();
        let restored = builder(&[quota], None, &clock).restore_after(&live.snapshot(), Duration::ZERO).unwrap();
        // The next permit comes a window after the reserved one.
        assert_eq!(restored.peek(1).retry_after(), Some(70 * SECOND), "{quota}");
        clock.advance(60 * SECOND);
        assert_eq!(restored.try_acquire(1).retry_after(), Some(10 * SECOND), "{quota}");
        clock.advance(10 * SECOND);
        assert!(restored.try_acquire(1).is_admitted(), "{quota}");
    }
}

#[test]
fn a_single_key_may_have_a_larger_account_than_all_others() {
    let kinds: [fn(u32) -> Quota; 4] = [
        |limit| Quota::fixed_window(limit, 60 * SECOND),
        |limit| Quota::token_bucket(limit, 1, SECOND),
        |limit| Quota::leaky_queue(limit, SECOND, SECOND),
        |limit| Quota::quantised_log(limit, 60 * SECOND, SECOND),
    ];
    for quota in kinds {
        let (large, small) = ([quota(1 << 29)], [quota(5)]);
        let clock = MockClock::new();
        let live = builder(&large, None, &clock).build().unwrap();
        live.set_quotas_of(1, &large).unwrap();
        live.set_quotas(&small).unwrap();
        assert!(live.try_acquire_n(1, 1 << 28).unwrap().is_admitted());
        let restored = builder(&small, None, &clock).restore_after(&live.snapshot(), Duration::ZERO);
        let restored = restored.expect("as the live one has room for it");
        assert_eq!(*restored.quotas_of(1), large);
        assert_eq!(restored.peek(1).remaining(), live.peek(1).remaining(), "{}", large[0]);
    }
}

#[test]
fn a_limiter_without_quotas_of_single_keys_does_not_drop_them() {
    let live = builder(&[Quota::per_hour(2)], None, &MockClock::new()).build().unwrap();
    live.set_quotas_of(1, &[Quota::per_hour(9)]).unwrap();
    let error = Limiter::<u32>::builder(Quota::per_hour(2)).restore(&live.snapshot()).unwrap_err();
    assert_eq!(error, RestoreError::KeysWithQuotas { keys: 1 });
    assert!(error.to_string().contains("`keys_with_quotas`"), "{error}");
    // No key had any.
    let plain = builder(&[Quota::per_hour(2)], None, &MockClock::new()).build().unwrap();
    assert!(Limiter::<u32>::builder(Quota::per_hour(2)).restore(&plain.snapshot()).is_ok());
}

#[test]
fn a_log_may_have_other_quotas_and_its_single_keys_keep_theirs() {
    let clock = MockClock::new();
    let live = builder(&[Quota::per_hour(2)], None, &clock).build().unwrap();
    live.set_quotas_of(1, &[Quota::per_day(9)]).unwrap();
    assert!(live.try_acquire_n(1, 8).unwrap().is_admitted() && live.try_acquire_n(2, 2).unwrap().is_admitted());
    let restored = builder(&[Quota::per_minute(5)], None, &clock);
    let restored = restored.restore_after(&live.snapshot(), Duration::from_secs(7200)).unwrap();
    assert_eq!((restored.peek(1).remaining(), restored.peek(2).remaining()), (1, 5));
    let counting = builder(&[Quota::per_hour(2).counting_refused()], None, &clock);
    assert_eq!(counting.restore(&live.snapshot()).err(), Some(RestoreError::OtherQuotas));
}

#[test]
fn each_dimension_has_its_keys_with_quotas_and_its_penalty() {
    let clock = MockClock::new();
    let build = || {
        JointLimiter::<(u32, u32)>::builder()
            .dimension("user", [Quota::per_hour(1)])
            .dimension("endpoint", [Quota::token_bucket(5, 1, SECOND)])
            .penalty(0, Penalty::new(1, SECOND, 60 * SECOND))
            .keys_with_quotas(4)
            .clock(clock.clone())
    };
    let live = build().build().unwrap();
    live.set_quotas_of((7, Absent), &[Quota::per_hour(3), Quota::per_day(4)]).unwrap();
    live.set_quotas_of((Absent, 7), &[Quota::token_bucket(100, 1, SECOND)]).unwrap();
    assert!(live.try_acquire_n((7, 7), 3).unwrap().is_admitted());
    assert!(live.try_acquire((8, 8)).unwrap().is_admitted() && live.try_acquire((8, 8)).unwrap().is_denied());
    let snapshot = Snapshot::from_bytes(&live.snapshot().to_bytes()).unwrap();
    let restored = build().restore_after(&snapshot, Duration::ZERO).unwrap();
    for keys in [(7, 7), (8, 8), (9, 9)] {
        assert_eq!(restored.quotas_of(keys).unwrap(), live.quotas_of(keys).unwrap());
        assert_eq!(format!("{:?}", restored.peek(keys)), format!("{:?}", live.peek(keys)), "{keys:?}");
    }
    match restored.try_acquire((8, 9)).unwrap() {
        tollgate::Decision::Denied(denial) => assert_eq!(denial.reason(), DenialReason::Penalty),
        admitted => panic!("a blocked user is told {admitted:?}"),
    }
}

#[test]
fn a_penalty_may_have_other_numbers_or_be_gone() {
    let clock = MockClock::new();
    let penalised = |penalty: Option<Penalty>| builder(&[Quota::new(1, SECOND)], penalty, &clock);
    let live = penalised(Some(Penalty::new(3, 60 * SECOND, 600 * SECOND))).build().unwrap();
    let deny = |key, times| (0..times).for_each(|_| assert!(live.try_acquire(key).is_denied()));
    assert!((1..3).all(|key| live.try_acquire(key).is_admitted()));
    deny(1, 3);
    deny(2, 2);
    let snapshot = live.snapshot();
    assert_eq!(snapshot.len(), 2);
    let restored = |penalty| penalised(penalty).restore_after(&snapshot, 10 * SECOND).unwrap();
    // The block lasts by the new numbers, from its beginning.
    let longer = restored(Some(Penalty::new(3, 60 * SECOND, 6000 * SECOND)));
    assert_eq!(longer.peek(1).retry_after(), Some(5990 * SECOND));
    let shorter = restored(Some(Penalty::new(3, 60 * SECOND, 10 * SECOND)));
    assert!(shorter.peek(1).is_admitted());
    // So do the denials count.
    for (penalty, is_blocked) in [
        (Penalty::new(3, 60 * SECOND, SECOND), true),
        (Penalty::new(3, 10 * SECOND, SECOND), false),
        (Penalty::new(4, 60 * SECOND, SECOND), false),
    ] {
        let other = restored(Some(penalty));
        assert!(other.try_acquire(2).is_admitted() && other.try_acquire(2).is_denied());
        assert_eq!(other.counts().penalties, u64::from(is_blocked), "{penalty:?}");
    }
    assert!(restored(None).try_acquire(1).is_admitted());
}

#[test]
fn a_restored_block_keeps_its_number_and_one_that_is_over_stays_so() {
    let clock = MockClock::new();
    clock.set(1 << 50);
    let penalised = |penalty: Penalty| builder(&[Quota::new(1, SECOND)], Some(penalty), &clock);
    let fixed = |blocked_for: Duration| Penalty::new(1, SECOND, blocked_for);
    let (hour, minute) = (3600 * SECOND, 60 * SECOND);
    let live = penalised(fixed(minute).growing(2, hour, hour)).build().unwrap();
    let begin = |limiter: &Limiter<u32, MockClock>, key| {
        let told = [(); 2].map(|()| limiter.try_acquire(key).into_result());
        (told[0].is_ok(), told[1].err().map(|denial| (denial.block(), denial.retry_after())))
    };
    assert_eq!([1, 2].map(|key| begin(&live, key)), [(true, Some((Some(1), minute))); 2]);
    clock.advance(minute);
    assert_eq!(begin(&live, 1), (true, Some((Some(2), 2 * minute))));
    let snapshot = Snapshot::from_bytes(&live.snapshot().to_bytes()).unwrap();
    let block = |limiter: &Limiter<u32, MockClock>, key| {
        let denial = limiter.peek(key).decision().into_result().err()?;
        Some((denial.block(), denial.retry_after()))
    };

    // Ten seconds later, of the same penalty and of one with longer blocks.
    clock.advance(10 * SECOND);
    for first in [minute, 5 * minute] {
        let restored = penalised(fixed(first).growing(2, hour, hour)).restore_after(&snapshot, 10 * SECOND).unwrap();
        assert_eq!([1, 2].map(|key| block(&restored, key)), [Some((Some(2), 2 * first - 10 * SECOND)), None]);
        assert_eq!(begin(&restored, 2), (true, Some((Some(2), 2 * first))), "the one that is over counts");
    }
    // A fixed penalty has the running block, and forgets the other.
    let restored = penalised(fixed(5 * minute)).restore_after(&snapshot, 10 * SECOND).unwrap();
    assert_eq!([1, 2].map(|key| block(&restored, key)), [Some((Some(2), 5 * minute - 10 * SECOND)), None]);
    assert_eq!(begin(&restored, 2), (true, Some((Some(1), 5 * minute))));
    // After the quiet time, nothing counts.
    let restored = penalised(fixed(minute).growing(2, hour, hour)).restore_after(&snapshot, hour + minute).unwrap();
    assert_eq!(begin(&restored, 2), (true, Some((Some(1), minute))));
}

#[test]
fn more_blocked_keys_than_there_is_room_for_are_an_error() {
    let penalty = Penalty::new(1, SECOND, 60 * SECOND);
    let clock = MockClock::new();
    let live = builder(&[Quota::new(1, SECOND)], Some(penalty), &clock).build().unwrap();
    (0..20).for_each(|key| assert!(live.try_acquire(key).is_admitted() && live.try_acquire(key).is_denied()));
    clock.advance(SECOND);
    let small = builder(&[Quota::new(1, SECOND)], Some(penalty), &clock).keys_with_quotas(0).key_cap(4);
    assert_eq!(small.restore(&live.snapshot()).err(), Some(RestoreError::TooManyKeys { keys: 10 }));
}

type Hooked = Limiter<u32, HookedClock>;

/// A limiter whose quotas change while a snapshot is taken, and one that is restored from it.
fn changed_meanwhile(change: fn(&Hooked)) -> (Arc<Hooked>, Hooked) {
    let clock = HookedClock::new();
    clock.set(1 << 40);
    let built = |quota| Limiter::<u32>::builder(quota).keys_with_quotas(4).clock(clock.clone());
    let live = Arc::new(built(Quota::token_bucket(10, 1, SECOND)).build().unwrap());
    assert!((0..KEYS).all(|key| live.try_acquire_n(key, 10).unwrap().is_admitted()));
    let (changes, is_done) = (Arc::clone(&live), Arc::new(OnceLock::new()));
    let done = Arc::clone(&is_done);
    clock.at_next_reading(move || {
        change(&changes);
        done.set(()).expect("once");
    });
    let snapshot = live.snapshot();
    assert!(is_done.get().is_some());
    let restored = built(live.quotas()[0]).restore_after(&snapshot, Duration::ZERO).expect("the quotas in force");
    (live, restored)
}

#[test]
fn a_change_while_a_snapshot_is_taken_is_in_it_or_not_as_a_whole() {
    const OTHER: Quota = Quota::token_bucket(500, 50, SECOND);
    let changes: [fn(&Hooked); 2] = [
        |limiter| limiter.set_quotas(&[OTHER]).unwrap(),
        |limiter| (1..KEYS).for_each(|key| limiter.set_quotas_of(key, &[OTHER]).unwrap()),
    ];
    for change in changes {
        let (live, restored) = changed_meanwhile(change);
        for key in 0..KEYS {
            assert_eq!(restored.quotas_of(key), live.quotas_of(key), "key {key}");
            assert_eq!(restored.peek(key).remaining(), live.peek(key).remaining(), "key {key}");
        }
    }
}
