//! Turning from one generation of the index to the next, and sweeping the old one.
//!
//! The sweep goes chunk by chunk. `cursor` counts the chunks that somebody has finished; whoever sweeps takes the chunk it
//! points at, finishes it and moves it on. Several threads may work on the same chunk, as every step on a slot is idempotent; a
//! thread that stalls in one holds up nobody.
//!
//! # Room
//! An index takes new keys until 13 of 16 slots are taken (`FULL`). Cells that are carried are not refused: if they found no room, the
//! turn could never end. They always do, however many threads stall wherever:
//! - What is counted in `filled` is never less than what has been put: both a new key and a carried cell are counted first.
//! - Only entries of a life that goes on are carried, each once: entries that are the same word share a slot. When a turn to the same
//!   size begins, the old index holds no more than 13/16 of such: if more had been counted, the next index would be larger, unless it
//!   is the largest, and then there are no more cells than 11/16.
//! - A new key that comes during the turn finishes a chunk that nobody else has finished before it takes a slot, so there are no more of
//!   them than chunks: one for each 32 slots.
//!
//! Together that is 27 of 32 slots, or half as much where the next index is larger. Once the turn is over, slots are taken by new keys,
//! while fewer than 13/16 are counted, and by threads that have been asleep since the turn, one slot each, for cells
//! that are no longer anybody's. Should those fill the index, there is nothing left to be carried into it; a new key that finds it full
//! gives up its place in the count, finds that there is none left, and begins the next turn.
//!
//! The fuller the index, the longer the search for a key that is not there: when it is about to turn 15 slots on average,
//! two lines of the cache one after the other. For one that is there it is three. At 7/8 it would be 32 and 4.

use super::find::Table;
use super::heuristics::{full_at, next_larger};
use super::index::{Put, Seen};
use super::route::{Counted, Route};
use crate::cell::{Reclaimed, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// Slots in a chunk.
const CHUNK: u32 = if cfg!(tollgate_loom) { 2 } else { 32 };

/// Chunks that a new key looks through for a place when the table is at its cap: 256 slots of the index.
const CHUNKS_AT_CAP: u32 = 8;

/// An index of this many chunks is looked through as a whole instead. A table of up to 704 keys has no larger one, and so
/// refuses a key only if every cell is live.
const CHUNKS_OF_A_SMALL_INDEX: u32 = 32;

/// Chunks that a new key looks through: what is left of a turn that goes on, and then a whole one,
/// where the index is small.
fn most_chunks(route: Route) -> u32 {
    let all = (1 << route.size()) / CHUNK;
    if all <= CHUNKS_OF_A_SMALL_INDEX { 2 * CHUNKS_OF_A_SMALL_INDEX } else { CHUNKS_AT_CAP }
}

impl Table {
    /// Takes a slot of the current index into account. `false` when the index has as many new keys as it may.
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

    /// Puts a cell of the old index into the current one.
    pub(super) fn carry(&self, route: Route, fingerprint: Fingerprint, id: u32, life: u64) -> Put {
        // Counted first, so that no index ever holds more than has been counted, whoever stalls here.
        if !self.count_filled(route, |filled| Some(filled + 1)) {
            return Put::Outdated;
        }
        let put = self.current(route).put(fingerprint, id, life, &self.cells);
        if let Put::Done = put {
            self.turns.carried.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unreserve(route);
        }
        put
    }

    /// Starts the next generation, unless somebody else does.
    fn turn(&self, route: Route, time: u64) {
        let turns = &self.turns;
        let full = u128::from(full_at(route.size()));
        let filled = self.filled[(route.generation() & 1) as usize].load(Ordering::Acquire);
        let filled = u128::from(Counted(filled).of(route.generation()).unwrap_or(0));
        // The next index is larger if, as keys come and go, as many cells seem to be live as would leave this one room for less than
        // a quarter of what it takes. Those that were carried become idle within a window of the generation's beginning; of
        // those that are new since, the ones of the last window are live.
        let carried = u128::from(turns.carried.load(Ordering::Relaxed)).min(filled);
        let age = u128::from(time.saturating_sub(turns.turned_at.load(Ordering::Relaxed)));
        let window = u128::from(self.cells.longest_window());
        let live = match window.checked_sub(age) {
            Some(left) if left > 0 => filled - carried + carried * left / window,
            _ => (filled - carried) * window / (age + 1),
        };
        // Keys in use all the time are carried again and again. If they leave room for hardly any others, then each sweep is for little.
        let is_crowded = live >= full - full / 4 || carried >= full - full / 16;
        let larger = filled > full || filled == full && is_crowded;
        let size = if larger { next_larger(route.size()).min(self.largest) } else { route.size() };
        let next = route.turned(size);
        self.make_index(next);
        if self.route.compare_exchange(route.0, next.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            turns.turned_at.store(time, Ordering::Relaxed);
            turns.carried.store(0, Ordering::Relaxed);
        }
    }

    /// Starts a turn to an index twice the size and does nothing else, as a thread might that stops there.
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

    /// Makes the current index take new keys again: ends the turn that goes on, or starts one.
    #[cold]
    pub(super) fn make_way(&self, route: Route, clock: &impl Clock) {
        if !route.is_turning() {
            return self.turn(route, time_of(clock.now()));
        }
        while self.route() == route {
            self.sweep_chunk(route, clock);
        }
    }

    /// Does a new key's share of the sweep: one chunk that nobody else has finished.
    pub(super) fn sweep_some(&self, route: Route, clock: &impl Clock) {
        while route.is_turning() && self.route() == route && !self.sweep_chunk(route, clock) {}
    }

    /// Sweeps the next chunk, and ends the turn if it was the last. Says whether this call moved the cursor.
    fn sweep_chunk(&self, route: Route, clock: &impl Clock) -> bool {
        let word = self.cursor.load(Ordering::Acquire);
        // Nothing when the cursor is of a later turn.
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

    /// Does what has to be done about one slot of the old index: seals it, frees its cell or carries it over. `false` when
    /// the turn is over.
    fn sweep_slot(&self, route: Route, at: usize, time: u64, clock: &impl Clock) -> bool {
        let old = self.old(route);
        loop {
            match old.read(at) {
                (word, Seen::Empty) => {
                    if old.seal(at, word) {
                        return true;
                    }
                }
                (_, Seen::Sealed) => return true,
                (_, Seen::Outdated) => return false,
                (_, Seen::Entry(entry)) => {
                    let lasts = || self.lasts(route);
                    let reclaimed = self.cells.reclaim_if(entry.id(), entry.life(), time, clock, lasts);
                    let Reclaimed::Live(end) = reclaimed else { return true };
                    self.turns.note_end(route.generation(), end);
                    let Some(fingerprint) = self.cells.fingerprint_in(entry.id(), entry.life()) else { return true };
                    return match self.carry(route, fingerprint, entry.id(), entry.life()) {
                        Put::Done | Put::There | Put::Other => true,
                        Put::Outdated | Put::Full => false,
                    };
                }
            }
        }
    }

    /// Looks for cells that can be reclaimed, until there is room for `wanted` new keys. An error
    /// says how long until there may be.
    pub(super) fn make_room(&self, wanted: usize, clock: &impl Clock) -> Result<(), u64> {
        let mut chunks = 0;
        loop {
            let (route, time) = (self.route(), time_of(clock.now()));
            let most = most_chunks(route);
            if self.cells.room_up_to(wanted) >= wanted {
                return Ok(());
            }
            let mut retry_after_ns = 1;
            // Who has looked at as much as it may leaves the mark to the next.
            let forgotten = || match chunks < most {
                true => self.turns.forgotten.swap(false, Ordering::AcqRel),
                false => self.turns.forgotten.load(Ordering::Acquire),
            };
            if !route.is_turning() && !forgotten() {
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
    use crate::cell::Revisions;
    use crate::clock::MockClock;
    use crate::quota::Quota;
    use crate::table::Placed;

    /// What the floor is rounded to.
    const UNIT: u64 = 1 << Heuristics::UNIT;

    /// Permits of a key; and where there is no place, how long until there may be one.
    fn ask(table: &Table, number: u64, cost: u32, clock: &MockClock) -> Result<bool, u64> {
        match table.acquire(Fingerprint::new(number << 56 | number, number << 4), cost, clock) {
            Placed::Decided(status) => Ok(status.is_admitted()),
            Placed::NoRoom { retry_after_ns } => Err(retry_after_ns),
        }
    }

    #[test]
    fn at_the_cap_a_place_is_free_the_moment_that_a_key_expires() {
        for window in [10, UNIT - 1, UNIT, UNIT + 1, 5 * UNIT] {
            let quota = Quota::new(1, Duration::from_nanos(window));
            let (table, clock) = (Table::new(Revisions::new(&[quota]), 1, 0), MockClock::new());
            assert_eq!(ask(&table, 1, 1, &clock), Ok(true));
            for (passed, left) in [(window / 2, window - window / 2), (window - 1 - window / 2, 1)] {
                clock.advance(Duration::from_nanos(passed));
                // The second time by what was noted the first time.
                for _ in 0..2 {
                    assert!(ask(&table, 2, 1, &clock).is_err_and(|wait| (1..=left).contains(&wait)));
                }
            }
            clock.advance(Duration::from_nanos(1));
            assert_eq!(ask(&table, 2, 1, &clock), Ok(true), "{window} ns");
        }
    }

    /// A key that was made after the sweep may be as new before those that the sweep saw.
    #[test]
    fn at_the_cap_a_place_is_free_the_moment_that_the_account_of_a_later_key_is_over() {
        let quota = Quota::token_bucket(10, 1, Duration::from_nanos(10 * UNIT));
        let (table, clock) = (Table::new(Revisions::new(&[quota]), 2, 0), MockClock::new());
        assert_eq!((ask(&table, 1, 10, &clock), ask(&table, 2, 1, &clock)), (Ok(true), Ok(true)));
        for key in 3..6 {
            clock.advance(Duration::from_nanos(10 * UNIT - 1));
            assert!(ask(&table, key, 1, &clock).is_err());
            clock.advance(Duration::from_nanos(1));
            assert_eq!(ask(&table, key, 1, &clock), Ok(true), "key {key}");
        }
    }
}
