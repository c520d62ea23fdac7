//! The quantised log: a step is one resolution, and each step with permits has a slot.
//!
//! Steps are numbered by their ends: step k ends k * q after an origin, with q the resolution. The
//! stamp of a permit is the end of its step: the reading, rounded **up**. A reading at the end of a
//! step belongs to it. The window is S steps long, so a permit of step k is free again at the end of
//! step k + S. After d whole steps exactly the steps after d - S count.
//!
//! # The ring
//!
//! A slot is an [`Entry`]: a step that is over, and the *total* of permits up to it since the ring
//! was made. So the permits of some steps are the difference of two totals, and a bisection finds
//! the entry of a step or of a permit. More permits of the newest step change the word alone.
//!
//! While a word stands, only the slot of its newest step is written. So a word reads the others
//! alone: the steps that count, and one entry before them, whose total is where they begin. A step
//! begins in a ring only if that leaves such an entry outside its own slot. A ring with two slots
//! more than the window has steps is always long enough.
//!
//! The total before the newest step is read from the slot before its own. If another round of the
//! ring has written that, it has the newest step or a later one: the word has changed, and nothing is
//! spilled. Otherwise it has the total that the newest step began with. So what is spilled is right
//! for its word, whether that still stands or not.
//!
//! Numbers in slots do not wrap. A ring belongs to words of one epoch of 2^32 steps. A ring whose
//! total would exceed 31 bits is copied, and what counts, at most 2^30, is counted anew.

use super::{Grant, Layout, LogPlan, LogState, RingRef, View, bisect};
use crate::quota::Quota;
use crate::state::cell::{TIME_ZERO, Word};
use crate::state::ring::Rings;
use crate::state::sync::Ordering;

/// The layout of a quantised log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::state) struct Steps {
    /// The length of a step, in nanoseconds.
    resolution: u64,
    /// The start of step 1: a window before the clock's origin, for imports from before a restart.
    origin: u64,
}

/// The bits that name a slot.
const SLOT_BITS: u32 = 29;

/// Steps of an epoch. All words that name a ring have their newest step in one epoch. A window is
/// shorter.
const EPOCH: u64 = 1 << 32;

/// The most permits that a ring can count.
const MAX_TOTAL: u32 = (1 << Entry::TOTAL_BITS) - 1;

impl LogPlan<Steps> {
    /// The plan of the validated quota of a quantised log.
    pub(in crate::state) fn new(quota: &Quota, window: u64, resolution: u64) -> Self {
        let (resolution, window) = (resolution.max(1), window / resolution.max(1));
        let layout = Steps { resolution, origin: TIME_ZERO.saturating_sub(window * resolution) };
        Self::of_quotas(layout, &[*quota], |_| window)
    }
}

impl View<'_, Steps> {
    /// The entry so far back: that of the last step before the newest is 1 back. No word reads the
    /// one that is as far back as the ring is long.
    fn entry(&self, back: u32) -> Entry {
        if self.ring.is_empty() { Entry(0) } else { Entry(self.ring.load(self.state.position, back + 1)) }
    }

    /// The most entries that have a readable one before them.
    fn most_entries(&self) -> u32 {
        self.ring.slots().saturating_sub(2)
    }

    /// The number of entries of this step or a later one.
    fn entries_from(&self, first: u64) -> u32 {
        // Steps differ. If there is an entry for each, the first look is the last.
        let most = self.state.newest.saturating_sub(first).min(self.most_entries().into());
        let (most, first) = (u32::try_from(most).unwrap_or(u32::MAX), self.state.number_of(first));
        let is_later = |back| self.entry(back).number() >= first;
        if most > 0 && is_later(most) { most } else { bisect(most, is_later) }
    }

    /// The permits of so many entries, the newest.
    fn permits_of(&self, entries: u32) -> u32 {
        self.entry(1).total().wrapping_sub(self.entry(entries + 1).total())
    }
}

/// ```text
/// { newest: 62, run: 31, slot: 29, class: 4 }
/// ```
///
/// The newest step, the permits granted in it (at most 2^30, the largest limit), and the number of
/// its slot, which names the ring, too.
impl Layout for Steps {
    const RESERVES: bool = false;
    const MOST: u32 = MAX_TOTAL;
    #[cfg(feature = "snapshot")]
    const AT_ONCE: u32 = 2 * Quota::MAX_CAPACITY;

    /// The newest step has begun by some clock. A reading from before **counts as its first
    /// moment**. So steps never decrease, and what had expired when a step began counts at no later
    /// decision.
    fn around(self, newest: u64, time: u64) -> (u64, u64) {
        let elapsed = time.saturating_sub(self.origin);
        let begun = self.begun(newest);
        let until_end = newest.wrapping_mul(self.resolution).wrapping_sub(elapsed);
        if until_end < self.resolution {
            // Within the newest step there is no division.
            return (if until_end == 0 { newest } else { begun }, newest);
        }
        let passed = elapsed / self.resolution;
        let step = passed + u64::from(passed * self.resolution < elapsed);
        (passed.max(begun), step.max(newest))
    }

    /// A step of one nanosecond is over when it begins.
    fn begun(self, step: u64) -> u64 {
        step.saturating_sub(u64::from(self.resolution > 1))
    }

    fn step_of(self, time: u64) -> u64 {
        time.saturating_sub(self.origin).div_ceil(self.resolution)
    }

    #[inline]
    fn end_of(self, step: u64) -> u64 {
        self.origin.saturating_add(step.saturating_mul(self.resolution))
    }

    fn pack(state: LogState) -> Word {
        let LogState { newest, run, position, ring: RingRef { class, start }, .. } = state;
        debug_assert!(run <= MAX_TOTAL);
        let slot = start + (position.wrapping_sub(1) & mask(class));
        Word::of(u128::from(newest) | u128::from(run) << 62 | u128::from(slot) << 93 | u128::from(class) << 122)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the masks leave no more bits")]
    fn unpack(word: Word) -> LogState {
        let state = word.state();
        let (slot, class) = ((state >> 93) as u32 & ((1 << SLOT_BITS) - 1), (state >> 122) as u32 & 15);
        LogState {
            newest: LogState::newest_in(word),
            run: (state >> 62) as u32 & MAX_TOTAL,
            position: (slot & mask(class)) + 1,
            ring: RingRef { class, start: slot & !mask(class) },
            reserved: false,
        }
    }

    fn slots_of(self, class: u32) -> u32 {
        1 << class & !1
    }

    fn back(view: &View<'_, Self>, back: u32) -> u64 {
        let Some(older) = back.checked_sub(view.state.run + 1) else { return view.state.newest };
        let (total, most) = (view.entry(1).total(), view.most_entries());
        let are_later = |entries| total.wrapping_sub(view.entry(entries + 1).total()) <= older;
        // Often it is none of these.
        let later = if are_later(most) { most } else { bisect(most, are_later) };
        if later == most { 0 } else { view.state.step_of(view.entry(later + 1)) }
    }

    fn count_from(view: &View<'_, Self>, first: u64, most: u32) -> u32 {
        if first > view.state.newest {
            return 0;
        }
        view.permits_of(view.entries_from(first)).wrapping_add(view.state.run).min(most)
    }

    fn permits_from(view: &View<'_, Self>, first: u64) -> impl ExactSizeIterator<Item = (u64, u32)> {
        let permits = |back| view.entry(back).total().wrapping_sub(view.entry(back + 1).total());
        let entries =
            (1..=view.entries_from(first)).rev().map(|back| (view.state.step_of(view.entry(back)), permits(back)));
        let newest = (view.state.newest, view.state.run);
        let all: Vec<_> = entries.chain([newest]).filter(|&(step, permits)| permits > 0 && step >= first).collect();
        all.into_iter()
    }

    fn continued(view: &View<'_, Self>, grant: Grant, _: u64, free_below: u64) -> Option<LogState> {
        let (state, Grant { cost, stamp, .. }) = (view.state, grant);
        if stamp == state.newest {
            return Some(LogState { run: state.run.saturating_add(cost), ..state });
        }
        let (last, number) = (view.entry(1), state.number_of(state.newest));
        let total = last.total().saturating_add(state.run);
        // The next slot is lost to this step. So an entry that has expired must be in the one after
        // it.
        let is_free = state.ring.class > 0
            && state.is_in_epoch_of(stamp)
            && total <= MAX_TOTAL
            && view.entry(view.most_entries()).number() < state.number_of(free_below);
        if is_free && last.number() < number {
            view.ring.raise_last(state.position, 1, Entry::new(number, total).0);
        }
        is_free.then_some(LogState { newest: stamp, run: cost, position: state.position + 1, ..state })
    }

    fn most_slots(_: u32, window: u64) -> usize {
        usize::try_from(window).unwrap_or(usize::MAX).saturating_add(2)
    }

    fn copied(
        self,
        rings: &Rings,
        state: LogState,
        older: impl ExactSizeIterator<Item = (u64, u32)>,
        room: usize,
    ) -> LogState {
        let run = state.run.min(MAX_TOTAL);
        let mut older: Vec<(u64, u32)> = older.collect();
        older.dedup_by(|next, first| {
            let is_one_step = next.0 == first.0;
            first.1 = first.1.saturating_add(if is_one_step { next.1 } else { 0 });
            is_one_step
        });
        if older.is_empty() {
            return LogState { run, position: 1, ring: RingRef::NONE, ..state };
        }
        let slots = (older.len() + 2).max((2 * older.len()).min(room));
        let class = slots.next_power_of_two().ilog2();
        let (slots, start) = (self.slots_of(class), rings.take(self.slots_of(class)));
        assert!(start >> SLOT_BITS == 0, "the steps of one part of a table take less than 4 GiB");
        // A slot of zero remains before the first entry: nothing was granted before it.
        let (ring, mut position, mut total) = (rings.get(start, slots), 1, 0_u32);
        for ((step, permits), slot) in older.into_iter().zip(ring.iter().skip(1)) {
            total = total.saturating_add(permits).min(MAX_TOTAL);
            // The swap of the word releases it.
            slot.store(Entry::new(state.number_of(step), total).0, Ordering::Relaxed);
            position += 1;
        }
        LogState { run, position: position + 1, ring: RingRef { class, start }, ..state }
    }
}

const fn mask(class: u32) -> u32 {
    (1 << class) - 1
}

/// Of a quantised log.
impl LogState {
    /// The first step of an epoch.
    const fn epoch(self) -> u64 {
        self.newest & !(EPOCH - 1)
    }

    /// Whether a ring of this word may be named by a word with this newest step.
    const fn is_in_epoch_of(self, step: u64) -> bool {
        self.epoch() == step & !(EPOCH - 1)
    }

    /// The number of a step in the slots of the ring.
    const fn number_of(self, step: u64) -> u64 {
        step.wrapping_add(EPOCH).saturating_sub(self.epoch())
    }

    /// The step of an entry in the ring.
    const fn step_of(self, entry: Entry) -> u64 {
        entry.number().wrapping_add(self.epoch()).wrapping_sub(EPOCH)
    }
}

/// A step that is over, in a slot.
///
/// ```text
/// { total: 31, number: 33 }
/// ```
///
/// Steps are numbered from one epoch before that of the ring's words. `total` counts the permits of
/// the ring, up to this step's. Neither wraps, so a later entry is a larger number. Zero is no
/// entry: nothing was granted before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u64);

impl Entry {
    const TOTAL_BITS: u32 = 31;

    const fn new(number: u64, total: u32) -> Self {
        debug_assert!(number < 2 * EPOCH && total <= MAX_TOTAL);
        Self(number << Self::TOTAL_BITS | total as u64)
    }

    const fn number(self) -> u64 {
        self.0 >> Self::TOTAL_BITS
    }

    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves no more bits")]
    const fn total(self) -> u32 {
        self.0 as u32 & MAX_TOTAL
    }
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
