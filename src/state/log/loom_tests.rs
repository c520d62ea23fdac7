//! Threads on one log, in every interleaving within a bound of preemptions.
//!
//! No window of the permits that stand holds more than the limit, each denial is explained by live
//! permits that were granted before it, and a refund takes exactly its permit. A debt is no permit
//! that was granted, but counts as one.

use std::sync::{Arc, Mutex};

use super::kit::{Answer, plan};
use super::*;
use crate::state::cell::{AtomicWord, Hint};
use crate::state::request::{Algorithm, CellRef};
use crate::state::sync::Ordering;
use crate::sync::check_model;

const ORIGIN: u64 = 1 << 60;

/// An operation of a thread.
#[derive(Clone, Copy)]
enum Step {
    Request(u32),
    /// Refunds the last permit of this thread.
    Refund,
    /// Charges so many permits, whether they fit or not.
    Owe(u32),
    /// Asks again if a permit is left. No other thread may take it.
    AskForLast,
    /// Asks for the status of a denial by a hint. The limit is one, so both of its waits end with the
    /// only permit.
    Status,
    /// Asks for the wait of a denial by a hint. If the word still stands then, it is the one that the
    /// ring tells.
    Hinted,
    Tick(u64),
}

use Step::{AskForLast, Hinted, Owe, Refund, Request, Status, Tick};

struct Model {
    word: AtomicWord,
    hint: Hint,
    rings: Rings,
    plan: LogPlan<Permits>,
    limit: u32,
    window: u64,
    clock: crate::state::sync::AtomicU64,
    /// (stamp, cost) of the permits that stand.
    granted: Mutex<Vec<(u64, u32)>>,
    /// The same of debts.
    owed: Mutex<Vec<(u64, u32)>>,
    /// The same of all permits, refunded or not.
    ever: Mutex<Vec<(u64, u32)>>,
    /// (reading, cost) of the denials.
    denied: Mutex<Vec<(u64, u32)>>,
}

impl Model {
    fn new(limit: u32, window: u64, has_short_way: bool) -> Self {
        let plan = plan(&[(limit, window)]);
        Self {
            word: AtomicWord::new(),
            hint: Hint::new(),
            rings: Rings::with_room(32),
            plan: if has_short_way { plan } else { plan.without_short_way() },
            limit,
            window,
            clock: crate::state::sync::AtomicU64::new(ORIGIN),
            granted: Mutex::default(),
            owed: Mutex::default(),
            ever: Mutex::default(),
            denied: Mutex::default(),
        }
    }

    fn attempt<T>(&self, mut once: impl FnMut(CellRef<'_>, Word, u64) -> Option<T>) -> T {
        let cell = CellRef { word: &self.word, hint: &self.hint, rings: &self.rings };
        loop {
            let word = cell.word.load();
            match once(cell, word, self.clock.load(Ordering::Acquire)) {
                Some(answer) => return answer,
                None => loom::thread::yield_now(),
            }
        }
    }

    fn run(&self, steps: &[Step]) {
        let mut last = None;
        for &step in steps {
            match step {
                Tick(time) => {
                    self.clock.fetch_add(time, Ordering::AcqRel);
                }
                Request(cost) => last = self.ask(cost).or(last),
                Owe(cost) => {
                    let stamp = self.attempt(|cell, word, now| {
                        let stamp = now.max(Permits::unpack(word).newest);
                        cell.word.swap(word, self.plan.owe(Seen { cell, word, now }, cost)).then_some(stamp)
                    });
                    self.ever.lock().unwrap().push((stamp, cost));
                    self.owed.lock().unwrap().push((stamp, cost));
                }
                AskForLast => {
                    let left = self.attempt(|cell, word, now| self.plan.left(cell, word, now));
                    assert!(left.first().remaining == 0 || self.ask(1).is_some());
                }
                Status => self.attempt(|cell, word, now| {
                    let mut left = crate::decision::PerQuota::NONE;
                    if let Some((wait_ns, _)) = self.plan.denied_by_hint(Seen { cell, word, now }, 1, Some(&mut left)) {
                        assert_eq!((left.first().next_after_ns, left.first().reset_after_ns), (wait_ns, wait_ns));
                    }
                    Some(())
                }),
                Hinted => self.attempt(|cell, word, now| {
                    let hinted = self.plan.denied_by_hint(Seen { cell, word, now }, 1, None);
                    let told = self.plan.seen(cell, word, now, 1)?.0;
                    if let Some((wait_ns, quota)) = hinted {
                        assert_eq!(told, Answer::Denied { wait_ns, quota });
                    }
                    Some(())
                }),
                Refund => {
                    let Some((stamp, cost)) = last.take() else { continue };
                    let refunded = self.attempt(|cell, word, now| self.plan.take_back(cell, word, now, cost, stamp));
                    if refunded > 0 {
                        assert_eq!(refunded, cost);
                        let mut granted = self.granted.lock().unwrap();
                        let at = granted.iter().position(|&permit| permit == (stamp, cost)).unwrap();
                        granted.remove(at);
                    }
                }
            }
        }
    }

    fn ask(&self, cost: u32) -> Option<(u64, u32)> {
        let mut reading = 0;
        let answer = self.attempt(|cell, word, now| {
            reading = now;
            self.plan.decide(cell, word, now, cost, 0)
        });
        match answer {
            Answer::Admitted { stamp, .. } => {
                self.ever.lock().unwrap().push((stamp, cost));
                self.granted.lock().unwrap().push((stamp, cost));
                Some((stamp, cost))
            }
            Answer::Denied { wait_ns, .. } => {
                assert!(wait_ns > 0 && wait_ns <= self.window);
                self.denied.lock().unwrap().push((reading, cost));
                None
            }
        }
    }

    /// No window holds more than the limit.
    fn check(&self) {
        let granted = self.granted.lock().unwrap();
        for &(from, _) in &*granted {
            let window = granted.iter().filter(|&&(stamp, _)| (from..from + self.window).contains(&stamp));
            let sum: u32 = window.map(|&(_, cost)| cost).sum();
            assert!(sum <= self.limit, "{sum} permits from {from}: {granted:?}");
        }
        // At each denial so many were live that it did not fit.
        for &(reading, cost) in &*self.denied.lock().unwrap() {
            let ever = self.ever.lock().unwrap();
            let live = ever.iter().filter(|&&(stamp, _)| stamp <= reading && stamp + self.window > reading);
            let live: u32 = live.map(|&(_, cost)| cost).sum();
            assert!(live + cost > self.limit, "denied {cost} at {reading}: {ever:?}");
        }
        // And those that stand are what the word and the ring have.
        let cell = CellRef { word: &self.word, hint: &self.hint, rings: &self.rings };
        let now = self.clock.load(Ordering::Acquire);
        let word = cell.word.load();
        let time = now.max(Permits::unpack(word).newest);
        let standing: Vec<_> = granted.iter().chain(&*self.owed.lock().unwrap()).copied().collect();
        let live_at = |time: u64| -> u32 {
            standing.iter().filter(|&&(stamp, _)| stamp + self.window > time).map(|&(_, cost)| cost).sum()
        };
        let live = live_at(time);
        assert_eq!(self.plan.left(cell, word, now).unwrap().first().remaining, self.limit.saturating_sub(live));
        // The next request is decided by them, whatever hint was left.
        drop(granted);
        match self.attempt(|cell, word, now| self.plan.decide(cell, word, now, 1, 0)) {
            Answer::Admitted { .. } => assert!(live < self.limit),
            Answer::Denied { wait_ns, .. } => {
                assert!(live_at(now + wait_ns - 1) >= self.limit, "a wait of {wait_ns} is too long: {standing:?}");
                assert!(live_at(now + wait_ns) < self.limit, "a wait of {wait_ns} is too short: {standing:?}");
            }
        }
    }
}

/// `first` runs before the threads start. Once as requests are decided, and once in the general way
/// alone.
fn explore(limit: u32, window: u64, first: &'static [Step], threads: &'static [&'static [Step]]) {
    for has_short_way in [true, false] {
        explore_one(limit, window, has_short_way, first, threads);
    }
}

fn explore_one(
    limit: u32,
    window: u64,
    has_short_way: bool,
    first: &'static [Step],
    threads: &'static [&'static [Step]],
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    check_model(&builder, move || {
        let model = Arc::new(Model::new(limit, window, has_short_way));
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
        model.check();
    });
}

const ONE: Step = Request(1);
const TICK: Step = Tick(1);

#[test]
fn loom_word_two_grants_of_one_ring() {
    explore(2, 2, &[ONE, TICK, ONE, TICK], &[&[ONE, TICK, ONE], &[ONE, TICK, ONE]]);
}

#[test]
fn loom_word_a_grant_beside_a_larger_one() {
    explore(3, 2, &[ONE, ONE, ONE, Tick(2)], &[&[Request(2), TICK, ONE], &[ONE, TICK, ONE]]);
}

#[test]
fn loom_word_a_late_spill_finds_the_slot_taken() {
    explore(2, 2, &[ONE, TICK, ONE, TICK], &[&[ONE], &[ONE, TICK, ONE, TICK, ONE, ONE]]);
}

#[test]
fn loom_word_a_ring_that_grows_beside_grants() {
    explore(6, 2, &[ONE, ONE, ONE], &[&[ONE, ONE], &[ONE, TICK, ONE]]);
}

#[test]
fn loom_word_a_refund_beside_grants() {
    explore(2, 3, &[ONE], &[&[ONE, Refund, TICK, ONE], &[ONE, TICK, ONE]]);
}

#[test]
fn loom_word_a_denial_leaves_no_hint_that_outlives_a_refund() {
    explore(1, 3, &[], &[&[ONE, Refund, ONE], &[ONE]]);
}

#[test]
fn loom_word_a_refund_that_was_seen_is_not_denied_by_a_hint() {
    explore(1, 3, &[], &[&[ONE, Refund], &[ONE, AskForLast]]);
}

#[test]
fn loom_word_a_hint_beside_grants() {
    explore(1, 1, &[ONE], &[&[ONE, TICK, ONE], &[ONE, TICK, ONE]]);
}

#[test]
fn loom_word_a_status_by_a_hint_beside_grants() {
    explore(1, 1, &[ONE, ONE], &[&[Status, Status], &[TICK, ONE, ONE]]);
}

#[test]
fn loom_word_a_denial_leaves_no_hint_that_is_too_short_for_a_debt() {
    explore(2, 3, &[ONE, TICK, ONE], &[&[ONE, Owe(1), ONE], &[ONE, Hinted]]);
}

#[test]
fn loom_word_a_debt_beside_grants_and_refunds() {
    explore(2, 3, &[ONE], &[&[Owe(2), TICK, ONE], &[ONE, TICK, Refund]]);
}

#[test]
fn loom_word_two_refunds() {
    explore(3, 3, &[ONE], &[&[ONE, Refund, ONE], &[ONE, Refund, ONE]]);
}

#[test]
fn loom_word_a_denial_beside_grants_that_overwrite_its_slot() {
    explore(2, 2, &[ONE, TICK, ONE], &[&[TICK, ONE, TICK, ONE], &[ONE, ONE]]);
}
