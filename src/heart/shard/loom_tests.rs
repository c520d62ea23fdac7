//! Threads on a shard of two cells that is rebuilt, in every interleaving within a bound of
//! preemptions.
//!
//! No window of a key's permits holds more than the limit, and no permit is lost: the last request
//! of each key is decided by the permits that were granted.

use std::sync::{Arc, Mutex};

use super::*;
use crate::heart::log::Answer;
use crate::quota::Quota;
use crate::sync::check_model;
use core::time::Duration;

const ORIGIN: u64 = 1 << 60;

/// An operation of a thread.
#[derive(Clone, Copy)]
enum Step {
    /// A request of one permit of a key.
    Ask(u64),
    /// A look at a key that has so many permits left.
    Left(u64, u32),
    Tick(u64),
}

use Step::{Ask, Left, Tick};

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const D: u64 = 4;
const E: u64 = 5;

struct Model {
    shard: Shard,
    plan: LogPlan,
    limit: usize,
    window: u64,
    clock: AtomicU64,
    /// (key, stamp)
    granted: Mutex<Vec<(u64, u64)>>,
}

struct One<'a>(&'a LogPlan);

impl Request for One<'_> {
    type Answer = Answer;

    fn attempt(&self, place: Place<'_>, word: Word, now: u64) -> Attempt<Answer> {
        self.0.decide(place, word, now, 1, 0)
    }
}

/// Spreads small numbers as a fingerprint does.
fn key(number: u64) -> Key {
    Key::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Model {
    fn run(&self, steps: &[Step]) {
        for &step in steps {
            match step {
                Tick(time) => {
                    self.clock.fetch_add(time, Ordering::AcqRel);
                }
                Ask(number) => {
                    let _ = self.ask(number);
                }
                Left(number, remaining) => {
                    let now = self.clock.load(Ordering::Acquire);
                    let left = self.shard.view(key(number), |place, word| self.plan.left(place, word, now));
                    assert_eq!(left.unwrap().first().remaining, remaining);
                }
            }
        }
    }

    fn ask(&self, number: u64) -> bool {
        let clock = || self.clock.load(Ordering::Acquire);
        let answer = self.shard.decide(&self.plan, key(number), &clock, &One(&self.plan));
        let Answer::Admitted { stamp, .. } = answer else { return false };
        self.granted.lock().unwrap().push((number, stamp));
        true
    }

    fn check(&self, keys: &[u64]) {
        let now = self.clock.load(Ordering::Acquire);
        for &number in keys {
            let granted = self.granted.lock().unwrap().clone();
            let stamps: Vec<u64> = granted.iter().filter(|permit| permit.0 == number).map(|permit| permit.1).collect();
            for &from in &stamps {
                let window = stamps.iter().filter(|&&stamp| (from..from + self.window).contains(&stamp)).count();
                assert!(window <= self.limit, "{window} permits from {from}: {stamps:?}");
            }
            let live = stamps.iter().filter(|&&stamp| stamp + self.window > now).count();
            assert_eq!(self.ask(number), live < self.limit, "of {number}, {stamps:?} at {now}");
        }
    }
}

/// Two cells, and two preemptions. `first` runs before the threads start.
fn explore(limit: u32, window: u64, first: &'static [Step], threads: &'static [&'static [Step]]) {
    explore_with(0, 2, limit, window, first, threads);
}

/// With room for so many keys.
fn explore_with(
    room: usize,
    preemptions: usize,
    limit: u32,
    window: u64,
    first: &'static [Step],
    threads: &'static [&'static [Step]],
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    check_model(&builder, move || {
        let model = Arc::new(Model {
            shard: Shard::new(room),
            plan: LogPlan::new(&[Quota::new(limit, Duration::from_nanos(window))]),
            limit: limit as usize,
            window,
            clock: AtomicU64::new(ORIGIN),
            granted: Mutex::default(),
        });
        model.run(first);
        let (here, others) = threads.split_first().unwrap();
        let spawned: Vec<_> = others
            .iter()
            .map(|steps| {
                let model = Arc::clone(&model);
                loom::thread::spawn(move || model.run(steps))
            })
            .collect();
        model.run(here);
        spawned.into_iter().for_each(|thread| thread.join().unwrap());
        model.check(&[A, B, C]);
    });
}

#[test]
fn loom_table_a_claim_beside_a_rebuild() {
    explore(2, 9, &[Ask(A)], &[&[Ask(B)], &[Ask(A)]]);
}

#[test]
fn loom_table_a_denial_beside_a_rebuild() {
    explore(1, 9, &[Ask(A)], &[&[Ask(A)], &[Ask(B)]]);
}

#[test]
fn loom_table_two_insertions_of_one_key() {
    explore(1, 9, &[], &[&[Ask(A)], &[Ask(A)]]);
}

/// `B` belongs into the last of three pages. So its cell is not swept when one thread inserts it in
/// the successor, while the other is about to insert it here.
#[test]
fn loom_table_two_insertions_of_one_key_in_a_rebuild() {
    explore_with(3, 1, 1, 9, &[Ask(C), Ask(D)], &[&[Ask(B)], &[Ask(E), Ask(B)]]);
}

#[test]
fn loom_long_table_a_key_that_expires_beside_a_rebuild() {
    explore(1, 2, &[Ask(A), Tick(1)], &[&[Tick(1), Ask(A)], &[Ask(B)]]);
}

#[test]
fn loom_table_a_look_beside_a_rebuild() {
    explore(2, 9, &[Ask(A)], &[&[Ask(B)], &[Left(A, 1)]]);
}

#[test]
fn loom_table_a_second_rebuild_behind_the_first() {
    explore(1, 9, &[Ask(A), Ask(B)], &[&[Ask(A)], &[Ask(C)]]);
}
