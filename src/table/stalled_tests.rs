//! A thread that stalls for ever in the work of a table blocks no other and admits no more.
//!
//! The steps are taken by hand, up to where the thread stalls.

use core::time::Duration;

use super::kit::*;
use crate::cell::Freed;
use crate::clock::MockClock;

fn key(number: u64) -> Fingerprint {
    Fingerprint::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number << 4)
}

/// As many keys as the smallest index takes.
const KEYS: u64 = 52;

/// A table under one permit in ten nanoseconds, its index full with keys 0 to 51 at time zero.
fn full() -> (Table, MockClock) {
    let table = Table::new(Versions::new(&[Quota::new(1, Duration::from_nanos(10))]), 4096, 0);
    let clock = MockClock::new();
    for number in 0..KEYS {
        assert!(admits(&table, number, &clock));
    }
    assert!(!table.route().is_turning() && !table.reserve(table.route()));
    (table, clock)
}

fn admits(table: &Table, number: u64, clock: &MockClock) -> bool {
    match table.acquire(key(number), 1, clock) {
        Ok(status) => status.is_admitted(),
        Err(_) => panic!("there is room for 4096"),
    }
}

/// Every key is known with its permit, and a few thousand new ones get in.
fn goes_on(table: &Table, clock: &MockClock) {
    for number in 0..KEYS {
        assert!(!admits(table, number, clock), "key {number} had its permit");
    }
    for number in 100..4000 {
        assert!(admits(table, number, clock) && !admits(table, number, clock), "key {number}");
    }
    for number in 0..KEYS {
        assert!(!admits(table, number, clock), "key {number} had its permit");
    }
}

#[test]
fn after_starting_a_turn() {
    let (table, clock) = full();
    table.start_turn();
    goes_on(&table, &clock);
}

#[test]
fn after_sealing_some_of_the_old_index() {
    let (table, clock) = full();
    let next = table.start_turn();
    let old = table.old(next);
    for at in 0..20 {
        if let (word, index::SlotContent::Empty) = old.read(at) {
            assert!(old.seal(at, word));
        }
    }
    goes_on(&table, &clock);
}

#[test]
fn after_migrating_some_of_the_cells() {
    let (table, clock) = full();
    let next = table.start_turn();
    for number in 0..10 {
        let Found::Here(seat) = table.old(next).find(key(number), &table.cells) else { panic!("key {number}") };
        assert!(matches!(table.migrate(next, key(number), seat.id, seat.head.incarnation()), Put::Done));
    }
    goes_on(&table, &clock);
}

#[test]
fn before_making_a_new_cell_known() {
    let (table, clock) = full();
    // Slots counted and cells made that are never inserted: in an index that is full, and in one
    // that fills.
    for route in [table.route(), table.start_turn()] {
        for number in 200..210 {
            let _ = table.reserve(route);
            table.cells.create(key(number), 1).unwrap();
        }
    }
    goes_on(&table, &clock);
}

#[test]
fn with_a_route_that_is_out_of_date() {
    let (table, clock) = full();
    let late = table.route();
    let (id, incarnation) = table.cells.create(key(90), 1).unwrap();
    goes_on(&table, &clock);
    assert_ne!(table.route().generation(), late.generation());
    // Whatever generation the memory belongs to by now, nothing is counted for that one and nothing
    // can be put into it.
    assert!(!table.reserve(late), "a place was taken in a generation that is over");
    let put = table.current(late).put(key(90), id, incarnation, &table.cells);
    assert!(matches!(put, Put::Outdated), "a cell was put into a generation that is over");
    assert!(matches!(table.find_or_insert(late, key(90), 1, &clock), Ok(FindOrInsert::Retry)));
    assert!(admits(&table, 90, &clock));
}

/// The stamps that a snapshot holds, by key.
#[cfg(feature = "snapshot")]
fn export(table: &Table, clock: &MockClock) -> Vec<(Fingerprint, Vec<i64>)> {
    let stamps = |(key, export, _)| match export {
        crate::cell::Export::Stamps(ages) => (key, ages),
        other => panic!("{other:?} of a log"),
    };
    table.export(clock).map(stamps).collect()
}

#[cfg(feature = "snapshot")]
#[test]
fn before_making_a_new_cell_known_whose_key_another_makes_known() {
    let table = Table::new(Versions::new(&[Quota::new(5, Duration::from_nanos(10))]), 4096, 0);
    let clock = MockClock::new();
    assert!(table.reserve(table.route()));
    table.cells.create(key(1), 1).unwrap();
    assert!((0..5).all(|_| admits(&table, 1, &clock)) && !admits(&table, 1, &clock));
    assert_eq!(export(&table, &clock), [(key(1), vec![0; 5])]);
}

#[cfg(feature = "snapshot")]
#[test]
fn before_making_a_new_cell_known_while_a_snapshot_is_taken() {
    let table = Table::new(Versions::new(&[Quota::new(5, Duration::from_nanos(10))]), 4096, 0);
    let clock = MockClock::new();
    assert!(table.reserve(table.route()));
    let (id, incarnation) = table.cells.create(key(1), 1).unwrap();
    assert_eq!(export(&table, &clock), []);
    // Its stamp is chosen once it is known.
    clock.set(9);
    assert!(matches!(table.current(table.route()).put(key(1), id, incarnation, &table.cells), Put::Done));
    assert_eq!(export(&table, &clock), [(key(1), vec![0])]);
}

/// A clock that changes the quota of all keys to this one before it shows the time.
struct Changes<'a>(&'a Table, Quota);

impl Clock for Changes<'_> {
    fn now(&self) -> u64 {
        self.0.change(0, Scope::All, &[self.1], &MockClock::new()).unwrap();
        13
    }
}

/// The permit of time zero has left the old window by then, and is live in the new one.
#[test]
fn the_fast_path_reads_the_quotas_after_the_clock() {
    let of = [Quota::new, Quota::fixed_window];
    for [short, long] in of.map(|of| [10, 100].map(|window| of(1, Duration::from_nanos(window)))) {
        let (table, clock) = (Table::new(Versions::new(&[short]), 4096, 0), MockClock::new());
        assert!(admits(&table, 1, &clock));
        let decided = table.fast_decide(key(1), 1, &Changes(&table, long));
        assert!(decided.is_none_or(|decided| !decided.is_admitted()), "{long:?}");
        clock.set(99);
        assert!(!admits(&table, 1, &clock));
    }
}

/// A sweeper or a request that has read the entry of a cell's first incarnation, and continues
/// after 256.
#[test]
fn with_an_entry_whose_incarnation_has_come_round() {
    let table = Table::new(Versions::new(&[Quota::new(1, Duration::from_nanos(10))]), 1, 0);
    let clock = MockClock::new();
    assert!(admits(&table, 0, &clock));
    let late = table.start_turn_to(table.route().size());
    let Located::Old(seat) = table.locate::<false>(late, key(0)) else { panic!("it is there") };
    let (first, incarnation) = (seat.id, seat.head.incarnation());
    for number in 1..256 {
        clock.advance(Duration::from_nanos(10));
        assert!(admits(&table, number, &clock));
    }
    clock.advance(Duration::from_nanos(10));
    let time = time_of(clock.now());
    assert_eq!(table.cells.free(first, incarnation + 255, time, &clock), Freed::Gone);
    // One that is made for the same key and that the index does not lead to yet.
    assert_eq!(table.cells.create(key(0), 0), Some((first, incarnation)));
    assert_eq!(table.cells.free_if(first, incarnation, time, &clock, || table.lasts(late)), Freed::Gone);
    assert!(!table.cells.has_room(), "it was taken from the request that made it");
    assert!(table.cells.decide(Ask::Peek, seat, 1, &clock).is_none());
    assert!(!table.cells.forget_at(seat.id, seat.head, &clock));
    assert!(table.cells.seat_for(first, incarnation, key(0)).is_some(), "it was forgotten");
}

/// A receipt of a cell's first incarnation, while the key has the cell in its 257th.
#[test]
fn with_a_receipt_whose_incarnation_has_come_round() {
    let bucket = Quota::token_bucket(1, 1, Duration::from_nanos(10));
    for quota in [Quota::new(1, Duration::from_nanos(10)), bucket] {
        let (table, clock) = (Table::new(Versions::new(&[quota]), 1, 0), MockClock::new());
        let (status, receipt) = table.acquire_within(key(0), 1, 0, &clock).unwrap();
        assert!(status.is_admitted());
        let begun = table.route().generation();
        for number in 1..=256 {
            assert!(table.forget(key(number - 1), &clock));
            assert!(admits(&table, number % 256, &clock));
        }
        let Located::Current(seat) = table.locate::<false>(table.route(), key(0)) else { panic!("it is there") };
        assert_eq!((seat.id, seat.head.incarnation()), (receipt.id, 0));
        assert_eq!(table.route().generation() - begun, 256);
        assert_eq!(table.refund(&receipt, &clock), 0, "a permit of another incarnation");
        assert!(!admits(&table, 0, &clock));
    }
}

/// A receipt of long ago, of a key that has kept its cell.
#[test]
fn with_a_receipt_that_is_older_than_256_generations() {
    let (table, clock) =
        (Table::new(Versions::new(&[Quota::new(9, Duration::from_nanos(10))]), 2, 0), MockClock::new());
    let reserve = || table.acquire_within(key(0), 1, 0, &clock).unwrap().1;
    let [first, second] = [reserve(), reserve()];
    for number in 1..400 {
        assert!(admits(&table, number, &clock) && table.forget(key(number), &clock));
    }
    assert!(table.route().generation() - first.generation > 300);
    assert_eq!(table.refund(&first, &clock), 1);
    // Laps tell until there are 256.
    for _ in 0..256 {
        assert_eq!(table.refund(&reserve(), &clock), 1);
    }
    assert_eq!(table.refund(&second, &clock), 0);
    assert_eq!(table.peek(key(0), 1, &clock).remaining(), 8);
}

/// The same where the memory belongs to the next generation but one, of the same size.
#[test]
fn with_a_route_whose_memory_is_in_use_again() {
    let (table, clock) = full();
    let late = table.route();
    // By then all keys have expired.
    clock.advance(Duration::from_nanos(10));
    for _ in 0..2 {
        table.make_way(table.start_turn_to(late.size()), &clock);
    }
    assert!(admits(&table, 90, &clock));
    let put = table.current(late).put(key(90), 0, 0, &table.cells);
    assert!(matches!(put, Put::Outdated), "a cell was put into a later generation");
}

/// A clock that shows the time, and at its nth reading asks for a permit of another key first.
struct AsksMeanwhile<'a> {
    table: &'a Table,
    clock: &'a MockClock,
    nth: u64,
    asks: &'a dyn Fn(&Table),
    read: plain::AtomicU64,
}

impl Clock for AsksMeanwhile<'_> {
    fn now(&self) -> u64 {
        if self.read.fetch_add(1, Ordering::Relaxed) == self.nth {
            (self.asks)(self.table);
        }
        self.clock.now()
    }
}

/// Ten permits, and one every ten units of the noted end.
fn slow_bucket() -> (Quota, u64) {
    let unit = 10 << super::heuristics::Heuristics::UNIT;
    (Quota::token_bucket(10, 1, Duration::from_nanos(unit)), unit)
}

/// Asks for permits of a key. An error says that there is no place.
fn ask(table: &Table, clock: &MockClock, number: u64, cost: u32) -> Result<bool, u64> {
    table.acquire(key(number), cost, clock).map(|status| status.is_admitted())
}

/// A table of slow buckets for two keys, with keys 1 and 2.
fn at_the_cap() -> (Table, MockClock) {
    let (table, clock) = (Table::new(Versions::new(&[slow_bucket().0]), 2, 0), MockClock::new());
    assert_eq!([1, 2].map(|number| ask(&table, &clock, number, 10)), [Ok(true); 2]);
    assert!(ask(&table, &clock, 3, 1).is_err());
    (table, clock)
}

/// The same with key 4 in place of key 2, after a sweep has noted when they are idle.
fn swept_at_the_cap() -> (Table, MockClock) {
    let (table, clock) = at_the_cap();
    assert!(table.forget(key(2), &clock));
    assert!(ask(&table, &clock, 4, 10) == Ok(true) && ask(&table, &clock, 3, 1).is_err());
    (table, clock)
}

/// At the key cap, the thread of a new key stalls once its cell is known. It is idle before the
/// others.
#[test]
fn after_making_a_new_cell_known_at_the_cap() {
    let asked = plain::AtomicU64::new(0);
    for nth in 0..40 {
        let (table, clock) = swept_at_the_cap();
        assert!(table.forget(key(4), &clock));
        let stalled = AsksMeanwhile {
            table: &table,
            clock: &clock,
            nth,
            asks: &|table| {
                if table.seat_of(key(5)).is_some() {
                    // Another thread publishes the permit.
                    assert_eq!(table.peek(key(5), 0, &clock).remaining(), 9);
                    assert!(ask(table, &clock, 3, 1).is_err(), "the new key is live");
                    clock.advance(Duration::from_nanos(slow_bucket().1));
                    assert_eq!(ask(table, &clock, 3, 1), Ok(true), "the new key is idle");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            },
            read: plain::AtomicU64::new(0),
        };
        let _ = table.acquire(key(5), 1, &stalled);
    }
    assert!(asked.into_inner() > 0, "no reading of the clock once the key is known");
}

/// Permits are imported that expire before those of the other keys.
#[cfg(feature = "snapshot")]
#[test]
fn after_an_import_up_to_the_cap() {
    let (table, clock) = swept_at_the_cap();
    table.cells.forget_any(table.seat_of(key(4)).unwrap().id, &clock);
    let export = crate::cell::Export::Account { age: 0, used: 1 };
    while table.import(key(5), &export, 0, &clock).is_err() {
        // Frees the cell of the forgotten key.
        table.make_way(table.route(), &clock);
    }
    clock.advance(Duration::from_nanos(slow_bucket().1));
    assert_eq!(ask(&table, &clock, 3, 1), Ok(true), "the imported key is idle");
}

/// A key is forgotten after the sweep of its generation, and while the next is swept.
#[test]
fn after_the_sweep_has_passed_a_key_that_is_forgotten() {
    for turns in 0..3 {
        let (table, clock) = at_the_cap();
        if turns > 0 {
            let next = table.start_turn_to(table.route().size());
            (1..turns).for_each(|_| table.make_way(next, &clock));
        }
        assert!(table.forget(key(2), &clock));
        assert_eq!(ask(&table, &clock, 3, 1), Ok(true), "{turns}");
    }
}

/// A refund gives nothing back, so that no key is idle sooner.
#[test]
fn a_refund_of_nothing_starts_no_sweep() {
    let (window, clock) = (1 << 20, MockClock::new());
    let table = Table::new(Versions::new(&[Quota::new(2, Duration::from_nanos(window))]), 2, 0);
    let Ok((_, refundable)) = table.acquire_within(key(1), 1, 0, &clock) else { panic!("there is room") };
    clock.advance(Duration::from_nanos(window / 2));
    assert_eq!([1, 2].map(|number| ask(&table, &clock, number, 1)), [Ok(true); 2]);
    clock.advance(Duration::from_nanos(window / 2));
    assert!(ask(&table, &clock, 3, 1).is_err());
    let noted = table.turns.all_live_until(table.route().generation());
    assert!(noted.is_some_and(|end| end > clock.now()), "{noted:?}");
    assert_eq!(table.refund(&refundable, &clock), 0);
    assert_eq!(table.turns.all_live_until(table.route().generation()), noted);
}

/// The quota changes once the cell of a new key is made.
#[test]
fn before_telling_the_status_of_a_new_key() {
    let bucket = |capacity| Quota::token_bucket(capacity, 1, Duration::from_nanos(10));
    let table = Table::new(Versions::new(&[bucket(10)]), 4096, 0);
    let Ok(status) = table.acquire(key(1), 8, &Changes(&table, bucket(5))) else { panic!("there is room") };
    assert!(status.is_admitted() && status.remaining() == 2, "{status:?}");
}
