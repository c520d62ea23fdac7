//! The numbers of a quantised log.
//!
//! Time is divided into *steps* of one resolution q, numbered by their ends: step k ends k * q
//! after an origin. The stamp of a permit is the end of its step: the reading, rounded **up**. A
//! reading at the end of a step belongs to it. The window is S steps long, so a permit of step k is
//! free again at the end of step k + S. After d whole steps exactly the steps after d - S count.

use crate::clock::nanos;
use crate::quota::{Kind, Quota};
use crate::state::ring::MAX_SHORT;
use crate::state::word::{RingRef, TIME_ZERO, Word};

/// A quantised log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepsPlan {
    /// The most permits that count, and the most that a request may ask for.
    pub(super) limit: u32,
    /// The length of a step, in nanoseconds.
    pub(super) resolution: u64,
    /// The length of the window, in steps.
    pub(super) window: u64,
    /// The start of step 1: a window before the clock's origin, for imports from before a restart.
    origin: u64,
}

impl StepsPlan {
    /// The plan of a validated quota, if it is a quantised log.
    pub(crate) fn of(quota: &Quota) -> Option<Self> {
        let Kind::QuantisedLog { window, resolution } = quota.kind() else { return None };
        let resolution = nanos(resolution).max(1);
        let window = nanos(window) / resolution;
        let origin = TIME_ZERO.saturating_sub(window * resolution);
        Some(Self { limit: quota.limit(), resolution, window, origin })
    }

    /// The whole steps that have passed at `time`, and the step that `time` belongs to, if `newest`
    /// is the newest step of the key.
    ///
    /// The newest step has begun by some clock. A reading from before **counts as its first
    /// moment**. So steps never decrease, and what had expired when a step began counts at no later
    /// decision.
    #[inline]
    pub(super) fn around(&self, newest: u64, time: u64) -> (u64, u64) {
        let elapsed = time.saturating_sub(self.origin);
        // A step of one nanosecond is over when it begins.
        let begun = newest.saturating_sub(u64::from(self.resolution > 1));
        let until_end = newest.wrapping_mul(self.resolution).wrapping_sub(elapsed);
        if until_end < self.resolution {
            // Within the newest step there is no division.
            return (if until_end == 0 { newest } else { begun }, newest);
        }
        let passed = elapsed / self.resolution;
        let step = passed + u64::from(passed * self.resolution < elapsed);
        (passed.max(begun), step.max(newest))
    }

    /// The step that a time belongs to.
    #[cfg(any(feature = "snapshot", test))]
    pub(super) fn step_of(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin).div_ceil(self.resolution)
    }

    /// The stamp of a step's permits.
    pub(super) fn end_of(&self, step: u64) -> u64 {
        self.origin.saturating_add(step.saturating_mul(self.resolution))
    }

    /// The time at which the permits of a step are free again.
    #[inline]
    pub(super) fn free_at(&self, step: u64) -> u64 {
        self.end_of(step.saturating_add(self.window))
    }
}

/// The state of a quantised log.
///
/// ```text
/// { newest: 62, used: 31, slot: 29, class: 4 }
/// ```
///
/// Zero is the state of a key that was never asked. A word that was ever written has a step.
///
/// Rings of one class begin at multiples of their length. So one number names the ring and a place
/// in it. The names of an arena's rings run out after 4 GiB of slots, or earlier, since long rings of all
/// lengths are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StepsState {
    /// The newest step. Times are below 2^62, and so are steps of a nanosecond.
    pub(super) newest: u64,
    /// The permits granted in it: at most 2^30, the largest limit.
    pub(super) used: u32,
    /// The place of the newest step, among all slots.
    pub(super) slot: u32,
    /// The ring has `1 << class` slots; none, if this is zero.
    pub(super) class: u32,
}

const SLOT_BITS: u32 = 29;

/// Steps of an epoch. All words that name a ring have their newest step in one epoch.
const EPOCH: u64 = 1 << 32;

/// The most permits that a ring can count.
pub(super) const MAX_TOTAL: u32 = (1 << Entry::TOTAL_BITS) - 1;

impl StepsState {
    #[inline]
    pub(super) const fn pack(self) -> Word {
        let Self { newest, used, slot, class } = self;
        Word::of(newest as u128 | (used as u128) << 62 | (slot as u128) << 93 | (class as u128) << 122)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the masks leave no more bits")]
    pub(super) const fn unpack(word: Word) -> Self {
        let state = word.state();
        Self {
            newest: state as u64 & ((1 << 62) - 1),
            used: (state >> 62) as u32 & MAX_TOTAL,
            slot: (state >> 93) as u32 & ((1 << SLOT_BITS) - 1),
            class: (state >> 122) as u32 & 15,
        }
    }

    #[inline]
    pub(super) const fn ring(self) -> RingRef {
        let number = if self.class <= MAX_SHORT { (self.slot & !self.mask()) / 2 } else { self.slot >> self.class };
        RingRef { class: self.class, number }
    }

    /// The newest step at a place in this ring. `None` if the word has no name for it.
    pub(super) fn in_ring(self, RingRef { class, number }: RingRef, place: usize) -> Option<Self> {
        let start = if class <= MAX_SHORT { u64::from(number) * 2 } else { u64::from(number) << class };
        let slot = u32::try_from(start + place as u64).ok().filter(|&slot| slot < 1 << SLOT_BITS)?;
        Some(Self { slot, class, ..self })
    }

    /// The place in the ring, so far back from the newest step.
    #[inline]
    pub(super) const fn place(self, back: u32) -> usize {
        (self.slot.wrapping_sub(back) & self.mask()) as usize
    }

    /// A step that begins with `used` permits, in the next slot of the ring.
    #[inline]
    pub(super) const fn next(self, newest: u64, used: u32) -> Self {
        let slot = self.slot & !self.mask() | (self.slot + 1) & self.mask();
        Self { newest, used, slot, ..self }
    }

    const fn mask(self) -> u32 {
        (1 << self.class) - 1
    }

    /// The first step of an epoch.
    #[inline]
    const fn epoch(self) -> u64 {
        self.newest & !(EPOCH - 1)
    }

    /// Whether a ring of this word may be named by a word with this newest step.
    #[inline]
    pub(super) const fn is_in_epoch_of(self, step: u64) -> bool {
        self.epoch() == step & !(EPOCH - 1)
    }

    /// The number of a step in the slots of the ring. A window is shorter than an epoch.
    #[inline]
    pub(super) const fn number_of(self, step: u64) -> u64 {
        step.wrapping_add(EPOCH).saturating_sub(self.epoch())
    }

    /// The step of an entry in the ring.
    #[inline]
    pub(super) const fn step_of(self, entry: Entry) -> u64 {
        entry.number().wrapping_add(self.epoch()).wrapping_sub(EPOCH)
    }
}

/// A step that is over, in a slot.
///
/// ```text
/// { number: 33, total: 31 }
/// ```
///
/// Steps are numbered from one epoch before that of the ring's words. `total` counts the permits of
/// the ring, up to this step's. Neither wraps, so a later entry is a larger number. Zero is no
/// entry: nothing was granted before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    const TOTAL_BITS: u32 = 31;

    #[inline]
    pub(super) const fn new(number: u64, total: u32) -> Self {
        debug_assert!(number < 2 * EPOCH && total <= MAX_TOTAL);
        Self(number << Self::TOTAL_BITS | total as u64)
    }

    #[inline]
    pub(super) const fn number(self) -> u64 {
        self.0 >> Self::TOTAL_BITS
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves no more bits")]
    pub(super) const fn total(self) -> u32 {
        self.0 as u32 & MAX_TOTAL
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
