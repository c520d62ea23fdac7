//! Keys that find no place, and keys with quotas of their own: each peek, and the request that
//! follows, against lists of stamps.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, Decision, DenialReason, Limiter};

use tollgate_kit::clocks::CountedClock;
use tollgate_kit::key::first;
use tollgate_kit::oracle::{Log, Rule};

/// The window of all quotas. What a sweep notes is coarser than a microsecond.
const WINDOW: u64 = 30 << 20;

#[derive(Debug, Clone)]
enum Op {
    Ask(u32, u32),
    Reserve(u32, u32),
    Wait(u64),
    Forget(u32),
    Clear,
    /// Another limit for all keys.
    Change(u32),
    /// For one.
    ChangeOwn(u32, u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (0..5_u32, 1..9_u32).prop_map(|(key, cost)| Op::Ask(key, cost)),
        3 => (0..5_u32, 1..9_u32).prop_map(|(key, cost)| Op::Reserve(key, cost)),
        5 => (0..20_u64).prop_map(|units| Op::Wait(units << 20)),
        1 => (0..5_u32).prop_map(Op::Forget),
        2 => (1..9_u32).prop_map(Op::Change),
        3 => (0..5_u32, 1..9_u32).prop_map(|(key, limit)| Op::ChangeOwn(key, limit)),
    ];
    prop::collection::vec(prop_oneof![50 => op, 1 => Just(Op::Clear)], 1..60)
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// Its cost is more than this limit.
    Never(u32),
    Admitted {
        is_counted: bool,
    },
    /// After this long.
    ByQuota(u128),
    /// A place may be free after at most this long.
    ForAPlace(u128),
}

struct Model {
    cap: usize,
    policy: AtKeyCap,
    limit: u32,
    own: HashMap<u32, u32>,
    keys: HashMap<u32, Log>,
}

fn rules(limit: u32) -> [Rule; 1] {
    [Rule { limit, window: WINDOW }]
}

impl Model {
    fn ask(&mut self, key: u32, cost: u32, now: u64) -> Told {
        let limit = self.own.get(&key).copied().unwrap_or(self.limit);
        if cost > limit {
            return Told::Never(limit);
        }
        self.keys.retain(|_, log| log.is_live(&rules(limit), now));
        if self.keys.contains_key(&key) || self.keys.len() < self.cap {
            let log = self.keys.entry(key).or_default();
            let passes = first(now, |time| log.admits(&rules(limit), time, cost));
            if passes > now {
                return Told::ByQuota((passes - now).into());
            }
            log.grant(now, cost);
            return Told::Admitted { is_counted: true };
        }
        let ends = self.keys.values().filter_map(|log| log.all_free_at(&rules(limit), now));
        let no_place = Told::ForAPlace(ends.min().expect("a key is live") - u128::from(now));
        match self.policy {
            AtKeyCap::Admit => Told::Admitted { is_counted: false },
            _ => no_place,
        }
    }
}

fn same(decision: Decision, expected: &Told) -> bool {
    match (decision, expected) {
        (Decision::Admitted(admission), &Told::Admitted { is_counted }) => admission.is_counted() == is_counted,
        (Decision::Denied(denial), &Told::ByQuota(wait)) => {
            denial.reason() == DenialReason::Quota && denial.retry_after().as_nanos() == wait
        }
        (Decision::Denied(denial), &Told::ForAPlace(most)) => {
            let wait = denial.retry_after();
            denial.reason() == DenialReason::KeyCap && !wait.is_zero() && wait.as_nanos() <= most
        }
        _ => false,
    }
}

fn play(limit: u32, cap: usize, policy: AtKeyCap, ops: &[Op]) -> Result<(), TestCaseError> {
    let clock = CountedClock::new();
    let builder = Limiter::<u32>::builder(rules(limit)[0].quota()).key_cap(cap).at_key_cap(policy).keys_with_quotas(1);
    let limiter = builder.clock(clock.clone()).build().expect("good quotas");
    let mut model = Model { cap, policy, limit, own: HashMap::new(), keys: HashMap::new() };
    let mut now = 0;
    for (at, op) in ops.iter().enumerate() {
        match *op {
            Op::Ask(key, cost) => {
                let (peeked, told) = (limiter.peek_n(key, cost), limiter.try_acquire_n(key, cost));
                let expected = model.ask(key, cost, now);
                prop_assert_eq!(peeked.map(|status| status.decision()), told, "step {}: {:?}", at, op);
                let right = match told {
                    Ok(told) => same(told, &expected),
                    Err(error) => Told::Never(error.limit()) == expected,
                };
                prop_assert!(right, "step {at}: {op:?}: {told:?}, not {expected:?}");
            }
            Op::Reserve(key, cost) => {
                let told = limiter.reserve(key, cost, Duration::ZERO);
                let expected = model.ask(key, cost, now);
                let right = match &told {
                    Ok(_) => matches!(expected, Told::Admitted { .. }),
                    Err(error) => error
                        .denial()
                        .map_or(matches!(expected, Told::Never(_)), |denial| same(Decision::Denied(denial), &expected)),
                };
                prop_assert!(right, "step {at}: {op:?}: {told:?}, not {expected:?}");
                let _ = told.map(|reservation| drop(reservation.commit()));
            }
            Op::Wait(time) => now += time,
            Op::Forget(key) => {
                limiter.forget(key);
                model.keys.remove(&key);
            }
            Op::Clear => {
                limiter.clear();
                model.keys.clear();
            }
            Op::Change(limit) => {
                limiter.set_quotas(&rules(limit).map(Rule::quota)).expect("they can be used");
                model.limit = limit;
            }
            Op::ChangeOwn(key, limit) => {
                limiter.set_quotas_of(key, &rules(limit).map(Rule::quota)).expect("they can be used");
                model.own.insert(key, limit);
            }
        }
        clock.set(now);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_without_a_place_and_quotas_of_their_own(
        limit in 1..9_u32,
        cap in 1..5_usize,
        policy in prop_oneof![Just(AtKeyCap::Deny), Just(AtKeyCap::Admit)],
        ops in ops(),
    ) {
        play(limit, cap, policy, &ops)?;
    }
}
