//! Requests that enter and leave, beside a `forget` and a rebuild, in every interleaving within a bound
//! of preemptions.

use std::sync::Arc;

use super::*;
use crate::MockClock;
use crate::quota::Quota;
use crate::state::request::Request;
use crate::state::shard::kit::{World, key};
use crate::state::sync;
use crate::sync::check_model;
use crate::sync::plain::{AtomicU64, Ordering};

const A: u64 = 1;

fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder
}

struct Model {
    world: World,
    clock: MockClock,
}

impl Model {
    fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self { world: World::new(&[Quota::concurrent(limit)], 9, 2), clock: MockClock::new() })
    }

    /// A request enters, as by a table.
    fn enter(&self, number: u64) -> Option<Entry> {
        let (key, with) = (key(number), self.world.with(&self.clock));
        match with.enter(key) {
            Some(Ok(entry)) => return Some(entry),
            Some(Err(_)) => return None,
            None => {}
        }
        let request = Request { enters: true, ..Request::acquire(1) };
        Entry::of(key, self.world.grant(number, request, &self.clock)?.mark)
    }

    fn leave(&self, entry: &Entry) {
        self.world.table.leave(entry, &self.clock);
    }

    fn left(&self, number: u64) -> Option<u32> {
        self.world.left(number, &self.clock)
    }
}

/// With a limit of one, a request sees all that those before it have done.
#[test]
fn loom_enter_at_most_the_limit_are_within() {
    check_model(&bounded(3), || {
        let (model, sum) = (Model::new(1), Arc::new(sync::AtomicU64::new(0)));
        let first = model.enter(A).expect("none is in flight");
        let admitted = Arc::new(AtomicU64::new(0));
        let run = |model: &Model, sum: &sync::AtomicU64, admitted: &AtomicU64| {
            if let Some(entry) = model.enter(A) {
                // Two steps, which no other request comes between.
                sum.store(sum.load(sync::Ordering::Relaxed) + 1, sync::Ordering::Relaxed);
                admitted.fetch_add(1, Ordering::Relaxed);
                model.leave(&entry);
            }
        };
        let threads = [(); 2].map(|()| {
            let (model, sum, admitted) = (Arc::clone(&model), Arc::clone(&sum), Arc::clone(&admitted));
            loom::thread::spawn(move || run(&model, &sum, &admitted))
        });
        model.leave(&first);
        run(&model, &sum, &admitted);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(sum.load(sync::Ordering::Relaxed), admitted.load(Ordering::Relaxed));
        assert_eq!(model.left(A), Some(1));
    });
}

/// The request of a forgotten life leaves, while another enters in the next.
#[test]
fn loom_enter_a_request_leaves_its_own_life() {
    check_model(&bounded(3), || {
        let model = Model::new(2);
        let old = model.enter(A).expect("none is in flight");
        // A write: what a thread reads first is not hidden by what it swaps then.
        let start = Arc::new(sync::AtomicU64::new(0));
        let (other, started) = (Arc::clone(&model), Arc::clone(&start));
        let thread = loom::thread::spawn(move || {
            started.fetch_add(1, sync::Ordering::AcqRel);
            other.world.forget(A, &other.clock);
            [(); 2].map(|()| other.enter(A).expect("at most one is in flight"))
        });
        start.fetch_add(1, sync::Ordering::AcqRel);
        model.leave(&old);
        let new = thread.join().unwrap();
        assert_eq!(model.left(A), Some(0), "the new ones are in flight");
        new.iter().for_each(|entry| model.leave(entry));
        assert_eq!(model.left(A), Some(2));
    });
}

/// New keys fill a shard of two cells, which is rebuilt, while requests enter and leave.
#[test]
fn loom_enter_no_request_is_lost_in_a_rebuild() {
    check_model(&bounded(1), || {
        let model = Model::new(2);
        let first = model.enter(A).expect("none is in flight");
        let other = Arc::clone(&model);
        let thread = loom::thread::spawn(move || [2, 3].map(|number| other.enter(number).expect("it is new")));
        let second = model.enter(A).expect("one is in flight");
        assert!(model.enter(A).is_none());
        model.leave(&first);
        let others = thread.join().unwrap();
        assert_eq!([A, 2, 3].map(|number| model.left(number)), [Some(1); 3]);
        model.leave(&second);
        others.iter().for_each(|entry| model.leave(entry));
        assert_eq!([A, 2, 3].map(|number| model.left(number).unwrap_or(2)), [2; 3]);
    });
}

/// Three requests of a key leave at once: those that lose their swap leave all the same.
#[test]
fn loom_enter_all_that_leave_at_once_have_left() {
    check_model(&bounded(3), || {
        let model = Model::new(3);
        let [first, others @ ..] = [(); 3].map(|()| model.enter(A).expect("there is room"));
        let threads = others.map(|entry| {
            let model = Arc::clone(&model);
            loom::thread::spawn(move || model.leave(&entry))
        });
        model.leave(&first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(model.left(A), Some(3));
    });
}
