//! The algorithms beside the log, through the limiter and against the naive oracle: the same
//! operations on the same clock must get the same answers, to the nanosecond. What may be asked for
//! where the clock goes back is told in `metered/mod.rs`.

use std::time::Duration;

use crate::metered::Pair;
use crate::strategies::{back, cases, nasty_ops, ops, starts, steps};
use proptest::prelude::*;
use tollgate::{AtKeyCap, Limiter, Quota};
use tollgate_kit::driver::{Cost, Op};
use tollgate_kit::facade::Facade;
use tollgate_kit::oracle::meter::Meter;

use tollgate_kit::clocks::CountedClock;

const HOUR: u64 = 3_600_000_000_000;
const YEAR: u64 = 365 * 24 * HOUR;

/// With limits up to this, or a little more.
fn meters(most: u32) -> impl Strategy<Value = Meter> {
    let limits = move || prop_oneof![Just(1_u32), 1..=3_u32, 1..=most];
    let rates = || prop_oneof![Just(1_u32), Just(3), 1..100_u32, Just(1_000_000_007)];
    let periods = || prop_oneof![1..20_u64, Just(10_u64), Just(1000), Just(1_000_003), Just(HOUR), Just(YEAR / 100)];
    let phases = || prop_oneof![Just(0_u64), 0..2000_u64, 0..HOUR];
    let bucket = (limits(), rates(), periods(), prop_oneof![2 => Just(100_u32), 1 => 0..=100_u32]);
    let bucket = bucket.prop_map(|(capacity, refill, per, percent)| Meter::TokenBucket {
        capacity,
        refill,
        per,
        start: u32::try_from(u64::from(capacity) * u64::from(percent) / 100).expect("a part of it"),
    });
    let meter =
        (limits(), rates(), periods()).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per });
    let queue = (1..100_u32, periods(), 0..1000 * u64::from(most)).prop_map(|(leak, per, delay)| {
        // As long as so many thousandths of a place take.
        let max_delay = u128::from(delay) * u128::from(per) / (1000 * u128::from(leak));
        // Longer than any that is allowed: filtered out below.
        Meter::LeakyQueue { leak, per, max_delay: u64::try_from(max_delay).unwrap_or(u64::MAX) }
    });
    let window = (limits(), periods(), prop::option::of(phases()))
        .prop_map(|(limit, window, phase)| Meter::FixedWindow { limit, window, phase: phase.map(u128::from) });
    let counter = (limits(), periods(), phases()).prop_map(|(limit, window, phase)| Meter::SlidingCounter {
        limit,
        window,
        phase: phase.into(),
    });
    let quantised = (limits(), periods(), prop_oneof![1..4_u64, 1..40_u64, Just(1 << 14)])
        .prop_map(|(limit, resolution, steps)| Meter::QuantisedLog { limit, window: resolution * steps, resolution });
    prop_oneof![3 => bucket, 1 => meter, 2 => queue, 2 => window, 2 => counter, 4 => quantised]
        .prop_filter("a quota that is allowed", |&meter| meter.quota().validate().is_ok())
}

/// The same for clocks that go back: of a queue that is full at once, each status tells where it is.
fn told(most: u32) -> impl Strategy<Value = Meter> {
    meters(most).prop_map(|meter| match meter {
        Meter::LeakyQueue { leak, per, .. } => Meter::LeakyQueue { leak, per, max_delay: 0 },
        meter => meter,
    })
}

/// Without those that set the clock back.
fn forward_ops(keys: u32) -> impl Strategy<Value = Op> {
    prop_oneof![40 => ops(keys), 1 => Just(Op::Clear), 1 => (0..20 * YEAR).prop_map(Op::Leap)]
}

fn policies() -> impl Strategy<Value = AtKeyCap> {
    prop_oneof![Just(AtKeyCap::Deny), Just(AtKeyCap::Admit)]
}

fn apply_all<S: Facade>(pair: &mut Pair<S>, ops: &[Op]) -> Result<(), TestCaseError> {
    for (position, &op) in ops.iter().enumerate() {
        pair.apply(op).map_err(|difference| TestCaseError::fail(format!("operation {position}: {difference}")))?;
    }
    Ok(())
}

/// So few permits in all that no account goes on under a later anchor, which a clock that goes back
/// would see.
const FEW: u32 = 4;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn few_keys(meter in meters(1000), start in starts(), ops in prop::collection::vec(forward_ops(3), 1..250)) {
        apply_all(&mut Pair::keyed(meter, start, None), &ops)?;
    }

    /// So many permits that accounts go on under later anchors.
    #[test]
    fn few_keys_of_large_limits(
        meter in meters(1 << 18), start in starts(), ops in prop::collection::vec(forward_ops(3), 1..250),
    ) {
        apply_all(&mut Pair::keyed(meter, start, None), &ops)?;
    }

    #[test]
    fn few_keys_and_a_clock_that_goes_back(
        meter in told(FEW), start in starts(), ops in prop::collection::vec(nasty_ops(3), 1..250),
    ) {
        apply_all(&mut Pair::keyed(meter, start, None), &ops)?;
    }

    #[test]
    fn direct(meter in meters(1000), start in starts(), ops in prop::collection::vec(forward_ops(1), 1..250)) {
        apply_all(&mut Pair::direct(meter, start), &ops)?;
    }

    #[test]
    fn direct_and_a_clock_that_goes_back(
        meter in told(FEW), start in starts(), ops in prop::collection::vec(nasty_ops(1), 1..250),
    ) {
        apply_all(&mut Pair::direct(meter, start), &ops)?;
    }

    /// More keys than there is room for, under each policy.
    #[test]
    fn at_the_key_cap(
        meter in told(FEW),
        start in starts(),
        cap in 1_usize..=8,
        policy in policies(),
        ops in prop::collection::vec(nasty_ops(12), 1..250),
    ) {
        apply_all(&mut Pair::keyed(meter, start, Some((cap, policy))), &ops)?;
    }
}

/// How long a key holds its place depends on what it took: one that came later may leave earlier.
#[test]
fn at_the_cap_a_key_that_took_little_makes_way_before_one_that_took_much() {
    let clock = CountedClock::new();
    let quota = Quota::leaky_bucket(10, 1, Duration::from_secs(1));
    let limiter = Limiter::<str>::builder(quota).key_cap(2).clock(clock.clone()).build().expect("a good quota and cap");
    let ask = |key| limiter.try_acquire(key).is_admitted();
    assert!(limiter.try_acquire_n("much", 10).expect("the capacity").is_admitted());
    assert!(ask("little"));
    assert!(!ask("new"));
    clock.advance(Duration::from_secs(1));
    assert!(ask("new"), "in place of the one that took little");
    assert!(!ask("newer"));
    clock.advance(Duration::from_secs(1));
    assert!(ask("newer"), "in place of the new one, which is as new again");
    assert!(limiter.peek("much").remaining() == 2);
}

proptest! {
    #![proptest_config(cases(48))]

    /// Hundreds of keys, so that tables grow, and sweep, and take back what is as new. No decision
    /// shows it.
    #[test]
    fn hundreds_of_keys(meter in told(20), start in starts(), ops in prop::collection::vec(nasty_ops(400), 500..1500)) {
        apply_all(&mut Pair::keyed(meter, start, None), &ops)?;
    }

    /// A stream of keys that are never seen again flows past a few that stay.
    #[test]
    fn a_stream_of_new_keys(
        meter in told(FEW),
        cap in prop_oneof![1_usize..=8, 9_usize..=256],
        policy in policies(),
        at_once in 1_u32..300,
        steps in prop::collection::vec((steps(), back(), 0_u32..3), 1..25),
    ) {
        let mut pair = Pair::keyed(meter, 0, Some((cap, policy)));
        let mut next_key = 3;
        for (step, back, stays) in steps {
            let mut ops = vec![Op::AcquireOne { key: stays }];
            ops.extend((next_key..next_key + at_once).map(|key| Op::AcquireOne { key }));
            ops.extend([Op::Status { key: stays, cost: Cost::One }, Op::Forget { key: next_key }, Op::Advance(step), back]);
            next_key += at_once;
            apply_all(&mut pair, &ops)?;
        }
    }
}
