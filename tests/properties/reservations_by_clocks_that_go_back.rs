//! Reserving and giving back by a clock that goes back now and then: no window of the time that has
//! passed holds more permits than the limit, but for those that were given back.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Limiter, Quota, Receipt};

use tollgate_kit::clocks::CountedClock;

const KEYS: [&str; 2] = ["alice", "bob"];

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

#[derive(Debug, Clone)]
enum Op {
    Acquire {
        key: usize,
        cost: u32,
    },
    Reserve {
        key: usize,
        cost: u32,
        within: u64,
    },
    /// One of the receipts that are there.
    Refund(prop::sample::Index),
    Peek(usize),
    Forget(usize),
    Pass(u64),
    /// The clock is set back.
    Back(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = || prop_oneof![6 => Just(0_usize), 1 => Just(1_usize)];
    let within = || prop_oneof![Just(0_u64), 0..12_u64, Just(u64::MAX)];
    let op = prop_oneof![
        4 => (key(), 1..4_u32).prop_map(|(key, cost)| Op::Acquire { key, cost }),
        5 => (key(), 1..4_u32, within()).prop_map(|(key, cost, within)| Op::Reserve { key, cost, within }),
        5 => any::<prop::sample::Index>().prop_map(Op::Refund),
        1 => key().prop_map(Op::Peek),
        1 => Just(Op::Forget(1)),
        4 => prop_oneof![Just(1_u64), 0..6_u64, 0..25_u64].prop_map(Op::Pass),
        2 => prop_oneof![Just(1_u64), 0..6_u64, 0..25_u64].prop_map(Op::Back),
    ];
    prop::collection::vec(op, 1..40)
}

/// Permits that are used at a time, by the time that has passed.
#[derive(Debug, Clone, Copy)]
struct Used {
    key: usize,
    at: u64,
    cost: u32,
}

/// The window with too many permits of a key, if there is one.
fn overfull(used: &[Option<Used>], key: usize, limit: u32, window: u64) -> Option<u64> {
    let of_key = || used.iter().flatten().filter(|one| one.key == key);
    let within =
        |from: u64| of_key().filter(|one| (from..from + window).contains(&one.at)).map(|one| one.cost).sum::<u32>();
    of_key().map(|one| one.at).find(|&from| within(from) > limit)
}

fn holds(quotas: &[(u32, u64)], ops: &[Op]) -> Result<(), TestCaseError> {
    let clock = CountedClock::new();
    let mut given = quotas.iter().map(|&(limit, window)| Quota::new(limit, nanos(window)));
    let mut builder = Limiter::<str>::builder(given.next().expect("a quota")).clock(clock.clone());
    for quota in given {
        builder = builder.and(quota);
    }
    let limiter = builder.build().expect("quotas that are allowed");
    let most = quotas.iter().map(|&(limit, _)| limit).min().expect("a quota");
    let (mut used, mut held) = (Vec::<Option<Used>>::new(), Vec::<(Receipt, usize)>::new());
    // A clock that can go back has to begin late enough.
    let (mut reading, mut passed) = (1000_u64, 0_u64);
    clock.set(reading);
    for (step, op) in ops.iter().enumerate() {
        match *op {
            Op::Acquire { key, cost } => {
                let cost = cost.min(most);
                if limiter.try_acquire_n(KEYS[key], cost).expect("no more than the limit").is_admitted() {
                    used.push(Some(Used { key, at: passed, cost }));
                }
            }
            Op::Reserve { key, cost, within } => {
                let cost = cost.min(most);
                if let Ok(reservation) = limiter.reserve(KEYS[key], cost, nanos(within)) {
                    let delay = u64::try_from(reservation.delay().as_nanos()).expect("not long");
                    held.push((reservation.commit(), used.len()));
                    used.push(Some(Used { key, at: passed + delay, cost }));
                }
            }
            Op::Refund(index) if !held.is_empty() => {
                let (receipt, number) = held.swap_remove(index.index(held.len()));
                let back = limiter.refund(receipt).expect("of this limiter");
                if back > 0 {
                    used[number] = None;
                }
            }
            Op::Refund(_) => {}
            Op::Peek(key) => drop(limiter.peek(KEYS[key])),
            Op::Forget(key) => {
                limiter.forget(KEYS[key]);
                used.iter_mut().filter(|one| one.is_some_and(|one| one.key == key)).for_each(|one| *one = None);
            }
            Op::Pass(by) => (reading, passed) = (reading + by, passed + by),
            Op::Back(by) => reading -= by,
        }
        clock.set(reading);
        for &(limit, window) in quotas {
            for key in 0..KEYS.len() {
                let found = overfull(&used, key, limit, window);
                prop_assert!(
                    found.is_none(),
                    "step {step}, {op:?}: more than {limit} within {window} from {found:?}: {used:?}"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log(limit in 1..5_u32, window in 1..20_u64, ops in ops()) {
        holds(&[(limit, window)], &ops)?;
    }

    #[test]
    fn several_logs(quotas in prop::collection::vec((1..5_u32, 1..30_u64), 2..4), ops in ops()) {
        holds(&quotas, &ops)?;
    }
}
