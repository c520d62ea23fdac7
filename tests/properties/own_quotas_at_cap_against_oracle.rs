//! Keys that find no place, and keys with quotas of their own: each peek, and the request that
//! follows, against lists of stamps.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, Decision, DenialReason, Limiter, Quota};

use tollgate_kit::counted_clock::CountedClock;

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
    ByQuota(u64),
    /// A place may be free after at most this long.
    ForAPlace(u64),
}

struct Model {
    cap: usize,
    policy: AtKeyCap,
    limit: u32,
    own: HashMap<u32, u32>,
    stamps: HashMap<u32, Vec<u64>>,
}

fn live(stamps: &[u64], now: u64) -> impl Iterator<Item = u64> {
    stamps.iter().copied().filter(move |&stamp| now < stamp + WINDOW)
}

/// Charges a log, or says how long until that would do.
fn request(stamps: &mut Vec<u64>, limit: u32, now: u64, cost: u32) -> Told {
    let fits = |at| live(stamps, at).count() + cost as usize <= limit as usize;
    let ends = live(stamps, now).map(|stamp| stamp + WINDOW);
    match core::iter::once(now).chain(ends).filter(|&at| fits(at)).min().expect("once all have expired") - now {
        0 => {
            stamps.extend((0..cost).map(|_| now));
            Told::Admitted { is_counted: true }
        }
        wait => Told::ByQuota(wait),
    }
}

impl Model {
    fn ask(&mut self, key: u32, cost: u32, now: u64) -> Told {
        let limit = self.own.get(&key).copied().unwrap_or(self.limit);
        if cost > limit {
            return Told::Never(limit);
        }
        self.stamps.retain(|_, stamps| live(stamps, now).count() > 0);
        if self.stamps.contains_key(&key) || self.stamps.len() < self.cap {
            return request(self.stamps.entry(key).or_default(), limit, now, cost);
        }
        let ends = self.stamps.values().filter_map(|stamps| Some(stamps.last()? + WINDOW));
        let no_place = Told::ForAPlace(ends.min().expect("a key is live") - now);
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
            denial.reason() == DenialReason::Quota && denial.retry_after() == Duration::from_nanos(wait)
        }
        (Decision::Denied(denial), &Told::ForAPlace(most)) => {
            let wait = denial.retry_after();
            denial.reason() == DenialReason::KeyCap && !wait.is_zero() && wait <= Duration::from_nanos(most)
        }
        _ => false,
    }
}

fn quota(limit: u32) -> [Quota; 1] {
    [Quota::new(limit, Duration::from_nanos(WINDOW))]
}

fn play(limit: u32, cap: usize, policy: AtKeyCap, ops: &[Op]) -> Result<(), TestCaseError> {
    let clock = CountedClock::new();
    let builder = Limiter::<u32>::builder(quota(limit)[0]).key_cap(cap).at_key_cap(policy).keys_with_quotas(1);
    let limiter = builder.clock(clock.clone()).build().expect("good quotas");
    let mut model = Model { cap, policy, limit, own: HashMap::new(), stamps: HashMap::new() };
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
                model.stamps.remove(&key);
            }
            Op::Clear => {
                limiter.clear();
                model.stamps.clear();
            }
            Op::Change(limit) => {
                limiter.set_quotas(&quota(limit)).expect("they can be used");
                model.limit = limit;
            }
            Op::ChangeOwn(key, limit) => {
                limiter.set_quotas_of(key, &quota(limit)).expect("they can be used");
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
