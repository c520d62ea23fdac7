//! Claims in every interleaving within a bound of preemptions. A word is a number, and a claim adds
//! one to each of two.

use std::sync::Arc;

use super::*;
use crate::quota::Quota;
use crate::state::arena::Arena;
use crate::state::plan::Plans;
use crate::sync::check_model;

struct Shelf {
    arena: Arc<Arena>,
    claims: Claims,
}

impl<'a> Cells for &'a Shelf {
    type Cell = &'a Cell;

    fn cell(&self, name: CellName) -> Option<&'a Cell> {
        Some(self.arena.cell(name.index as usize))
    }
}

/// Where every word starts.
const START: u128 = 10;

impl Shelf {
    fn new() -> Arc<Self> {
        let shelf = Self {
            arena: Arena::new(0, Arc::new(Plans::new(&[&[Quota::per_second(1)]], 0)), 4, 0),
            claims: Claims::new(),
        };
        assert!((0..3).all(|index| shelf.word(index).swap(Word::NEW, Word::of(START))));
        Arc::new(shelf)
    }

    /// Freezes a word, as a rebuild does, and returns it.
    fn freeze(&self, index: usize) -> Word {
        loop {
            let word = self.word(index).load();
            if word.is_held() {
                self.claims.finish(&self, word);
            } else if word.is_frozen() || self.word(index).swap(word, word.frozen()) {
                return word.frozen();
            }
        }
    }

    fn word(&self, index: usize) -> &crate::state::cell::AtomicWord {
        &self.arena.cell(index).word
    }

    /// A claim, as if the words had been loaded at the start.
    fn claim(&self, one: usize, other: usize) -> bool {
        self.claim_from([one, other], [START; 2])
    }

    fn claim_from(&self, places: [usize; 2], old: [u128; 2]) -> bool {
        let part = |nth: usize| Part {
            name: CellName { shard: 0, arena: 0, index: u32::try_from(places[nth]).unwrap() },
            cell: Some(self.arena.cell(places[nth])),
            old: Word::of(old[nth]),
            new: Word::of(old[nth] + 1),
            life: None,
        };
        let granted = self.claims.claim(&self, &mut [part(0), part(1)]);
        if granted {
            // Who is granted a claim does not see a word of before it.
            assert!((0..2).all(|nth| self.word(places[nth]).load() != Word::of(old[nth])));
        }
        granted
    }

    fn peek(&self, index: usize) -> Word {
        loop {
            let word = self.word(index).load();
            if !word.is_held() {
                return word;
            }
            self.claims.finish(&self, word);
            assert!(self.word(index).load() != word);
        }
    }

    /// A plain request.
    fn swap(&self, index: usize, to: impl Fn(u128) -> u128) {
        loop {
            let word = self.peek(index);
            if self.word(index).swap(word, Word::of(to(word.state()))) {
                return;
            }
        }
    }

    /// What was added to each word. None is held.
    fn sums(&self) -> [u128; 3] {
        core::array::from_fn(|index| {
            let word = self.word(index).load();
            assert!(!word.is_held());
            word.state() - START
        })
    }
}

fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    check_model(&builder, body);
}

fn spawn<T: 'static>(shelf: &Arc<Shelf>, body: impl FnOnce(&Shelf) -> T + 'static) -> loom::thread::JoinHandle<T> {
    let shelf = Arc::clone(shelf);
    loom::thread::spawn(move || body(&shelf))
}

/// One of two claims on the same words is granted, never both, and never none.
#[test]
fn loom_claims_on_the_same_cells() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.claim(0, 1));
        let here = shelf.claim(1, 0);
        assert!(here != other.join().unwrap());
        assert_eq!(shelf.sums(), [1, 1, 0]);
    });
}

/// Of two claims that have one cell in common, one is granted.
#[test]
fn loom_claims_that_cross() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.claim(1, 2));
        let here = shelf.claim(0, 1);
        let other = other.join().unwrap();
        assert!(here != other);
        assert_eq!(shelf.sums(), if here { [1, 1, 0] } else { [0, 1, 1] });
    });
}

/// A plain request beside a claim charges once, and the claim is granted if it comes before.
#[test]
fn loom_claims_beside_a_plain_request() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.swap(1, |state| state + 5));
        let granted = u128::from(shelf.claim(0, 1));
        other.join().unwrap();
        assert_eq!(shelf.sums(), [granted, granted + 5, 0]);
    });
}

/// A word is frozen as a rebuild freezes it, and is never held then.
#[test]
fn loom_claims_beside_a_freeze() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.freeze(1));
        let granted = u128::from(shelf.claim(0, 1));
        assert_eq!(other.join().unwrap(), Word::of(START + granted).frozen());
        assert_eq!(shelf.sums(), [granted, granted, 0]);
    });
}

/// A helper that goes on when the words are again what the claim found installs it once more. That
/// charges nothing.
#[test]
fn loom_claims_a_late_helper_after_a_refund() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.peek(0));
        assert!(shelf.claim(0, 1));
        shelf.swap(1, |state| state - 1);
        other.join().unwrap();
        assert_eq!(shelf.sums(), [1, 0, 0]);
    });
}

#[test]
fn loom_claims_a_late_helper_after_an_abort() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.peek(0));
        assert!(!shelf.claim_from([0, 1], [START, START - 1]));
        assert!(shelf.claim(0, 1));
        other.join().unwrap();
        assert_eq!(shelf.sums(), [1, 1, 0]);
    });
}

/// The next claim does not take the descriptor while a helper reads it.
#[test]
fn loom_claims_a_descriptor_is_used_again() {
    explore(3, || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| shelf.peek(0));
        assert!(shelf.claim(0, 1));
        assert!(shelf.claim_from([0, 1], [START + 1; 2]));
        other.join().unwrap();
        assert_eq!(shelf.sums(), [2, 2, 0]);
    });
}
