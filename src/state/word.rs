//! The word of a key: two flags, and the state of the key's algorithm.

use super::sync::{AtomicU128, Ordering};

/// The time of a clock that reads zero: past the longest window.
pub(crate) const TIME_ZERO: u64 = 1 << 60;

/// The last time: after about 109 years of a clock. From then on no permit is granted for a shorter
/// time than it should be.
pub(super) const MAX_TIME: u64 = (1 << 62) - (1 << 34) - 1;

/// The time of a clock's reading.
#[inline]
pub(crate) fn time_of(reading: u64) -> u64 {
    TIME_ZERO + reading.min(MAX_TIME - TIME_ZERO)
}

/// The whole state of a key, as it was loaded.
///
/// ```text
/// { state: 126, held: 1, frozen: 1 }
/// ```
///
/// A word is one of these:
///
/// - *new* (zero): the key has no state in this arena. It was never asked, was left behind by a rebuild,
///   or is still to be copied;
/// - *open*, not zero: `state` is that of the key's algorithm;
/// - *forgotten*: held, and the highest bit of the state. The rest of the state is a time, before
///   which the key gets no permit. The key has no permits and takes no place at the key cap;
/// - *held* otherwise: a joint claim has the key. `state` names the claim;
/// - *frozen*, with any of these: the word never changes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(u128);

const HELD: u128 = 1 << 126;
const FROZEN: u128 = 1 << 127;
const FORGOTTEN: u128 = HELD | 1 << 125;

impl Word {
    pub(crate) const NEW: Self = Self(0);

    pub(super) const fn of(state: u128) -> Self {
        debug_assert!(state < HELD);
        Self(state)
    }

    /// A key without permits, which gets none before this time.
    pub(super) const fn forgotten(not_before: u64) -> Self {
        Self(FORGOTTEN | not_before as u128)
    }

    /// Of a key without permits, the time before which it gets none; `None` if it may have some.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a time was put in")]
    pub(super) const fn vacant_until(self) -> Option<u64> {
        if self.0 & FORGOTTEN == FORGOTTEN {
            return Some((self.0 & !(FORGOTTEN | FROZEN)) as u64);
        }
        if self.0 & !FROZEN == 0 { Some(0) } else { None }
    }

    /// Whether a joint claim has the key.
    pub(super) const fn is_held(self) -> bool {
        self.0 & (FORGOTTEN | FROZEN) == HELD
    }

    /// The state, without the flags.
    #[inline]
    pub(super) const fn state(self) -> u128 {
        self.0 & (HELD - 1)
    }

    /// Whether the state is that of the key's algorithm, and a request may change the word.
    #[inline]
    pub(super) const fn is_open(self) -> bool {
        self.0 != 0 && self.0 < HELD
    }

    /// Whether the key has moved, or is about to: the word never changes again.
    pub(super) const fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    pub(super) const fn frozen(self) -> Self {
        Self(self.0 | FROZEN)
    }

    /// The word of a key that a joint claim has. The state names the claim, in 125 bits.
    pub(super) const fn held(state: u128) -> Self {
        debug_assert!(state < 1 << 125);
        Self(HELD | state)
    }

    /// The low and the high half.
    #[expect(clippy::cast_possible_truncation, reason = "halves")]
    pub(super) const fn halves(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    pub(super) const fn of_halves([low, high]: [u64; 2]) -> Self {
        Self((high as u128) << 64 | low as u128)
    }
}

/// The word in its cell.
///
/// A request reads the ring after it has loaded the word, and swaps the word last. So the load
/// acquires, and the swap releases, the slots that the word's state names.
#[derive(Debug)]
pub(crate) struct AtomicWord(AtomicU128);

impl AtomicWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU128::new(Word::NEW.0))
    }

    #[inline]
    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Swaps the word if it still stands. Returns whether it did.
    #[inline]
    #[must_use]
    pub(super) fn swap(&self, old: Word, new: Word) -> bool {
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Names a ring of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RingRef {
    /// The ring has `1 << class` slots; none, if this is zero.
    pub(super) class: u32,
    /// The number of its first slot, a multiple of its length: at most 31 bits.
    pub(super) start: u32,
}

/// The largest class of a ring: it holds the reserved permits of the largest limit beside its live
/// ones.
pub(super) const MAX_CLASS: u32 = 21;

impl RingRef {
    pub(super) const NONE: Self = Self { class: 0, start: 0 };

    /// The number of slots.
    pub(super) const fn len(self) -> usize {
        if self.class == 0 { 0 } else { 1 << self.class }
    }
}
