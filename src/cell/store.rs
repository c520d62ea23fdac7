//! The memory of all cells and rings, and the timestamp floor.

use core::ops::Range;

use once_cell::race::OnceBox;

use super::descriptor::Descriptors;
use super::memory::Cell;
use super::words::{BLOCK_CLASSES, RING_CLASSES, RingRef, Slot};
use crate::slab::{FIRST_PAGES, Slab};
use crate::sync::{AtomicU64, CachePadded, Ordering};

/// All the cells of a limiter and their rings.
pub(super) struct Store {
    /// Rings and blocks by size class, from class 1 on; class 0 is the slot inside the cell.
    pub(super) slabs: [OnceBox<Slab>; RingRef::CLASSES],
    pub(super) cells: Slab<Cell, FIRST_PAGES>,
    /// The largest limit of a log.
    longest: usize,
    /// The words of the largest block of steps; zero if there are none.
    largest_block: usize,
    /// The next number for a sentinel (INV-SENTINEL).
    sentinels: CachePadded<AtomicU64>,
    /// The timestamp floor (INV-FLOOR): the latest end of a stamp that was lost with its cell, or
    /// the newest stamp of a ring that was freed.
    timestamp_floor: CachePadded<AtomicU64>,
    /// Descriptors of joint claims, if there are several plans.
    pub(super) descriptors: Option<Box<Descriptors>>,
}

impl Store {
    /// Memory for `key_cap` cells, for rings of up to `longest` slots and blocks of up to
    /// `largest_block` words.
    pub(super) fn new(
        key_cap: u32,
        longest: usize,
        largest_block: usize,
        descriptors: Option<Box<Descriptors>>,
    ) -> Self {
        let store = Self {
            cells: Slab::new(1, key_cap),
            longest,
            largest_block,
            slabs: [const { OnceBox::new() }; RingRef::CLASSES],
            sentinels: CachePadded(AtomicU64::new(0)),
            timestamp_floor: CachePadded(AtomicU64::new(0)),
            descriptors,
        };
        if cfg!(tollgate_loom) {
            store.make_all_slabs();
        }
        store
    }

    /// The words of a ring or block of this class. The smallest class that fits the largest limit,
    /// or the largest block, has exactly so many: busy keys need that. Only reservations need
    /// longer rings.
    pub(super) fn words_of(&self, class: usize) -> usize {
        let words = |class: usize| match class.checked_sub(BLOCK_CLASSES.start) {
            None if class == 0 => 1,
            None => 2 << class,
            Some(0) => 4,
            Some(size) => 2 << (3 * size),
        };
        let is_block = BLOCK_CLASSES.contains(&class);
        let (first, largest) = if is_block { (BLOCK_CLASSES.start, self.largest_block) } else { (0, self.longest) };
        let is_enough = words(class) >= largest && (class == first || words(class - 1) < largest);
        if is_enough { largest } else { words(class) }
    }

    /// The smallest of these classes with this many words.
    fn class_for(&self, classes: Range<usize>, words: usize) -> usize {
        let last = classes.end - 1;
        classes.into_iter().find(|&class| self.words_of(class) >= words).unwrap_or(last)
    }

    /// The slab for rings or blocks of this class.
    pub(super) fn slab_of(&self, class: usize) -> &Slab {
        // There are at most as many in use as cells.
        self.slabs[class].get_or_init(|| Box::new(Slab::new(self.words_of(class), u32::MAX >> 1)))
    }

    /// Makes the slabs before threads start: the model checker needs that.
    fn make_all_slabs(&self) {
        let rings = 1..=self.class_for(RING_CLASSES, 2 * self.longest);
        let blocks = BLOCK_CLASSES.start..=self.class_for(BLOCK_CLASSES, self.largest_block);
        for class in rings.chain(blocks.filter(|_| self.largest_block > 0)) {
            self.slab_of(class);
        }
    }

    /// A ring or block of at least so many words that the caller owns: its class, number and words.
    pub(super) fn alloc(&self, classes: Range<usize>, words: usize) -> (usize, u32, &[AtomicU64]) {
        let class = self.class_for(classes, words);
        let slab = self.slab_of(class);
        let block = slab.alloc().expect("there are more blocks than there can be cells");
        (class, block, slab.block(block))
    }

    /// The words of a ring or a block, if the reference names one.
    #[inline]
    pub(super) fn words_at(&self, reference: RingRef) -> Option<&[AtomicU64]> {
        let slab = self.slabs.get(reference.class()).filter(|_| reference.is_ring())?;
        slab.get()?.block_if_there(reference.block())
    }

    /// A number for a sentinel that never returns (INV-SENTINEL).
    pub(super) fn next_sentinel(&self) -> u64 {
        self.sentinels.fetch_add(1, Ordering::Relaxed)
    }

    /// Frees a ring that the caller owns. Stamps that other threads may have seen in it are no
    /// later than `newest`.
    pub(super) fn drop_ring(&self, reference: RingRef, newest: Slot) {
        if reference.is_ring() {
            self.raise_timestamp_floor(newest.time());
            self.slab_of(reference.class()).free(reference.block());
        }
    }

    /// Frees a ring that no other thread has seen, or whose stamps the timestamp floor has reached.
    pub(super) fn drop_unused_ring(&self, reference: RingRef) {
        self.drop_ring(reference, Slot::sentinel(0, 0));
    }

    #[inline]
    pub(super) fn timestamp_floor(&self) -> u64 {
        self.timestamp_floor.load(Ordering::Acquire)
    }

    /// Raises the timestamp floor to `time` (INV-FLOOR).
    ///
    /// Releases for the clock's sake: a thread that has seen the floor reads no less than the clock
    /// had shown when the floor was raised. The floor itself becomes visible with the block or the
    /// cell, which is released later.
    pub(super) fn raise_timestamp_floor(&self, time: u64) {
        if self.timestamp_floor.load(Ordering::Relaxed) < time {
            self.timestamp_floor.fetch_max(time, Ordering::AcqRel);
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.cells.bytes()
            + self.descriptors.as_ref().map_or(0, |descriptors| descriptors.bytes())
            + self.slabs.iter().filter_map(OnceBox::get).map(|slab| slab.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}
