//! A thread that stops for ever in the middle of a table's business holds up nobody and lets nobody through.
//!
//! The steps are taken by hand, as far as the stalled thread got.

use core::time::Duration;

use super::*;
use crate::clock::MockClock;
use crate::quota::Quota;

fn key(number: u64) -> Fingerprint {
    Fingerprint::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number << 4)
}

/// As many keys as the smallest index takes.
const KEYS: u64 = 52;

/// A table under one permit in ten nanoseconds, its index full with keys 0 to 51 at time zero.
fn full() -> (Table, MockClock) {
    let table = Table::new(Revisions::new(&[Quota::new(1, Duration::from_nanos(10))]), 4096, 0);
    let clock = MockClock::new();
    for number in 0..KEYS {
        assert!(admits(&table, number, &clock));
    }
    assert!(!table.route().is_turning() && !table.reserve(table.route()));
    (table, clock)
}

fn admits(table: &Table, number: u64, clock: &MockClock) -> bool {
    match table.acquire(key(number), 1, clock) {
        Placed::Decided(status) => status.is_admitted(),
        Placed::NoRoom { .. } => panic!("there is room for 4096"),
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
        if let (word, index::Seen::Empty) = old.read(at) {
            assert!(old.seal(at, word));
        }
    }
    goes_on(&table, &clock);
}

#[test]
fn after_carrying_some_of_the_cells() {
    let (table, clock) = full();
    let next = table.start_turn();
    for number in 0..10 {
        let Found::Here(seat) = table.old(next).find(key(number), &table.cells) else { panic!("key {number}") };
        assert!(matches!(table.carry(next, key(number), seat.cell, seat.head.life()), Put::Done));
    }
    goes_on(&table, &clock);
}

#[test]
fn before_making_a_new_cell_known() {
    let (table, clock) = full();
    // Places taken and cells made that nobody will ever hear of: in an index that is full, and in one that is being filled.
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
    let (cell, life) = table.cells.create(key(90), 1).unwrap();
    goes_on(&table, &clock);
    assert_ne!(table.route().generation(), late.generation());
    // Whatever generation the memory belongs to by now, nothing can be put into that one.
    let put = table.current(late).put(key(90), cell, life, &table.cells);
    assert!(matches!(put, Put::Outdated), "a cell was put into a generation that is over");
    assert!(matches!(table.bring_in(late, key(90), 1, &clock), BroughtIn::Retry));
    assert!(admits(&table, 90, &clock));
}
