//! Quantised logs in one thread.

use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::decision::{Left, PerQuota};
use crate::state::cell::{AtomicWord, Hint};
use crate::state::log::LogPlan;
use crate::state::request::{Algorithm, CellRef, Proposal, Request, Seen};

mod against_list;
mod naive;
mod packing;
mod stale;
mod stalled;

/// A quantised log, its window in steps.
#[derive(Clone, Copy, Debug)]
struct Given {
    limit: u32,
    steps: u64,
    resolution: u64,
}

impl Given {
    fn quota(self) -> Quota {
        let window = Duration::from_nanos(self.steps * self.resolution);
        Quota::quantised_log(self.limit, window, Duration::from_nanos(self.resolution))
    }

    fn plan(self) -> LogPlan<Steps> {
        LogPlan::<Steps>::new(&self.quota(), self.steps * self.resolution, self.resolution)
    }
}

/// A key in an arena of its own.
struct Key {
    word: AtomicWord,
    hint: Hint,
    rings: Rings,
}

impl Key {
    fn new() -> Self {
        Self { word: AtomicWord::new(), hint: Hint::new(), rings: Rings::with_room(1 << 10) }
    }

    fn cell(&self) -> CellRef<'_> {
        CellRef { word: &self.word, hint: &self.hint, rings: &self.rings }
    }

    /// One request: the mark of its permits, or its wait. And the permits left.
    fn ask(&self, plan: &LogPlan<Steps>, now: u64, cost: u32) -> (Result<u128, u64>, Left) {
        let (before, mut left) = (self.word.load(), PerQuota::NONE);
        let answer = match plan.propose(
            Seen { cell: self.cell(), word: before, now },
            Request::acquire(cost),
            Some(&mut left),
        ) {
            Proposal::Admit { word, mark, delay_ns } => {
                assert_eq!(delay_ns, 0);
                assert!(self.word.swap(before, word) && word != Word::NEW && word.is_open());
                Ok(mark)
            }
            Proposal::Deny { wait_ns, quota: 0, word: None } => Err(wait_ns),
            other => panic!("{other:?} in one thread"),
        };
        (answer, left.first())
    }

    fn admits(&self, plan: &LogPlan<Steps>, now: u64, cost: u32) -> bool {
        self.ask(plan, now, cost).0.is_ok()
    }

    /// The wait of a request, none if it fits, and the permits left.
    fn look(&self, plan: &LogPlan<Steps>, now: u64, cost: u32) -> (u64, Left) {
        let mut left = PerQuota::NONE;
        match plan.propose(
            Seen { cell: self.cell(), word: self.word.load(), now },
            Request::acquire(cost).peek(),
            Some(&mut left),
        ) {
            Proposal::Admit { delay_ns: 0, .. } => (0, left.first()),
            Proposal::Deny { wait_ns, quota: 0, word: None } => (wait_ns, left.first()),
            other => panic!("{other:?} in one thread"),
        }
    }

    fn remaining(&self, plan: &LogPlan<Steps>, now: u64) -> u32 {
        self.look(plan, now, 0).1.remaining
    }

    fn refund(&self, plan: &LogPlan<Steps>, now: u64, cost: u32, mark: u128) -> u32 {
        let before = self.word.load();
        let (word, refunded) =
            plan.refund(Seen { cell: self.cell(), word: before, now }, cost, 0, mark).expect("no other thread");
        assert!(self.word.swap(before, word));
        assert!(refunded > 0 || word == before);
        refunded
    }

    fn moved(&self, plan: &LogPlan<Steps>, now: u64) -> Self {
        let (word, next) = (self.word.load(), Self::new());
        if word.is_open() {
            assert!(self.word.swap(word, word.frozen()));
        }
        let moved = plan.moved(Seen { cell: self.cell(), word: word.frozen(), now }, plan, &next.rings);
        assert!(next.word.swap(Word::NEW, moved));
        assert!(plan.slots(moved) <= plan.slots(word));
        next
    }
}

#[test]
fn the_permits_of_one_step_take_no_ring() {
    let plan = Given { limit: 9, steps: 10, resolution: 10 }.plan();
    let key = Key::new();
    for now in [5, 10, 111, 115, 300] {
        assert!(key.admits(&plan, TIME_ZERO + now, 3));
    }
    assert_eq!((key.rings.slots(), plan.slots(key.word.load())), (0, 0));
}

#[test]
fn a_busy_key_has_two_slots_more_than_steps_and_no_second_ring_of_them() {
    for steps in [1, 2, 3, 6, 7, 30, 100] {
        let plan = Given { limit: 1 << 20, steps, resolution: 10 }.plan();
        let key = Key::new();
        for step in 0..3 * steps {
            assert!(key.admits(&plan, TIME_ZERO + 10 * step + 1, 1));
        }
        let most = usize::try_from(steps + 2).unwrap().next_power_of_two();
        assert_eq!(plan.slots(key.word.load()), most);
        // Each ring is at least twice as long as the last, but for what lies between two in a page.
        assert!(key.rings.slots() < 3 * most as u64, "{steps} steps take {} slots", key.rings.slots());
    }
}

#[test]
fn a_ring_is_copied_before_its_total_overflows() {
    let given = Given { limit: 1 << 30, steps: 2, resolution: 10 };
    let (plan, key) = (given.plan(), Key::new());
    for round in 0..40 {
        let now = TIME_ZERO + 10 * round;
        // All in the first of three steps, at its end. A lagging clock sees those of two windows.
        let cost = if round % 2 == 0 { 1 << 30 } else { 1 };
        let (answer, _) = key.ask(&plan, now, cost);
        assert_eq!(answer.is_ok(), round % 2 == 0, "round {round}: {answer:?}");
        if round % 2 == 0 {
            assert_eq!(key.remaining(&plan, now + 10), 0);
            assert_eq!(key.remaining(&plan, now + 20), 1 << 30);
        }
    }
    let slots = key.rings.slots();
    assert!(slots >= 40, "{slots} slots: a ring was never copied");
}

#[test]
fn a_denial_leaves_a_hint_until_the_permits_are_free() {
    let plan = Given { limit: 2, steps: 3, resolution: 10 }.plan();
    let key = Key::new();
    assert!(key.admits(&plan, TIME_ZERO + 15, 2) && key.hint.later_than(0).is_none());
    assert!(!key.admits(&plan, TIME_ZERO + 31, 1));
    assert_eq!(key.hint.later_than(TIME_ZERO + 31), Some((TIME_ZERO + 50, 0)));
}

#[test]
#[should_panic(expected = "less than 4 GiB")]
fn a_ring_beyond_the_names_of_the_word_panics() {
    let plan = Given { limit: 9, steps: 3, resolution: 10 }.plan();
    let key = Key::new();
    assert!(key.admits(&plan, TIME_ZERO + 5, 1));
    (0..1 << (29 - 21)).for_each(|_| assert_eq!(key.rings.take(1 << 21) % (1 << 21), 0));
    let _ = key.admits(&plan, TIME_ZERO + 15, 1);
}

#[cfg(feature = "snapshot")]
#[test]
fn an_import_of_all_that_there_can_be_in_one_step_forgets_none() {
    let plan = Given { limit: 1 << 30, steps: 10, resolution: 10 }.plan();
    let (key, now) = (Key::new(), TIME_ZERO + 1000);
    let word = plan.imported(&key.rings, &[(now, 1 << 30), (now, 1 << 30)], now);
    assert!(key.word.swap(Word::NEW, word));
    assert_eq!(key.remaining(&plan, now), 0);
    assert!(!key.admits(&plan, now, 1));
}

#[test]
fn a_key_that_a_lagging_clock_forgets_gets_no_earlier_stamp() {
    let plan = Given { limit: 1, steps: 3, resolution: 10 }.plan();
    let (key, lagging) = (Key::new(), TIME_ZERO + 12);
    let mark = key.ask(&plan, TIME_ZERO + 45, 1).0.unwrap();
    let latest = plan.latest(key.word.load(), lagging);
    let first = Seen { cell: key.cell(), word: Word::NEW, now: lagging };
    let proposal = (&plan as &dyn Algorithm).propose_first(first, latest, Request::acquire(1), None);
    assert!(matches!(proposal, Proposal::Admit { mark: again, .. } if again == mark), "{proposal:?}");
}

/// The word needs a step of 62 bits only if steps are of one nanosecond.
#[test]
fn the_last_time_has_a_step() {
    let plan = Given { limit: 1 << 30, steps: 1 << 14, resolution: 1 }.plan();
    let (key, last) = (Key::new(), (1 << 62) - 1);
    for now in [last - 3, last - 1, last] {
        assert!(key.admits(&plan, now, 1 << 28), "at {now}");
    }
    assert_eq!(key.remaining(&plan, last), 1 << 28);
    assert_eq!(plan.over_at(key.cell(), key.word.load()), last + (1 << 14));
}
