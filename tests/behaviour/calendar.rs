//! Windows of the calendar: changes of quotas, restarts, and clocks that know no wall clock.

use std::time::Duration;

use tollgate::{Calendar, Limiter, MockClock, Quota, Zone};
use tollgate_kit::clocks::AnchoredClock;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// 2026-03-01, midnight in Berlin. The clocks go forward on the 29th.
const MARCH: u64 = 1_772_319_600 * SECOND;
const APRIL: u64 = MARCH + 31 * DAY - HOUR;

fn berlin(limit: u32, per: Calendar) -> Quota {
    Quota::calendar(limit, per, Zone::named("Europe/Berlin").unwrap())
}

fn limiter(quota: Quota, now: u64) -> (Limiter<u32, AnchoredClock>, AnchoredClock) {
    // Made some time before.
    let clock = AnchoredClock::made_at(now - 3 * HOUR);
    clock.set(now);
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

const fn nanos(nanos: u64) -> Option<Duration> {
    Some(Duration::from_nanos(nanos))
}

#[test]
fn a_month_ends_at_midnight_in_its_zone() {
    let (limiter, clock) = limiter(berlin(5, Calendar::Month), MARCH + 7 * DAY);
    assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
    assert_eq!(limiter.try_acquire(1).retry_after(), nanos(APRIL - MARCH - 7 * DAY));
    clock.set(APRIL - 1);
    assert_eq!(limiter.try_acquire(1).retry_after(), nanos(1));
    clock.set(APRIL);
    assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
    assert_eq!(limiter.peek(1).reset_after(), Duration::from_nanos(30 * DAY));
}

#[test]
fn a_clock_without_a_wall_clock_counts_from_1970() {
    let clock = MockClock::new();
    let limiter = Limiter::<u32>::builder(berlin(1, Calendar::Week)).clock(clock.clone()).build().unwrap();
    assert!(limiter.try_acquire(1).is_admitted());
    // The Monday after that Thursday.
    assert_eq!(limiter.try_acquire(1).retry_after(), nanos(4 * DAY - HOUR));
}

#[test]
fn a_change_of_quotas_keeps_what_was_granted() {
    let now = MARCH + 7 * DAY;
    let month = berlin(5, Calendar::Month);
    let utc = Quota::calendar(5, Calendar::Month, Zone::UTC);
    let fixed = Quota::fixed_window(5, Duration::from_nanos(31 * DAY));
    for (before, after, wait) in [
        (month, berlin(6, Calendar::Month), APRIL - now),
        (month, utc, APRIL + 2 * HOUR - now),
        (utc, month, APRIL - now),
        // It began with the month.
        (month, fixed, MARCH + 31 * DAY - now),
        (utc, fixed, MARCH + HOUR + 31 * DAY - now),
        (fixed, month, APRIL - now),
        (month, Quota::fixed_window(5, Duration::from_nanos(14 * DAY)), 7 * DAY),
    ] {
        let (limiter, _) = limiter(before, now);
        assert!(limiter.try_acquire_n(1, 5).unwrap().is_admitted());
        limiter.set_quotas(&[after]).unwrap();
        let left = after.limit() - 5;
        assert_eq!(limiter.peek(1).remaining(), left, "{before} to {after}");
        assert_eq!(limiter.peek_n(1, left + 1).unwrap().retry_after(), nanos(wait), "{before} to {after}");
    }
}

#[test]
fn a_reservation_is_refunded_in_its_window_alone() {
    let (limiter, clock) = limiter(berlin(5, Calendar::Day), MARCH + 28 * DAY);
    let [first, second] = [2, 3].map(|cost| limiter.reserve(1, cost, Duration::ZERO).unwrap().commit());
    assert_eq!(limiter.refund(first).unwrap(), 2);
    // The day of the change has 23 hours.
    clock.set(MARCH + 29 * DAY - HOUR);
    assert_eq!(limiter.refund(second).unwrap(), 0);
    assert_eq!(limiter.peek(1).remaining(), 5);
}

#[cfg(feature = "snapshot")]
mod restarts {
    use tollgate::{RestoreError, Snapshot};

    use super::*;

    type Anchored = Limiter<u32, AnchoredClock>;

    /// Goes on after `down`. Its clock was made then and tells the time with this error.
    fn restored(from: &Anchored, quota: Quota, (then, down): (u64, u64), error: i64) -> Result<Anchored, RestoreError> {
        let snapshot = Snapshot::from_bytes(&from.snapshot().to_bytes()).expect("just written");
        let clock = AnchoredClock::made_at((then + down).checked_add_signed(error).unwrap());
        let builder = Limiter::builder(quota).keys_with_quotas(4).clock(clock);
        builder.restore_after(&snapshot, Duration::from_nanos(down))
    }

    #[test]
    fn a_window_goes_on_and_ends_at_its_time() {
        let quotas = [Calendar::Month, Calendar::Week, Calendar::Day].map(|per| berlin(5, per));
        for (quota, error) in
            quotas.into_iter().flat_map(|quota| [0, 1, -1, 3_000_000_007, -3_000_000_007].map(|it| (quota, it)))
        {
            // Saturday, the day before the clocks change.
            let now = MARCH + 27 * DAY + HOUR;
            let (before, _) = limiter(quota, now);
            assert!(before.try_acquire_n(1, 4).unwrap().is_admitted());
            let wait = before.peek(1).reset_after();
            let after = restored(&before, quota, (now, HOUR), error).unwrap();
            assert_eq!(after.peek(1).remaining(), 1, "{quota}, {error}");
            let (least, time) = (wait - Duration::from_nanos(HOUR), after.peek(1).reset_after());
            assert_eq!(time.as_nanos().cast_signed(), least.as_nanos().cast_signed() - i128::from(error), "{quota}");
            let down = u64::try_from(wait.as_nanos()).unwrap() + 4 * SECOND;
            assert_eq!(
                restored(&before, quota, (now, down), error).unwrap().peek(1).remaining(),
                5,
                "{quota}, {error}"
            );
        }
    }

    #[test]
    fn the_zone_may_be_another_and_the_calendar_may_not() {
        let now = MARCH + 7 * DAY;
        let (before, _) = limiter(berlin(5, Calendar::Month), now);
        assert!(before.try_acquire_n(1, 5).unwrap().is_admitted());
        let utc = |per| Quota::calendar(5, per, Zone::UTC);
        let of = |quota| restored(&before, quota, (now, HOUR), 0);
        assert_eq!(of(utc(Calendar::Month)).unwrap().peek(1).remaining(), 0);
        let month = Quota::fixed_window(5, utc(Calendar::Month).window());
        for quota in [utc(Calendar::Week), utc(Calendar::Day), month, berlin(6, Calendar::Month)] {
            assert_eq!(of(quota).err(), Some(RestoreError::OtherQuotas), "{quota}");
        }
    }

    #[test]
    fn a_key_keeps_a_window_and_a_zone_of_its_own() {
        let now = MARCH + 7 * DAY;
        let clock = AnchoredClock::made_at(now);
        let all = Quota::fixed_window(5, Duration::from_nanos(HOUR));
        let before = Limiter::<u32>::builder(all).keys_with_quotas(4).clock(clock).build().unwrap();
        before.set_quotas_of(1, &[berlin(7, Calendar::Month)]).unwrap();
        assert!(before.try_acquire_n(1, 6).unwrap().is_admitted());
        let after = restored(&before, all, (now, HOUR), 0).unwrap();
        assert_eq!(after.peek(1).remaining(), 1);
        assert_eq!(after.peek(1).reset_after(), Duration::from_nanos(APRIL - now - HOUR));
    }
}
