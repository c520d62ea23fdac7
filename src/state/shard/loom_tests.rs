//! Threads on a shard of two cells that is rebuilt, in every interleaving within a bound of
//! preemptions.
//!
//! No window of a key's permits holds more than the limit, and no permit is lost: the last request
//! of each key is decided by the permits that were granted. Each key with permits has one place.

use std::sync::{Arc, Mutex};

use super::kit::{Answer, World, key, log};
use super::*;
use crate::quota::Quota;
use crate::sync::check_model;
use core::time::Duration;

/// An operation of a thread.
#[derive(Clone, Copy)]
enum Step {
    /// A request of one permit of a key.
    Ask(u64),
    /// A joint claim of one permit of a key.
    Claim(u64),
    /// A look at a key that has so many permits left.
    Left(u64, u32),
    Tick(u64),
    Forget(u64),
    /// A look at a key that has no permits.
    Vacant(u64),
    /// Refunds the last permit of this thread.
    Refund,
    /// Collects an expired key, as a request at the key cap does.
    Collect,
    /// Sets the quota to the one of this number.
    Change(usize),
}

use Step::{Ask, Change, Claim, Collect, Forget, Left, Refund, Tick, Vacant};

/// A write: what a thread reads first is not hidden by what it swaps then.
const START: Step = Tick(0);

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const D: u64 = 4;
const E: u64 = 5;
/// In a shard of three pages it belongs into the last, and the others into the first two.
const LAST: u64 = 8;

struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

struct Model {
    world: World,
    quotas: &'static [Quota],
    clock: Ticks,
    /// (key, stamp) of the permits that stand, but for those that were forgotten.
    granted: Mutex<Vec<(u64, u64)>>,
    /// The requests that found no place.
    refused: Mutex<Vec<u64>>,
}

impl Model {
    fn run(&self, steps: &[Step]) {
        let mut last = None;
        for &step in steps {
            match step {
                Tick(time) => {
                    self.clock.0.fetch_add(time, Ordering::AcqRel);
                }
                Ask(number) => last = self.ask(number).map(|stamp| (number, stamp)).or(last),
                Claim(number) => self.claim(number),
                Left(number, remaining) => assert_eq!(self.world.left(number, &self.clock), Some(remaining)),
                Vacant(number) => assert_eq!(self.world.left(number, &self.clock), None),
                Forget(number) => {
                    let _ = self.world.forget(number, &self.clock);
                }
                Refund => {
                    let Some((number, stamp)) = last.take() else { continue };
                    if self.world.refund(number, 1, stamp, &self.clock) > 0 {
                        let mut granted = self.granted.lock().unwrap();
                        let at = granted.iter().position(|&permit| permit == (number, stamp)).unwrap();
                        granted.remove(at);
                    }
                }
                Collect => {
                    let with = self.world.with(&self.clock);
                    let _ = with.collect(0..64, with.now());
                }
                Change(quota) => self.world.change(&self.quotas[quota..=quota], &self.clock),
            }
        }
    }

    fn is_log(&self) -> bool {
        self.quotas[0] == log(self.quotas[0].limit(), self.quotas[0].window_ns())
    }

    /// The stamp of the permit; that of an account's is zero.
    fn ask(&self, number: u64) -> Option<u64> {
        let answer = if self.is_log() {
            self.world.ask(number, 1, &self.clock)
        } else {
            match self.world.decide(number, 1, &self.clock) {
                Ok(decision) if decision.is_admitted() => Answer::Admitted { stamp: 0 },
                Ok(decision) => Answer::Denied { wait_ns: decision.wait_ns() },
                Err(Full) => Answer::Full,
            }
        };
        match answer {
            Answer::Admitted { stamp } => {
                self.granted.lock().unwrap().push((number, stamp));
                Some(stamp)
            }
            Answer::Denied { wait_ns } => {
                assert!(wait_ns > 0);
                None
            }
            Answer::Full => {
                self.refused.lock().unwrap().push(number);
                None
            }
        }
    }

    fn claim(&self, number: u64) {
        let with = self.world.with(&self.clock);
        let prepared = with.prepare(key(number), super::Request::acquire(1), None).expect("there is a place");
        let Some(prepared) = prepared else { return };
        if self.world.table.shared.claims.claim(&self.world.table.shared, &mut [prepared.change.part(0)]) {
            let stamp = u64::try_from(prepared.charged.mark).unwrap() - crate::state::cell::TIME_ZERO;
            self.granted.lock().unwrap().push((number, stamp));
        }
    }

    /// The permits of a key.
    fn stamps(&self, number: u64) -> Vec<u64> {
        let granted = self.granted.lock().unwrap();
        granted.iter().filter(|permit| permit.0 == number).map(|permit| permit.1).collect()
    }

    /// What holds of every log that was not forgotten, under the last quota.
    fn check(&self, keys: &[u64], last: usize) {
        let (limit, window) = (self.quotas[last].limit(), self.quotas[last].window_ns());
        let most = self.quotas.iter().map(Quota::limit).max().unwrap();
        let now = self.clock.now();
        for &number in keys {
            let stamps = self.stamps(number);
            for &from in &stamps {
                let window = stamps.iter().filter(|&&stamp| (from..from + window).contains(&stamp)).count();
                assert!(window <= most as usize, "{window} permits from {from}: {stamps:?}");
            }
            let live = stamps.iter().filter(|&&stamp| stamp + window > now).count();
            let left = self.world.left(number, &self.clock).unwrap_or(limit);
            assert_eq!(left as usize, (limit as usize).saturating_sub(live), "of {number}, {stamps:?} at {now}");
        }
        self.check_places();
        for &number in keys {
            let stamps = self.stamps(number);
            let live = stamps.iter().filter(|&&stamp| stamp + window > now).count();
            assert_eq!(self.ask(number).is_some(), live < limit as usize, "of {number}, {stamps:?} at {now}");
        }
    }

    /// Each key with permits has one place.
    fn check_places(&self) {
        let with = self.world.with(&self.clock);
        let keys = (A..=LAST).filter(|&number| !with.is_vacant(key(number)));
        assert_eq!(self.world.taken(), keys.count() as u64);
    }
}

/// A model: what happens before the threads start, and what they do.
struct Plot {
    quotas: &'static [Quota],
    cap: usize,
    room: usize,
    preemptions: usize,
    first: &'static [Step],
    threads: &'static [&'static [Step]],
}

fn plot(quotas: &[Quota], first: &'static [Step], threads: &'static [&'static [Step]]) -> Plot {
    Plot { quotas: quotas.to_vec().leak(), cap: 9, room: 0, preemptions: 2, first, threads }
}

impl Plot {
    /// Checks each execution.
    fn explore(self, check: impl Fn(&Model) + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(self.preemptions);
        builder.max_branches = 10_000;
        let Self { quotas, cap, room, first, threads, .. } = self;
        check_model(&builder, move || {
            let model = Arc::new(Model {
                world: World::new(&quotas[..1], cap, room),
                quotas,
                clock: Ticks(AtomicU64::new(0)),
                granted: Mutex::default(),
                refused: Mutex::default(),
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
            check(&model);
        });
    }
}

#[test]
fn loom_shard_a_grant_beside_a_rebuild() {
    plot(&[log(2, 9)], &[Ask(A)], &[&[Ask(B)], &[Ask(A)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_a_denial_beside_a_rebuild() {
    plot(&[log(1, 9)], &[Ask(A)], &[&[Ask(A)], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_long_shard_a_refund_beside_a_rebuild() {
    plot(&[log(2, 9)], &[Ask(A)], &[&[Ask(A), Refund], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_a_joint_claim_beside_a_rebuild() {
    plot(&[log(2, 9)], &[Ask(A)], &[&[Claim(A)], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_two_insertions_of_one_key() {
    plot(&[log(1, 9)], &[], &[&[Ask(A)], &[Ask(A)]]).explore(|model| model.check(&[A], 0));
}

/// The last page is not swept when one thread inserts the key in the successor, while the other is
/// about to insert it here.
#[test]
fn loom_long_shard_two_insertions_of_one_key_in_a_rebuild() {
    let plot = plot(&[log(1, 9)], &[Ask(A), Ask(D)], &[&[Ask(LAST)], &[Ask(E), Ask(LAST)]]);
    Plot { room: 3, preemptions: 1, ..plot }.explore(|model| model.check(&[A, D, E, LAST], 0));
}

#[test]
fn loom_long_shard_a_key_that_expires_beside_a_rebuild() {
    plot(&[log(1, 2)], &[Ask(A), Tick(1)], &[&[Tick(1), Ask(A)], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_a_look_beside_a_rebuild() {
    look_beside_a_rebuild(1);
}

#[test]
fn loom_long_shard_a_look_beside_a_rebuild() {
    look_beside_a_rebuild(2);
}

fn look_beside_a_rebuild(preemptions: usize) {
    let plot = plot(&[log(2, 9)], &[Ask(A)], &[&[Ask(B)], &[Left(A, 1)]]);
    Plot { preemptions, ..plot }.explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_long_shard_a_key_that_was_forgotten_is_not_seen_beside_a_rebuild() {
    plot(&[log(2, 9)], &[Ask(A)], &[&[Ask(B)], &[Forget(A), Vacant(A)]]).explore(|model| {
        model.check(&[B], 0);
        assert_eq!(model.world.left(A, &model.clock), None);
    });
}

#[test]
fn loom_shard_a_second_rebuild_behind_the_first() {
    plot(&[log(1, 9)], &[Ask(A), Ask(B)], &[&[Ask(A)], &[Ask(C)]]).explore(|model| model.check(&[A, B, C], 0));
}

#[test]
fn loom_shard_two_new_keys_and_one_place() {
    let plot = plot(&[log(1, 9)], &[], &[&[START, Ask(A)], &[START, Ask(B)]]);
    Plot { cap: 1, room: 3, ..plot }.explore(|model| {
        assert_eq!(model.granted.lock().unwrap().len(), 1);
        assert_eq!(model.refused.lock().unwrap().len(), 1);
        model.check_places();
    });
}

/// One thread gets the place for the key of both, the other gives its own back.
#[test]
fn loom_shard_one_new_key_and_two_places() {
    let plot = plot(&[log(2, 9)], &[], &[&[Ask(A)], &[Ask(A)]]);
    Plot { cap: 2, ..plot }.explore(|model| {
        model.check(&[A], 0);
        assert!(model.refused.lock().unwrap().is_empty());
    });
}

#[test]
fn loom_shard_a_place_is_given_back_once_by_a_collection_beside_a_rebuild() {
    plot(&[log(1, 2)], &[Ask(A), Tick(2)], &[&[START, Collect], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_a_place_is_given_back_once_by_two_collections() {
    plot(&[log(1, 2)], &[Ask(A), Tick(2)], &[&[START, Collect, Ask(A)], &[START, Collect]])
        .explore(|model| model.check(&[A], 0));
}

#[test]
fn loom_shard_a_collection_beside_a_grant() {
    plot(&[log(1, 2)], &[Ask(A), Tick(2)], &[&[START, Ask(A), START, Ask(A)], &[START, Collect]])
        .explore(|model| model.check(&[A], 0));
}

#[test]
fn loom_shard_a_place_is_given_back_once_by_a_forget_beside_a_rebuild() {
    plot(&[log(1, 2)], &[Ask(A), Tick(2)], &[&[Forget(A)], &[Ask(B)]]).explore(|model| model.check(&[A, B], 0));
}

#[test]
fn loom_shard_a_forget_beside_a_grant() {
    plot(&[log(1, 9)], &[Ask(A)], &[&[Forget(A)], &[Ask(A)]]).explore(|model| {
        // The permit of before is forgotten.
        let live = model.stamps(A).len() - 1;
        assert_eq!(model.world.left(A, &model.clock), (live > 0).then_some(0));
        model.check_places();
    });
}

#[test]
fn loom_shard_two_forgets() {
    plot(&[log(1, 9)], &[Ask(A)], &[&[START, Forget(A)], &[START, Forget(A)]]).explore(Model::check_places);
}

#[test]
fn loom_shard_a_change_of_quotas_beside_a_grant() {
    let quotas = [log(2, 9), log(3, 9)];
    plot(&quotas, &[Ask(A)], &[&[Ask(A)], &[Change(1)]]).explore(|model| model.check(&[A], 1));
}

fn bucket(capacity: u32) -> Quota {
    Quota::token_bucket(capacity, 1, Duration::from_nanos(9))
}

/// What is missing from a bucket is missing from the next, once.
#[test]
fn loom_shard_a_change_of_buckets_beside_a_grant() {
    plot(&[bucket(2), bucket(4)], &[Ask(A)], &[&[Ask(A)], &[Change(1)]]).explore(|model| {
        assert_eq!(model.stamps(A).len(), 2);
        assert_eq!(model.world.left(A, &model.clock), Some(2));
        model.check_places();
    });
}

#[test]
fn loom_long_shard_a_change_of_buckets_beside_a_rebuild() {
    plot(&[bucket(2), bucket(4)], &[Ask(A)], &[&[Ask(B)], &[Change(1)]]).explore(|model| {
        assert_eq!(model.world.left(A, &model.clock), Some(3));
        model.check_places();
    });
}

#[test]
fn loom_shard_grants_of_an_account_beside_a_rebuild() {
    let window = [Quota::fixed_window(2, Duration::from_nanos(9))];
    plot(&window, &[Ask(A)], &[&[START, Ask(A)], &[START, Ask(A), Ask(B)]]).explore(|model| {
        assert_eq!((model.stamps(A).len(), model.stamps(B).len()), (2, 1));
        assert_eq!(model.world.left(A, &model.clock), Some(0));
        model.check_places();
    });
}

/// The word may be the one that the refund saw, in another life. A request of the other thread may
/// finish the refund.
#[test]
fn loom_shard_a_refund_beside_another_life() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    check_model(&builder, || {
        let window = Quota::fixed_window(1, Duration::from_nanos(9));
        let (world, clock) = (World::new(&[window], 9, 3), Ticks(AtomicU64::new(0)));
        let charged = world.charge(A, &clock);
        let both = Arc::new((world, clock));
        let refund = loom::thread::spawn({
            let both = Arc::clone(&both);
            move || both.0.refund_charged(key(A), 1, charged, &both.1)
        });
        let (world, clock) = &*both;
        world.forget(A, clock);
        assert!(world.decide(A, 1, clock).unwrap().is_admitted());
        let _ = world.left(A, clock);
        let _ = refund.join().unwrap();
        assert!(!world.decide(A, 1, clock).unwrap().is_admitted());
    });
}
