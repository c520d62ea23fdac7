//! The slabs of blocks of steps.

use once_cell::race::OnceBox;

use crate::cell::words::{CLASSES, RingRef};
use crate::slab::Slab;
use crate::sync::AtomicU64;

/// Size classes: 4, 16, 128, 1024, 8192 and 65,536 words.
const SIZES: usize = 6;

/// A block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// A [`Newest`](super::view::Newest).
    pub(super) step: &'a AtomicU64,
    /// `{ permits before the newest step: 32, permits that it began with: 32 }`
    pub(super) counts: &'a AtomicU64,
    /// The number of entries.
    pub(super) length: &'a AtomicU64,
    pub(super) entries: &'a [AtomicU64],
}

impl<'a> Block<'a> {
    /// Words before the entries.
    pub(super) const HEADER: usize = 3;

    #[inline]
    pub(super) fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let [step, counts, length, entries @ ..] = words else { return None };
        Some(Self { step, counts, length, entries })
    }
}

/// Blocks by size class. Their classes come after those of rings.
pub(in crate::cell) struct Blocks {
    /// The words of the largest block.
    largest: usize,
    pools: [OnceBox<Slab>; SIZES],
}

impl Blocks {
    /// Slabs for blocks of up to so many words, if any.
    pub(in crate::cell) fn up_to(largest: usize) -> Option<Box<Self>> {
        (largest > 0).then(|| Box::new(Self { largest, pools: [const { OnceBox::new() }; SIZES] }))
    }

    /// The words of a block. The smallest class that fits the largest block has exactly its length:
    /// busy keys need that.
    fn words(&self, size: usize) -> usize {
        let words = |size: usize| if size == 0 { 4 } else { 16_usize << (3 * (size - 1)) };
        let is_enough = words(size) >= self.largest && (size == 0 || words(size - 1) < self.largest);
        if is_enough { self.largest } else { words(size) }
    }

    /// The smallest class with this many words.
    pub(super) fn class_for(&self, words: usize) -> usize {
        CLASSES + (0..SIZES).find(|&size| self.words(size) >= words).unwrap_or(SIZES - 1)
    }

    /// The pool for blocks of this class.
    pub(in crate::cell) fn of(&self, class: usize) -> &Slab {
        let size = class - CLASSES;
        self.pools[size].get_or_init(|| Box::new(Slab::new(self.words(size), u32::MAX >> 1)))
    }

    /// The block of a reference. An outdated reference may name another block, or none.
    #[inline]
    pub(super) fn block_of(&self, reference: RingRef) -> Option<Block<'_>> {
        let size = reference.class().checked_sub(CLASSES).filter(|_| reference.is_ring())?;
        Block::of(self.pools.get(size)?.get()?.block_if_there(reference.block())?)
    }

    /// Makes the slabs before threads start: the model checker needs that.
    pub(in crate::cell) fn make_all_pools(&self) {
        for class in CLASSES..=self.class_for(self.largest) {
            self.of(class);
        }
    }

    /// Bytes on the heap, with its own.
    pub(in crate::cell) fn bytes(&self) -> usize {
        let pools = self.pools.iter().filter_map(OnceBox::get);
        size_of::<Self>() + pools.map(|pool| pool.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}

impl RingRef {
    /// Whether it refers to a block of steps.
    pub(in crate::cell) fn is_block(self) -> bool {
        self.is_ring() && self.class() >= CLASSES
    }
}
