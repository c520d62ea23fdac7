//! Every interleaving of two or three threads at a cell whose account is over, on the production
//! code.
//!
//! One permit opens the next account in place of the last, several close that first: so each model
//! is of both.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, race, spawned};
use crate::quota::Quota;

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A bucket that gets so many permits every ten nanoseconds, holds so many times as many, and was
/// granted all at time zero.
fn bucket(cost: u32, times: u32) -> One {
    One::of(&[Quota::token_bucket(times * cost, cost, nanos(10))], times * cost, 0)
}

/// The model with one permit and with two.
fn explore_both(body: impl Fn(u32) + Copy + Sync + Send + 'static) {
    explore(move || body(1));
    explore(move || body(2));
}

#[test]
fn loom_an_account_that_is_charged_is_not_closed() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 2));
        // One at 19, when the account goes on, and one at 20, when it is over unless that one came
        // first.
        let other = spawned(&one, move |one| (one.acquire(cost, 19), one.remaining(19)));
        let granted = one.acquire(cost, 20);
        assert!(one.remaining(20) <= cost);
        assert_eq!((granted, other.join().unwrap().0), (cost, cost));
        let remaining = [20, 30, 40].map(|at| one.remaining(at));
        assert_eq!(remaining, [0, cost, 2 * cost], "a permit was lost, or doubled");
        assert_eq!((one.acquire(cost, 29), one.acquire(cost, 30)), (0, cost));
    });
}

#[test]
fn loom_two_open_an_account_after_it_was_idle() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 2));
        let granted = race(&one, &[(2 * cost, 25), (cost, 27)]);
        assert!(granted == [2 * cost, 0] || granted == [0, cost], "{granted:?}");
        assert_eq!(one.remaining(25), 2 * cost - granted[0] - granted[1]);
    });
}

#[test]
fn loom_two_open_an_account_in_the_same_moment() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 2));
        let other = spawned(&one, move |one| (one.acquire(cost, 20), one.remaining(20)));
        assert_eq!((one.acquire(cost, 20), other.join().unwrap().0), (cost, cost));
        assert_eq!([20, 30, 40].map(|at| one.remaining(at)), [0, cost, 2 * cost]);
    });
}

#[test]
fn loom_one_opens_an_account_and_goes_on_with_it() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 3));
        let other = spawned(&one, move |one| one.acquire(cost, 31));
        assert_eq!((one.acquire(cost, 30), one.acquire(cost, 31), other.join().unwrap()), (cost, cost, cost));
        // It opened at 30 or at 31.
        assert_eq!((one.remaining(31), one.remaining(41)), (0, cost));
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_does_not_open_an_account_early() {
    for times in [1, 2] {
        explore_both(move |cost| {
            let one = Arc::new(bucket(cost, times));
            // Finds the account closed or opened, and not yet published, by a clock at which the
            // one before was not over.
            let helper = spawned(&one, |one| [3, 4].map(|at| one.remaining(at)));
            let over = 10 * u64::from(times);
            assert_eq!(one.acquire(cost, over + 9), cost);
            helper.join().unwrap();
            let all = times * cost;
            assert_eq!((one.acquire(all, over + 9), one.acquire(all, over + 19)), (0, all));
        });
    }
}

/// The same on the slow path.
#[test]
fn loom_a_helper_whose_clock_lags_opens_no_reserved_account_early() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 1));
        let helper = spawned(&one, |one| [3, 4].map(|at| one.remaining(at)));
        assert_eq!(one.reserve(cost, 0, 19).map(|(delay, _)| delay), Some(0));
        helper.join().unwrap();
        assert_eq!((one.acquire(cost, 19), one.acquire(cost, 29)), (0, cost));
    });
}

#[test]
fn loom_a_lagging_clock_opens_an_account_when_the_last_was_over() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 1));
        // The request at 3 is too early, unless the other has closed the account: then it gets the
        // permits of 10.
        let granted = race(&one, &[(cost, 20), (cost, 3)]);
        assert!(granted[0] == cost || granted[1] == cost, "{granted:?}");
        if granted == [cost, cost] {
            assert_eq!(one.acquire(cost, 29), 0, "two at 10 or later, and one more");
        }
        assert_eq!(one.acquire(cost, 19), 0);
    });
}

#[test]
fn loom_a_window_that_is_over_is_replaced_by_one() {
    for (cost, aligned) in [(1, false), (1, true), (2, false), (2, true)] {
        let window = Quota::fixed_window(cost, nanos(10));
        let quota = if aligned { window.aligned(nanos(0)) } else { window };
        explore(move || {
            let one = Arc::new(One::of(&[quota], cost, 0));
            let helper = spawned(&one, |one| [4, 5].map(|at| one.remaining(at)));
            assert_eq!(one.acquire(cost, 10), cost);
            helper.join().unwrap();
            assert_eq!((one.acquire(cost, 19), one.acquire(cost, 20)), (0, cost));
        });
    }
}

#[test]
fn loom_a_counter_that_is_over_is_replaced_by_one() {
    explore_both(|cost| {
        let one = Arc::new(One::of(&[Quota::sliding_counter(4, nanos(100))], 4, 0));
        let helper = spawned(&one, |one| [30, 260].map(|at| one.remaining(at)));
        assert_eq!(one.acquire(cost, 250), cost);
        helper.join().unwrap();
        assert_eq!([250, 300, 350, 400].map(|at| one.remaining(at)), [4 - cost, 4 - cost, 4 - cost.div_ceil(2), 4]);
    });
}

/// A cell changes owner while a thread is stalled between its claim and its publication. The value
/// that this expects in the second word must not return, even if the next key's windows are aligned
/// and its own began with the first key's account.
#[test]
fn loom_a_late_publication_misses_the_next_keys_account() {
    explore_both(|cost| {
        let next_key = Fingerprint::new(3, 4 << 4).of_plan(1);
        let quotas =
            [Quota::token_bucket(cost, cost, nanos(10)), Quota::fixed_window(3, nanos(1000)).aligned(nanos(0))];
        let cells = Cells::new(quotas.map(|quota| Versions::new(&[quota])).into(), 4);
        let (id, incarnation) = cells.create(KEY, cost).unwrap();
        cells.grant(id, incarnation, &At(0));
        let one = Arc::new(One { cells, id, incarnation });
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            let One { cells, id, incarnation } = &*worker;
            assert!(cells.forget(*id, *incarnation, &At(30)));
            assert_eq!(cells.free(*id, *incarnation, time_of(30), &At(30)), Freed::Gone);
            assert_eq!(cells.create(next_key, 1), Some((*id, *incarnation + 1)));
            cells.grant(*id, *incarnation + 1, &At(31));
        });
        // The sleeper opens another account in place of that of 0.
        let _ = one.acquire(cost, 30);
        thread.join().unwrap();
        let seat = one.cells.seat_for(id, incarnation + 1, next_key).unwrap();
        let remaining = |at| one.cells.decide(Ask::Peek, seat, 0, &At(at)).unwrap().remaining();
        assert_eq!(remaining(1001), 3, "the end of another key's account");
    });
}

/// The same for a next key whose clock lags, so that its account might open when the first key's
/// did.
#[test]
fn loom_a_late_publication_misses_the_account_of_a_next_key_that_lags() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            let One { cells, id, incarnation } = &*worker;
            assert!(cells.forget(*id, *incarnation, &At(30)));
            assert_eq!(cells.free(*id, *incarnation, time_of(30), &At(30)), Freed::Gone);
            assert_eq!(cells.create(KEY, cost), Some((*id, *incarnation + 1)));
            cells.grant(*id, *incarnation + 1, &At(0));
            cells.store.cells.element(*id).ring.load(Ordering::Acquire)
        });
        let _ = one.acquire(cost, 30);
        let granted = thread.join().unwrap();
        assert_eq!(
            one.cells.store.cells.element(one.id).ring.load(Ordering::Acquire),
            granted,
            "another key's account"
        );
    });
}

#[test]
fn loom_a_late_publication_misses_a_later_era() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 1));
        // Finds the account that opens at 10 unpublished, and may wake up when that is over and
        // another is open.
        let helper = spawned(&one, |one| one.remaining(31));
        assert_eq!(one.acquire(cost, 10), cost);
        // Denied if the helper was first.
        let _ = one.acquire(cost, 30);
        helper.join().unwrap();
        assert_eq!((one.acquire(cost, 39), one.acquire(cost, 41)), (0, cost));
    });
}

#[test]
fn loom_an_account_is_replaced_or_its_key_is_forgotten() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 1));
        let forgets = spawned(&one, |one| {
            assert!(one.cells.forget(one.id, one.incarnation, &At(12)));
            one.cells.free(one.id, one.incarnation, time_of(12), &At(12))
        });
        let granted = one.acquire(cost, 15);
        assert_eq!(forgets.join().unwrap(), Freed::Gone);
        // The next account begins no earlier than the last possible grant.
        let timestamp_floor = one.cells.store.timestamp_floor();
        assert!(granted == 0 || timestamp_floor >= time_of(12), "{granted} granted");
    });
}

#[test]
fn loom_permits_charged_since_are_refunded() {
    explore_both(|cost| {
        let one = Arc::new(bucket(cost, 2));
        let other = spawned(&one, move |one| {
            let (delay, charge) = one.reserve(cost, 0, 21).unwrap();
            assert_eq!(delay, 0);
            one.refund(charge, cost, 22)
        });
        assert_eq!(one.acquire(cost, 20), cost);
        let given = other.join().unwrap();
        assert!(given == cost || given == 0, "{given}");
        assert_eq!(one.remaining(22), given);
    });
}
