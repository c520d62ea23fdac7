//! An index always has room for the entries that migrate (INV-ROOM).

use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::channel;

use proptest::prelude::*;

use super::kit::*;
use crate::clock::MockClock;
use crate::sync::plain::AtomicBool;

const CHUNK: usize = 32;

fn key(number: u64) -> Fingerprint {
    Fingerprint::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number << 4)
}

/// A table under one permit in ten nanoseconds.
fn table(key_cap: usize, expected_keys: usize) -> Table {
    Table::new(Versions::new(&[Quota::new(1, Duration::from_nanos(10))]), key_cap, expected_keys)
}

impl Table {
    /// How many slots of the index of this route are taken, and how many it has.
    fn taken(&self, route: Route) -> (usize, usize) {
        let (index, slots) = (self.current(route), 1 << route.size());
        let is_entry = |&at: &usize| matches!(index.read(at).1, index::SlotContent::Entry(_));
        ((0..slots).filter(is_entry).count(), slots)
    }

    fn counted(&self, route: Route) -> usize {
        let word = self.filled[(route.generation() & 1) as usize].load(Ordering::Acquire);
        Counted(word).of(route.generation()).unwrap_or(0) as usize
    }

    fn is_admitted(&self, number: u64, clock: &MockClock) -> bool {
        matches!(self.acquire(key(number), 1, clock), Ok(status) if status.is_admitted())
    }

    /// Looks at the current index: no more is taken than is counted, and at most 27 of 32 slots.
    fn assert_has_room(&self) {
        let route = self.route();
        let (taken, slots) = self.taken(route);
        assert!(taken <= self.counted(route), "{taken} slots are taken and {} counted", self.counted(route));
        assert!(32 * taken <= 27 * slots, "{taken} of {slots} slots are taken");
    }
}

/// The most that a turn can bring: everything in the old index is live, and every new key that may
/// come does.
#[test]
fn a_full_index_of_live_keys_fits_into_one_of_its_size_with_all_that_come_meanwhile() {
    for size in 6..=12 {
        let full = u64::from(full_at(size));
        let (table, clock) = (table(1 << 20, full_at(size) as usize - 1), MockClock::new());
        assert_eq!(table.route().size(), size);
        assert!((0..full).all(|number| table.is_admitted(number, &clock)));
        let turning = table.start_turn_to(size);
        let mut new = full..;
        while table.route() == turning {
            assert!(table.is_admitted(new.next().expect("for ever"), &clock));
            table.assert_has_room();
        }
        assert!(new.start - full <= (1 << size) / CHUNK as u64);
        // It is as full as can be by now, and goes on.
        for number in new.by_ref().take(1000) {
            assert!(table.is_admitted(number, &clock));
            table.assert_has_room();
        }
        assert!((0..new.start).all(|number| !table.is_admitted(number, &clock)), "each had its permit");
    }
}

/// The same, while threads have stopped for ever that had taken a place in the count, as many as
/// there are places.
#[test]
fn places_that_are_counted_and_never_taken_keep_nothing_from_migrating() {
    let full = u64::from(full_at(6));
    let (table, clock) = (table(1 << 20, 0), MockClock::new());
    assert!((0..full).all(|number| table.is_admitted(number, &clock)));
    let turning = table.start_turn_to(6);
    while table.reserve(turning) {}
    for number in full..500 {
        assert!(table.is_admitted(number, &clock));
        table.assert_has_room();
    }
    assert!((0..500).all(|number| !table.is_admitted(number, &clock)), "each had its permit");
}

/// Keys come, expire and are forgotten, as many as the cap allows, in an index that can't become
/// larger.
#[test]
fn at_the_cap_of_the_largest_index_there_is_room_for_what_migrates() {
    for key_cap in [1, 43, 44, 88, 700, 704] {
        let (table, clock) = (table(key_cap, 0), MockClock::new());
        let mut random = 1_u64;
        for step in 0..40_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (random >> 33) % (2 * key_cap as u64);
            table.is_admitted(number, &clock);
            if random >> 60 == 0 {
                table.forget(key(number), &clock);
            }
            if step % (1 + key_cap as u64 / 4) == 0 {
                clock.advance(Duration::from_nanos(1));
            }
            if step % 16 == 0 {
                table.assert_has_room();
            }
        }
        assert!(table.route().size() <= largest_for(key_cap) && table.route().generation() > 10);
    }
}

/// Many more threads than the smallest index has slots to spare.
#[test]
fn many_threads_at_the_smallest_index_all_come_to_an_end() {
    let (done, all_done) = channel();
    let (table, clock) = (Arc::new(table(44, 0)), MockClock::new());
    assert_eq!(largest_for(44), 6);
    let stop = Arc::new(AtomicBool::new(false));
    for thread in 0..16 {
        let (table, clock, stop, done) = (Arc::clone(&table), clock.clone(), Arc::clone(&stop), done.clone());
        std::thread::spawn(move || {
            for step in 0..20_000_u64 {
                let number = step.wrapping_mul(thread + 3) % 60;
                table.is_admitted(number, &clock);
                if step % 5 == thread % 5 {
                    table.forget(key(number), &clock);
                }
                if step % 64 == 0 {
                    clock.advance(Duration::from_nanos(1));
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
            done.send(()).expect("the test waits");
        });
    }
    for _ in 0..16 {
        let ended = all_done.recv_timeout(Duration::from_secs(120));
        stop.store(ended.is_err(), Ordering::Relaxed);
        ended.expect("a thread goes round and round");
    }
}

proptest! {
    #[test]
    fn sizes_are_the_smallest_that_do(keys in 0_usize..1 << 28) {
        let (size, largest) = (size_for(keys), largest_for(keys));
        prop_assert!(full_at(size) as usize > keys, "one more than expected finds a place");
        prop_assert!(size == SMALLEST || full_at(size - 1) as usize <= keys);
        // An eighth for new keys.
        prop_assert!(full_at(largest) as usize >= keys + (1 << largest) / 8);
        prop_assert!(size <= largest && (largest as usize) < SIZES);
    }
}
