//! One generation of the index: open addressing with linear probing over write-once words. The
//! route names the current generation.

use crate::cell::{Cells, OpenSeat, Seat};
use crate::fingerprint::Fingerprint;
use crate::sync::{AtomicU64, Ordering};

/// The number of index sizes (log2 of the slots): a power of two, so that a mask selects one.
pub(super) const SIZES: usize = 32;

/// Names the current generation.
///
/// ```text
/// Route { generation: 32, unused: 19, turning: 1, old_size: 6, size: 6 }
/// ```
///
/// Sizes are log2 of the slots. While the table is `turning`, lookups read the previous
/// generation's index, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route(pub(super) u64);

impl Route {
    const TURNING: u64 = 1 << 12;

    /// The first generation has number two, so that its predecessor's words differ from new memory.
    pub(super) fn first(size: u32) -> Self {
        Self((2 << 32) | u64::from(size))
    }

    /// The next generation, with an index of the given size, before its sweep.
    pub(super) fn turned(self, size: u32) -> Self {
        let generation = u64::from(self.generation().wrapping_add(1));
        Self((generation << 32) | Self::TURNING | (u64::from(self.size()) << 6) | u64::from(size))
    }

    /// The same generation, once the old one is swept.
    pub(super) fn swept(self) -> Self {
        Self(self.0 & !Self::TURNING)
    }

    #[inline]
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn is_turning(self) -> bool {
        self.0 & Self::TURNING != 0
    }

    #[inline]
    pub(super) fn size(self) -> u32 {
        (self.0 & 0x3f) as u32
    }

    pub(super) fn old_size(self) -> u32 {
        ((self.0 >> 6) & 0x3f) as u32
    }
}

/// A word of the index: the cell of the keys with this tag.
///
/// ```text
/// Entry { generation: 16, tag: 8, incarnation: 8, cell: 32 }
/// ```
///
/// A tag is never zero, so no entry is zero, the value of new memory. A seal has the tag zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u64);

/// The slots that a prefetch reads for a likely entry: one cache line.
const LOOK_AT: usize = 8;

/// The first bit of the tag. The generation is above it.
const TAG_AT: u32 = 40;

impl Entry {
    pub(super) fn new(generation: u16, incarnation: u64, fingerprint: Fingerprint, id: u32) -> Self {
        Self((prefix_of(generation, fingerprint) << TAG_AT) | ((incarnation & 0xff) << 32) | u64::from(id))
    }

    fn sealed(generation: u16) -> Self {
        // Not zero in any generation.
        Self((u64::from(generation) << 48) | 1)
    }

    #[inline]
    fn generation(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The generation and the tag.
    #[inline]
    fn prefix(self) -> u64 {
        self.0 >> TAG_AT
    }

    #[inline]
    fn is_seal(self) -> bool {
        self.prefix() & 0xff == 0
    }

    #[inline]
    pub(super) fn incarnation(self) -> u64 {
        (self.0 >> 32) & 0xff
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
    pub(super) fn id(self) -> u32 {
        self.0 as u32
    }
}

/// The generation and the tag: bits of a key that do not choose its slot.
#[inline]
fn prefix_of(generation: u16, fingerprint: Fingerprint) -> u64 {
    (u64::from(generation) << 8) | (fingerprint.low >> 56).max(1)
}

/// A slot, as read in one generation.
#[derive(Clone, Copy)]
pub(super) enum SlotContent {
    /// No entry was inserted in this generation.
    Empty,
    Entry(Entry),
    /// No entry will be inserted in this generation any more.
    Sealed,
    /// The memory belongs to a later generation: the reader has stalled.
    Outdated,
}

/// The outcome of a lookup.
pub(super) enum Found<'a> {
    Here(Seat<'a>),
    /// Absent. It would be inserted at this slot, which held this word; none if the index is full.
    Absent(Option<(usize, u64)>),
    /// Absent, and it will not be inserted any more.
    Sealed,
    Outdated,
}

/// The outcome of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// This call inserted it.
    Done,
    /// It was there already.
    There,
    /// Another cell decides for the key.
    Other,
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
    /// The number of slots is a power of two.
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

    fn content(self, word: u64) -> SlotContent {
        let entry = Entry(word);
        if entry.generation() == self.generation && word != 0 {
            return if entry.is_seal() { SlotContent::Sealed } else { SlotContent::Entry(entry) };
        }
        // Every other generation uses this memory and leaves each slot written. So a word that is
        // neither new nor of the last use is of a later one.
        if word == 0 || entry.generation() == self.generation.wrapping_sub(2) {
            SlotContent::Empty
        } else {
            SlotContent::Outdated
        }
    }

    /// The word of a slot, and its meaning.
    pub(super) fn read(self, at: usize) -> (u64, SlotContent) {
        let word = self.slots[at].load(Ordering::Acquire);
        (word, self.content(word))
    }

    /// The cell of a key, if it is found and open; otherwise [`find`](Self::find) says why.
    #[inline(always)]
    pub(super) fn fast_find(self, fingerprint: Fingerprint, cells: &Cells) -> Option<OpenSeat<'_>> {
        let prefix = prefix_of(self.generation, fingerprint);
        let mut at = self.first(fingerprint);
        for _ in 0..self.slots.len() {
            let entry = Entry(self.slots[at].load(Ordering::Acquire));
            if entry.prefix() == prefix {
                let seat = cells.open_seat_for(entry.id(), entry.incarnation(), fingerprint);
                if seat.is_some() {
                    return seat;
                }
            } else if entry.generation() != self.generation || entry.is_seal() {
                return None;
            }
            at = self.next(at);
        }
        None
    }

    /// Prefetches the first slots of a key's sequence.
    #[inline]
    pub(super) fn prefetch(self, fingerprint: Fingerprint) -> u64 {
        self.slots[self.first(fingerprint)].load(Ordering::Relaxed)
    }

    /// The cell of the first entry with the key's tag, if the first few slots have one.
    #[inline]
    pub(super) fn likely_cell(self, fingerprint: Fingerprint) -> Option<u32> {
        let prefix = prefix_of(self.generation, fingerprint);
        let mut at = self.first(fingerprint);
        for _ in 0..LOOK_AT {
            let entry = Entry(self.slots[at].load(Ordering::Relaxed));
            if entry.prefix() == prefix {
                return Some(entry.id());
            }
            at = self.next(at);
        }
        None
    }

    /// Looks for the cell of a key.
    pub(super) fn find(self, fingerprint: Fingerprint, cells: &Cells) -> Found<'_> {
        let mut at = self.first(fingerprint);
        for _ in 0..self.slots.len() {
            match self.read(at) {
                (word, SlotContent::Empty) => return Found::Absent(Some((at, word))),
                (_, SlotContent::Sealed) => return Found::Sealed,
                (_, SlotContent::Outdated) => return Found::Outdated,
                (_, SlotContent::Entry(entry)) if entry.prefix() == prefix_of(self.generation, fingerprint) => {
                    if let Some(seat) = cells.seat_for(entry.id(), entry.incarnation(), fingerprint) {
                        return Found::Here(seat);
                    }
                }
                (_, SlotContent::Entry(_)) => {}
            }
            at = self.next(at);
        }
        Found::Absent(None)
    }

    /// Seals a slot that was seen empty (INV-SEAL). Returns whether it was still empty.
    pub(super) fn seal(self, at: usize, word: u64) -> bool {
        let sealed = Entry::sealed(self.generation).0;
        self.slots[at].compare_exchange(word, sealed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Inserts a cell at the first empty slot of the key's sequence, unless an entry decides for
    /// the key (INV-ONE-CELL).
    pub(super) fn put(self, fingerprint: Fingerprint, id: u32, incarnation: u64, cells: &Cells) -> Put {
        let new = Entry::new(self.generation, incarnation, fingerprint, id);
        let mut at = self.first(fingerprint);
        let mut seen = 0;
        while seen < self.slots.len() {
            match self.read(at) {
                (word, SlotContent::Empty) => {
                    let swap = self.slots[at].compare_exchange(word, new.0, Ordering::AcqRel, Ordering::Relaxed);
                    if swap.is_ok() {
                        return Put::Done;
                    }
                    // Another thread may have inserted the same key: read this slot again.
                    continue;
                }
                (_, SlotContent::Sealed | SlotContent::Outdated) => return Put::Outdated,
                (_, SlotContent::Entry(entry)) if entry == new => return Put::There,
                (_, SlotContent::Entry(entry)) if entry.prefix() == new.prefix() => {
                    if cells.seat_for(entry.id(), entry.incarnation(), fingerprint).is_some() {
                        return Put::Other;
                    }
                }
                (_, SlotContent::Entry(_)) => {}
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

    #[test]
    fn a_turn_keeps_the_size_and_counts_on() {
        let first = Route::first(6);
        assert_eq!((first.generation(), first.size(), first.is_turning()), (2, 6, false));
        let second = first.turned(29);
        assert_eq!((second.generation(), second.size(), second.old_size(), second.is_turning()), (3, 29, 6, true));
        assert_eq!((second.swept().size(), second.swept().is_turning()), (29, false));
    }

    proptest! {
        #[test]
        fn an_entry_gives_back_what_went_in(generation: u16, incarnation in 0..256_u64, low: u64, id: u32) {
            let entry = Entry::new(generation, incarnation, Fingerprint::new(low, 0), id);
            prop_assert_eq!((entry.generation(), entry.incarnation(), entry.id()), (generation, incarnation, id));
            prop_assert_eq!(entry.prefix() & 0xff, (low >> 56).max(1));
            prop_assert!(entry.0 != 0 && !entry.is_seal());
            let seal = Entry::sealed(generation);
            prop_assert!(seal.0 != 0 && seal.is_seal() && seal.generation() == generation);
        }

        #[test]
        fn only_the_next_use_of_the_memory_takes_a_word_for_empty(now: u16, then: u16) {
            let index = Index::new(&[], now);
            let word = Entry::new(then, 0, Fingerprint::new(0, 0), 1).0;
            let is_empty = matches!(index.content(word), SlotContent::Empty);
            prop_assert_eq!(is_empty, then == now.wrapping_sub(2));
            prop_assert_eq!(matches!(index.content(word), SlotContent::Entry(_)), then == now);
        }
    }
}
