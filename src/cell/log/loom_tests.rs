//! Every interleaving of two or three threads at one cell, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, explore_with, race, spawned};

#[test]
fn loom_claims_after_expiry_admit_one() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        // 10 and 19 lie within one window, so one permit is all there is.
        let granted = race(&one, &[(1, 10), (1, 19)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
        assert_eq!(one.acquire(1, 19), 0);
    });
}

#[test]
fn loom_long_three_claims_for_one_slot() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let granted = race(&one, &[(1, 10), (1, 11), (1, 12)]);
        assert_eq!(granted.iter().sum::<u32>(), 1, "{granted:?}");
    });
}

#[test]
fn loom_a_full_ring_moves_on_slot_by_slot() {
    explore(|| {
        // Both slots in use since 0, the ring at its full length.
        let one = Arc::new(One::log(2, 2, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.acquire(1, 12) + worker.acquire(1, 13));
        let granted = one.acquire(1, 11) + one.acquire(1, 14);
        let granted = granted + thread.join().unwrap();
        // All four requests lie within one window.
        assert_eq!(granted, 2);
        assert_eq!(one.remaining(14), 0);
    });
}

#[test]
fn loom_a_window_later_there_is_room_again() {
    explore(|| {
        let one = Arc::new(One::log(2, 2, 0));
        let worker = Arc::clone(&one);
        // One window after 11 is 21: whichever stamps are chosen, from 24 on everything has
        // expired.
        let thread = thread::spawn(move || worker.acquire(1, 11) + worker.acquire(1, 21));
        let granted = one.acquire(2, 12);
        let granted = granted + thread.join().unwrap();
        assert!((1..=3).contains(&granted), "{granted}");
        let (one, last) = (&one, 40);
        assert_eq!((one.acquire(2, last), one.acquire(1, last + 9)), (2, 0));
        assert_eq!(one.acquire(2, last + 10), 2);
    });
}

#[test]
fn loom_costs_are_granted_whole_or_not_at_all() {
    explore(|| {
        let one = Arc::new(One::log(3, 3, 0));
        let granted = race(&one, &[(2, 10), (2, 11)]);
        assert_eq!(granted.iter().sum::<u32>(), 2, "{granted:?}");
        assert_eq!(one.remaining(11), 1);
        assert_eq!((one.acquire(2, 11), one.acquire(1, 11)), (0, 1));
    });
}

#[test]
fn loom_a_claim_is_published_with_one_stamp_before_the_next() {
    explore(|| {
        let one = Arc::new(One::log(4, 4, 0));
        let granted = race(&one, &[(3, 10), (1, 14)]);
        assert_eq!(granted, [3, 1]);
        // The three expire together, wherever between 10 and 14 their stamp was put; the one at 24
        // at the latest.
        let until_three = one.ask(Ask::Peek, 1, 14).unwrap().retry_after().unwrap();
        let at = 14 + u64::try_from(until_three.as_nanos()).unwrap();
        assert!((20..=24).contains(&at));
        assert!(one.remaining(at - 1) == 0 && one.remaining(at) >= 3 || at == 24);
    });
}

#[test]
fn loom_a_denial_is_explained_by_live_stamps() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.ask(Ask::Acquire, 1, 9).unwrap());
        assert_eq!(one.acquire(1, 10), 1);
        // At 9 the first stamp is live; when a claim at 10 came first, that one is.
        let status = thread.join().unwrap();
        let wait = u64::try_from(status.retry_after().unwrap().as_nanos()).unwrap();
        assert!(wait == 1 || wait == 11, "{wait}");
        assert_eq!((one.acquire(1, 19), one.acquire(1, 20)), (0, 1));
    });
}

#[test]
fn loom_resizing_loses_no_stamp_and_adds_none() {
    explore(|| {
        let one = Arc::new(One::log(4, 1, 0));
        // The ring of one is full: both have to make it grow.
        let granted = race(&one, &[(1, 5), (2, 6)]);
        assert_eq!(granted, [1, 2]);
        assert_eq!(one.remaining(6), 0);
        assert_eq!((one.acquire(1, 9), one.acquire(1, 10)), (0, 1));
        assert_eq!(one.remaining(16), 3);
    });
}

/// A thread sees the cell grow and reads the ring of two resizes later, when the ring parity is the
/// same again and the head has not followed yet. Its offer must not replace that ring: the cell
/// would never open again.
#[test]
fn loom_long_a_ring_that_is_seen_two_growths_later_stays() {
    explore_with(2, || {
        let one = Arc::new(One::log(16, 1, 0));
        one.cells.replace_and_stall(one.seat().unwrap());
        let sleeper = spawned(&one, |one| one.acquire(1, 1));
        // From one slot to four, and from four to eight.
        assert_eq!((one.acquire(1, 1), one.acquire(4, 1)), (1, 4));
        assert_eq!(sleeper.join().unwrap(), 1);
        assert_eq!([1, 10, 11].map(|at| one.remaining(at)), [9, 10, 16]);
    });
}

#[test]
fn loom_resizing_while_another_claims_an_expired_slot() {
    explore(|| {
        let one = Arc::new(One::log(2, 1, 0));
        let [at_nine, at_ten] = race(&one, &[(1, 9), (1, 10)])[..] else { panic!("two requests") };
        // The one at 10 fits whatever came first. Whether the one at 9 fits too depends on whether
        // the permit at 10 is stamped by its own clock or by the other's.
        assert_eq!(at_ten, 1);
        assert_eq!(at_nine + one.acquire(1, 10), 1, "two permits in any window");
        assert_eq!(one.remaining(20), 2);
    });
}

#[test]
fn loom_a_cell_is_freed_or_claimed() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(10), &At(10)));
        let granted = one.acquire(1, 10);
        match thread.join().unwrap() {
            Freed::Gone => assert_eq!(granted, 0, "a permit of a cell that was freed"),
            live => {
                assert_eq!((granted, live), (1, Freed::Live(time_of(20))));
                assert_eq!(one.cells.free(one.id, one.incarnation, time_of(19), &At(19)), live);
            }
        }
    });
}

#[test]
fn loom_a_cell_is_forgotten_while_it_grows() {
    explore(|| {
        let one = Arc::new(One::log(4, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.cells.forget(worker.id, worker.incarnation, &At(1)));
        let _ = one.acquire(1, 1);
        assert!(thread.join().unwrap());
        assert_eq!(one.acquire(1, 1), 0, "a dead cell decides nothing");
        assert_eq!(one.cells.free(one.id, one.incarnation, time_of(1), &At(1)), Freed::Gone);
        // The cell serves its next key as if new.
        let (id, incarnation) = one.cells.create(KEY, 1).unwrap();
        assert_eq!((id, incarnation), (one.id, one.incarnation + 1));
        assert!(!one.cells.forget(id, one.incarnation, &At(1)), "the next key was forgotten in place of the last");
    });
}

#[test]
fn loom_two_claims_keep_stamps_of_their_own() {
    explore(|| {
        // A ring of four, so that the count is a binary search.
        let one = Arc::new(One::log(4, 4, 0));
        let worker = Arc::clone(&one);
        // Helps with whatever it finds unpublished.
        let thread = thread::spawn(move || worker.remaining(18));
        assert_eq!((one.acquire(1, 10), one.acquire(1, 15)), (1, 1));
        thread.join().unwrap();
        assert!(one.remaining(24) <= 3, "the permit granted at 15 expired with the one granted at 10");
        assert_eq!(one.remaining(28), 4);
    });
}

#[test]
fn loom_a_late_helper_leaves_the_next_claim_alone() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        // Finds the claim at 10 unpublished, and may wake up when the slot has been claimed and
        // published once more.
        let thread = thread::spawn(move || worker.remaining(31));
        assert_eq!(one.acquire(1, 10), 1);
        // Denied if the helper stamped the first one.
        let _ = one.acquire(1, 30);
        thread.join().unwrap();
        assert_eq!((one.acquire(1, 39), one.acquire(1, 41)), (0, 1));
    });
}

/// A claimant that comes late leaves the stamp alone that a helper has chosen.
#[test]
fn loom_a_late_claimant_leaves_the_helpers_stamp_alone() {
    // Not by `explore`: there are few interleavings, because the helper does so little.
    loom::model(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let head = one.seat().unwrap().head;
        let helper = spawned(&one, move |one| {
            let cell = one.cells.store.cells.element(one.id);
            // It has seen the slot before: if it looked again, loom would not notice that the
            // claimant looks, too.
            let [before, stamp] = [(0, 0), (14, 1)].map(|(at, lap)| Slot::new(time_of(at), false, lap).0);
            let is_claimed = cell.head.load(Ordering::Acquire) != head.0;
            is_claimed && cell.ring.compare_exchange(before, stamp, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        assert_eq!(one.acquire(1, 10), 1);
        let end = if helper.join().unwrap() { 24 } else { 20 };
        assert_eq!([end - 1, end].map(|at| one.remaining(at)), [0, 1]);
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_does_not_shorten_a_window() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        // Finds the claim at 10 unpublished, by a clock at which the permit before it is still
        // live.
        let thread = thread::spawn(move || worker.remaining(5));
        assert_eq!(one.acquire(1, 10), 1);
        thread.join().unwrap();
        assert_eq!((one.acquire(1, 19), one.acquire(1, 20)), (0, 1));
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_does_not_shorten_a_window_in_a_short_ring() {
    explore(|| {
        // A ring of four, of which the quota says nothing.
        let one = Arc::new(One::log(8, 4, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.remaining(5));
        assert_eq!(one.acquire(1, 10), 1);
        thread.join().unwrap();
        assert_eq!([19, 20].map(|at| one.remaining(at)), [7, 8]);
    });
}

#[test]
fn loom_a_helper_finishes_a_claim_with_the_stamp_that_was_chosen() {
    explore(|| {
        let one = Arc::new(One::log(2, 2, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.remaining(14));
        assert_eq!(one.acquire(2, 10), 2);
        thread.join().unwrap();
        // Both at 10 or both at 14.
        assert_ne!(one.remaining(20), 1, "one request, two stamps");
        assert_eq!(one.remaining(24), 2);
    });
}

#[test]
fn loom_two_helpers_publish_a_claim_with_one_stamp() {
    explore(|| {
        let one = Arc::new(One::log(2, 2, 0));
        // Both slots are claimed by a thread that goes no further.
        let word = &one.cells.store.cells.element(one.id).head;
        let head = Head(word.load(Ordering::Acquire));
        word.store(head.advanced(2, 2).0, Ordering::Release);
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.remaining(15));
        assert_eq!(one.remaining(14), 0);
        assert_eq!(thread.join().unwrap(), 0);
        assert_ne!(one.remaining(24), 1, "one request, two stamps");
        assert_eq!(one.remaining(25), 2);
    });
}

#[test]
fn loom_a_helper_whose_clock_lags_keeps_the_order_of_stamps() {
    explore(|| {
        // A ring of six, so that the count looks at the newest stamp alone.
        let one = Arc::new(One::log(6, 6, 0));
        let worker = Arc::clone(&one);
        // Finds the claim at 15 unpublished, by a clock that shows less than the stamp before it.
        let thread = thread::spawn(move || worker.remaining(12));
        assert_eq!(one.acquire(1, 14), 1);
        let helped = one.remaining(22) == 6;
        assert_eq!(one.acquire(1, 15), 1);
        thread.join().unwrap();
        assert!(helped || one.remaining(23) == 4, "the later permit expired before the earlier one");
    });
}

#[test]
fn loom_a_stamp_that_was_seen_stays() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.ask(Ask::Peek, 1, 14).unwrap().retry_after());
        assert_eq!(one.acquire(1, 10), 1);
        if let Some(wait) = thread.join().unwrap() {
            assert_eq!(one.ask(Ask::Peek, 1, 14).unwrap().retry_after(), Some(wait));
        }
    });
}

#[test]
fn loom_a_peek_is_of_one_head() {
    explore(|| {
        let one = One::log(2, 2, 0);
        assert_eq!((one.acquire(1, 10), one.acquire(1, 15)), (1, 1));
        let one = Arc::new(one);
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.ask(Ask::Peek, 1, 19).unwrap());
        assert_eq!(one.acquire(1, 20), 1);
        // The stamps are 10 and 15, or 15 and 20; or, if the peek helped, 15 and 19 or later.
        let wait = thread.join().unwrap().retry_after().unwrap().as_nanos();
        assert!(wait == 1 || wait == 6, "{wait}");
    });
}

#[test]
fn loom_resizing_in_the_middle_of_a_lap_keeps_the_order_of_stamps() {
    explore_with(1, || {
        let one = One::log(8, 4, 0);
        // The ring of four now holds 10, 10, 0, 0.
        assert_eq!(one.acquire(2, 10), 2);
        let one = Arc::new(one);
        let granted = race(&one, &[(5, 12), (5, 12)]);
        assert_eq!(granted.iter().sum::<u32>(), 5, "two live stamps and five more, of eight");
        assert_eq!((one.remaining(19), one.remaining(20)), (1, 3));
    });
}

#[test]
fn loom_resizing_gives_every_other_ring_back() {
    explore(|| {
        let one = Arc::new(One::log(4, 1, 0));
        race(&one, &[(1, 5), (2, 6)]);
        assert_eq!(one.cells.free(one.id, one.incarnation, time_of(30), &At(30)), Freed::Gone);
        let rings = one.cells.store.slab_of(1);
        let ever = rings.handed_out();
        (0..ever).for_each(|_| assert!(rings.alloc().is_some()));
        assert_eq!(rings.handed_out(), ever, "a ring is lost");
    });
}

#[test]
fn loom_a_sweeper_that_slept_does_not_backdate_a_claim() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let worker = Arc::clone(&one);
        // The sweep began at 5. When it comes to the cell, it may find a claim of 100 unpublished.
        let thread = thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(5), &At(100)));
        assert_eq!(one.acquire(1, 100), 1);
        assert_ne!(thread.join().unwrap(), Freed::Gone);
        assert_eq!(one.acquire(1, 109), 0, "two permits within one window");
    });
}

#[test]
fn loom_a_ring_that_grows_can_be_read() {
    explore(|| {
        let one = Arc::new(One::log(4, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || (worker.remaining(6), worker.acquire(4, 6)));
        assert_eq!(one.acquire(2, 5), 2);
        let (remaining, granted) = thread.join().unwrap();
        assert!(remaining == 3 || remaining == 1, "{remaining}");
        assert_eq!((granted, one.remaining(6)), (0, 1));
    });
}

#[test]
fn loom_a_cell_is_freed_or_grows() {
    explore(|| {
        let one = Arc::new(One::log(4, 1, 0));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || worker.cells.free(worker.id, worker.incarnation, time_of(10), &At(10)));
        let granted = one.acquire(2, 10);
        match thread.join().unwrap() {
            Freed::Gone => assert_eq!(granted, 0, "permits of a cell that was freed"),
            live => assert_eq!((granted, live, one.remaining(10)), (2, Freed::Live(time_of(20)), 2)),
        }
    });
}
