//! Aligned windows across a restart, by a clock whose windows begin at other times.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Clock, Limiter, MockClock, Quota, RestoreError, Snapshot};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(clock: &MockClock, time: Duration) -> MockClock {
    clock.set(u64::try_from(time.as_nanos()).expect("early"));
    clock.clone()
}

type Mocked = Limiter<u32, MockClock>;

fn limiter(quota: Quota, time: Duration) -> (Mocked, MockClock) {
    let clock = MockClock::new();
    (Limiter::builder(quota).clock(at(&clock, time)).build().expect("a good quota"), clock)
}

/// A limiter that goes on after `down`, by a clock that shows `time`.
fn restored(from: &Mocked, quota: Quota, down: Duration, time: Duration) -> (Mocked, MockClock) {
    let snapshot = Snapshot::from_bytes(&from.snapshot().to_bytes()).expect("just written");
    let clock = MockClock::new();
    let builder = Limiter::builder(quota).clock(at(&clock, time));
    (builder.restore_after(&snapshot, down).expect("the same quota"), clock)
}

#[test]
fn a_window_that_goes_on_is_not_forgotten_by_a_clock_that_starts_anew() {
    for quota in [
        Quota::fixed_window(5, MINUTE),
        Quota::fixed_window(5, MINUTE).aligned(Duration::ZERO),
        Quota::fixed_window(5, MINUTE).aligned(seconds(40)),
        Quota::sliding_counter(5, MINUTE),
        Quota::sliding_counter(5, MINUTE).aligned(seconds(40)),
    ] {
        let before = Limiter::<u32>::new(quota).expect("a good quota");
        assert!(before.try_acquire_n(1, 5).expect("within the limit").is_admitted());
        let after = Limiter::<u32>::builder(quota).restore(&before.snapshot()).expect("the same quota");
        assert!(after.try_acquire(1).is_denied(), "{quota}");
        let once_more = Limiter::<u32>::builder(quota).restore(&after.snapshot()).expect("the same quota");
        assert!(once_more.try_acquire(1).is_denied(), "{quota}");
    }
}

#[test]
fn permits_of_a_window_count_in_the_present_one() {
    let quota = Quota::fixed_window(5, MINUTE).aligned(Duration::ZERO);
    // 10 s before the end of a window. Half a minute into another.
    let (before, clock) = limiter(quota, seconds(61));
    assert!(before.try_acquire_n(1, 4).unwrap().is_admitted());
    at(&clock, seconds(110));
    let (after, clock) = restored(&before, quota, seconds(1), seconds(630));
    assert_eq!((after.peek(1).remaining(), after.peek(1).reset_after()), (1, seconds(30)));
    assert!(after.try_acquire(1).is_admitted() && after.try_acquire(1).is_denied());
    at(&clock, seconds(660));
    assert_eq!(after.peek(1).remaining(), 5);
}

#[test]
fn a_sliding_counter_weighs_the_count_of_a_window_that_ended_while_it_was_down() {
    let quota = Quota::sliding_counter(100, MINUTE);
    let (before, _) = limiter(quota, seconds(61));
    assert!(before.try_acquire_n(1, 100).unwrap().is_admitted());
    // The window ended 21 s ago, and the present one began 20 s ago.
    let (after, clock) = restored(&before, quota, seconds(80), seconds(620));
    assert_eq!(after.peek(1).remaining(), 33);
    at(&clock, seconds(660));
    assert_eq!(after.peek(1).remaining(), 100);
}

#[test]
fn a_phase_of_the_wall_clock_gives_the_same_windows_again() {
    // Both clocks start at some second of a minute.
    for (first, then) in [(20, 50), (50, 20), (0, 59), (7, 7)] {
        let of = |start: u64| Quota::fixed_window(5, MINUTE).aligned(seconds(60 - start));
        let (before, _) = limiter(of(first), seconds(30));
        assert!(before.try_acquire_n(1, 5).unwrap().is_admitted());
        let wait = before.peek(1).retry_after().expect("denied");
        // It starts at that second.
        let down = seconds((60 + then - (first + 30) % 60) % 60);
        let (after, _) = restored(&before, of(then), down, Duration::ZERO);
        let left = wait.checked_sub(down).filter(|left| !left.is_zero());
        assert_eq!(after.peek(1).retry_after(), left, "from {first} to {then}");
    }
}

#[test]
fn only_the_phase_may_be_another() {
    let plain = Quota::fixed_window(5, MINUTE);
    let counter = Quota::sliding_counter(5, MINUTE);
    let of = |before: Quota, after: Quota| {
        let (before, _) = limiter(before, MINUTE);
        Limiter::<u32>::builder(after).restore(&before.snapshot()).err()
    };
    assert_eq!(of(plain.aligned(SECOND), plain.aligned(MINUTE)), None);
    assert_eq!(of(counter, counter.aligned(SECOND)), None);
    assert_eq!(of(counter.aligned(SECOND), counter), None);
    let other = Some(RestoreError::OtherQuotas);
    assert_eq!(of(plain, plain.aligned(SECOND)), other);
    assert_eq!(of(plain.aligned(SECOND), plain), other);
    assert_eq!(of(plain.aligned(SECOND), Quota::fixed_window(6, MINUTE).aligned(SECOND)), other);
    assert_eq!(of(counter, Quota::sliding_counter(5, SECOND)), other);
}

#[test]
fn a_restored_limiter_has_its_own_phase_and_a_single_key_the_one_that_it_was_given() {
    let plain = Quota::fixed_window(5, MINUTE);
    let long = plain.aligned(Duration::from_secs(20_000_000_007));
    let build = |quota: Quota| Limiter::<u32>::builder(quota).keys_with_quotas(4).clock(MockClock::new());
    let before = build(plain.aligned(SECOND)).build().unwrap();
    before.set_quotas_of(1, &[long]).unwrap();
    let after = build(plain.aligned(2 * SECOND)).restore(&before.snapshot()).expect("another phase");
    assert_eq!(*after.quotas(), [plain.aligned(2 * SECOND)]);
    for limiter in [&before, &after] {
        assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
        assert_eq!(limiter.peek(1).retry_after(), Some(seconds(27)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What counts at the restart counts no less until the old window ends or the present one of
    /// the restored limiter. Two windows later nothing does.
    #[test]
    fn windows_of_the_restored_limiter_hold_what_counted(
        is_counter: bool,
        (limit, window) in (1_u32..9, 2_u64..100),
        phases in (0_u64..100, 0_u64..100),
        requests in prop::collection::vec((1_u32..4, 0_u64..30), 1..30),
        (down, origin) in (0_u64..20, 0_u64..1000),
    ) {
        let nanos = Duration::from_nanos;
        let quota = |phase| {
            let length = nanos(window);
            let plain =
                if is_counter { Quota::sliding_counter(limit, length) } else { Quota::fixed_window(limit, length) };
            plain.aligned(nanos(phase))
        };
        let (before, clock) = limiter(quota(phases.0), nanos(1 << 30));
        for (cost, pause) in requests {
            let _ = before.try_acquire_n(1, cost.min(limit));
            clock.advance(nanos(pause));
        }
        let (after, new_clock) = restored(&before, quota(phases.1), nanos(down), nanos(origin + 1000));
        clock.advance(nanos(down));
        let end = new_clock.now() + window - (new_clock.now() + 100 * window - phases.1) % window;
        while new_clock.now() < end {
            prop_assert!(after.peek(1).remaining() <= before.peek(1).remaining());
            new_clock.advance(nanos(1));
            clock.advance(nanos(1));
            if (clock.now() + 100 * window - phases.0) % window == 0 {
                break;
            }
        }
        new_clock.advance(nanos(2 * window));
        prop_assert_eq!(after.peek(1).remaining(), limit);
    }
}
