//! One generation of the index: open addressing with linear probing over words that, once written, stay.

use crate::cell::{Cells, Head};
use crate::fingerprint::Fingerprint;
use crate::sync::{AtomicU64, Ordering};

/// A word of the index: which cell decides for the keys with this tag.
///
/// ```text
/// Entry { generation: 16, life: 8, tag: 12, cell: 28 }
/// ```
///
/// The tag is never zero, so that no entry is zero, the word of memory that was never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u64);

/// The cell number that marks a sealed slot; no cell has it, by [`MAX_KEY_CAP`](crate::MAX_KEY_CAP).
const SEALED: u32 = (1 << 28) - 1;

impl Entry {
    pub(super) fn new(generation: u16, life: u64, fingerprint: Fingerprint, cell: u32) -> Self {
        let tag = tag_of(fingerprint);
        Self((u64::from(generation) << 48) | ((life & 0xff) << 40) | (tag << 28) | u64::from(cell))
    }

    fn sealed(generation: u16) -> Self {
        Self((u64::from(generation) << 48) | (1 << 28) | u64::from(SEALED))
    }

    fn generation(self) -> u16 {
        (self.0 >> 48) as u16
    }

    pub(super) fn life(self) -> u64 {
        (self.0 >> 40) & 0xff
    }

    fn tag(self) -> u64 {
        (self.0 >> 28) & 0xfff
    }

    #[expect(clippy::cast_possible_truncation, reason = "28 bits")]
    pub(super) fn cell(self) -> u32 {
        (self.0 & u64::from(SEALED)) as u32
    }
}

/// The bits that tell most keys apart without a look at their cells: not those that choose the slot.
fn tag_of(fingerprint: Fingerprint) -> u64 {
    (fingerprint.low >> 52).max(1)
}

/// What a slot says to a reader of one generation.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// Nothing was put here in this generation.
    Empty,
    Entry(Entry),
    /// Nothing will be put here in this generation any more.
    Sealed,
    /// The memory belongs to a later generation: the reader has been asleep.
    Outdated,
}

/// What looking for a key came to.
pub(super) enum Found {
    Here(u32, Head),
    /// Not there. This slot, which held this word, is where it would be put; none if all slots are taken.
    Absent(Option<(usize, u64)>),
    /// Not there, and it will not be put there any more.
    Sealed,
    Outdated,
}

/// What putting an entry came to.
pub(super) enum Put {
    /// It was put there by this call.
    Done,
    /// It was there already.
    There,
    /// Another cell decides for the key.
    Other(u32, Head),
    /// The generation is over.
    Outdated,
    Full,
}

/// The memory of one generation, as seen in that generation.
#[derive(Clone, Copy)]
pub(super) struct Index<'a> {
    slots: &'a [AtomicU64],
    generation: u16,
}

impl<'a> Index<'a> {
    /// `slots` is a power of two many.
    pub(super) fn new(slots: &'a [AtomicU64], generation: u16) -> Self {
        Self { slots, generation }
    }

    #[inline]
    fn first(self, fingerprint: Fingerprint) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "only the lower bits choose the slot")]
        let low = fingerprint.low as usize;
        low & (self.slots.len() - 1)
    }

    #[inline]
    fn next(self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    #[inline]
    fn seen(self, word: u64) -> Seen {
        let entry = Entry(word);
        if entry.generation() == self.generation && word != 0 {
            return if entry.cell() == SEALED { Seen::Sealed } else { Seen::Entry(entry) };
        }
        // The memory is used by every other generation, and each leaves every slot written; so what is neither new nor of
        // the last use is of a later one.
        if word == 0 || entry.generation() == self.generation.wrapping_sub(2) { Seen::Empty } else { Seen::Outdated }
    }

    /// What the slot holds: the word and what it says.
    pub(super) fn read(self, at: usize) -> (u64, Seen) {
        let word = self.slots[at].load(Ordering::Acquire);
        (word, self.seen(word))
    }

    /// Looks for the cell of a key.
    #[inline]
    pub(super) fn find(self, fingerprint: Fingerprint, cells: &Cells) -> Found {
        let mut at = self.first(fingerprint);
        for _ in 0..self.slots.len() {
            match self.read(at) {
                (word, Seen::Empty) => return Found::Absent(Some((at, word))),
                (_, Seen::Sealed) => return Found::Sealed,
                (_, Seen::Outdated) => return Found::Outdated,
                (_, Seen::Entry(entry)) if entry.tag() == tag_of(fingerprint) => {
                    if let Some(head) = cells.head_for(entry.cell(), entry.life(), fingerprint) {
                        return Found::Here(entry.cell(), head);
                    }
                }
                (_, Seen::Entry(_)) => {}
            }
            at = self.next(at);
        }
        Found::Absent(None)
    }

    /// Seals a slot that was seen empty. Says whether it is as it was left.
    pub(super) fn seal(self, at: usize, word: u64) -> bool {
        let sealed = Entry::sealed(self.generation).0;
        self.slots[at].compare_exchange(word, sealed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Puts a cell into the first empty slot of the key's sequence, unless one that decides for the key is there.
    pub(super) fn put(self, fingerprint: Fingerprint, cell: u32, life: u64, cells: &Cells) -> Put {
        let new = Entry::new(self.generation, life, fingerprint, cell);
        let mut at = self.first(fingerprint);
        let mut seen = 0;
        while seen < self.slots.len() {
            match self.read(at) {
                (word, Seen::Empty) => {
                    let swap = self.slots[at].compare_exchange(word, new.0, Ordering::AcqRel, Ordering::Relaxed);
                    if swap.is_ok() {
                        return Put::Done;
                    }
                    // Whoever came first may have put the same key: look at this slot again.
                    continue;
                }
                (_, Seen::Sealed | Seen::Outdated) => return Put::Outdated,
                (_, Seen::Entry(entry)) if entry == new => return Put::There,
                (_, Seen::Entry(entry)) if entry.tag() == new.tag() => {
                    if let Some(head) = cells.head_for(entry.cell(), entry.life(), fingerprint) {
                        return Put::Other(entry.cell(), head);
                    }
                }
                (_, Seen::Entry(_)) => {}
            }
            at = self.next(at);
            seen += 1;
        }
        Put::Full
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_gives_back_what_went_in(generation: u16, life in 0..256_u64, low: u64, cell in 0..SEALED) {
            let entry = Entry::new(generation, life, Fingerprint::new(low, 0), cell);
            prop_assert_eq!((entry.generation(), entry.life(), entry.cell()), (generation, life, cell));
            prop_assert_eq!(entry.tag(), (low >> 52).max(1));
            prop_assert!(entry.0 != 0 && Entry::sealed(generation).0 != 0);
        }

        #[test]
        fn only_the_next_use_of_the_memory_takes_a_word_for_empty(now: u16, then: u16) {
            let index = Index::new(&[], now);
            let word = Entry::new(then, 0, Fingerprint::new(0, 0), 1).0;
            let is_empty = matches!(index.seen(word), Seen::Empty);
            prop_assert_eq!(is_empty, then == now.wrapping_sub(2));
            prop_assert_eq!(matches!(index.seen(word), Seen::Entry(_)), then == now);
        }
    }
}
