//! The limiter against the oracle: the same operations on the same clock must get the same answers,
//! to the nanosecond.

use std::time::Duration;

use crate::strategies::{back, cases, nasty_ops, starts, steps};
use proptest::prelude::*;
use tollgate::{Decision, Quota};
use tollgate_kit::driver::{Cost, Op, Pair};
use tollgate_kit::facade::Facade;
use tollgate_kit::oracle::{AtCap, Rule};

use tollgate_kit::clocks::CountedClock;

const HOUR: u64 = 3_600_000_000_000;

fn longest_window() -> u64 {
    u64::try_from(Quota::MAX_WINDOW.as_nanos()).expect("documented as 2^60 - 1")
}

fn rule() -> impl Strategy<Value = Rule> {
    let limits = prop_oneof![Just(1_u32), Just(2), Just(3), Just(7), Just(100)];
    let windows = prop_oneof![Just(1_u64), Just(10), Just(1000), Just(HOUR), Just(longest_window())];
    (limits, windows).prop_map(|(limit, window)| Rule { limit, window })
}

/// One rule, or several: unrelated ones, some that others imply, and the same one twice.
fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let near = (rule(), prop::collection::vec((0_u32..5, 0_u64..4, 1_u64..4), 1..=3)).prop_map(|(first, others)| {
        let longer = |times: u64, part: u64| first.window.saturating_mul(times).min(longest_window()) / part;
        let other = |(more, times, part)| Rule { limit: first.limit + more, window: longer(times, part).max(1) };
        core::iter::once(first).chain(others.into_iter().map(other)).collect()
    });
    prop_oneof![
        3 => rule().prop_map(|rule| vec![rule]),
        2 => prop::collection::vec(rule(), 2..=4),
        3 => near.prop_shuffle(),
    ]
}

fn policies() -> impl Strategy<Value = AtCap> {
    prop_oneof![Just(AtCap::Deny), Just(AtCap::Admit)]
}

fn apply_all<S: Facade>(pair: &mut Pair<S>, ops: &[Op]) -> Result<(), TestCaseError> {
    for (position, &op) in ops.iter().enumerate() {
        pair.apply(op).map_err(|difference| TestCaseError::fail(format!("operation {position}: {difference}")))?;
    }
    Ok(())
}

/// Asks until denied; then still denied a nanosecond before the time that was advised, and admitted
/// at that time.
fn advice_is_honest<S: Facade>(pair: &Pair<S>, clock: &CountedClock, key: u32, cost: u32) -> Result<(), TestCaseError> {
    let limit = pair.limit();
    let denials = (0..=limit / cost).filter_map(|_| pair.subject.acquire(&[Some(key)], cost).ok()?.retry_after());
    let wait = denials.last().ok_or_else(|| TestCaseError::fail("the clock stands still and nothing was denied"))?;
    prop_assert!(wait > Duration::ZERO, "a denial that says to try again at once");
    clock.advance(wait - Duration::from_nanos(1));
    let early = pair.subject.acquire(&[Some(key)], cost);
    prop_assert!(matches!(early, Ok(Decision::Denied(_))), "admitted before {wait:?} had passed");
    clock.advance(Duration::from_nanos(1));
    let in_time = pair.subject.acquire(&[Some(key)], cost);
    prop_assert!(matches!(in_time, Ok(Decision::Admitted(_))), "{in_time:?} after {wait:?} had passed");
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    /// Few keys, so that each fills up again and again; clocks that go back as far as they like.
    #[test]
    fn few_keys(rules in rules(), start in starts(), ops in prop::collection::vec(nasty_ops(3), 1..250)) {
        apply_all(&mut Pair::keyed(&rules, start, None), &ops)?;
    }

    /// No keys at all.
    #[test]
    fn direct(rules in rules(), start in starts(), ops in prop::collection::vec(nasty_ops(1), 1..250)) {
        apply_all(&mut Pair::direct(&rules, start), &ops)?;
    }

    /// More keys than there is room for, under each policy.
    #[test]
    fn at_the_key_cap(
        rules in rules(),
        start in starts(),
        cap in 1_usize..=8,
        at_cap in policies(),
        ops in prop::collection::vec(nasty_ops(12), 1..250),
    ) {
        apply_all(&mut Pair::keyed(&rules, start, Some((cap, at_cap))), &ops)?;
    }

    #[test]
    fn retry_after_is_honest(
        rules in rules(),
        start in starts(),
        ops in prop::collection::vec(nasty_ops(1), 1..120),
        cost in any::<u32>(),
    ) {
        let cost = 1 + cost % rules.iter().map(|rule| rule.limit).min().expect("a rule");
        let mut keyed = Pair::keyed(&rules, start, None);
        apply_all(&mut keyed, &ops)?;
        advice_is_honest(&keyed, keyed.subject.clock(), 0, cost)?;
        let mut direct = Pair::direct(&rules, start);
        apply_all(&mut direct, &ops)?;
        advice_is_honest(&direct, direct.subject.clock(), 0, cost)?;
    }
}

proptest! {
    #![proptest_config(cases(48))]

    /// Hundreds of keys, so that tables grow and reclaim.
    #[test]
    fn hundreds_of_keys(
        rules in rules(),
        start in starts(),
        ops in prop::collection::vec(nasty_ops(400), 500..1500),
    ) {
        apply_all(&mut Pair::keyed(&rules, start, None), &ops)?;
    }

    /// A stream of keys that are never seen again flows past a few that stay: what has expired
    /// makes way, what is live never does, and the cap holds.
    #[test]
    fn a_stream_of_new_keys(
        limit in 1_u32..4,
        others in prop::collection::vec((1_u32..6, prop_oneof![Just(50_u64), Just(300), Just(2000)]), 0..=3),
        cap in prop_oneof![1_usize..=8, 9_usize..=256],
        at_cap in policies(),
        at_once in 1_u32..300,
        steps in prop::collection::vec((steps(), back(), 0_u32..3), 1..25),
    ) {
        let mut rules = vec![Rule { limit, window: 1000 }];
        rules.extend(others.into_iter().map(|(limit, window)| Rule { limit, window }));
        let mut pair = Pair::keyed(&rules, 0, Some((cap, at_cap)));
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
