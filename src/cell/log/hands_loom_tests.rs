//! Every interleaving of threads at a ring or a cell that changes hands, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, explore_with, spawned};
use crate::quota::Quota;

/// A ring changes owner while a claimant is stalled between its claim and its publication. The
/// value that it expects must not return to the ring (INV-LATE), or it would write a stamp of one
/// key into the ring of another; even if the next owner's clock lags and it has the very stamp that
/// the claimant saw expire.
#[test]
fn loom_a_late_publication_misses_the_rings_next_owner() {
    a_late_publication(1);
}

#[test]
fn loom_a_late_publication_of_several_misses_the_rings_next_owner() {
    a_late_publication(2);
}

fn a_late_publication(cost: u32) {
    explore_with(2, move || {
        let cells = Cells::new([Versions::new(&[Quota::new(8, Duration::from_nanos(10))])].into(), 4);
        let ask = move |cells: &Cells, (id, incarnation, key), cost, at| {
            let seat = cells.seat_for(id, incarnation, key).unwrap();
            cells.decide(Ask::Acquire, seat, cost, &At(at)).unwrap()
        };
        let [first, second] = [KEY, Fingerprint::new(3, 4 << 4)].map(|key| {
            let (id, incarnation) = cells.create(key, 1).unwrap();
            cells.grant(id, incarnation, &At(0));
            (id, incarnation, key)
        });
        // A ring of four stamps of zero.
        assert!(ask(&cells, first, 3, 0).is_admitted());
        let cells = Arc::new(cells);
        let worker = Arc::clone(&cells);
        let thread = thread::spawn(move || {
            // Outgrows that ring, which the second key, with its stamp of zero, then grows into.
            assert!(ask(&worker, first, 5, 10).is_admitted());
            // That is still live by this clock. Where the sleeper's claim has been published, it is
            // put off from 10 to 11.
            assert_eq!(ask(&worker, second, 3, 9).remaining(), 4);
        });
        // The sleeper.
        assert!(ask(&cells, first, cost, 10).is_admitted());
        thread.join().unwrap();
        assert_eq!(ask(&cells, second, 2, 11).remaining(), 3, "a stamp of another key");
        assert!(ask(&cells, second, 8, 30).is_admitted(), "denied, and nothing is live");
    });
}

/// The next owner copies no stamp, and its clock shows the time that the sleeper expects.
#[test]
fn loom_a_late_publication_misses_a_claim_of_the_rings_next_owner() {
    explore_with(2, || {
        let cells = Cells::new([Versions::new(&[Quota::new(8, Duration::from_nanos(10))])].into(), 4);
        let ask = |cells: &Cells, (id, incarnation, key): Held, cost, at| {
            let seat = cells.seat_for(id, incarnation, key).unwrap();
            cells.decide(Ask::Acquire, seat, cost, &At(at)).unwrap()
        };
        let [first, second] = [(KEY, 10), (OTHER, 0)].map(|(key, at)| {
            let (id, incarnation) = cells.create(key, 1).unwrap();
            cells.grant(id, incarnation, &At(at));
            (id, incarnation, key)
        });
        assert!(ask(&cells, first, 3, 10).is_admitted());
        let cells = Arc::new(cells);
        let worker = Arc::clone(&cells);
        let thread = thread::spawn(move || {
            assert!(ask(&worker, first, 5, 20).is_admitted());
            assert!(ask(&worker, second, 4, 10).is_admitted());
        });
        // The sleeper sees a stamp of 10 expire.
        assert!(ask(&cells, first, 1, 20).is_admitted());
        thread.join().unwrap();
        let granted = [(2, 31), (1, 32)].map(|(cost, at)| ask(&cells, second, cost, at).remaining());
        assert_eq!(granted, [6, 5], "a stamp of another key");
    });
}

/// The same for a cell whose key is forgotten, with a lagging clock of the next key.
#[test]
fn loom_a_late_publication_misses_the_cells_next_key() {
    explore(|| {
        let one = Arc::new(One::log(1, 1, 20));
        let worker = Arc::clone(&one);
        let thread = thread::spawn(move || {
            let One { cells, id, incarnation } = &*worker;
            assert!(cells.forget(*id, *incarnation, &At(30)));
            assert_eq!(cells.free(*id, *incarnation, time_of(30), &At(30)), Freed::Gone);
            let next = cells.create(KEY, 1).unwrap();
            assert_eq!(next, (*id, *incarnation + 1));
            cells.grant(next.0, next.1, &At(10));
            let seat = cells.seat_for(next.0, next.1, KEY).unwrap();
            cells.decide(Ask::Acquire, seat, 1, &At(20)).unwrap().is_admitted()
        });
        // Sees the stamp of 20 expire. The next key has the same one if its clock may show less
        // than this one has shown.
        let _ = one.acquire(1, 30);
        if thread.join().unwrap() {
            let seat = one.cells.seat_for(one.id, one.incarnation + 1, KEY).unwrap();
            assert!(one.cells.decide(Ask::Acquire, seat, 1, &At(30)).unwrap().is_admitted(), "a stamp of another key");
        }
    });
}

/// A thread is about to forget a key whose cell goes to another.
#[test]
fn loom_the_cells_next_key_is_not_forgotten() {
    // Not by `explore`: there are few interleavings.
    loom::model(|| {
        let one = Arc::new(One::log(1, 1, 0));
        let late = spawned(&one, |one| one.cells.forget(one.id, one.incarnation, &At(10)));
        assert_eq!(one.cells.free(one.id, one.incarnation, time_of(10), &At(10)), Freed::Gone);
        let (id, incarnation) = one.cells.create(OTHER, 1).unwrap();
        assert_eq!((id, incarnation), (one.id, one.incarnation + 1));
        one.cells.grant(id, incarnation, &At(10));
        late.join().unwrap();
        assert_eq!(one.cells.free(id, incarnation, time_of(10), &At(10)), Freed::Live(time_of(20)));
    });
}

#[test]
fn loom_a_ring_that_was_given_away_is_not_written() {
    explore(|| {
        let one = One::log(8, 1, 0);
        // A ring of four, whose newest stamp is in the word that links it to the next once it is
        // free. And a lap that a link does not look like it was published in.
        assert_eq!((one.acquire(1, 10), one.acquire(2, 11), one.acquire(1, 12)), (1, 2, 1));
        let one = Arc::new(one);
        let worker = Arc::clone(&one);
        // May look at the ring of a cell that still says that it grows, and has grown.
        let thread = thread::spawn(move || worker.remaining(14));
        assert_eq!(one.acquire(1, 13), 1);
        thread.join().unwrap();
        let rings = one.cells.store.slab_of(1);
        assert_eq!((rings.alloc(), rings.alloc()), (Some(0), Some(1)), "the list of free rings");
    });
}

/// A thread finds a cell resizing, and reads the ring after it was given away. There is a link to
/// the next free ring in its first slot, which looks like a stamp of the far future.
fn a_cell_whose_ring_is_given_away(finds: impl Fn(&One) + Copy + Send + Sync + 'static) {
    explore_with(2, move || {
        let one = One::log(8, 1, 0);
        // A ring of four, whose newest stamp will be in the word of the link, in a lap that a link
        // looks like it was published in.
        assert_eq!((one.acquire(2, 1), one.acquire(1, 2)), (2, 1));
        let one = Arc::new(one);
        let late = spawned(&one, finds);
        assert_eq!(one.acquire(1, 3), 1);
        late.join().unwrap();
        assert!(one.cells.store.timestamp_floor() <= time_of(3), "no clock has shown more");
    });
}

#[test]
fn loom_the_floor_is_not_raised_by_a_ring_that_was_given_away() {
    a_cell_whose_ring_is_given_away(|one| assert_eq!(one.acquire(1, 3), 1));
}

#[test]
fn loom_a_sweep_notes_no_end_of_a_ring_that_was_given_away() {
    a_cell_whose_ring_is_given_away(|one| {
        let freed = one.cells.free(one.id, one.incarnation, time_of(3), &At(3));
        assert!([12, 13].map(|end| Freed::Live(time_of(end))).contains(&freed), "{freed:?}");
    });
}

#[test]
fn loom_a_ring_that_was_given_away_does_not_say_when_a_cell_is_idle() {
    a_cell_whose_ring_is_given_away(|one| {
        let end = one.cells.idle_from(one.id, time_of(3)).unwrap().1;
        assert!(end <= time_of(13), "{end}");
    });
}

/// The next key has the incarnation of 256 before, by its number: the laps in between are skipped
/// at once.
#[test]
fn loom_a_request_that_slept_through_256_incarnations_misses_the_next_key() {
    explore(|| {
        let one = Arc::new(One::of(&[Quota::new(2, Duration::from_nanos(10))], 1, 0));
        let sleeper = Arc::clone(&one);
        let sleeper = thread::spawn(move || sleeper.acquire(1, 5));
        let One { cells, id, incarnation } = &*one;
        assert!(cells.forget(*id, *incarnation, &At(5)));
        assert_eq!(cells.free(*id, *incarnation, time_of(5), &At(5)), Freed::Gone);
        let next = Fingerprint::new(3, 4 << 4);
        assert_eq!(cells.create(next, 1), Some((*id, incarnation + 1)));
        cells.grant(*id, incarnation + 1, &At(5));
        let word = &cells.store.cells.element(*id).head;
        let head = Head(word.load(Ordering::Acquire));
        let later = Head::new(head.state(), head.ring_parity(), *incarnation, head.lap() + 256, head.pos());
        word.compare_exchange(head.0, later.0, Ordering::AcqRel, Ordering::Relaxed).unwrap();
        sleeper.join().unwrap();
        let seat = cells.seat_for(*id, *incarnation, next).unwrap();
        assert_eq!(cells.decide(Ask::Peek, seat, 1, &At(5)).unwrap().remaining(), 1, "the next key was charged");
    });
}

/// A key's cell.
type Held = (u32, u64, Fingerprint);

/// The key of another cell.
const OTHER: Fingerprint = Fingerprint::new(3, 4 << 4);

/// Two cells that share pools of rings, each under a quota of so many permits in ten nanoseconds
/// and with one permit of time zero.
fn two_cells(limits: [u32; 2]) -> (Cells, [Held; 2]) {
    let plans = limits.map(|limit| Versions::new(&[Quota::new(limit, Duration::from_nanos(10))]));
    let cells = Cells::together(plans.into(), 4);
    let held = [KEY, OTHER.in_dimension(1)].map(|key| {
        let (id, incarnation) = cells.create(key, 1).unwrap();
        cells.grant(id, incarnation, &At(0));
        (id, incarnation, key)
    });
    (cells, held)
}

/// Acquires permits that are left, and says how many are left then.
fn acquire(cells: &Cells, (id, incarnation, key): Held, cost: u32, clock: &impl Clock) -> u32 {
    let status = cells.decide(Ask::Acquire, cells.seat_for(id, incarnation, key).unwrap(), cost, clock).unwrap();
    assert!(status.is_admitted());
    status.remaining()
}

fn remaining(cells: &Cells, (id, incarnation, key): Held, at: u64) -> u32 {
    cells.decide(Ask::Peek, cells.seat_for(id, incarnation, key).unwrap(), 0, &At(at)).unwrap().remaining()
}

/// A claimant that has claimed one permit and sleeps before it publishes the stamp.
struct Sleeper {
    ring: (u32, RingRef),
    index: usize,
    expected: Slot,
    stamp: Slot,
}

impl Sleeper {
    fn claims(cells: &Cells, (id, ..): Held, at: u64) -> Self {
        let cell = cells.store.cells.element(id);
        let head = cell.head();
        let reference = cell.reference();
        let ring = cells.store.ring(cell, reference);
        let (index, expected) = (head.pos(), ring.load(head.pos()));
        let next = head.advanced(1, ring.len());
        CellAt { cell, head }.claim(next).unwrap();
        Self { ring: (id, reference), index, expected, stamp: Slot::new(time_of(at), false, head.lap()) }
    }

    /// Publishes the stamp as a claim does. Says whether that changed anything.
    fn wakes(&self, cells: &Cells) -> bool {
        let slot = cells.store.ring(cells.store.cells.element(self.ring.0), self.ring.1).slot(self.index);
        slot.compare_exchange(self.expected.0, self.stamp.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

/// The next owner reads the timestamp floor while the ring is being freed.
#[test]
fn loom_a_late_publication_misses_a_claimant_that_takes_the_ring() {
    a_late_publication_misses_the_next_owner(|cells, first| {
        acquire(cells, first, 5, &At(10));
    });
}

/// The same where a claim on several cells has replaced the ring.
#[test]
fn loom_a_late_publication_misses_the_owner_after_a_joint_claim() {
    a_late_publication_misses_the_next_owner(|cells, (id, incarnation, key)| {
        let claims = || match cells.prepare(cells.seat_for(id, incarnation, key).unwrap(), 5, &At(10), None) {
            Some((part, _)) => cells.claim_together([part].iter()),
            None => false,
        };
        // The first attempt publishes the stalled claim.
        assert!(claims() || claims());
    });
}

fn a_late_publication_misses_the_next_owner(outgrows: fn(&Cells, Held)) {
    explore_with(2, move || {
        let (cells, [first, second]) = two_cells([8, 8]);
        // A ring of four stamps of zero.
        acquire(&cells, first, 3, &At(0));
        let sleeper = Sleeper::claims(&cells, first, 10);
        let cells = Arc::new(cells);
        let [worker, next] = [Arc::clone(&cells), Arc::clone(&cells)];
        let thread = thread::spawn(move || outgrows(&worker, first));
        // May take that ring. Its own stamp of zero is still live by this clock.
        let next = thread::spawn(move || acquire(&next, second, 3, &At(9)));
        thread.join().unwrap();
        assert_eq!(next.join().unwrap(), 4);
        assert!(!sleeper.wakes(&cells), "a stamp of another key");
    });
}

/// The same if the next owner takes the ring for a reservation.
#[test]
fn loom_a_late_publication_misses_a_reservation_in_the_ring() {
    explore_with(2, || {
        let (cells, [first, second]) = two_cells([8, 1]);
        acquire(&cells, first, 3, &At(0));
        // The third of four stamps of zero is the next to be replaced, and the one that is kept
        // beside a reservation.
        assert_eq!([1, 1].map(|cost| acquire(&cells, first, cost, &At(10))), [7, 6]);
        let sleeper = Sleeper::claims(&cells, first, 10);
        let cells = Arc::new(cells);
        let [worker, next] = [Arc::clone(&cells), Arc::clone(&cells)];
        let thread = thread::spawn(move || acquire(&worker, first, 5, &At(10)));
        let next = thread::spawn(move || {
            let (id, incarnation, key) = second;
            let seat = next.seat_for(id, incarnation, key).unwrap();
            next.decide_refundable(Ask::Reserve { within: 10 }, seat, 1, &At(9)).unwrap().0
        });
        thread.join().unwrap();
        // Denied if the timestamp floor is past the clock by then.
        let _ = next.join().unwrap();
        assert!(!sleeper.wakes(&cells), "a stamp of another key");
    });
}

/// A clock that a thread sets. A thread that has seen a later write reads no less.
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stamp expires after its thread saw it live, and is copied as live at the timestamp floor. No
/// clock has shown less, so it delays no request for longer than a nanosecond.
#[test]
fn loom_a_stamp_that_expires_while_it_is_copied_is_postponed_to_the_floor_only() {
    explore_with(2, || {
        let (cells, [first, second]) = two_cells([8, 8]);
        acquire(&cells, first, 3, &At(0));
        let shared = Arc::new((cells, Set(AtomicU64::new(9))));
        let worker = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let (cells, clock) = &*worker;
            clock.0.store(15, Ordering::Relaxed);
            acquire(cells, first, 1, clock);
            // Gives back a ring whose newest stamp is 15.
            acquire(cells, first, 5, clock);
            clock.0.store(17, Ordering::Relaxed);
        });
        let next = Arc::clone(&shared);
        let next = thread::spawn(move || acquire(&next.0, second, 3, &next.1));
        thread.join().unwrap();
        next.join().unwrap();
        // Three of 9, 15 or 17. The one of zero has expired.
        assert_eq!(remaining(&shared.0, second, 17), 5);
    });
}

/// A sweep empties the ring of a cell before it frees it. A request in between does not go back
/// before the stamps that were in that ring.
#[test]
fn loom_a_clock_that_lags_finds_a_ring_that_was_emptied() {
    explore(|| {
        let one = One::log(2, 1, 0);
        one.cells.replace_and_stall(one.seat().unwrap());
        let one = Arc::new(one);
        let sweeper = spawned(&one, |one| one.cells.free(one.id, one.incarnation, time_of(10), &At(10)));
        let lags = spawned(&one, |one| one.acquire(2, 9));
        let (swept, granted) = (sweeper.join().unwrap(), lags.join().unwrap());
        match swept {
            Freed::Gone => assert_eq!(granted, 0, "permits of a cell that was freed"),
            Freed::Live(_) => assert_eq!(one.remaining(19), 2 - granted, "three permits within one window"),
        }
    });
}
