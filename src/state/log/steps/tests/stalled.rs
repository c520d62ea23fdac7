//! A thread that stops at any step of a request, and goes on much later or never. It blocks no
//! other, nothing of it counts unless its swap succeeds, and no other decision changes.

use super::naive::Naive;
use super::*;

/// How far a request got.
enum Stalled<'a> {
    /// It has loaded the word, and read the clock.
    Loaded { cell: CellRef<'a>, word: Word },
    /// It has read the ring, and is about to spill or copy.
    Read { cell: CellRef<'a>, word: Word, view: View<'a, Steps> },
    /// It is about to swap the word.
    Proposed { cell: CellRef<'a>, word: Word, new: Word },
}

const STAGES: usize = 3;

impl<'a> Stalled<'a> {
    /// `None` if the request is denied, or has no word yet: then it stops nowhere of interest.
    fn at(stage: usize, plan: &'a LogPlan<Steps>, key: &'a Key, reading: u64, cost: u32) -> Option<Self> {
        let (cell, word) = (key.cell(), key.word.load());
        let view = View::of(plan.layout, Seen { cell, word, now: reading });
        match stage {
            0 => Some(Self::Loaded { cell, word }),
            _ if plan.refusal(&view, cost).is_some() => None,
            1 => Some(Self::Read { cell, word, view }),
            _ => Some(Self::Proposed { cell, word, new: plan.grant(&view, view.grant(cost, view.step)) }),
        }
    }

    /// Goes on. Whether the request is admitted after all; `None` if it is lost.
    fn goes_on(self, plan: &LogPlan<Steps>, reading: u64, cost: u32) -> Option<Result<(), u64>> {
        let (cell, word, new) = match self {
            Self::Loaded { cell, word } => {
                match plan.propose(Seen { cell, word, now: reading }, Request::acquire(cost), None) {
                    Proposal::Admit { word: new, .. } => (cell, word, new),
                    Proposal::Deny { wait_ns, .. } => return Some(Err(wait_ns)),
                    Proposal::Lost => return None,
                }
            }
            Self::Read { cell, word, view } => (cell, word, plan.grant(&view, view.grant(cost, view.step))),
            Self::Proposed { cell, word, new } => (cell, word, new),
        };
        cell.word.swap(word, new).then_some(Ok(()))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Ask {
        cost: u32,
    },
    /// Parts of a step.
    Wait(u64),
    Refund(prop::sample::Index),
    Move,
    Stall {
        stage: usize,
        cost: u32,
    },
    /// A stalled request goes on.
    GoOn(prop::sample::Index),
    /// A stalled thread reads all there is by its word.
    Read(prop::sample::Index),
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (1..4_u32).prop_map(|cost| Op::Ask { cost }),
        6 => (0..16_u64).prop_map(Op::Wait),
        1 => (20..100_u64).prop_map(Op::Wait),
        2 => index().prop_map(Op::Refund),
        1 => Just(Op::Move),
        4 => (0..STAGES, 1..4_u32).prop_map(|(stage, cost)| Op::Stall { stage, cost }),
        4 => index().prop_map(Op::GoOn),
        1 => index().prop_map(Op::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
    #[test]
    fn a_stalled_request_changes_no_other_decision(
        (limit, steps, resolution) in (1..12_u32, 1..9_u64, 1..12_u64),
        begin in prop_oneof![Just(0), (0..60_u64).prop_map(|steps| (1 << 32) - steps)],
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let given = Given { limit, steps, resolution };
        let (plan, mut naive) = (given.plan(), Naive::new(given));
        let keys: Vec<Key> = core::iter::repeat_with(Key::new).take(ops.len() + 1).collect();
        let (mut key, mut now) = (0, TIME_ZERO + begin.saturating_sub(steps) * resolution);
        let (mut stalled, mut words, mut receipts) = (vec![], vec![], vec![]);
        let mut history = vec![];
        for op in ops {
            history.push(naive.clone());
            let current = &keys[key];
            match op {
                Op::Wait(parts) => now += (parts * resolution).div_ceil(7),
                Op::Ask { cost } => {
                    let cost = cost.min(limit);
                    let answer = current.ask(&plan, now, cost).0;
                    prop_assert_eq!(answer.err().unwrap_or(0), naive.after(now, |time| naive.fits(time, cost)));
                    if let Ok(mark) = answer {
                        receipts.push((mark, naive.grant(now, cost), cost));
                    }
                }
                Op::Refund(which) => {
                    if receipts.is_empty() { continue }
                    let (mark, stamp, cost) = receipts.swap_remove(which.index(receipts.len()));
                    prop_assert_eq!(current.refund(&plan, now, cost, mark), naive.refund(now, stamp, cost));
                }
                Op::Move => {
                    let word = current.word.load();
                    prop_assert!(current.word.swap(word, word.frozen()));
                    let rings = &keys[key + 1].rings;
                    let moved = plan.moved(Seen { cell: current.cell(), word: word.frozen(), now }, &plan, rings);
                    key += 1;
                    prop_assert!(keys[key].word.swap(Word::NEW, moved) || moved == Word::NEW);
                    // Another thread that moves the key comes too late, unless nothing has happened.
                    let late = plan.moved(Seen { cell: current.cell(), word: word.frozen(), now }, &plan, rings);
                    prop_assert!(!keys[key].word.swap(Word::NEW, late) || late == Word::NEW);
                }
                Op::Stall { stage, cost } => {
                    let cost = cost.min(limit);
                    words.push((current, current.word.load()));
                    if let Some(request) = Stalled::at(stage, &plan, current, now, cost) {
                        stalled.push((request, now, cost, history.len() - 1));
                    }
                }
                Op::GoOn(which) => {
                    if stalled.is_empty() { continue }
                    let (request, reading, cost, since) = stalled.swap_remove(which.index(stalled.len()));
                    match request.goes_on(&plan, reading, cost) {
                        None => {}
                        // Its word still stands.
                        Some(Ok(())) => {
                            prop_assert!(naive.fits(reading, cost));
                            naive.grant(reading, cost);
                        }
                        Some(Err(wait)) => {
                            // By a hint, it is denied as at some time since it stopped.
                            let after = |naive: &Naive| naive.after(reading, |time| naive.fits(time, cost));
                            prop_assert!(history[since..].iter().any(|naive| after(naive) == wait), "{}", wait);
                            prop_assert!(wait > 0);
                        }
                    }
                }
                Op::Read(which) => {
                    if words.is_empty() { continue }
                    let (key, word) = words[which.index(words.len())];
                    let mut left = PerQuota::NONE;
                    let answer = plan.propose(Seen { cell: key.cell(), word, now }, Request::acquire(1).peek(), Some(&mut left));
                    if answer != Proposal::Lost {
                        prop_assert_eq!(left.first(), naive.left(now));
                    }
                    #[cfg(feature = "snapshot")]
                    plan.permits(Seen { cell: key.cell(), word, now });
                    if let Some(receipt) = receipts.last() {
                        // What it would swap in is swapped for no other word.
                        let stamp = u64::try_from(receipt.0).unwrap();
                        if let Some((new, refunded)) = plan.refund(Seen { cell: key.cell(), word, now }, receipt.2, 0, stamp.into()) {
                            prop_assert!(refunded == 0 || key.word.load() == word || !key.word.swap(word, new));
                        }
                    }
                }
            }
            let left = keys[key].look(&plan, now, 1).1;
            prop_assert_eq!(left, naive.left(now));
        }
    }
}

/// The slot before the newest step's has a later step when the thread goes on, and a larger total.
#[test]
fn a_spill_that_is_a_round_of_the_ring_late_writes_no_wrong_total() {
    let plan = Given { limit: 100, steps: 1, resolution: 10 }.plan();
    for steps in 1..=9 {
        let key = Key::new();
        let at = |step: u64| TIME_ZERO + 10 * step;
        for step in 1..=3 {
            assert!(key.admits(&plan, at(step), 1));
        }
        let word = key.word.load();
        for step in 4..4 + steps {
            assert!(key.admits(&plan, at(step), 7));
        }
        let before = key.remaining(&plan, at(3 + steps));
        assert_eq!(before, 100 - 7);
        assert!(matches!(
            plan.propose(Seen { cell: key.cell(), word, now: at(4) }, Request::acquire(1), None),
            Proposal::Lost | Proposal::Admit { .. }
        ));
        assert_eq!(key.remaining(&plan, at(3 + steps)), before, "{steps} steps later");
        // A lagging clock counts the step before, too.
        assert!(key.admits(&plan, at(4 + steps), 1));
        assert_eq!(key.remaining(&plan, at(0)), 100 - 7 - 1, "{steps} steps later");
    }
}

/// The thread has loaded its word a round ago, and reads the clock when all of the ring has expired.
#[test]
fn a_late_spill_adds_no_total_of_another_round_to_its_step() {
    let plan = Given { limit: 12, steps: 5, resolution: 5 }.plan();
    let (key, at) = (Key::new(), |time: u64| TIME_ZERO + time);
    let spill = |word: Word| {
        let seen = Seen { cell: key.cell(), word, now: at(61) };
        assert!(matches!(plan.propose(seen, Request::acquire(1), None), Proposal::Admit { .. }));
    };
    assert!([5, 6].iter().all(|&time| key.admits(&plan, at(time), 1)));
    let old = key.word.load();
    assert!([30, 31, 42].iter().all(|&time| key.admits(&plan, at(time), 1)));
    // The slot before that of the old word has the last step of all.
    spill(key.word.load());
    assert_eq!(key.remaining(&plan, at(42)), 9);
    spill(old);
    assert_eq!(key.remaining(&plan, at(42)), 9);
}
