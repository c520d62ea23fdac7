//! Threads whose steps are taken in random order.

use proptest::prelude::*;

use super::*;
use crate::sync::AtomicU64;

#[derive(Clone, Debug)]
enum Op {
    /// Adds to two of the first three cells.
    Claim(usize, i128),
    Add(usize, i128),
    Peek(usize),
    /// Adds the same to the last two cells, which nothing else does.
    Pair(i128),
    /// Looks at the last two cells at one instant.
    Look,
}

/// What an operation did, and when.
#[derive(Debug)]
struct Done {
    thread: usize,
    from: u64,
    to: u64,
    sums: Vec<(usize, i128)>,
    succeeded: bool,
}

fn run(shelf: &Shelf, thread: usize, ops: &[Op], time: &AtomicU64) -> Vec<Done> {
    let now = || time.load(Ordering::Relaxed);
    let each = |op: &Op| {
        let from = now();
        let (sums, succeeded) = match *op {
            Op::Claim(without, sum) => {
                let sums: Vec<_> = (0..3).filter(|&index| index != without).map(|index| (index, sum)).collect();
                let granted = shelf.claim(&sums);
                (sums, granted)
            }
            Op::Add(index, sum) => {
                shelf.add(index, sum);
                (vec![(index, sum)], true)
            }
            Op::Peek(index) => {
                shelf.peek(index);
                (vec![], true)
            }
            Op::Pair(sum) => (vec![(3, sum), (4, sum)], shelf.claim(&[(4, sum), (3, sum)])),
            Op::Look => {
                let seen = [shelf.peek(3), shelf.peek(4)];
                let at_one_instant = shelf.claim_from(&seen, &[(3, 0), (4, 0)]);
                assert!(!at_one_instant || seen[0] == seen[1]);
                (vec![(3, 0), (4, 0)], at_one_instant)
            }
        };
        Done { thread, from, to: now(), sums, succeeded }
    };
    ops.iter().map(each).collect()
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..3_usize, prop_oneof![Just(1), Just(-1)]).prop_map(|(without, sum)| Op::Claim(without, sum)),
        2 => (0..3_usize, prop_oneof![Just(1), Just(-1)]).prop_map(|(index, sum)| Op::Add(index, sum)),
        1 => (0..5_usize).prop_map(Op::Peek),
        2 => prop_oneof![Just(1), Just(-1)].prop_map(Op::Pair),
        1 => Just(Op::Look),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// In any order of steps each claim is made once or not at all, and fails only if another
    /// thread changed one of its words.
    #[test]
    fn in_any_order_of_steps_claims_are_exact(
        ops in prop::collection::vec(prop::collection::vec(op(), 1..6), 2..5),
        turns in prop::collection::vec((0..4_usize, 1..12_usize), 0..60),
    ) {
        let shelf = Shelf::new(5);
        let time = AtomicU64::new(0);
        let done: Vec<Done> = scope(|scope| {
            let (shelf, time) = (&shelf, &time);
            let mut threads: Vec<_> = ops
                .iter()
                .enumerate()
                .map(|(number, ops)| Thread::spawn(scope, move || run(shelf, number, ops, time)))
                .collect();
            let count = threads.len();
            for (thread, steps) in turns {
                for _ in 0..steps {
                    time.fetch_add(1, Ordering::Relaxed);
                    threads[thread % count].step();
                }
            }
            // Those that have stopped the longest go on last.
            threads.into_iter().rev().flat_map(Thread::finish).collect()
        });
        let mut sums = vec![0; 5];
        for done in done.iter().filter(|done| done.succeeded) {
            done.sums.iter().for_each(|&(index, sum)| sums[index] += sum);
        }
        prop_assert_eq!(shelf.sums(), sums);
        for failed in done.iter().filter(|done| !done.succeeded) {
            let changes = |other: &&Done| {
                other.succeeded && other.thread != failed.thread && other.from <= failed.to && failed.from <= other.to
                    && other.sums.iter().any(|&(index, sum)| sum != 0 && failed.sums.iter().any(|part| part.0 == index))
            };
            prop_assert!(done.iter().find(changes).is_some(), "{failed:?} without a reason: {done:?}");
        }
    }
}
