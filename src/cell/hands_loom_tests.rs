//! Every interleaving of threads at a ring or a cell that changes hands, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use super::loom_kit::{At, KEY, One, explore};
use super::*;
use crate::quota::Quota;

/// A ring changes hands while a claimant sleeps between its claim and its publication. What the claimant's late swap
/// expects must not be in the ring again, or it would put a stamp of one key into the ring of another; not even if the next
/// owner's clock lags behind, and the next owner has the very stamp that the claimant saw expire.
#[test]
fn loom_a_late_publication_misses_the_rings_next_owner() {
    a_late_publication(1);
}

#[test]
fn loom_a_late_publication_of_several_misses_the_rings_next_owner() {
    a_late_publication(2);
}

fn a_late_publication(cost: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    crate::sync::check_model(&model, move || {
        let cells = Cells::new([Revisions::new(&[Quota::new(8, Duration::from_nanos(10))])].into(), 4);
        let ask = move |cells: &Cells, (cell, life, key), cost, at| {
            let seat = cells.seat_for(cell, life, key).unwrap();
            cells.decide(Ask::Acquire, seat, cost, &At(at)).unwrap()
        };
        let [first, second] = [KEY, Fingerprint::new(3, 4 << 4)].map(|key| {
            let (cell, life) = cells.create(key, 1).unwrap();
            cells.grant(cell, life, &At(0));
            (cell, life, key)
        });
        // A ring of four stamps of zero.
        assert!(ask(&cells, first, 3, 0).is_admitted());
        let cells = Arc::new(cells);
        let worker = Arc::clone(&cells);
        let thread = thread::spawn(move || {
            // Outgrows that ring, which the second key, with its stamp of zero, then grows into.
            assert!(ask(&worker, first, 5, 10).is_admitted());
            // That is still live by this clock. Where the sleeper's claim has been published, it is put off from 10 to 11.
            assert_eq!(ask(&worker, second, 3, 9).remaining(), 4);
        });
        // The sleeper.
        assert!(ask(&cells, first, cost, 10).is_admitted());
        thread.join().unwrap();
        assert_eq!(ask(&cells, second, 2, 11).remaining(), 3, "a stamp of another key");
        assert!(ask(&cells, second, 8, 30).is_admitted(), "denied, and nothing is live");
    });
}

/// The same of a cell whose key is forgotten, and the next key's clock lags.
#[test]
fn loom_a_late_publication_misses_the_cells_next_key() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 20));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            let One { cells, cell, life } = &*worker;
            assert!(cells.forget(*cell, *life, &At(30)));
            assert_eq!(cells.reclaim(*cell, *life, time_of(30), &At(30)), Reclaimed::Gone);
            let next = cells.create(KEY, 1).unwrap();
            assert_eq!(next, (*cell, *life + 1));
            cells.grant(next.0, next.1, &At(10));
            let seat = cells.seat_for(next.0, next.1, KEY).unwrap();
            cells.decide(Ask::Acquire, seat, 1, &At(20)).unwrap().is_admitted()
        });
        // Sees the stamp of 20 expire. The next key has the same one if its clock may show less than this one has shown.
        let _ = one.acquire(1, 30);
        if thread.join().unwrap() {
            let seat = one.cells.seat_for(one.cell, one.life + 1, KEY).unwrap();
            assert!(one.cells.decide(Ask::Acquire, seat, 1, &At(30)).unwrap().is_admitted(), "a stamp of another key");
        }
    });
}

#[test]
fn loom_a_ring_that_was_given_away_is_not_written() {
    explore(|| {
        let one = One::log(8, 1, 0);
        // A ring of four, whose newest stamp is in the word that links it to the next once it is free.
        // And a lap that a link does not look like it was published in.
        assert_eq!((one.acquire(1, 10), one.acquire(2, 11), one.acquire(1, 12)), (1, 2, 1));
        let one = Arc::new(one);
        let worker = Arc::clone(&one);
        // May look at the ring of a cell that still says that it grows, and has grown.
        let thread = thread::spawn(move || worker.remaining(14));
        assert_eq!(one.acquire(1, 13), 1);
        thread.join().unwrap();
        let rings = one.cells.rings[1].get().unwrap();
        assert_eq!((rings.take(), rings.take()), (Some(0), Some(1)), "the list of free rings");
    });
}

/// The next key has the life that the cell had 256 lives ago, as its number says: the laps of those in between are passed over at once.
#[test]
fn loom_a_request_that_slept_through_256_lives_misses_the_next_key() {
    explore(|| {
        let one = Arc::new(One::of(&[Quota::new(2, Duration::from_nanos(10))], 1, 0));
        let sleeper = Arc::clone(&one);
        let sleeper = thread::spawn(move || sleeper.acquire(1, 5));
        let One { cells, cell, life } = &*one;
        assert!(cells.forget(*cell, *life, &At(5)));
        assert_eq!(cells.reclaim(*cell, *life, time_of(5), &At(5)), Reclaimed::Gone);
        let next = Fingerprint::new(3, 4 << 4);
        assert_eq!(cells.create(next, 1), Some((*cell, life + 1)));
        cells.grant(*cell, life + 1, &At(5));
        let word = &cells.cells.block(*cell)[HEAD];
        let head = Head(word.load(Ordering::Acquire));
        let later = Head::new(head.state(), head.epoch(), *life, head.lap() + 256, head.pos());
        word.compare_exchange(head.0, later.0, Ordering::AcqRel, Ordering::Relaxed).unwrap();
        sleeper.join().unwrap();
        let seat = cells.seat_for(*cell, *life, next).unwrap();
        assert_eq!(cells.decide(Ask::Peek, seat, 1, &At(5)).unwrap().remaining(), 1, "the next key was charged");
    });
}
