//! Long runs under steady pressure, through many advances: the total granted is exactly the rate.

use core::time::Duration;

use super::traffic::YEAR;
use crate::quota::Quota;
use crate::rule::{Account, Effect, Rule};

/// What a key is granted that takes whatever remains, at uneven times, how often its anchor
/// advanced, and when that was over.
fn take_all(quota: Quota, requests: u64, mut gap: impl FnMut(u64) -> u64) -> (u128, u64, u64) {
    let rule = Rule::of(quota, 0).expect("not a log");
    let mut account = Account { anchor: 0, used: quota.limit().into() };
    let (mut granted, mut advances, mut now) = (u128::from(quota.limit()), 0, 0);
    for request in 0..requests {
        now += gap(request);
        let cost = rule.remaining(account, now);
        if cost == 0 {
            continue;
        }
        account = match rule.effect(account, now, cost) {
            Effect::Charge { used } => Account { used, ..account },
            Effect::Advance { used } => {
                advances += 1;
                Account { anchor: rule.advanced(account.anchor), used }
            }
            effect => panic!("never full, never short: {effect:?}"),
        };
        granted += u128::from(cost);
    }
    (granted, advances, now)
}

#[test]
fn a_bucket_under_pressure_does_not_drift() {
    // (capacity, refill, period), and the longest time between requests; always short of what would
    // fill it.
    for (capacity, refill, period, gap) in [
        (1 << 30, 1_000_000_007, 1_000_000_000, 1_000_000_000),
        (1 << 30, (1 << 30) - 1, (1 << 31) - 1, 2_000_000_000),
        (1000, 997, 1_009, 1000),
        (3, 2, 7, 7),
        (36, 1, YEAR, 1_000_000_000_000),
    ] {
        let quota = Quota::token_bucket(capacity, refill, Duration::from_nanos(period));
        quota.validate().expect("a quota");
        let (granted, advances, now) = take_all(quota, 3_000_000, |request| 1 + (request * 7_919) % gap);
        let refilled = u128::from(now) * u128::from(refill) / u128::from(period);
        assert_eq!(granted, u128::from(capacity) + refilled, "{quota:?} after {now} ns");
        let strides = u64::try_from(granted >> 32).expect("a number of strides");
        assert!(advances + 1 >= strides, "{advances} advances for {strides} times 2^32 permits");
    }
}

#[test]
fn a_queue_under_pressure_does_not_drift() {
    for (leak, period, max_delay) in
        [(1_000_000_007, 1_000_000_000, 1_000_000_000), ((1 << 30) - 1, (1 << 31) - 1, 1_999_999_999), (3, 7, 100)]
    {
        let [per, delay] = [period, max_delay].map(Duration::from_nanos);
        let quota = Quota::leaky_queue(leak, per, delay);
        let rule = Rule::of(quota, 0).expect("not a log");
        let mut account = Account { anchor: 0, used: 1 };
        let (mut places, mut now, mut advances) = (1_u128, 0, 0);
        for request in 0..1_000_000_u32 {
            let cost = 1 + request.wrapping_mul(7_919) % quota.limit();
            account = match rule.effect(account, now, cost) {
                Effect::Charge { used } => Account { used, ..account },
                Effect::Advance { used } => {
                    advances += 1;
                    Account { anchor: rule.advanced(account.anchor), used }
                }
                Effect::Deny { wait_ns } => {
                    now += wait_ns;
                    continue;
                }
                Effect::Open { .. } => panic!("never empty"),
            };
            places += u128::from(cost);
            let leaves = (places * u128::from(period)).div_ceil(leak.into());
            assert_eq!(u128::from(rule.delay_ns(account, now)), leaves - u128::from(now));
        }
        assert!(advances + 1 >= places >> 32, "{advances} advances for {places} places");
    }
}
