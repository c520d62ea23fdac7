//! Decides when to turn, and to which size.

use super::index::{Route, SIZES};
use crate::cell::MAX_TIME;
use crate::sync::{Ordering, plain};

/// log2 of the slots of the smallest index.
pub(super) const SMALLEST: u32 = if cfg!(tollgate_loom) { 2 } else { 6 };

/// The sixteenths of an index that new keys may take before it turns.
///
/// The tiny indexes of the models have chunks of half their size, so a turn may see that many new
/// keys. The other half is for those.
const FULL: u64 = if cfg!(tollgate_loom) { 8 } else { 13 };

/// log2 of the slots of an index that growth skips.
const PASSED_OVER: u32 = 19;

/// log2 of the slots of the largest index: twice the most keys there can be.
const LARGEST: u32 = 29;
const _: () = assert!((LARGEST as usize) < SIZES);

/// The slots of an index of this size (as log2) that new keys may take before it turns.
pub(super) fn full_at(size: u32) -> u32 {
    u32::try_from((FULL << size) / 16).expect("far less")
}

/// The smallest index that takes so many keys, and one more, without a turn.
pub(super) fn size_for(keys: usize) -> u32 {
    (SMALLEST..LARGEST).find(|&size| full_at(size) as usize > keys).unwrap_or(LARGEST)
}

/// The largest index of a table with this key cap. An eighth of it is left for new keys when all
/// are live. With less it would be swept for each handful of keys; with nothing, for ever.
pub(super) fn largest_for(key_cap: usize) -> u32 {
    let room = |size: u32| full_at(size) - ((1 << size) / 8).max(1);
    (SMALLEST..LARGEST).find(|&size| room(size) as usize >= key_cap).unwrap_or(LARGEST)
}

/// The next larger size. Smaller indexes stay allocated, as much memory as the last one. Growth
/// skips 2^19 slots: that saves memory at a million keys, among others, and costs as much where
/// 2^19 slots would have been enough.
pub(super) fn next_larger(size: u32) -> u32 {
    if size + 1 == PASSED_OVER { size + 2 } else { size + 1 }
}

/// Notes for the choice of turns. Only time and memory depend on them.
#[derive(Default)]
pub(super) struct Heuristics {
    /// The start of the current generation.
    pub(super) turned_at: plain::AtomicU64,
    /// The cells migrated into the current generation.
    pub(super) migrated: plain::AtomicU64,
    /// The earliest end that the sweep for a generation has seen: until then every cell is live
    /// (INV-CAP).
    ///
    /// `NotedEnd { generation: 16, time: 48 }`, the time in units of 2^14 ns, rounded down.
    pub(super) noted_end: plain::AtomicU64,
}

impl Heuristics {
    pub(super) const UNIT: u32 = 14;

    pub(super) fn note_end(&self, generation: u32, end: u64) {
        let mine = (u64::from(generation & 0xffff) << 48) | (end.min(MAX_TIME) >> Self::UNIT);
        let lower = |noted_end: u64| {
            // The generation of a stalled thread may be an earlier one.
            let ahead = (mine >> 48).wrapping_sub(noted_end >> 48) & 0xffff;
            (ahead < 1 << 15 && (ahead > 0 || noted_end > mine)).then_some(mine)
        };
        // An error means that the noted end is early enough.
        let _ = self.noted_end.fetch_update(Ordering::AcqRel, Ordering::Acquire, lower);
    }

    /// Includes a cell that is made after the sweep for a generation, or during it. A log's stamps
    /// end later than those that the sweep saw, unless the clock has gone back. An account may be
    /// over sooner, and a cell without permits can be freed at once.
    pub(super) fn note_new(&self, route: Route, end: impl FnOnce() -> u64) {
        if route.is_turning() || self.all_live_until(route.generation()).is_some_and(|until| until > 0) {
            self.note_end(route.generation(), end());
        }
    }

    /// The time until which every cell is live, if the sweep for this generation has shown one.
    pub(super) fn all_live_until(&self, generation: u32) -> Option<u64> {
        let noted_end = self.noted_end.load(Ordering::Acquire);
        (noted_end >> 48 == u64::from(generation & 0xffff)).then_some((noted_end & ((1 << 48) - 1)) << Self::UNIT)
    }
}
