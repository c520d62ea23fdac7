//! Turns from one generation of the index to the next, and sweeps the old one.
//!
//! The sweep goes chunk by chunk. `cursor` counts the finished chunks. A thread sweeps the chunk at
//! the cursor and then moves the cursor. Several threads may sweep one chunk, because every step on
//! a slot is idempotent; a stalled thread delays no other.
//!
//! # Room (INV-ROOM)
//!
//! An index takes new keys until 13 of 16 slots are taken (`FULL`). Entries that migrate are not
//! refused: if they found no room, the turn could not end. There is always room:
//!
//! - `filled` is never less than the slots taken: new keys and migrating entries are counted first.
//! - Only entries of current incarnations migrate, each once: entries that are the same word share
//!   a slot. When a turn to the same size begins, the old index has at most 13/16 of these. If more
//!   had been counted, the next index would be larger, unless it is the largest; then there are at
//!   most 11/16 as many cells.
//! - A new key during the turn finishes a chunk before it takes a slot. So there is at most one for
//!   each 32 slots.
//!
//! Together that is 27 of 32 slots, or half as many if the next index is larger. After the turn,
//! slots are taken by new keys, while fewer than 13/16 are counted, and by threads that stalled
//! since the turn, one slot each, for cells of ended incarnations. If those fill the index, no
//! entry is left to migrate into it. A new key that finds it full takes back its count and begins
//! the next turn.
//!
//! The fuller the index, the longer the search for an absent key: before a turn 15 slots on
//! average, two cache lines one after the other. For a present key it is three. At 7/8 it would be
//! 32 and 4.

use super::find::Table;
use super::heuristics::{full_at, next_larger};
use super::index::{Put, Route, SlotContent};
use crate::cell::{Freed, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// Slots in a chunk.
const CHUNK: u32 = if cfg!(tollgate_loom) { 2 } else { 32 };

/// Chunks that a new key sweeps for a place at the key cap: 256 slots of the index.
const CHUNKS_AT_CAP: u32 = 8;

/// An index of at most this many chunks is swept as a whole. A table of up to 704 keys has no
/// larger one, and so refuses a key only if every cell is live (INV-CAP).
const CHUNKS_OF_A_SMALL_INDEX: u32 = 32;

/// Chunks that a new key sweeps: the rest of the current turn, then a whole one if the index is
/// small.
fn most_chunks(route: Route) -> u32 {
    let all = (1 << route.size()) / CHUNK;
    if all <= CHUNKS_OF_A_SMALL_INDEX { 2 * CHUNKS_OF_A_SMALL_INDEX } else { CHUNKS_AT_CAP }
}

/// A count that belongs to one generation.
///
/// ```text
/// Counted { generation: 32, count: 32 }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted(pub(super) u64);

impl Counted {
    pub(super) fn new(generation: u32, count: u32) -> Self {
        Self((u64::from(generation) << 32) | u64::from(count))
    }

    /// The count, if it is of this generation. Zero if it is of an earlier one; `None` if of a
    /// later one.
    pub(super) fn of(self, generation: u32) -> Option<u32> {
        let ahead = ((self.0 >> 32) as u32).wrapping_sub(generation);
        match ahead {
            0 => u32::try_from(self.0 & u64::from(u32::MAX)).ok(),
            _ if ahead > u32::MAX / 2 => Some(0),
            _ => None,
        }
    }
}

impl Table {
    /// Counts a slot of the current index. `false` if the index has as many new keys as it may.
    pub(super) fn reserve(&self, route: Route) -> bool {
        self.count_filled(route, |filled| (filled < full_at(route.size())).then_some(filled + 1))
    }

    pub(super) fn unreserve(&self, route: Route) {
        self.count_filled(route, |filled| filled.checked_sub(1));
    }

    fn count_filled(&self, route: Route, change: impl Fn(u32) -> Option<u32>) -> bool {
        let generation = route.generation();
        let filled = &self.filled[(generation & 1) as usize];
        let next = |word| Some(Counted::new(generation, change(Counted(word).of(generation)?)?).0);
        filled.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Migrates a cell of the old index into the current one.
    pub(super) fn migrate(&self, route: Route, fingerprint: Fingerprint, id: u32, incarnation: u64) -> Put {
        // Counted first, so that no index holds more than was counted (INV-ROOM).
        if !self.count_filled(route, |filled| Some(filled + 1)) {
            return Put::Outdated;
        }
        let put = self.current(route).put(fingerprint, id, incarnation, &self.cells);
        if let Put::Done = put {
            self.turns.migrated.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unreserve(route);
        }
        put
    }

    /// Starts the next generation, unless another thread does.
    fn turn(&self, route: Route, time: u64) {
        let turns = &self.turns;
        let full = u128::from(full_at(route.size()));
        let filled = self.filled[(route.generation() & 1) as usize].load(Ordering::Acquire);
        let filled = u128::from(Counted(filled).of(route.generation()).unwrap_or(0));
        // The next index is larger if so many cells seem live that this one would have room for
        // less than a quarter of its keys. Migrated cells become idle within a window of the
        // generation's start. Of the new ones, those of the last window are live.
        let migrated = u128::from(turns.migrated.load(Ordering::Relaxed)).min(filled);
        let age = u128::from(time.saturating_sub(turns.turned_at.load(Ordering::Relaxed)));
        let window = u128::from(self.cells.longest_window());
        let live = match window.checked_sub(age) {
            Some(left) if left > 0 => filled - migrated + migrated * left / window,
            _ => (filled - migrated) * window / (age + 1),
        };
        // Keys in constant use migrate again and again. If they leave little room for others, each
        // sweep achieves little.
        let is_crowded = live >= full - full / 4 || migrated >= full - full / 16;
        let larger = filled > full || filled == full && is_crowded;
        let size = if larger { next_larger(route.size()).min(self.largest) } else { route.size() };
        let next = route.turned(size);
        self.make_index(next);
        if self.route.compare_exchange(route.0, next.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            turns.turned_at.store(time, Ordering::Relaxed);
            turns.migrated.store(0, Ordering::Relaxed);
        }
    }

    /// Starts a turn to an index twice the size, and stalls.
    #[cfg(test)]
    pub(super) fn start_turn(&self) -> Route {
        self.start_turn_to(self.route().size() + 1)
    }

    /// As [`start_turn`](Self::start_turn), to an index of this size.
    #[cfg(test)]
    pub(super) fn start_turn_to(&self, size: u32) -> Route {
        let route = self.route();
        let next = route.turned(size);
        self.make_index(next);
        self.route.compare_exchange(route.0, next.0, Ordering::AcqRel, Ordering::Relaxed).unwrap();
        next
    }

    /// Makes the current index take new keys again: ends the current turn, or starts one.
    #[cold]
    pub(super) fn make_way(&self, route: Route, clock: &impl Clock) {
        if !route.is_turning() {
            return self.turn(route, time_of(clock.now()));
        }
        while self.route() == route {
            self.sweep_chunk(route, clock);
        }
    }

    /// Sweeps a new key's share: one chunk that no other thread has finished.
    pub(super) fn sweep_some(&self, route: Route, clock: &impl Clock) {
        while route.is_turning() && self.route() == route && !self.sweep_chunk(route, clock) {}
    }

    /// Sweeps the next chunk, and ends the turn if it was the last. Returns whether this call moved
    /// the cursor.
    fn sweep_chunk(&self, route: Route, clock: &impl Clock) -> bool {
        let word = self.cursor.load(Ordering::Acquire);
        // The cursor may be of a later turn.
        let Some(chunk) = Counted(word).of(route.generation()) else { return false };
        let chunks = (1_u32 << route.old_size()) / CHUNK;
        let mut moved = false;
        if chunk < chunks {
            let time = time_of(clock.now());
            let start = (chunk * CHUNK) as usize;
            for at in start..start + CHUNK as usize {
                if !self.sweep_slot(route, at, time, clock) {
                    return false;
                }
            }
            let next = Counted::new(route.generation(), chunk + 1);
            moved = self.cursor.compare_exchange(word, next.0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        }
        if chunk + 1 >= chunks {
            let swept = route.swept();
            let _ = self.route.compare_exchange(route.0, swept.0, Ordering::AcqRel, Ordering::Relaxed);
        }
        moved
    }

    /// Sweeps one slot of the old index: seals it, frees its cell or migrates it. `false` if the
    /// turn is over.
    fn sweep_slot(&self, route: Route, at: usize, time: u64, clock: &impl Clock) -> bool {
        let old = self.old(route);
        loop {
            match old.read(at) {
                (word, SlotContent::Empty) => {
                    if old.seal(at, word) {
                        return true;
                    }
                }
                (_, SlotContent::Sealed) => return true,
                (_, SlotContent::Outdated) => return false,
                (_, SlotContent::Entry(entry)) => {
                    let lasts = || self.lasts(route);
                    let freed = self.cells.free_if(entry.id(), entry.incarnation(), time, clock, lasts);
                    let Freed::Live(end) = freed else { return true };
                    self.turns.note_end(route.generation(), end);
                    let Some(fingerprint) = self.cells.fingerprint_in(entry.id(), entry.incarnation()) else {
                        return true;
                    };
                    return match self.migrate(route, fingerprint, entry.id(), entry.incarnation()) {
                        Put::Done | Put::There | Put::Other => true,
                        Put::Outdated | Put::Full => false,
                    };
                }
            }
        }
    }

    /// Notes that a cell may be idle sooner than the sweep has seen: by `forget`, a refund, a change
    /// of quotas, or an import. The next key without a place sweeps (INV-CAP).
    pub(super) fn note_idle(&self) {
        loop {
            let generation = self.route().generation();
            self.turns.note_end(generation, 0);
            // Otherwise the sweep for the next generation may have passed the cell before.
            if self.route().generation() == generation {
                return;
            }
        }
    }

    /// Frees idle cells until there is room for `wanted` new keys. An error has the wait until
    /// there may be room.
    pub(super) fn make_room(&self, wanted: usize, clock: &impl Clock) -> Result<(), u64> {
        let mut chunks = 0;
        loop {
            let (route, time) = (self.route(), time_of(clock.now()));
            let most = most_chunks(route);
            if self.cells.room_up_to(wanted) >= wanted {
                return Ok(());
            }
            let mut retry_after_ns = 1;
            if !route.is_turning() {
                let until = self.turns.all_live_until(route.generation()).unwrap_or(0);
                if until > time {
                    retry_after_ns = until - time;
                    chunks = most;
                }
            }
            if chunks >= most {
                return Err(retry_after_ns);
            }
            if route.is_turning() {
                self.sweep_chunk(route, clock);
                chunks += 1;
            } else {
                self.turn(route, time);
            }
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use core::time::Duration;

    use super::super::heuristics::Heuristics;
    use super::*;
    use crate::cell::Versions;
    use crate::clock::MockClock;
    use crate::quota::Quota;

    /// The unit of the noted end.
    const UNIT: u64 = 1 << Heuristics::UNIT;

    /// Asks for permits of a key. An error says when there may be a place.
    fn ask(table: &Table, number: u64, cost: u32, clock: &MockClock) -> Result<bool, u64> {
        let fingerprint = Fingerprint::new(number << 56 | number, number << 4);
        table.acquire(fingerprint, cost, clock).map(|status| status.is_admitted())
    }

    #[test]
    fn at_the_cap_a_place_is_free_the_moment_that_a_key_expires() {
        for window in [10, UNIT - 1, UNIT, UNIT + 1, 5 * UNIT] {
            let quota = Quota::new(1, Duration::from_nanos(window));
            let (table, clock) = (Table::new(Versions::new(&[quota]), 1, 0), MockClock::new());
            assert_eq!(ask(&table, 1, 1, &clock), Ok(true));
            for (passed, left) in [(window / 2, window - window / 2), (window - 1 - window / 2, 1)] {
                clock.advance(Duration::from_nanos(passed));
                // The second time by the note of the first.
                for _ in 0..2 {
                    assert!(ask(&table, 2, 1, &clock).is_err_and(|wait| (1..=left).contains(&wait)));
                }
            }
            clock.advance(Duration::from_nanos(1));
            assert_eq!(ask(&table, 2, 1, &clock), Ok(true), "{window} ns");
        }
    }

    /// A key made after the sweep may be idle before those that the sweep saw.
    #[test]
    fn at_the_cap_a_place_is_free_the_moment_that_the_account_of_a_later_key_is_over() {
        let quota = Quota::token_bucket(10, 1, Duration::from_nanos(10 * UNIT));
        let (table, clock) = (Table::new(Versions::new(&[quota]), 2, 0), MockClock::new());
        assert_eq!((ask(&table, 1, 10, &clock), ask(&table, 2, 1, &clock)), (Ok(true), Ok(true)));
        for key in 3..6 {
            clock.advance(Duration::from_nanos(10 * UNIT - 1));
            assert!(ask(&table, key, 1, &clock).is_err());
            clock.advance(Duration::from_nanos(1));
            assert_eq!(ask(&table, key, 1, &clock), Ok(true), "key {key}");
        }
    }

    #[test]
    fn a_count_is_of_its_generation_only() {
        let count = Counted::new(7, 9);
        assert_eq!((count.of(7), count.of(8), count.of(6)), (Some(9), Some(0), None));
        assert_eq!(Counted::new(u32::MAX, 9).of(0), Some(0));
    }
}
