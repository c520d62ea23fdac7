//! A thread that stalls for ever in a joint request blocks no other, and its permits are charged to
//! all keys or to none.
//!
//! The steps are taken by hand, up to where the thread stalls.

use core::time::Duration;

use super::joint::Together;
use super::kit::*;
use crate::cell::Stalled;
use crate::decision::{Admission, Decision, DenialReason};

/// A clock that stands still at the given reading.
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

fn key(dimension: usize, number: u64) -> Fingerprint {
    Fingerprint::new((number << 56) | dimension as u64, number << 4).in_dimension(dimension)
}

/// Three dimensions: one permit, two permits, and four that make a ring grow, in ten nanoseconds
/// each. Each dimension's key 1 is known, and the third has been granted one at time zero.
fn table() -> Table {
    let plans = [1, 2, 4].map(|limit| Versions::new(&[Quota::new(limit, Duration::from_nanos(10))]));
    let table = Table::together(plans.into(), 64, 0);
    for dimension in 0..3 {
        assert!(table.seat(key(dimension, 1), &At(0), &mut 0).is_ok());
    }
    assert!(table.admits([0, 0, 1], 1, 0));
    table
}

impl Table {
    /// Key numbers by dimension; zero for none.
    fn admits(&self, numbers: [u64; 3], cost: u32, at: u64) -> bool {
        self.acquire_together(
            Together { keys: &keys(numbers), cost, admits_without_place: false, may_wait: true },
            &At(at),
        )
        .is_admitted()
    }

    /// The permits left of the keys with number 1.
    fn left(&self, at: u64) -> [u32; 3] {
        [0, 1, 2].map(|dimension| self.peek(key(dimension, 1), 0, &At(at)).remaining())
    }

    /// A request on all three keys by a thread that stops after so many steps.
    fn stall(&self, at: u64, stalled: Stalled) {
        let clock = At(at);
        let parts = [0, 1, 2].map(|dimension| {
            let Ok(seat) = self.seat(key(dimension, 1), &clock, &mut 0) else { panic!("there is room") };
            match self.cells.prepare(seat, 1, &clock, None) {
                Some((part, _)) => part,
                None => panic!("dimension {dimension} has room"),
            }
        });
        self.cells.claim_and_stall(parts.iter(), stalled);
    }
}

fn keys(numbers: [u64; 3]) -> Vec<Option<Fingerprint>> {
    let key = |(dimension, number)| (number != 0).then(|| key(dimension, number));
    numbers.into_iter().enumerate().map(key).collect()
}

/// Other keys are served, also together with those of the stalled request, and tables turn.
fn goes_on(table: &Table, at: u64) {
    for number in 2..2000 {
        let at = at + 20 * number;
        assert!(table.admits([number, number, number], 1, at), "{number}");
        assert!(!table.admits([number, 1, 1], 1, at), "{number}");
        assert!(table.admits([0, 1, 1], 2, at), "{number}");
        assert!(table.admits([1, 0, number], 1, at), "{number}");
    }
}

/// A descriptor that holds no cell concerns no other thread.
#[test]
fn after_writing_down() {
    let table = table();
    table.stall(5, Stalled::DescriptorWritten);
    assert_eq!(table.left(5), [1, 2, 3]);
    assert!(table.admits([1, 1, 1], 1, 5) && !table.admits([1, 0, 0], 1, 14));
    goes_on(&table, 20);
}

/// A thread that finds a held cell finishes the request.
#[test]
fn after_holding_some() {
    for held in 1..=3 {
        for meets in 0..held {
            let table = table();
            table.stall(5, Stalled::Held(held));
            let met = table.peek(key(meets, 1), 0, &At(7)).remaining();
            assert_eq!(met, [0, 1, 2][meets], "{held} held, met in dimension {meets}");
            assert_eq!(table.left(7), [0, 1, 2]);
            assert_eq!(table.left(14), [0, 1, 3]);
            // The stamps are from when they were met, or before.
            assert_eq!(table.left(17), [1, 2, 4]);
            goes_on(&table, 20);
        }
    }
}

/// A key that the stalled request has not reached is claimed by another: the request can't be
/// finished, and is undone.
#[test]
fn after_holding_some_while_another_takes_the_rest() {
    for held in 1..=2 {
        let table = table();
        table.stall(5, Stalled::Held(held));
        assert!(table.admits([0, 0, 1], 2, 6));
        assert_eq!(table.left(6), [1, 2, 1]);
        assert!(table.admits([1, 1, 1], 1, 6));
        assert_eq!(table.left(6), [0, 1, 0]);
        goes_on(&table, 20);
    }
}

#[test]
fn after_the_decision() {
    for released in 0..=3 {
        let table = table();
        table.stall(5, Stalled::Released(released));
        assert!(!table.admits([1, 0, 0], 1, 7));
        assert_eq!(table.left(7), [0, 1, 2], "{released} released");
        assert_eq!(table.left(17), [1, 2, 4], "{released} released");
        goes_on(&table, 20);
    }
}

/// The key of a held cell is forgotten, or its cell is looked at by a sweep.
#[test]
fn after_holding_all_while_a_key_is_forgotten() {
    for dimension in 0..3 {
        let table = table();
        table.stall(5, Stalled::Held(3));
        assert!(table.forget(key(dimension, 1), &At(7)));
        let mut left = [0, 1, 2];
        left[dimension] = [1, 2, 4][dimension];
        assert_eq!(table.left(7), left, "dimension {dimension} forgotten");
        goes_on(&table, 20);
    }
    let table = table();
    table.stall(5, Stalled::Held(3));
    table.clear(&At(7));
    assert_eq!(table.left(7), [1, 2, 4]);
    goes_on(&table, 20);
}

/// A helper stalls before it replaces the ring. Meanwhile others do, the key is forgotten, and its
/// cell goes to another key, all at one tick of the clock.
#[test]
fn before_replacing_a_ring_while_its_cell_changes_hands() {
    let table = Table::together([Versions::new(&[Quota::new(8, Duration::from_nanos(10))])].into(), 64, 0);
    let ask = |number| table.admits([number, 0, 0], 1, 0);
    assert!(ask(1));
    let Ok(seat) = table.seat(key(0, 1), &At(0), &mut 0) else { panic!("there is room") };
    let (part, _) = table.cells.prepare(seat, 1, &At(0), None).expect("there is room");
    table.cells.claim_and_stall([part].iter(), Stalled::Released(0));
    // It grows once more, so that the parity of the next incarnation is the same.
    assert!(ask(1) && ask(1) && ask(1));
    assert!(table.forget(key(0, 1), &At(0)));
    table.cells.free(seat.id, seat.head.incarnation(), time_of(0), &At(0));
    assert!(ask(2));
    assert!(!table.cells.replaces_late(&part), "the ring of another key was replaced");
    assert_eq!(table.peek(key(0, 2), 0, &At(0)).remaining(), 7);
    assert!(ask(2));
}

#[test]
fn before_giving_back() {
    let table = table();
    let Ok(seat) = table.seat(key(2, 1), &At(1), &mut 0) else { panic!("it is there") };
    table.cells.replace_and_stall(seat);
    assert!(table.admits([1, 1, 1], 1, 1), "whoever comes ends what the other has begun");
    assert_eq!(table.left(1), [0, 1, 2]);
}

/// A clock during each of whose readings other requests make room: they free every cell without
/// permits.
struct OthersMakeRoom<'a> {
    table: &'a Table,
    readings: plain::AtomicU64,
}

impl Clock for OthersMakeRoom<'_> {
    fn now(&self) -> u64 {
        assert!(self.readings.fetch_add(1, Ordering::Relaxed) < 10_000, "the request goes on for ever");
        let _ = self.table.make_room(CAP, &At(0));
        0
    }
}

const CAP: usize = 4;

/// Asks for a new key of each of two dimensions, by a clock during whose readings their cells are
/// freed: the decision on both together, bare and with a status, and whether one key alone has no
/// place.
fn ask_while_others_make_room(quota: &Quota, admits_without_place: bool) -> (Decision, Decision, bool) {
    let plans = [quota, quota].map(|quota| Versions::new(core::slice::from_ref(quota)));
    let table = Table::together(plans.into(), CAP, 0);
    let clock = || OthersMakeRoom { table: &table, readings: plain::AtomicU64::new(0) };
    let keys = keys([1, 1, 0]);
    let asked = Together { keys: &keys, cost: 1, admits_without_place, may_wait: true };
    let bare = table.acquire_together(asked, &clock());
    let status = table.acquire_together_status(asked, &clock(), None);
    (bare, status.decision(), table.acquire_within(key(0, 1), 1, 0, &clock()).is_err())
}

/// A request that loses its cells again and again is answered as if there were no place for them.
#[test]
fn a_request_loses_only_so_many_cells() {
    let ten = Duration::from_nanos(10);
    for quota in [Quota::new(1, ten), Quota::token_bucket(2, 1, ten), Quota::quantised_log(4, ten, ten / 2)] {
        let (bare, status, alone_has_no_place) = ask_while_others_make_room(&quota, false);
        for decision in [bare, status] {
            let Decision::Denied(denial) = decision else { panic!("{quota}: admitted without a cell") };
            assert_eq!((denial.reason(), denial.dimension()), (DenialReason::KeyCap, 0), "{quota}");
        }
        assert!(alone_has_no_place, "{quota}");
        let (bare, status, _) = ask_while_others_make_room(&quota, true);
        assert_eq!([bare, status], [Decision::Admitted(Admission::UNCOUNTED); 2], "{quota}: the keys are skipped");
    }
    // The account of a low bucket is open, so its cell stays.
    let (bare, status, _) = ask_while_others_make_room(&Quota::token_bucket(2, 1, ten).starting_with(0), false);
    assert!(bare.is_denied() && status.is_denied());
}

/// A clock that lets the index turn as soon as a request has made a cell, before it is known.
struct IndexTurns<'a> {
    table: &'a Table,
    readings: plain::AtomicU64,
}

impl Clock for IndexTurns<'_> {
    fn now(&self) -> u64 {
        assert!(self.readings.fetch_add(1, Ordering::Relaxed) < 10_000, "the request goes on for ever");
        if self.table.cells.room_up_to(CAP) < CAP {
            // Twice: the old index takes the cell once more.
            for _ in 0..2 {
                let route = self.table.route();
                self.table.make_way(route, &At(0));
                self.table.start_turn_to(route.size());
            }
        }
        0
    }
}

#[test]
fn a_request_discards_only_so_many_cells() {
    let table = Table::together([Versions::new(&[Quota::new(1, Duration::from_nanos(10))])].into(), CAP, 0);
    table.start_turn_to(table.route().size());
    let clock = IndexTurns { table: &table, readings: plain::AtomicU64::new(0) };
    assert!(table.acquire_within(key(0, 1), 1, 0, &clock).is_err_and(|wait| wait == 1));
    assert_eq!(table.cells.room_up_to(CAP), CAP, "discarded cells are free");
}

/// A clock at whose nth reading another request takes a place in the queue of the key.
struct TakesAPlace<'a> {
    table: &'a Table,
    nth: u64,
    readings: plain::AtomicU64,
}

impl Clock for TakesAPlace<'_> {
    fn now(&self) -> u64 {
        if self.readings.fetch_add(1, Ordering::Relaxed) == self.nth {
            assert!(self.table.acquire(key(0, 1), 1, &At(0)).is_ok_and(|status| status.is_admitted()));
        }
        0
    }
}

/// Another request takes the place between the peek and the claim.
#[test]
fn a_request_that_may_not_wait_takes_no_later_place_in_a_queue() {
    let queue = Quota::leaky_queue(1, Duration::from_nanos(10), Duration::from_nanos(50));
    let mut denied = 0;
    for nth in 0..10 {
        let table = Table::together([Versions::new(&[queue])].into(), CAP, 0);
        let clock = TakesAPlace { table: &table, nth, readings: plain::AtomicU64::new(0) };
        let keys = keys([1, 0, 0]);
        let asked = Together { keys: &keys, cost: 1, admits_without_place: false, may_wait: false };
        match table.acquire_together(asked, &clock) {
            Decision::Admitted(admission) => assert_eq!(admission.delay(), Duration::ZERO, "reading {nth}"),
            Decision::Denied(_) => denied += 1,
        }
    }
    assert!(denied > 0, "no reading of the clock before the claim");
}
