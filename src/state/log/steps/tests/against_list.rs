//! A quantised log beside a list of permits.

use super::naive::Naive;
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Request {
        cost: u32,
        lag: u64,
    },
    Look {
        cost: u32,
        lag: u64,
    },
    /// Parts of a step.
    Wait(u64),
    Refund {
        which: prop::sample::Index,
        lag: u64,
    },
    Move,
    Limit(u32),
    /// Without snapshots, nothing.
    Restore,
}

fn op() -> impl Strategy<Value = Op> {
    let lag = || prop_oneof![3 => Just(0), 1 => 0..40_u64];
    prop_oneof![
        10 => (1..5_u32, lag()).prop_map(|(cost, lag)| Op::Request { cost, lag }),
        3 => (0..6_u32, lag()).prop_map(|(cost, lag)| Op::Look { cost, lag }),
        9 => (0..16_u64).prop_map(Op::Wait),
        1 => (20..300_u64).prop_map(Op::Wait),
        3 => (any::<prop::sample::Index>(), lag()).prop_map(|(which, lag)| Op::Refund { which, lag }),
        1 => Just(Op::Move),
        1 => (1..20_u32).prop_map(Op::Limit),
        1 => Just(Op::Restore),
    ]
}

/// The steps of some windows; the permits that the numbers stand for; and when it begins: around a
/// step at which an epoch begins, or not.
fn given() -> impl Strategy<Value = (Given, u32, u64)> {
    let steps = prop_oneof![4 => 1..9_u64, 2 => 9..40_u64];
    let unit = prop_oneof![2 => Just(1_u32), 1 => Just(1 << 25)];
    let begin = prop_oneof![Just(0), (0..60_u64).prop_map(|steps| (1 << 32) - steps)];
    (1..20_u32, steps, 1..12_u64, unit, begin).prop_map(|(limit, steps, resolution, unit, begin)| {
        let begin = TIME_ZERO + begin.saturating_sub(steps) * resolution;
        (Given { limit: limit * unit, steps, resolution }, unit, begin)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
    #[test]
    fn a_quantised_log_answers_as_a_list_of_permits(
        (given, unit, begin) in given(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let (mut plan, mut naive, mut key) = (given.plan(), Naive::new(given), Key::new());
        let (mut now, mut receipts) = (begin, vec![]);
        for op in ops {
            let at = |lag: u64| (now - lag).max(begin);
            match op {
                Op::Wait(parts) => now += (parts * given.resolution).div_ceil(7),
                Op::Request { cost, lag } => {
                    let (cost, at) = ((cost * unit).min(naive.given.limit), at(lag));
                    let before = key.word.load();
                    let (answer, left) = key.ask(&plan, at, cost);
                    prop_assert_eq!(answer.err().unwrap_or(0), naive.after(at, |time| naive.fits(time, cost)));
                    match answer {
                        Err(_) => {
                            prop_assert!(!naive.fits(at, cost));
                            prop_assert_eq!(key.word.load(), before, "a denial writes nothing");
                        }
                        Ok(mark) => {
                            let stamp = naive.grant(at, cost);
                            prop_assert_eq!(plan.layout.end_of(u64::try_from(mark).unwrap()), stamp);
                            receipts.push((mark, stamp, cost));
                            prop_assert_eq!(plan.over_at(key.cell(), key.word.load()), stamp + naive.window());
                        }
                    }
                    // Under a smaller limit, or after a lagging clock, what is told is the permits
                    // left before, less the cost.
                    prop_assert_eq!(left, naive.left(at));
                }
                Op::Look { cost, lag } => {
                    let (cost, at) = ((cost * unit).min(naive.given.limit), at(lag));
                    let wait_ns = naive.after(at, |time| naive.fits(time, cost));
                    prop_assert_eq!(key.look(&plan, at, cost), (wait_ns, naive.left(at)));
                }
                Op::Refund { which, lag } => {
                    if receipts.is_empty() { continue }
                    let (mark, stamp, cost) = receipts.swap_remove(which.index(receipts.len()));
                    let at = at(lag);
                    prop_assert_eq!(key.refund(&plan, at, cost, mark), naive.refund(at, stamp, cost));
                }
                Op::Move => key = key.moved(&plan, now),
                Op::Limit(limit) => {
                    naive.given.limit = limit * unit;
                    let next = naive.given.plan();
                    plan = next;
                }
                #[cfg(not(feature = "snapshot"))]
                Op::Restore => {}
                #[cfg(feature = "snapshot")]
                Op::Restore => {
                    // By the same clock, later. It drops what has expired for a clock that does not
                    // lag, and the first moment of the newest step, if that is empty.
                    let ends = plan.permits(Seen { cell: key.cell(), word: key.word.load(), now }).expect("in one thread");
                    prop_assert_eq!(ends.iter().map(|&(_, permits)| u64::from(permits)).sum::<u64>(), naive.live(now));
                    let elapsed = 3;
                    now += elapsed;
                    key = Key::new();
                    let word = plan.imported(&key.rings, &ends, now);
                    prop_assert!(key.word.swap(Word::NEW, word));
                    let (at, window) = ((now - elapsed).max(naive.since), naive.window());
                    // A key whose permits have all expired since is as new.
                    let at = if naive.live(now) == 0 { now } else { at };
                    naive.grants.retain(|&(stamp, _)| at < stamp + window);
                    receipts.retain(|&(_, stamp, _)| at < stamp + window);
                    naive.since = naive.grants.iter().map(|&(stamp, _)| stamp - given.resolution + 1).max().unwrap_or(0);
                }
            }
        }
    }
}
