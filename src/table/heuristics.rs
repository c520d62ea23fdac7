//! When to turn, and to which size.

use super::route::{Route, SIZES};
use crate::cell::MAX_TIME;
use crate::sync::{Ordering, plain};

/// log2 of the slots of the smallest index.
pub(super) const SMALLEST: u32 = if cfg!(tollgate_loom) { 2 } else { 6 };

/// Sixteenths of the slots of an index that may be taken before it turns.
///
/// The tiny indexes of the models have chunks of half their size, so a turn may see as many new keys as that: the other half is
/// for those.
const FULL: u64 = if cfg!(tollgate_loom) { 8 } else { 13 };

/// log2 of the slots of an index that no table grows through.
const PASSED_OVER: u32 = 19;

/// log2 of the slots of the largest index: twice the most keys there can be.
const LARGEST: u32 = 29;
const _: () = assert!((LARGEST as usize) < SIZES);

/// How many slots of an index, whose size is given as log2, may be taken before it turns.
pub(super) fn full_at(size: u32) -> u32 {
    u32::try_from((FULL << size) / 16).expect("far less")
}

/// The size of the smallest index that takes so many keys without turning, and one more, which finds out that it is one too many.
pub(super) fn size_for(keys: usize) -> u32 {
    (SMALLEST..LARGEST).find(|&size| full_at(size) as usize > keys).unwrap_or(LARGEST)
}

/// The size of the largest index of a table that holds up to so many keys: an eighth of it is left for new keys when all are live.
/// With less, it would be swept over and over for a handful of keys each time; with nothing, for ever.
pub(super) fn largest_for(key_cap: usize) -> u32 {
    let room = |size: u32| full_at(size) - ((1 << size) / 8).max(1);
    (SMALLEST..LARGEST).find(|&size| room(size) as usize >= key_cap).unwrap_or(LARGEST)
}

/// The next larger size. The smaller indexes are kept, as much memory as the last, unless one of them never was: that is why 2^19
/// slots are passed over. It costs populations that would have fitted as much as it saves larger ones; a million keys are among
/// those that it saves something.
pub(super) fn next_larger(size: u32) -> u32 {
    if size + 1 == PASSED_OVER { size + 2 } else { size + 1 }
}

/// What helps to choose when to turn and how large; nothing depends on it but time and memory.
#[derive(Default)]
pub(super) struct Heuristics {
    /// When the current generation began.
    pub(super) turned_at: plain::AtomicU64,
    /// Cells carried into the current generation.
    pub(super) carried: plain::AtomicU64,
    /// The earliest end of a stamp that the sweep for a generation came upon: until then every cell is live.
    ///
    /// `Floor { generation: 16, time: 48 }`, the time in units of 2^14 ns, rounded down.
    pub(super) floor: plain::AtomicU64,
    /// A cell may have become idle, otherwise than by time, that no sweep has seen since: forgotten, given back, under another quota.
    pub(super) forgotten: plain::AtomicBool,
}

impl Heuristics {
    pub(super) const UNIT: u32 = 14;

    pub(super) fn note_forgotten(&self) {
        self.forgotten.store(true, Ordering::Release);
    }

    pub(super) fn note_end(&self, generation: u32, end: u64) {
        let mine = (u64::from(generation & 0xffff) << 48) | (end.min(MAX_TIME) >> Self::UNIT);
        let lower = |floor: u64| {
            // Of a thread that slept, the generation may be an earlier one.
            let ahead = (mine >> 48).wrapping_sub(floor >> 48) & 0xffff;
            (ahead < 1 << 15 && (ahead > 0 || floor > mine)).then_some(mine)
        };
        // An error says that the floor is low enough.
        let _ = self.floor.fetch_update(Ordering::AcqRel, Ordering::Acquire, lower);
    }

    /// Takes a cell into account that was made after the sweep for a generation, or during it. A
    /// log's stamps end later than those the sweep saw, unless the clock has gone back; an account
    /// may be over sooner, and a cell without permits can be reclaimed at once.
    pub(super) fn note_new(&self, route: Route, end: impl FnOnce() -> u64) {
        if route.is_turning() || self.all_live_until(route.generation()).is_some() {
            self.note_end(route.generation(), end());
        }
    }

    /// Until when every cell is live, as far as the sweep for this generation has shown.
    pub(super) fn all_live_until(&self, generation: u32) -> Option<u64> {
        let floor = self.floor.load(Ordering::Acquire);
        (floor >> 48 == u64::from(generation & 0xffff)).then_some((floor & ((1 << 48) - 1)) << Self::UNIT)
    }
}
