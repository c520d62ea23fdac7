//! Phases and windows of the calendar, in process.

use tollgate_kit::clocks::AnchoredClock;
use tollgate_kit::phases::{POLICY, REQUESTS, nanos_at};
use tollgate_policy::Policy;

#[test]
fn a_phase_counts_from_1970_whenever_the_clock_was_made_and_after_a_reload() {
    let policy = Policy::from_toml(POLICY).unwrap();
    for made_at in [0, 13, 29] {
        let clock = AnchoredClock::made_at(nanos_at(made_at) + 7);
        let limiter = policy.builder::<(String,)>().unwrap().clock(clock.clone()).build().unwrap();
        for (minute, is_admitted) in REQUESTS {
            clock.set(nanos_at(minute) + 7);
            assert_eq!(limiter.try_acquire(("alice",)).unwrap().is_admitted(), is_admitted, "{made_at} {minute}");
            // Quotas that are set in use have windows at the same times.
            Policy::from_toml(&POLICY.replace("limit = 1", "limit = 2")).unwrap().apply(&limiter).unwrap();
            policy.apply(&limiter).unwrap();
        }
    }
}

#[cfg(feature = "calendar")]
#[test]
fn a_month_begins_at_midnight_in_its_zone() {
    use tollgate_kit::months::{MARCH, POLICY, REQUESTS};

    let policy = Policy::from_toml(POLICY).unwrap();
    for made_at in [0, MARCH - 40 * 86_400, MARCH - 7] {
        let clock = AnchoredClock::made_at(made_at * 1_000_000_000);
        let limiter = policy.builder::<(String,)>().unwrap().clock(clock.clone()).build().unwrap();
        for (time, is_admitted) in REQUESTS {
            clock.set(time * 1_000_000_000);
            assert_eq!(limiter.try_acquire(("alice",)).unwrap().is_admitted(), is_admitted, "{made_at} {time}");
            Policy::from_toml(&POLICY.replace("limit = 1", "limit = 2")).unwrap().apply(&limiter).unwrap();
            policy.apply(&limiter).unwrap();
        }
    }
}
