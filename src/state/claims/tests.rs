//! Threads that stop before any of their steps. A word is a number, and a claim adds to some.

use super::*;
use crate::state::sync::Ordering;
use crate::state::sync::stepped_kit::Thread;
use std::thread::scope;

mod in_any_order;
mod packed;

/// What each cell starts with.
const START: u128 = 100;

struct Shelf {
    cells: Vec<Cell>,
    claims: Claims,
}

impl<'a> Cells for &'a Shelf {
    type Cell = &'a Cell;

    fn cell(&self, name: CellName) -> Option<&'a Cell> {
        self.cells.get(name.index as usize)
    }
}

fn name(index: usize) -> CellName {
    CellName { shard: 1, arena: 2, index: u32::try_from(index).unwrap() }
}

impl Shelf {
    fn new(cells: usize) -> Self {
        let cells: Vec<_> = (0..cells).map(|_| Cell::new()).collect();
        assert!(cells.iter().all(|cell| cell.word.swap(Word::NEW, Word::of(START))));
        Self { cells, claims: Claims::new() }
    }

    /// The word of a cell, once no claim has it.
    fn peek(&self, index: usize) -> Word {
        loop {
            let word = self.cells[index].word.load();
            if !word.is_held() {
                return word;
            }
            self.claims.finish(&self, word);
            assert!(self.cells[index].word.load() != word);
        }
    }

    /// A plain request.
    fn add(&self, index: usize, sum: i128) {
        loop {
            let word = self.peek(index);
            if self.cells[index].word.swap(word, plus(word, sum)) {
                return;
            }
        }
    }

    /// Tries a claim once, as of the words that stand.
    fn claim(&self, sums: &[(usize, i128)]) -> bool {
        let loaded: Vec<_> = sums.iter().map(|&(index, _)| self.peek(index)).collect();
        !loaded.iter().any(|word| word.is_frozen()) && self.claim_from(&loaded, sums)
    }

    fn claim_from(&self, old: &[Word], sums: &[(usize, i128)]) -> bool {
        let part = |(&old, &(index, sum)): (&Word, &(usize, i128))| Part {
            name: name(index),
            cell: Some(&self.cells[index]),
            old,
            new: plus(old, sum),
            life: None,
        };
        self.claims.claim(&self, &mut old.iter().zip(sums).map(part).collect::<Vec<_>>())
    }

    /// Freezes a word as a rebuild does.
    fn freeze(&self, index: usize) {
        loop {
            let word = self.peek(index);
            if self.cells[index].word.swap(word, word.frozen()) {
                return;
            }
        }
    }

    /// What was added to each cell. No claim has one.
    fn sums(&self) -> Vec<i128> {
        let sum = |cell: &Cell| {
            let word = cell.word.load();
            assert!(!word.is_held(), "{word:?}");
            i128::try_from(word.state()).unwrap() - i128::try_from(START).unwrap()
        };
        self.cells.iter().map(sum).collect()
    }

    fn descriptors(&self) -> usize {
        (self.claims.bytes() - Claims::new().bytes()) / size_of::<CachePadded<Descriptor>>()
    }
}

fn plus(word: Word, sum: i128) -> Word {
    Word::of(word.state().checked_add_signed(sum).unwrap())
}

/// A thread that has taken so many steps; `None` if it has fewer.
fn stopped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    steps: usize,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Option<Thread<'scope, T>> {
    let mut thread = Thread::spawn(scope, body);
    (0..steps).for_each(|_| {
        thread.step();
    });
    (!thread.has_ended()).then_some(thread)
}

#[test]
fn a_claim_swaps_all_words_or_none() {
    let shelf = Shelf::new(8);
    let all: Vec<_> = (0..8).rev().map(|index| (index, 1 + i128::try_from(index).unwrap())).collect();
    assert!(shelf.claim(&all));
    assert_eq!(shelf.sums(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let loaded: Vec<_> = (0..8).rev().map(|index| shelf.peek(index)).collect();
    shelf.add(4, -3);
    assert!(!shelf.claim_from(&loaded, &all));
    assert_eq!(shelf.sums(), [1, 2, 3, 4, 2, 6, 7, 8]);
    shelf.add(4, 3);
    assert!(shelf.claim_from(&loaded, &all), "it is the same word again");
    assert_eq!(shelf.sums(), [2, 4, 6, 8, 10, 12, 14, 16]);
}

#[test]
fn descriptors_are_used_again() {
    let shelf = Shelf::new(2);
    (0..100).for_each(|_| assert!(shelf.claim(&[(0, 1), (1, 1)])));
    assert_eq!((shelf.descriptors(), shelf.sums()), (1, vec![100, 100]));
}

/// Whatever step a claim has stopped before, plain requests, claims and rebuilds go on, and what
/// they do is right.
#[test]
fn a_claim_that_stops_delays_nobody() {
    for steps in 0.. {
        let shelf = Shelf::new(3);
        let ended = scope(|scope| {
            let Some(thread) = stopped(scope, steps, || shelf.claim(&[(0, 1), (1, 1)])) else { return true };
            shelf.add(0, 10);
            assert!(shelf.claim(&[(1, 100), (2, 100)]) && shelf.claim(&[(1, 100), (0, 100)]));
            shelf.add(1, 10);
            shelf.freeze(1);
            let granted = i128::from(thread.finish());
            assert_eq!(shelf.sums(), [110 + granted, 210 + granted, 100]);
            false
        });
        if ended {
            assert!(steps > 10);
            return;
        }
    }
}

/// A claim that has installed is granted by the next who meets it, if no word was another.
#[test]
fn a_helper_finishes_a_claim() {
    let mut helped = 0;
    for steps in 0.. {
        let shelf = Shelf::new(3);
        let thread = scope(|scope| {
            let thread = stopped(scope, steps, || shelf.claim(&[(0, 1), (1, 1), (2, 1)]))?;
            let held = shelf.cells[0].word.load().is_held();
            shelf.peek(0);
            if held {
                helped += 1;
                assert_eq!(shelf.sums(), [1; 3]);
            }
            assert!(thread.finish());
            Some(())
        });
        if thread.is_none() {
            assert!(helped > 8);
            return;
        }
    }
}

/// A claim stops, a helper of it stops, and both go on late: after the words have returned to what
/// the claim found, and while another claim has them.
#[test]
fn helpers_that_come_late_do_no_harm() {
    let mut runs = 0;
    for steps in 0.. {
        for helping in 0.. {
            let shelf = Shelf::new(2);
            let ended = scope(|scope| {
                let owner = stopped(scope, steps, || shelf.claim(&[(0, 1), (1, 1)]))?;
                let help = || [0, 1].map(|index| shelf.peek(index));
                let Some(helper) = stopped(scope, helping, help) else { return Some(true) };
                let granted = shelf.peek(0) == Word::of(START + 1);
                if granted {
                    shelf.add(0, -1);
                    shelf.add(1, -1);
                }
                assert_eq!(shelf.sums(), [0, 0]);
                let next = stopped(scope, (steps + helping) % 12, || shelf.claim(&[(0, 10), (1, 10)])).unwrap();
                helper.finish();
                shelf.peek(0);
                let owned = owner.finish();
                assert!(owned || !granted);
                shelf.peek(1);
                let next = next.finish();
                assert!(next || owned && !granted);
                let sum = i128::from(owned && !granted) + 10 * i128::from(next);
                assert_eq!(shelf.sums(), [sum, sum]);
                runs += 1;
                Some(false)
            });
            match ended {
                None => {
                    assert!(runs > 50, "{runs}");
                    return;
                }
                Some(true) => break,
                Some(false) => {}
            }
        }
    }
}

/// A claim that has been aborted, whose helper goes on when the words fit again.
#[test]
fn a_helper_of_an_aborted_claim_comes_late() {
    for steps in 0.. {
        let shelf = Shelf::new(3);
        let loaded = [shelf.peek(0), shelf.peek(1), shelf.peek(2)];
        shelf.add(2, 5);
        let sums = [(0, 1), (1, 1), (2, 1)];
        let ended = scope(|scope| {
            // It holds the first word.
            let owner = stopped(scope, 11, || shelf.claim_from(&loaded, &sums)).unwrap();
            assert!(shelf.cells[0].word.load().is_held());
            let Some(helper) = stopped(scope, steps, || shelf.peek(0)) else {
                assert!(!owner.finish());
                return true;
            };
            shelf.peek(0);
            shelf.add(2, -5);
            assert!(!owner.finish(), "it was aborted");
            assert!(shelf.claim(&sums));
            sums.iter().for_each(|&(index, _)| shelf.add(index, -1));
            helper.finish();
            assert_eq!(shelf.sums(), [0; 3]);
            false
        });
        if ended {
            assert!(steps > 10);
            return;
        }
    }
}

/// A claim that meets an aborted one is granted all the same, whatever step it has stopped before.
#[test]
fn a_claim_is_not_aborted_by_one_that_is() {
    for steps in 0.. {
        let shelf = Shelf::new(3);
        let wrong = [Word::of(START), Word::of(START + 1)];
        let ended = scope(|scope| {
            let aborted = stopped(scope, 6, || shelf.claim_from(&wrong, &[(0, 1), (1, 1)])).unwrap();
            assert!(shelf.cells[0].word.load().is_held());
            let Some(next) = stopped(scope, steps, || shelf.claim_from(&[Word::of(START); 2], &[(0, 5), (2, 5)]))
            else {
                return true;
            };
            assert!(!aborted.finish());
            assert!(next.finish());
            assert_eq!(shelf.sums(), [5, 0, 5]);
            false
        });
        if ended {
            assert!(steps > 10);
            return;
        }
    }
}

/// A thread that comes too late for a claim joins no later one of the same descriptor.
#[test]
fn a_word_of_a_claim_that_is_over_finishes_no_other() {
    let shelf = Shelf::new(2);
    let word = |serial| Held { claim: ClaimName { descriptor: 0, serial }, installation: OWN }.pack();
    assert!(shelf.claim(&[(0, 1), (1, 1)]));
    scope(|scope| {
        let owner = stopped(scope, 8, || shelf.claim(&[(0, 1), (1, 1)])).unwrap();
        assert_eq!(shelf.cells[0].word.load(), word(1));
        shelf.claims.finish(&&shelf, word(0));
        assert_eq!(shelf.cells[0].word.load(), word(1), "it is as it was");
        assert!(owner.finish());
        // Serial numbers repeat, in the end. No thread joins a claim that is being written.
        let owner = stopped(scope, 4, || shelf.claim(&[(0, 1), (1, 1)])).unwrap();
        let helper = stopped(scope, 1, || shelf.claims.finish(&&shelf, word(2)));
        assert!(owner.finish());
        drop(helper);
    });
    assert!(shelf.claim(&[(0, 1), (1, 1)]));
    assert_eq!((shelf.descriptors(), shelf.sums()), (1, vec![4, 4]));
}

/// A helper that is about to abort a claim, because it met another word, finds the claim granted.
#[test]
fn a_late_abort_changes_nothing() {
    let mut granted = 0;
    for steps in 0..20 {
        let shelf = Shelf::new(2);
        let loaded = [Word::of(START); 2];
        shelf.add(1, 7);
        scope(|scope| {
            let mut owner = stopped(scope, 6, || shelf.claim_from(&loaded, &[(0, 1), (1, 1)])).unwrap();
            let helper = stopped(scope, steps, || shelf.peek(0));
            shelf.cells[1].word.swap(Word::of(START + 7), Word::of(START)).then_some(()).unwrap();
            // Up to the decision.
            while !shelf.cells[1].word.load().is_held() && owner.step() {}
            (0..3).for_each(|_| {
                owner.step();
            });
            let _ = helper.map(Thread::finish);
            let owned = i128::from(owner.finish());
            shelf.peek(1);
            assert_eq!(shelf.sums(), [owned; 2]);
            granted += owned;
        });
    }
    assert!((1..20).contains(&granted), "{granted}");
}

/// A helper that has stopped keeps its descriptor, and no other.
#[test]
fn a_stopped_thread_keeps_one_descriptor() {
    for steps in 0..40 {
        let shelf = Shelf::new(2);
        scope(|scope| {
            let owner = stopped(scope, 9, || shelf.claim(&[(0, 1), (1, 1)])).unwrap();
            assert!(shelf.cells[0].word.load().is_held());
            let helper = Thread::spawn(scope, || shelf.peek(0));
            let mut helper = Some(helper);
            (0..steps).for_each(|_| {
                helper.as_mut().unwrap().step();
            });
            shelf.peek(0);
            (0..50).for_each(|_| assert!(shelf.claim(&[(0, 1), (1, 1)])));
            assert_eq!(shelf.descriptors(), 2);
            assert!(owner.finish());
            (0..50).for_each(|_| assert!(shelf.claim(&[(0, 1), (1, 1)])));
            helper.take().unwrap().finish();
            (0..50).for_each(|_| assert!(shelf.claim(&[(0, 1), (1, 1)])));
            assert_eq!((shelf.descriptors(), shelf.sums()), (2, vec![151, 151]));
        });
    }
}

#[test]
fn a_claim_on_a_frozen_word_or_an_arena_that_is_gone_is_aborted() {
    for steps in 0..12 {
        let shelf = Shelf::new(2);
        shelf.freeze(1);
        let cell = Cell::new();
        assert!(cell.word.swap(Word::NEW, Word::NEW.frozen()));
        // Helpers find no cell of this name.
        let old = Word::of(START);
        let part = Part { name: name(0), cell: Some(&shelf.cells[0]), old, new: Word::of(1), life: None };
        let gone = Part { name: name(7), cell: Some(&cell), old: Word::NEW, ..part };
        scope(|scope| {
            let owner = stopped(scope, steps, || shelf.claims.claim(&&shelf, &mut [gone, part])).unwrap();
            assert_eq!(shelf.peek(0), Word::of(START));
            assert!(!owner.finish());
            assert!(!shelf.claim_from(&[Word::of(START), Word::of(START)], &[(0, 1), (1, 1)]));
        });
        assert_eq!(shelf.sums(), [0, 0]);
    }
}

/// The owner and the helper see the life that ended before the word was held.
#[test]
fn a_claim_of_an_earlier_life_is_aborted() {
    for steps in 0..12 {
        for ended in [false, true] {
            let shelf = Shelf::new(1);
            let (life, cell) = (Some(shelf.cells[0].hint.life()), Some(&shelf.cells[0]));
            let (old, new) = (Word::of(START), Word::of(START + 1));
            let part = Part { name: name(0), cell, old, new, life };
            if ended {
                shelf.cells[0].hint.end_life();
            }
            scope(|scope| {
                let Some(owner) = stopped(scope, steps, || shelf.claims.claim(&&shelf, &mut [part])) else { return };
                shelf.peek(0);
                assert_eq!(owner.finish(), !ended, "after {steps} steps");
            });
            assert_eq!(shelf.sums(), [i128::from(!ended)], "after {steps} steps");
        }
    }
}
