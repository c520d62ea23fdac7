//! Every interleaving of two threads at a cell whose key has several quotas, on the production
//! code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, race};
use crate::quota::Quota;

/// So many permits in a hundred nanoseconds and so many in ten, `cost` of which were granted at
/// time zero.
fn both(in_a_hundred: u32, in_ten: u32, cost: u32) -> One {
    One::of(&quotas(in_a_hundred, in_ten), cost, 0)
}

fn quotas(in_a_hundred: u32, in_ten: u32) -> [Quota; 2] {
    [(in_a_hundred, 100), (in_ten, 10)].map(|(limit, window)| Quota::new(limit, Duration::from_nanos(window)))
}

#[test]
fn loom_two_claims_keep_to_the_tighter_quota() {
    explore(|| {
        let one = Arc::new(both(4, 2, 2));
        let granted = race(&one, &[(2, 10), (1, 11)]);
        assert!(granted == [2, 0] || granted == [0, 1], "{granted:?}");
        assert_eq!(one.remaining(11), 2 - granted[0] - granted[1]);
    });
}

#[test]
fn loom_the_last_permit_under_the_tighter_quota_goes_to_one() {
    explore(|| {
        let one = Arc::new(both(4, 2, 2));
        let granted = race(&one, &[(1, 10), (1, 11)]);
        assert_eq!(granted, [1, 1]);
        // The ring is full of stamps that are live in the wide window.
        assert_eq!([20, 21, 99, 100].map(|at| one.remaining(at)), [0, 0, 0, 2]);
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_keeps_to_the_tighter_quota() {
    explore(|| {
        let one = Arc::new(both(4, 1, 1));
        assert_eq!(one.acquire(1, 10), 1);
        let worker = Arc::clone(&one);
        // Finds the claim at 20 unpublished, by a clock at which it would have been refused.
        let thread = thread::spawn(move || worker.remaining(5));
        assert_eq!(one.acquire(1, 20), 1);
        thread.join().unwrap();
        assert_eq!((one.acquire(1, 29), one.acquire(1, 30)), (0, 1));
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_keeps_to_the_tighter_quota_for_several() {
    explore(|| {
        let one = Arc::new(both(8, 3, 3));
        assert_eq!(one.acquire(1, 10), 1);
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.remaining(5));
        // Fits from 10 on, together with the one at 10.
        assert_eq!(one.acquire(2, 14), 2);
        thread.join().unwrap();
        let left = [14, 19, 20, 24].map(|at| one.remaining(at));
        // Stamped 14 by its own clock, or 10 by the other, which is as early as can be.
        assert!(left == [0, 0, 1, 2] || left == [0, 0, 2, 2], "{left:?}");
    });
}

#[test]
fn loom_resizing_keeps_to_the_tighter_quota() {
    explore(|| {
        let one = Arc::new(both(4, 2, 1));
        // The ring of one has to grow for either of them.
        let granted = race(&one, &[(1, 5), (1, 6)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
        assert_eq!((one.acquire(1, 9), one.acquire(1, 10), one.acquire(1, 10)), (0, 1, 0));
        assert_eq!(one.acquire(1, 16), 1);
        assert_eq!((one.acquire(1, 99), one.acquire(1, 100)), (0, 1));
    });
}

/// A resize by a lagging clock: stamps that are live in the shorter window at that reading are live
/// in it at the later stamp.
#[test]
fn loom_resizing_by_a_clock_that_lags_keeps_to_the_tighter_quota() {
    explore(|| {
        let cells = Cells::new([Versions::new(&quotas(4, 2))].into(), 4);
        let [(id, incarnation), other] = [KEY, Fingerprint::new(3, 4 << 4)].map(|key| cells.create(key, 1).unwrap());
        cells.grant(id, incarnation, &At(0));
        cells.grant(other.0, other.1, &At(1000));
        let one = Arc::new(One { cells, id, incarnation });
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || (worker.acquire(1, 5), worker.acquire(1, 5)));
        assert!(one.cells.forget(other.0, other.1, &At(1000)));
        assert_eq!(one.cells.free(other.0, other.1, time_of(1000), &At(1000)), Freed::Gone);
        assert_eq!(one.acquire(2, 6), 0, "one is live in the shorter window, or two are");
        assert_eq!(thread.join().unwrap(), (1, 0));
    });
}

#[test]
fn loom_a_denial_names_the_quota_that_is_in_the_way_for_longest() {
    explore(|| {
        let one = Arc::new(both(4, 2, 2));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.ask(Ask::Acquire, 2, 9).unwrap());
        assert_eq!(one.acquire(1, 10), 1);
        let denial = thread.join().unwrap().decision().into_result().unwrap_err();
        // The tighter one, until the two of 0 have expired or the one of 10 has; or, with three of
        // four live, the wider.
        let told = (denial.retry_after().as_nanos(), denial.quota());
        assert!(told == (1, 1) || told == (91, 0), "{told:?}");
    });
}
