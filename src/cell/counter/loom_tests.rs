//! Every interleaving of two or three threads at a cell with an account, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, explore_with, race};
use crate::quota::Quota;
use crate::table::Table;

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A bucket that gets one permit every ten nanoseconds and was granted `cost` at time zero.
fn bucket(capacity: u32, cost: u32) -> One {
    One::of(&[Quota::token_bucket(capacity, 1, nanos(10))], cost, 0)
}

#[test]
fn loom_the_last_permits_of_a_bucket_are_granted_once() {
    explore(|| {
        let one = Arc::new(bucket(4, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(1, 5) + worker.acquire(1, 6));
        let granted = one.acquire(1, 5) + one.acquire(1, 6) + thread.join().unwrap();
        assert_eq!(granted, 3);
        assert_eq!([6, 9, 10].map(|at| one.remaining(at)), [0, 0, 1]);
    });
}

#[test]
fn loom_three_open_an_account_after_it_was_idle() {
    explore_with(1, || {
        let one = Arc::new(bucket(1, 1));
        let granted = race(&one, &[(1, 10), (1, 11), (1, 19)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
    });
}

/// A bucket whose account advances as soon as its last permit but `left` is charged.
fn about_to_advance(capacity: u32, left: u64) -> One {
    let one = bucket(capacity, 1);
    // 1,024 permits flow in 10,240 ns, which is the stride. One permit has been charged, and so
    // many more are.
    let more = 1024 + u64::from(capacity) - left - 2;
    one.cells.store.cells.element(one.id).head.fetch_add(more, Ordering::AcqRel);
    one
}

#[test]
fn loom_the_last_permit_before_an_advance_goes_to_one() {
    explore(|| {
        let one = Arc::new(about_to_advance(2, 0));
        assert_eq!(one.remaining(10_245), 1);
        let granted = race(&one, &[(1, 10_245), (1, 10_246)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
        assert_eq!([10_246, 10_249, 10_250, 10_260].map(|at| one.remaining(at)), [0, 0, 1, 2]);
    });
}

#[test]
fn loom_an_advance_is_the_same_in_each_thread() {
    explore(|| {
        let one = Arc::new(about_to_advance(3, 1));
        let worker = Arc::clone(&one);
        // A charge, or, by a clock that lags or runs ahead, help with the advance.
        let thread = thread::spawn(move || (worker.remaining(7), worker.acquire(1, 10_245), worker.remaining(11_000)));
        let two = one.acquire(2, 10_245);
        let (_, granted, _) = thread.join().unwrap();
        assert_eq!(two + granted, if two == 2 { 2 } else { 1 });
        assert_eq!([10_249, 10_250].map(|at| one.remaining(at)), if two == 2 { [0, 1] } else { [1, 2] });
    });
}

#[test]
fn loom_a_cell_with_an_account_is_freed_or_goes_on() {
    for cost in [1, 2] {
        explore(move || {
            let one = Arc::new(bucket(cost, cost));
            let worker = Arc::clone(&one);
            let over = 10 * u64::from(cost);
            let thread =
                thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(over), &At(over)));
            let granted = one.acquire(cost, over);
            match thread.join().unwrap() {
                Freed::Gone => assert_eq!(granted, 0, "a permit of a cell that was freed"),
                live => assert_eq!((granted, live), (cost, Freed::Live(time_of(2 * over)))),
            }
        });
    }
}

#[test]
fn loom_a_cell_with_an_account_is_freed_or_charged() {
    explore(|| {
        let one = Arc::new(bucket(3, 1));
        let worker = Arc::clone(&one);
        let free = |one: &One, at| one.cells.free(one.id, one.incarnation, time_of(at), &At(at));
        let thread = thread::spawn(move || {
            assert_ne!(free(&worker, 9), Freed::Gone, "a moment early");
            [10, 20].map(|at| free(&worker, at))
        });
        // Not over yet by this clock.
        let granted = [one.acquire(1, 9), one.acquire(1, 9)];
        match (thread.join().unwrap(), granted) {
            ([Freed::Gone, Freed::Gone], [0, 0]) => {}
            ([Freed::Live(end), Freed::Gone], [1, 0]) => assert_eq!(end, time_of(20)),
            ([Freed::Live(end), Freed::Live(later)], [1, 1]) => {
                assert!((time_of(20)..=time_of(30)).contains(&end) && later == time_of(30));
            }
            what => panic!("{what:?}"),
        }
    });
}

#[test]
fn loom_a_sweeper_that_slept_backdates_no_account() {
    explore(|| {
        let one = Arc::new(bucket(1, 1));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(5), &At(100)));
        assert_eq!(one.acquire(1, 100), 1);
        assert_eq!([100, 101, 102].map(|at| one.remaining(at)), [0, 0, 0]);
        assert_ne!(thread.join().unwrap(), Freed::Gone);
        assert_eq!(one.acquire(1, 109), 0, "two permits within one interval");
    });
}

/// A sweeper stops after it has read the head, and the rest that it reads is of the cell's next
/// key.
#[test]
fn loom_a_sweeper_that_slept_does_not_take_the_next_key_for_the_last() {
    explore(|| {
        let cells =
            Cells::new([nanos(10), nanos(1000)].map(|long| Versions::new(&[Quota::fixed_window(1, long)])).into(), 4);
        let (id, incarnation) = cells.create(KEY, 1).unwrap();
        cells.grant(id, incarnation, &At(0));
        let cells = Arc::new(cells);
        let worker = Arc::clone(&cells);
        let thread = thread::spawn(move || worker.free(id, incarnation, time_of(10), &At(10)));
        assert_eq!(cells.free(id, incarnation, time_of(10), &At(10)), Freed::Gone);
        let (next, incarnation) = cells.create(KEY.of_plan(1), 1).unwrap();
        cells.grant(next, incarnation, &At(11));
        assert_eq!(thread.join().unwrap(), Freed::Gone, "by what the next key says");
    });
}

#[test]
fn loom_a_denial_is_explained_by_one_account() {
    explore(|| {
        let one = Arc::new(bucket(4, 4));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.ask(Ask::Acquire, 4, 39).unwrap());
        // Two eras on, so that the anchor has the parity of the account that was over.
        let granted = one.acquire(2, 40);
        let wait = thread.join().unwrap().retry_after().map(|wait| wait.as_nanos());
        match wait {
            // The account of 0, or the one of 40. If that was closed and not yet opened, the other
            // was first to open it.
            Some(wait) => assert!((wait == 1 || wait == 21) && granted == 2, "{wait}"),
            None => assert_eq!(granted, 0),
        }
    });
}

#[test]
fn loom_a_denial_at_once_is_explained_by_one_account() {
    explore(|| {
        let one = Arc::new(bucket(4, 4));
        let worker = Arc::clone(&one);
        let fast = move || worker.seat().and_then(|seat| worker.cells.fast_if_open(seat, 4, 39));
        let thread = thread::spawn(fast);
        assert_eq!(one.acquire(2, 40), 2);
        if let Some(decision) = thread.join().unwrap() {
            let wait = decision.retry_after().unwrap().as_nanos();
            assert!(wait == 1 || wait == 21, "{wait}");
        }
    });
}

/// A shared clock that the test sets. A thread that sees a later write reads no less.
struct Shared(Arc<AtomicU64>);

impl Clock for Shared {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// An account does not say when it was charged last: a denial by a reading from before would be
/// true of no moment.
#[test]
fn loom_a_denial_is_of_a_moment_at_which_the_account_was_so() {
    explore(|| {
        let table = Table::new(Versions::new(&[Quota::token_bucket(10, 1, nanos(10))]), 1, 0);
        let admitted = |table: &Table, cost, clock: &Shared| {
            let fast = table.fast_decide(KEY, cost, clock).map(|decision| decision.is_admitted());
            let placed = || table.acquire(KEY, cost, clock);
            fast.unwrap_or_else(|| matches!(placed(), Ok(status) if status.is_admitted()))
        };
        let time = Arc::new(AtomicU64::new(0));
        assert!(admitted(&table, 9, &Shared(Arc::clone(&time))));
        let table = Arc::new(table);
        let (worker, clock) = (Arc::clone(&table), Shared(Arc::clone(&time)));
        let thread = thread::spawn(move || admitted(&worker, 1, &clock));
        // From 0 to 85 a permit is left, and from then on at least three.
        time.store(85, Ordering::Release);
        assert!(admitted(&table, 5, &Shared(time)));
        assert!(thread.join().unwrap(), "denied, and there was a permit at any time");
    });
}

#[test]
fn loom_a_fixed_window_ends_for_all_at_once() {
    for quota in [Quota::fixed_window(1, nanos(10)), Quota::fixed_window(1, nanos(10)).aligned(nanos(0))] {
        explore(move || {
            let one = Arc::new(One::of(&[quota], 1, 0));
            // Denied at 9, unless by then the window that follows is known. Either way one permit
            // is all there is.
            let granted = race(&one, &[(1, 10), (1, 9)]);
            assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
            assert_eq!((one.acquire(1, 19), one.acquire(1, 20)), (0, 1));
        });
    }
}

/// Four in a hundred nanoseconds, all of them granted in the first window.
fn counter() -> One {
    One::of(&[Quota::sliding_counter(4, nanos(100))], 4, 0)
}

#[test]
fn loom_a_counter_goes_on_in_the_next_window_once() {
    explore(|| {
        let one = Arc::new(counter());
        // Half of the four is left.
        let granted = race(&one, &[(2, 150), (2, 151)]);
        assert_eq!(granted.iter().sum::<u32>(), 2, "{granted:?}");
        assert_eq!([151, 174, 175, 199, 200].map(|at| one.remaining(at)), [0, 0, 1, 1, 2]);
    });
}

#[test]
fn loom_a_counter_goes_on_or_is_over() {
    explore(|| {
        let one = Arc::new(counter());
        // At 250 neither window overlaps, unless the one at 150 came first.
        assert_eq!(race(&one, &[(2, 150), (1, 250)]), [2, 1]);
        let remaining = [250, 299, 399].map(|at| one.remaining(at));
        assert!(remaining == [2, 2, 3] || remaining == [1, 1, 3], "{remaining:?}");
    });
}

/// One every ten nanoseconds, with a delay of up to thirty.
fn queue() -> One {
    One::of(&[Quota::leaky_queue(1, nanos(10), nanos(30))], 1, 0)
}

/// When a request that comes now will have its turn.
fn place(one: &One, at: u64) -> Option<u64> {
    let fast = one.seat().and_then(|seat| one.cells.fast_if_open(seat, 1, at));
    let decision = fast.or_else(|| one.ask(Ask::Acquire, 1, at).map(|status| status.decision()))?;
    let admission = decision.into_result().ok()?;
    Some(at + u64::try_from(admission.delay().as_nanos()).unwrap())
}

#[test]
fn loom_no_place_in_a_queue_is_taken_twice() {
    explore(|| {
        let one = Arc::new(queue());
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || [place(&worker, 5), place(&worker, 6)]);
        let mine = [place(&one, 5), place(&one, 6)];
        let mut places = [mine, thread.join().unwrap()].concat();
        places.sort_unstable();
        assert_eq!(places, [None, Some(10), Some(20), Some(30)]);
    });
}

#[test]
fn loom_no_place_in_a_queue_that_was_empty_is_taken_twice() {
    explore(|| {
        let one = Arc::new(queue());
        let worker = Arc::clone(&one);
        // The clocks agree: a helper's that lags might have the queue begin before it was joined.
        let thread = thread::spawn(move || [place(&worker, 26), place(&worker, 26)]);
        let first = place(&one, 26);
        let [second, third] = thread.join().unwrap();
        let mut places = [first, second, third, place(&one, 27)];
        places.sort_unstable();
        assert_eq!(places, [Some(26), Some(36), Some(46), Some(56)]);
    });
}
