//! A thread that stalls for ever, at each step that leaves something unfinished, blocks no other
//! thread and admits no more.
//!
//! The steps are taken by hand, up to where the thread stalls.

use core::time::Duration;

use crate::cell::kit::*;
use crate::quota::Quota;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// A cell under `limit` permits in ten nanoseconds that was granted `cost` at time zero.
struct One(Cells);

impl One {
    fn new(limit: u32, cost: u32) -> Self {
        Self::of(&[Quota::new(limit, Duration::from_nanos(10))], cost)
    }

    fn of(quotas: &[Quota], cost: u32) -> Self {
        let cells = Cells::new([Versions::new(quotas)].into(), 4);
        let (id, incarnation) = cells.create(KEY, cost).unwrap();
        assert_eq!((id, incarnation), (0, 0));
        cells.grant(id, incarnation, &At(0));
        Self(cells)
    }

    fn word(&self) -> &AtomicU64 {
        &self.0.store.cells.element(0).head
    }

    fn at(&self, head: Head) -> CellAt<'_> {
        CellAt { cell: self.0.store.cells.element(0), head }
    }

    fn head(&self) -> Head {
        Head(self.word().load(Ordering::Acquire))
    }

    /// Claims `cost` permits and goes no further.
    fn claim_and_stall(&self, cost: usize, slots: usize) {
        let head = self.head();
        let next = head.advanced(cost, slots);
        self.word().compare_exchange(head.0, next.0, Ordering::AcqRel, Ordering::Relaxed).unwrap();
    }

    fn ask(&self, ask: Ask, cost: u32, at: u64) -> Status {
        let seat = self.0.seat_for(0, 0, KEY).unwrap();
        self.0.decide(ask, seat, cost, &At(at)).unwrap()
    }

    fn admits(&self, cost: u32, at: u64) -> bool {
        self.ask(Ask::Acquire, cost, at).is_admitted()
    }
}

#[test]
fn between_claim_and_publication() {
    let one = One::new(1, 1);
    one.claim_and_stall(1, 1);
    // The first to come chooses the stamp: 12, for a claim made at 10 or later.
    assert!(!one.admits(1, 12));
    assert!(!one.admits(1, 21));
    assert!(one.admits(1, 22));
}

#[test]
fn between_claim_and_publication_with_a_clock_that_lags() {
    let one = One::new(1, 1);
    one.claim_and_stall(1, 1);
    // The claim needed the first permit to have expired, so its stamp is 10 at the earliest,
    // whatever this clock says.
    assert!(!one.admits(1, 3));
    assert!(!one.admits(1, 19));
    assert!(one.admits(1, 20));
}

#[test]
fn in_the_middle_of_publishing_several() {
    let one = One::new(4, 4);
    one.claim_and_stall(3, 4);
    // The first of the three is published at 11, then the thread stops.
    let reference = RingRef(one.0.store.cells.element(0).ring.load(Ordering::Acquire));
    let ring = one.0.store.ring(one.0.store.cells.element(0), reference);
    ring.slot(0).store(Slot::new(time_of(11), true, 1).0, Ordering::Release);
    // The others get the same stamp, from any thread and however late.
    assert!(one.admits(1, 15));
    assert_eq!(one.ask(Ask::Peek, 0, 20).remaining(), 0);
    assert_eq!(one.ask(Ask::Peek, 0, 21).remaining(), 3);
    assert_eq!(one.ask(Ask::Peek, 0, 25).remaining(), 4);
}

/// The ring and the limits.
fn parts(one: &One) -> (Ring<'_>, &LogPlan) {
    let cell = one.0.store.cells.element(0);
    let AnyDriver::Log(log) = one.0.driver_by(one.0.versions_of(KEY)) else { panic!("not a log") };
    (one.0.store.ring(cell, cell.reference()), log.plan)
}

/// A clock that shows 9, and from the second reading on 11. A key that shares the rings is
/// forgotten after the first.
struct ForgetsOnce<'a>(&'a Cells, (u32, u64), AtomicU64);

impl Clock for ForgetsOnce<'_> {
    fn now(&self) -> u64 {
        let Self(cells, (id, incarnation), readings) = self;
        if readings.fetch_add(1, Ordering::Relaxed) > 0 {
            return 11;
        }
        assert!(cells.forget(*id, *incarnation, &At(10)));
        assert_eq!(cells.free(*id, *incarnation, time_of(10), &At(10)), Freed::Gone);
        9
    }
}

#[test]
fn before_publishing_until_another_key_has_copied_the_expected_stamp_into_the_ring() {
    let one = One::new(4, 1);
    let cells = &one.0;
    let other = Fingerprint::new(3, 4 << 4);
    let (id, incarnation) = cells.create(other, 1).unwrap();
    cells.grant(id, incarnation, &At(0));
    let ask = |cost, at| cells.decide(Ask::Acquire, cells.seat_for(id, incarnation, other).unwrap(), cost, &At(at));
    assert!(ask(3, 0).unwrap().is_admitted() && ask(2, 10).unwrap().is_admitted());
    // The claimant of the third slot has seen its stamp expire. Another thread publishes the claim.
    let cell = cells.store.cells.element(id);
    let (head, ring) = (cell.head(), cells.store.ring(cell, cell.reference()));
    let expected = ring.slot(2).load(Ordering::Acquire);
    assert_eq!(Slot(expected).time(), time_of(0));
    let late = Slot::new(time_of(10), false, head.lap());
    CellAt { cell, head }.claim(head.advanced(1, 4)).unwrap();
    assert_eq!(ask(2, 10).unwrap().remaining(), 1);
    // The first key has the same stamp, live at 9 and not at 11. It grows into the other's ring.
    let clock = ForgetsOnce(cells, (id, incarnation), AtomicU64::new(0));
    let seat = cells.seat_for(0, 0, KEY).unwrap();
    assert!(cells.decide(Ask::Acquire, seat, 1, &clock).unwrap().is_admitted());
    assert!(core::ptr::eq(ring.slot(2), parts(&one).0.slot(2)), "another ring");
    let swap = ring.slot(2).compare_exchange(expected, late.0, Ordering::Release, Ordering::Relaxed);
    assert!(swap.is_err(), "a stamp of another key");
    assert_eq!(one.ask(Ask::Peek, 0, 11).remaining(), 3);
}

#[test]
fn before_publishing_several_while_another_publishes_the_first() {
    let one = One::new(4, 4);
    let head = one.head();
    one.claim_and_stall(3, 4);
    let (ring, plan) = parts(&one);
    ring.slot(0).store(Slot::new(time_of(11), true, 1).0, Ordering::Release);
    // It goes on by the stamp that was chosen, not by its own.
    ring.publish(one.at(head), one.head(), 3, plan, time_of(10));
    assert_eq!(one.ask(Ask::Peek, 0, 20).remaining(), 1);
    assert_eq!(one.ask(Ask::Peek, 0, 21).remaining(), 4);
}

#[test]
fn before_publishing_several_until_a_later_claim() {
    let one = One::new(2, 2);
    let head = one.head();
    one.claim_and_stall(2, 2);
    let next = one.head();
    // Others publish the claim at 21, and make the next one.
    assert!(!one.admits(2, 21) && one.admits(2, 31));
    let (ring, plan) = parts(&one);
    ring.publish(one.at(head), next, 2, plan, time_of(10));
    assert_eq!(one.ask(Ask::Peek, 0, 40).remaining(), 0);
    assert_eq!(one.ask(Ask::Peek, 0, 41).remaining(), 2);
}

#[test]
fn after_marking_a_cell_as_resizing() {
    let one = One::new(4, 1);
    let head = one.head();
    one.word().store(head.with_state(State::Resizing).0, Ordering::Release);
    assert!(one.admits(3, 5));
    assert!(!one.admits(1, 9));
    assert_eq!(one.ask(Ask::Peek, 0, 10).remaining(), 1);
}

#[test]
fn after_marking_a_cell_as_resizing_nobody_else_has_to_make_it_grow() {
    let one = One::new(4, 1);
    let resizing = one.head().with_state(State::Resizing);
    one.word().store(resizing.0, Ordering::Release);
    // A peek, or a request that does not fit, reads the ring as it is.
    assert_eq!(one.ask(Ask::Peek, 0, 5).remaining(), 3);
    assert!(!one.admits(4, 5));
    assert_eq!(one.head(), resizing);
    assert_eq!(one.0.free(0, 0, time_of(9), &At(9)), Freed::Live(time_of(10)));
    // And an idle cell is taken back, or forgotten, all the same.
    assert_eq!(one.0.free(0, 0, time_of(10), &At(10)), Freed::Gone);
    let one = One::new(4, 1);
    one.word().store(one.head().with_state(State::Resizing).0, Ordering::Release);
    assert!(one.0.forget(0, 0, &At(5)));
}

/// The stamp of a cell that is forgotten is lost when its one slot is replaced. A claimant that saw
/// the stamp before it expire may still be asleep, so the cell's next key begins no earlier, even
/// by a clock that lags.
#[test]
fn after_marking_a_cell_as_resizing_its_key_is_forgotten() {
    let one = One::new(4, 1);
    assert!(one.admits(1, 30));
    one.word().store(one.head().with_state(State::Resizing).0, Ordering::Release);
    assert!(one.0.forget(0, 0, &At(30)));
    assert_eq!(one.0.free(0, 0, time_of(30), &At(30)), Freed::Gone);
    assert_eq!(one.0.create(KEY, 1), Some((0, 1)));
    one.0.grant(0, 1, &At(5));
    let seat = one.0.seat_for(0, 1, KEY).unwrap();
    assert_eq!([39, 40].map(|at| one.0.decide(Ask::Peek, seat, 0, &At(at)).unwrap().remaining()), [3, 4]);
}

/// The thread offers its larger ring when the cell is another key's, of the same nanosecond, and
/// the slot of the same parity.
#[test]
fn before_offering_the_larger_ring_until_the_next_key() {
    let one = One::new(16, 1);
    let reference = || one.0.store.cells.element(0).ring.load(Ordering::Acquire);
    let old = reference();
    // From one slot to four, and from four to eight.
    assert!(one.admits(1, 0) && one.admits(4, 0));
    assert!(one.0.forget(0, 0, &At(0)));
    assert_eq!(one.0.free(0, 0, time_of(0), &At(0)), Freed::Gone);
    assert_eq!(one.0.create(Fingerprint::new(3, 4 << 4), 1), Some((0, 1)));
    one.0.grant(0, 1, &At(0));
    assert_ne!(reference(), old, "the ring would be taken");
}

/// An export of a cell that is not inserted yet finds that it has become another key's.
#[test]
fn after_discarding_a_cell_its_head_does_not_return() {
    let quotas = [
        Quota::new(4, Duration::from_nanos(10)),
        Quota::token_bucket(4, 1, Duration::from_nanos(10)),
        Quota::quantised_log(4, Duration::from_nanos(20), Duration::from_nanos(10)),
    ];
    for (quota, cost) in quotas.into_iter().flat_map(|quota| [(quota, 0), (quota, 1), (quota, 3)]) {
        let one = One::of(&[quota], 1);
        let mut heads = Vec::new();
        for _ in 0..5 {
            let (id, incarnation) = one.0.create(Fingerprint::new(3, 4 << 4), cost).unwrap();
            assert_eq!((id, incarnation), (1, 0));
            heads.push(one.0.store.cells.element(id).head.load(Ordering::Acquire));
            one.0.discard(id);
        }
        assert!(heads.iter().enumerate().all(|(at, head)| !heads[..at].contains(head)), "{quota:?}, {cost} permits");
    }
}

#[test]
fn after_offering_the_larger_ring() {
    let one = One::new(4, 1);
    let resizing = one.head().with_state(State::Resizing);
    // Everything is done but opening the cell again.
    assert!(one.admits(1, 5));
    one.word().store(resizing.0, Ordering::Release);
    assert!(one.admits(2, 5));
    assert!(!one.admits(1, 9));
}

#[test]
fn before_granting_the_first_permits_of_a_new_key() {
    let cells = Cells::new([Versions::new(&[Quota::new(1, Duration::from_nanos(10))])].into(), 4);
    let (id, incarnation) = cells.create(KEY, 1).unwrap();
    let seat = cells.seat_for(id, incarnation, KEY).unwrap();
    assert!(!cells.decide(Ask::Acquire, seat, 1, &At(7)).unwrap().is_admitted());
    assert!(matches!(cells.free(id, incarnation, time_of(16), &At(16)), Freed::Live(end) if end == time_of(17)));
    assert_eq!(cells.free(id, incarnation, time_of(17), &At(17)), Freed::Gone);
}

#[test]
fn with_a_head_that_is_out_of_date() {
    let one = One::new(1, 1);
    let seat = one.0.seat_for(0, 0, KEY).unwrap();
    assert!(one.admits(1, 10));
    // It saw the first permit expire, but the place has been taken since.
    assert!(one.0.fast_if_open(seat, 1, 11).is_none());
    assert!(!one.0.decide(Ask::Acquire, seat, 1, &At(11)).unwrap().is_admitted());
    // And then the cell goes to another key.
    assert_eq!(one.0.free(0, 0, time_of(20), &At(20)), Freed::Gone);
    assert_eq!(one.0.create(Fingerprint::new(3, 4 << 4), 1), Some((0, 1)));
    assert!(one.0.fast_if_open(seat, 1, 30).is_none() && one.0.decide(Ask::Acquire, seat, 1, &At(30)).is_none());
    assert!(one.0.seat_for(0, 0, KEY).is_none());
}

/// The raise is the tighter quota's here: by the wider one there is room.
#[test]
fn between_claim_and_publication_under_two_quotas_with_a_clock_that_lags() {
    let quotas = [Quota::new(1, Duration::from_nanos(10)), Quota::new(4, Duration::from_nanos(100))];
    let one = One::of(&quotas, 1);
    assert!(one.admits(1, 10));
    one.claim_and_stall(1, 4);
    // The claim needed the permit of 10 to have left its ten nanoseconds, so its stamp is 20 at the
    // earliest.
    assert!(!one.admits(1, 12));
    assert!(!one.admits(1, 29));
    assert!(one.admits(1, 30));
    assert!(!one.admits(1, 40), "four in a hundred");
}

impl One {
    fn change(&self, quota: Quota, at: u64) {
        self.0.versions(0).change(Scope::All, &[quota], || time_of(at)).unwrap();
    }
}

#[test]
fn a_clock_that_lags_behind_a_change_of_the_quota() {
    let quota = Quota::new(1, Duration::from_nanos(10));
    let one = One::of(&[quota], 1);
    one.change(quota, 20);
    // As of 20: stamps of 3 would not count.
    assert!(one.admits(1, 3));
    assert_eq!([3, 9, 12, 29, 30].map(|at| one.admits(1, at)), [false, false, false, false, true]);
}

#[test]
fn between_the_reading_of_the_clock_and_a_change_of_the_quota() {
    let quota = Quota::new(1, Duration::from_nanos(10));
    let one = One::of(&[quota], 1);
    let (seat, reading) = (one.0.seat_for(0, 0, KEY).unwrap(), 3);
    one.change(quota, 20);
    assert!(one.0.fast_if_open(seat, 1, reading).is_some_and(|decision| decision.is_admitted()));
    assert_eq!([21, 29, 30].map(|at| one.admits(1, at)), [false, false, true]);
}

/// A sweep stalls after its reading of 30. The clock is set back, and the key is granted a permit.
#[test]
fn a_sweep_reads_the_clock_again_before_it_frees_a_cell() {
    let log = Quota::new(1, Duration::from_nanos(10));
    let bucket = Quota::token_bucket(1, 1, Duration::from_nanos(10));
    for (quota, grows) in [(log, false), (log, true), (bucket, false)] {
        let one = One::of(&[quota], 1);
        assert!(one.admits(1, 15));
        if grows {
            one.word().store(one.head().with_state(State::Resizing).0, Ordering::Release);
        }
        let sweeps = |now| one.0.free(0, 0, time_of(30), &At(now));
        assert_eq!([16, 24].map(sweeps), [Freed::Live(time_of(25)); 2]);
        assert!(!one.admits(1, 24), "two permits within one window");
        assert_eq!(sweeps(25), Freed::Gone);
    }
}

/// The word that says since when an account is over looks like a reference to a ring. No ring may
/// be given back for it.
#[test]
fn after_closing_an_account_that_is_over() {
    let one = One::of(&[Quota::token_bucket(3, 1, Duration::from_nanos(10))], 2);
    let Plan::Counter(plan) = &one.0.versions(0).current().plan else { unreachable!("a bucket") };
    let head = one.head();
    // In an era of its own, with the permits used.
    let closed = plan.layout.next(head, 0, crate::cell::counter::layout::EraKind::Closes, 2);
    one.word().compare_exchange(head.0, closed.0, Ordering::AcqRel, Ordering::Relaxed).unwrap();
    assert_eq!(one.0.free(0, 0, time_of(19), &At(19)), Freed::Live(time_of(20)));
    assert_eq!(one.0.free(0, 0, time_of(20), &At(20)), Freed::Gone);
    // The cell can be allocated again.
    assert_eq!(one.0.create(KEY, 3), Some((0, 1)));
    one.0.grant(0, 1, &At(20));
    let seat = one.0.seat_for(0, 1, KEY).unwrap();
    assert_eq!(one.0.decide(Ask::Peek, seat, 1, &At(20)).unwrap().retry_after(), Some(Duration::from_nanos(10)));
}
