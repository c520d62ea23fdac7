//! What threads do with words that stand no more.

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Request {
        cost: u32,
        lag: u64,
    },
    /// Parts of a step.
    Wait(u64),
    Refund {
        which: prop::sample::Index,
        lag: u64,
    },
    /// A thread uses an earlier word.
    Use {
        word: prop::sample::Index,
        what: u8,
        cost: u32,
        lag: u64,
        which: prop::sample::Index,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let lag = || prop_oneof![3 => Just(0), 1 => 0..40_u64];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        10 => (1..5_u32, lag()).prop_map(|(cost, lag)| Op::Request { cost, lag }),
        9 => (0..16_u64).prop_map(Op::Wait),
        1 => (20..300_u64).prop_map(Op::Wait),
        1 => (index(), lag()).prop_map(|(which, lag)| Op::Refund { which, lag }),
        10 => (index(), 0..8_u8, 1..5_u32, lag(), index())
            .prop_map(|(word, what, cost, lag, which)| Op::Use { word, what, cost, lag, which }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
    #[test]
    fn earlier_words_change_no_answer(
        (limit, steps, resolution) in (1..20_u32, prop_oneof![4 => 1..9_u64, 2 => 9..40_u64], 1..12_u64),
        unit in prop_oneof![2 => Just(1_u32), 1 => Just(1 << 25)],
        begin in prop_oneof![Just(0), (0..60_u64).prop_map(|steps| (1 << 32) - steps)],
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let given = Given { limit: limit * unit, steps, resolution };
        let begin = TIME_ZERO + begin.saturating_sub(steps) * resolution;
        // The same is asked of another key, whose earlier words nobody uses.
        let (plan, key, other) = (given.plan(), Key::new(), Key::new());
        let (mut now, mut receipts, mut words, mut stamps) = (begin, vec![], vec![Word::NEW], vec![0]);
        for op in ops {
            let at = |lag: u64| (now - lag).max(begin);
            match op {
                Op::Wait(parts) => now += (parts * resolution).div_ceil(7),
                Op::Request { cost, lag } => {
                    let cost = (cost * unit).min(given.limit);
                    let answer = key.ask(&plan, at(lag), cost);
                    prop_assert_eq!(answer, other.ask(&plan, at(lag), cost));
                    if let Ok(mark) = answer.0 {
                        receipts.push((mark, cost));
                        stamps.push(u64::try_from(mark).unwrap());
                    }
                    words.push(key.word.load());
                }
                Op::Refund { which, lag } => {
                    if receipts.is_empty() { continue }
                    let (mark, cost) = receipts.swap_remove(which.index(receipts.len()));
                    let refunded = key.refund(&plan, at(lag), cost, mark);
                    prop_assert_eq!(refunded, other.refund(&plan, at(lag), cost, mark));
                    words.push(key.word.load());
                }
                Op::Use { word, what, cost, lag, which } => {
                    let (word, current) = (words[word.index(words.len())], key.word.load());
                    let cost = (cost * unit).min(given.limit);
                    let (seen, mut left) = (Seen { cell: key.cell(), word, now: at(lag) }, PerQuota::NONE);
                    let new = match what {
                        0 => match plan.propose(seen, Request::acquire(cost), Some(&mut left)) {
                            Proposal::Admit { word: new, .. } => Some(new),
                            _ => None,
                        },
                        1 => plan.refund(seen, cost, 0, stamps[which.index(stamps.len())].into()).map(|(new, _)| new),
                        2 => Some(plan.moved(seen, &plan, &Rings::with_room(64))).filter(|_| false),
                        3 => {
                            plan.propose(seen, Request::acquire(cost).peek(), Some(&mut left));
                            None
                        }
                        4 => {
                            plan.propose(seen, Request::reserve(cost, 1000).peek(), Some(&mut left));
                            None
                        }
                        5 => Some(plan.over_at(seen.cell, word)).and(None),
                        6 => Some(plan.owe(seen, cost)),
                        _ => {
                            #[cfg(feature = "snapshot")]
                            plan.permits(seen);
                            None
                        }
                    };
                    if let Some(new) = new.filter(|&new| word != current && new != word) {
                        prop_assert!(!key.word.swap(word, new));
                    }
                }
            }
            for lag in [0, resolution, 3 * resolution] {
                let at = (now - lag).max(begin);
                prop_assert_eq!(key.look(&plan, at, 1), other.look(&plan, at, 1));
            }
        }
    }
}
