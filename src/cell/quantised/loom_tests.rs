//! Every interleaving of two or three threads at a cell that is counted in steps, on the production
//! code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, explore_with, race};
use crate::quota::Quota;

fn quota(limit: u32, steps: u64) -> Quota {
    Quota::quantised_log(limit, Duration::from_nanos(10 * steps), Duration::from_nanos(10))
}

/// A log of so many steps of ten nanoseconds, granted `cost` at time `at`.
fn log(limit: u32, steps: u64, cost: u32, at: u64) -> One {
    One::of(&[quota(limit, steps)], cost, at)
}

#[test]
fn loom_the_last_permits_of_a_step_are_granted_once() {
    explore(|| {
        let one = Arc::new(log(4, 2, 1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(1, 5) + worker.acquire(1, 6));
        let granted = one.acquire(1, 5) + one.acquire(1, 10) + thread.join().unwrap();
        assert_eq!(granted, 3);
        assert_eq!([10, 29, 30].map(|at| one.remaining(at)), [0, 0, 4]);
    });
}

#[test]
fn loom_two_begin_a_step() {
    explore(|| {
        let one = Arc::new(log(3, 2, 1, 1));
        let granted = race(&one, &[(1, 11), (1, 12)]);
        assert_eq!(granted, [1, 1]);
        assert_eq!([12, 29, 30, 39, 40].map(|at| one.remaining(at)), [0, 0, 1, 1, 3], "a permit was lost, or doubled");
    });
}

#[test]
fn loom_two_begin_a_step_and_one_permit_is_left() {
    explore(|| {
        let one = Arc::new(log(2, 2, 1, 1));
        let granted = race(&one, &[(1, 11), (1, 20)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
        assert_eq!([29, 30, 39, 40].map(|at| one.remaining(at)), [0, 1, 1, 2]);
    });
}

#[test]
fn loom_long_three_begin_a_step() {
    explore_with(1, || {
        let one = Arc::new(log(2, 1, 1, 1));
        let granted = race(&one, &[(1, 11), (1, 12), (1, 20)]);
        // At 20 the first permit is free again; the first request in the step gets the permits left
        // at its own time.
        assert!((1..=2).contains(&granted.iter().sum::<u32>()), "{granted:?}");
        assert_eq!(one.remaining(29), 2 - granted.iter().sum::<u32>());
    });
}

#[test]
fn loom_a_charge_while_a_step_begins_is_kept() {
    explore(|| {
        let one = Arc::new(log(3, 2, 1, 1));
        let granted = race(&one, &[(1, 10), (1, 11)]);
        // The one at 10 belongs to the first step, unless the second has begun by then.
        assert_eq!(granted, [1, 1]);
        let remaining = [20, 29, 30, 40].map(|at| one.remaining(at));
        assert!(remaining == [0, 0, 2, 3] || remaining == [0, 0, 1, 3], "{remaining:?}");
    });
}

#[test]
fn loom_a_claim_and_the_end_of_a_window() {
    explore(|| {
        let one = Arc::new(log(1, 1, 1, 1));
        let granted = race(&one, &[(1, 20), (1, 19)]);
        assert_eq!(granted, [1, 0], "the one at 19 is told of the first step's permit, or of the second's");
        assert_eq!((one.acquire(1, 29), one.acquire(1, 30)), (0, 1));
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_changes_no_step() {
    explore(|| {
        let one = Arc::new(log(3, 1, 1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || (worker.acquire(1, 3), worker.remaining(3)));
        assert_eq!(one.acquire(1, 15), 1);
        let (lagging, left) = thread.join().unwrap();
        assert_eq!((lagging, left <= 1), (1, true));
        // The lagging one is of the first step, or of the second if that had begun.
        let remaining = [19, 20, 29, 30].map(|at| one.remaining(at));
        assert!(remaining == [0, 2, 2, 3] || remaining == [0, 1, 1, 3], "{remaining:?}");
    });
}

/// The first permits of a key, published by the thread that made the cell or by a helper.
#[test]
fn loom_a_new_key_has_one_step() {
    explore(|| {
        let cells = Cells::new([Versions::new(&[quota(3, 1)])].into(), 4);
        let (id, incarnation) = cells.create(KEY, 1).unwrap();
        let one = Arc::new(One { cells, id, incarnation });
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(1, 11));
        assert_eq!(one.acquire(1, 10), 1);
        one.cells.grant(id, incarnation, &At(9));
        assert_eq!(thread.join().unwrap(), 1);
        // The first step ends at 10 or at 20. Of those that follow, one at least is of the second.
        let remaining = [19, 20, 29, 30].map(|at| one.remaining(at));
        assert!([[0, 2, 2, 3], [0, 1, 1, 3], [0, 0, 0, 3]].contains(&remaining), "{remaining:?}");
    });
}

#[test]
fn loom_a_late_publication_misses_the_next_keys_step() {
    explore(|| {
        let cells = Cells::new([Versions::new(&[quota(1, 1)])].into(), 4);
        let (id, incarnation) = cells.create(KEY, 1).unwrap();
        let one = Arc::new(One { cells, id, incarnation });
        let worker = Arc::clone(&one);
        // The sleeper: its clock read 5.
        let thread = thread::spawn(move || worker.cells.grant(id, incarnation, &At(5)));
        let cells = &one.cells;
        assert!(cells.forget(id, incarnation, &At(30)));
        assert_eq!(cells.free(id, incarnation, time_of(30), &At(30)), Freed::Gone);
        assert_eq!(cells.create(KEY, 1), Some((id, incarnation + 1)));
        cells.grant(id, incarnation + 1, &At(31));
        thread.join().unwrap();
        let seat = cells.seat_for(id, incarnation + 1, KEY).unwrap();
        assert_eq!(cells.decide(Ask::Peek, seat, 0, &At(49)).unwrap().remaining(), 0, "the step of another key");
    });
}

#[test]
fn loom_a_cell_with_steps_is_freed_or_goes_on() {
    explore(|| {
        let one = Arc::new(log(1, 1, 1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(20), &At(20)));
        let granted = one.acquire(1, 20);
        match thread.join().unwrap() {
            Freed::Gone => assert_eq!(granted, 0, "a permit of a cell that was freed"),
            live => assert_eq!((granted, live), (1, Freed::Live(time_of(30)))),
        }
    });
}

#[test]
fn loom_a_cell_with_steps_is_forgotten_while_a_step_begins() {
    explore(|| {
        let one = Arc::new(log(2, 2, 1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            assert!(worker.cells.forget(worker.id, worker.incarnation, &At(11)));
            worker.cells.free(worker.id, worker.incarnation, time_of(11), &At(11))
        });
        let _ = one.acquire(1, 11);
        assert_eq!(thread.join().unwrap(), Freed::Gone);
        let One { cells, id, incarnation } = &*one;
        assert_eq!(cells.create(KEY, 1), Some((*id, incarnation + 1)));
        cells.grant(*id, incarnation + 1, &At(11));
        let seat = cells.seat_for(*id, incarnation + 1, KEY).unwrap();
        let remaining = |at| cells.decide(Ask::Peek, seat, 0, &At(at)).unwrap().remaining();
        assert_eq!([11, 39, 40].map(remaining), [1, 1, 2], "what a claim of the last key left");
    });
}

/// A thread that begins a step stalls while another begins it, and then the next: its block is not
/// taken.
#[test]
fn loom_long_a_block_that_comes_late_is_not_taken() {
    explore(|| {
        let one = Arc::new(log(3, 3, 1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(1, 11));
        let granted = one.acquire(1, 12) + one.acquire(1, 21) + thread.join().unwrap();
        assert_eq!(granted, 2);
        assert_eq!([39, 40].map(|at| one.remaining(at)), [0, 1]);
        assert_eq!(one.remaining(60), 3);
    });
}

/// Two steps begin between the loads of the head and of the block, which then has the same ring
/// parity.
#[test]
fn loom_long_a_denial_is_explained_by_one_block() {
    explore(|| {
        let one = Arc::new(log(2, 2, 2, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            let fast = worker.seat().and_then(|seat| worker.cells.fast_if_open(seat, 1, 29));
            fast.or_else(|| worker.ask(Ask::Acquire, 1, 29).map(|status| status.decision())).unwrap()
        });
        assert_eq!([one.acquire(1, 30), one.acquire(1, 31)], [1, 1]);
        let wait = thread.join().unwrap().retry_after().map(|wait| wait.as_nanos());
        // For one of the first step's, or, when the fourth has begun, the third's.
        assert!(wait == Some(1) || wait == Some(21), "{wait:?}");
    });
}

/// Charges two permits, and returns the charge.
fn charge(one: &One, at: u64) -> Charge {
    one.cells.decide_refundable(Ask::Acquire, one.seat().unwrap(), 2, &At(at)).unwrap().1
}

#[test]
fn loom_permits_of_the_newest_step_come_back_once() {
    explore(|| {
        let one = Arc::new(log(4, 2, 1, 1));
        let charge = charge(&one, 5);
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(2, 6));
        assert_eq!(one.acquire(1, 6), 1);
        let back = one.refund(charge, 2, 6);
        let granted = thread.join().unwrap();
        assert_eq!(back, 2);
        assert_eq!([10, 29, 30].map(|at| one.remaining(at)), [2 - granted, 2 - granted, 4]);
    });
}

#[test]
fn loom_long_permits_of_an_older_step_come_back_once() {
    explore(|| {
        let one = Arc::new(log(4, 2, 1, 1));
        let charge = charge(&one, 5);
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(2, 12));
        assert_eq!(one.acquire(1, 11), 1);
        let back = one.refund(charge, 2, 13);
        let granted = thread.join().unwrap();
        assert_eq!(back, 2);
        assert_eq!([20, 29].map(|at| one.remaining(at)), [2 - granted; 2]);
        assert_eq!([30, 40].map(|at| one.remaining(at)), [3 - granted, 4]);
    });
}
