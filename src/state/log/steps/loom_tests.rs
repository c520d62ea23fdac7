//! Threads on one quantised log, in every interleaving within a bound of preemptions.
//!
//! No window of the permits that stand holds more than the limit, each denial is explained by
//! permits that were granted before it, a refund takes exactly its permits, and what the word and
//! the ring say in the end is what stands.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use super::*;
use crate::decision::PerQuota;
use crate::state::cell::{AtomicWord, Hint};
use crate::state::log::LogPlan;
use crate::state::request::{Algorithm, CellRef, Proposal, Seen};
use crate::state::sync::AtomicU64;
use crate::sync::check_model;

const ORIGIN: u64 = 1 << 60;
const RESOLUTION: u64 = 10;

/// An operation of a thread.
#[derive(Clone, Copy)]
enum Op {
    Request(u32),
    /// Refunds the last permits of this thread.
    Refund,
    /// One step of time.
    Tick,
    /// Freezes the word. Whoever meets it moves the key to the next arena.
    Freeze,
}

use Op::{Freeze, Refund, Request, Tick};

struct Arena {
    word: AtomicWord,
    hint: Hint,
    rings: Rings,
}

impl Arena {
    fn new() -> Self {
        Self { word: AtomicWord::new(), hint: Hint::new(), rings: Rings::with_room(32) }
    }

    fn cell(&self) -> CellRef<'_> {
        CellRef { word: &self.word, hint: &self.hint, rings: &self.rings }
    }
}

struct Model {
    arenas: Vec<Arena>,
    plan: LogPlan<Steps>,
    clock: AtomicU64,
    /// The step and the cost of the permits that stand.
    granted: Mutex<Vec<(u64, u32)>>,
    /// The same of all permits, refunded or not.
    ever: Mutex<Vec<(u64, u32)>>,
    /// The reading, the cost and the wait of each denial.
    denied: Mutex<Vec<(u64, u32, u64)>>,
}

impl Model {
    fn new(limit: u32, steps: u64, arenas: usize) -> Self {
        let quota =
            Quota::quantised_log(limit, Duration::from_nanos(steps * RESOLUTION), Duration::from_nanos(RESOLUTION));
        Self {
            arenas: core::iter::repeat_with(Arena::new).take(arenas).collect(),
            plan: LogPlan::<Steps>::new(&quota, steps * RESOLUTION, RESOLUTION),
            clock: AtomicU64::new(ORIGIN),
            granted: Mutex::default(),
            ever: Mutex::default(),
            denied: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// The arena where the key is, and its word, which is open.
    fn find(&self) -> (&Arena, Word) {
        for (at, arena) in self.arenas.iter().enumerate() {
            let word = arena.word.load();
            if !word.is_frozen() {
                return (arena, word);
            }
            let next = &self.arenas[at + 1];
            let moved = self.plan.moved(Seen { cell: arena.cell(), word, now: self.now() }, &self.plan, &next.rings);
            let _ = next.word.swap(Word::NEW, moved);
        }
        panic!("the last arena is not frozen")
    }

    fn run(&self, ops: &[Op]) {
        let mut last = None;
        for &op in ops {
            match op {
                Tick => {
                    self.clock.fetch_add(RESOLUTION, Ordering::AcqRel);
                }
                Request(cost) => last = self.ask(cost).or(last),
                Refund => {
                    if let Some((step, cost)) = last.take() {
                        self.refund(step, cost);
                    }
                }
                Freeze => {
                    let word = &self.arenas[0].word;
                    while !word.load().is_frozen() {
                        let open = word.load();
                        let _ = word.swap(open, open.frozen());
                    }
                }
            }
        }
    }

    /// Returns the step and the cost of the permits.
    fn ask(&self, cost: u32) -> Option<(u64, u32)> {
        loop {
            let (arena, word) = self.find();
            let (now, cell) = (self.now(), arena.cell());
            let seen = Seen { cell, word, now };
            if let Some((wait_ns, _)) = self.plan.denied_by_hint(seen, cost, None) {
                self.denied.lock().unwrap().push((now, cost, wait_ns));
                return None;
            }
            match self.plan.propose(seen, crate::state::request::Request::acquire(cost), None) {
                Proposal::Admit { word: new, mark, .. } if arena.word.swap(word, new) => {
                    let permits = (u64::try_from(mark).unwrap(), cost);
                    self.ever.lock().unwrap().push(permits);
                    self.granted.lock().unwrap().push(permits);
                    return Some(permits);
                }
                Proposal::Deny { wait_ns, .. } => {
                    self.denied.lock().unwrap().push((now, cost, wait_ns));
                    return None;
                }
                Proposal::Admit { .. } | Proposal::Lost => loom::thread::yield_now(),
            }
        }
    }

    fn refund(&self, step: u64, cost: u32) {
        loop {
            let (arena, word) = self.find();
            match self.plan.refund(Seen { cell: arena.cell(), word, now: self.now() }, cost, 0, step.into()) {
                Some((_, 0)) => return,
                Some((new, refunded)) if arena.word.swap(word, new) => {
                    assert_eq!(refunded, cost);
                    let mut granted = self.granted.lock().unwrap();
                    let at = granted.iter().position(|&permits| permits == (step, cost)).unwrap();
                    granted.remove(at);
                    return;
                }
                _ => loom::thread::yield_now(),
            }
        }
    }

    /// The permits of these steps that count at a time.
    fn live(&self, permits: &[(u64, u32)], at: u64) -> u32 {
        let live = permits.iter().filter(|&&(step, _)| at < self.plan.layout.end_of(step + self.plan.window()));
        live.map(|&(_, cost)| cost).sum()
    }

    fn check(&self) {
        let (granted, ever) = (self.granted.lock().unwrap(), self.ever.lock().unwrap());
        let limit = self.plan.bounds[0].limit;
        for &(from, _) in &*granted {
            let window = granted.iter().filter(|&&(step, _)| (from..from + self.plan.window()).contains(&step));
            let sum: u32 = window.map(|&(_, cost)| cost).sum();
            assert!(sum <= limit, "{sum} permits from {from}: {granted:?}");
        }
        // A reading is no earlier than those before its word.
        for &(reading, cost, wait_ns) in &*self.denied.lock().unwrap() {
            let before: Vec<_> =
                ever.iter().copied().filter(|&(step, _)| step <= self.plan.layout.step_of(reading)).collect();
            let live = |at| self.live(&before, at);
            assert!(live(reading) + cost > limit, "denied {cost} at {reading}: {ever:?}");
            let until = reading + wait_ns;
            assert!(live(until - 1) + cost > limit, "denied {cost} at {reading} until {until}: {ever:?}");
            assert!(live(until) < live(until - 1), "denied {cost} at {reading} until {until}: {ever:?}");
        }
        // At each later time the word and the ring have what stands.
        let (arena, word) = self.find();
        for later in 0..=self.plan.window() + 1 {
            let (at, mut left) = (self.now() + later * RESOLUTION, PerQuota::NONE);
            let seen = Seen { cell: arena.cell(), word, now: at };
            let answer =
                self.plan.propose(seen, crate::state::request::Request::acquire(limit).peek(), Some(&mut left));
            assert_ne!(answer, Proposal::Lost);
            let live = self.live(&granted, at);
            assert_eq!(left.first().remaining, limit - live, "{later} steps later: {granted:?}");
            assert_eq!(matches!(answer, Proposal::Admit { .. }), live == 0);
        }
    }
}

fn explore_in(arenas: usize, limit: u32, steps: u64, first: &'static [Op], threads: &'static [&'static [Op]]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    check_model(&builder, move || {
        let model = Arc::new(Model::new(limit, steps, arenas));
        model.run(first);
        let (here, others) = threads.split_first().unwrap();
        let spawned: Vec<_> = others
            .iter()
            .map(|ops| {
                let model = Arc::clone(&model);
                loom::thread::spawn(move || model.run(ops))
            })
            .collect();
        model.run(here);
        spawned.into_iter().for_each(|thread| thread.join().unwrap());
        model.check();
    });
}

/// `first` runs before the threads start.
fn explore(limit: u32, steps: u64, first: &'static [Op], threads: &'static [&'static [Op]]) {
    explore_in(1, limit, steps, first, threads);
}

const ONE: Op = Request(1);

#[test]
fn loom_steps_two_grants_in_one_step() {
    explore(5, 2, &[ONE, Tick, ONE], &[&[ONE, ONE, ONE], &[ONE, ONE, ONE]]);
}

#[test]
fn loom_steps_two_grants_begin_a_step() {
    explore(4, 2, &[ONE, Tick, ONE], &[&[Tick, ONE], &[ONE, Tick, ONE]]);
}

#[test]
fn loom_steps_a_grant_beside_the_begin_of_a_step() {
    explore(4, 2, &[ONE, Tick, ONE, Tick], &[&[ONE, Tick, ONE], &[ONE, ONE]]);
}

#[test]
fn loom_steps_a_ring_that_grows_beside_grants() {
    explore(5, 2, &[ONE], &[&[ONE, Tick, ONE], &[ONE, ONE]]);
}

#[test]
fn loom_steps_a_late_spill_finds_its_slot_taken() {
    const ROUND: &[Op] = &[Tick, ONE, Tick, ONE, Tick, ONE, Tick, ONE, Tick, ONE];
    explore(2, 1, &[ONE, Tick, ONE, Tick], &[&[ONE], ROUND]);
}

#[test]
fn loom_steps_a_denial_beside_grants() {
    explore(2, 2, &[ONE, Tick, ONE], &[&[Tick, ONE, Tick, ONE], &[ONE, ONE]]);
}

#[test]
fn loom_steps_a_denial_beside_a_round_of_the_ring() {
    const ROUND: &[Op] = &[Tick, ONE, Tick, ONE, Tick, ONE, Tick, ONE];
    explore(1, 1, &[ONE, Tick, ONE, Tick, ONE], &[ROUND, &[ONE]]);
}

#[test]
fn loom_steps_a_refund_beside_grants() {
    explore(3, 2, &[ONE, Tick], &[&[ONE, Refund, ONE], &[ONE, Tick, ONE]]);
}

#[test]
fn loom_steps_a_refund_of_a_step_that_is_over() {
    explore(3, 2, &[ONE, Tick], &[&[ONE, Tick, ONE, Refund], &[ONE, Tick, ONE]]);
}

#[test]
fn loom_steps_a_refund_brings_no_word_back() {
    explore(2, 2, &[], &[&[ONE, Refund, ONE], &[ONE, Refund, Tick, ONE]]);
}

#[test]
fn loom_steps_a_grant_beside_a_move() {
    explore_in(2, 3, 2, &[ONE, Tick, ONE], &[&[Freeze, ONE], &[Tick, ONE]]);
}

#[test]
fn loom_steps_a_refund_beside_a_move() {
    explore_in(2, 3, 2, &[ONE, Tick], &[&[ONE, Refund, ONE], &[Freeze, ONE]]);
}
