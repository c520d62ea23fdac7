//! The memory of all cells and rings, and the timestamp floor.

use once_cell::race::OnceBox;

use super::descriptor::Descriptors;
use super::log::ring::Ring;
use super::memory::Cell;
use super::quantised::blocks::Blocks;
use super::words::{CLASSES, Head, MAX_SLOTS, RingRef, Slot};
use crate::slab::{FIRST_PAGES, Slab};
use crate::sync::{AtomicU64, CachePadded, Ordering};

/// All the cells of a limiter and their rings.
pub(super) struct Store {
    pub(super) cells: Slab<Cell, FIRST_PAGES>,
    /// The largest limit of a log.
    longest: usize,
    /// Rings by size class, from class 1 on; class 0 is the slot inside the cell.
    rings: [OnceBox<Slab>; CLASSES],
    /// Blocks of steps, if a plan has them.
    pub(super) blocks: Option<Box<Blocks>>,
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
            rings: [const { OnceBox::new() }; CLASSES],
            blocks: Blocks::up_to(largest_block),
            sentinels: CachePadded(AtomicU64::new(0)),
            timestamp_floor: CachePadded(AtomicU64::new(0)),
            descriptors,
        };
        if cfg!(tollgate_loom) {
            store.make_all_pools();
        }
        store
    }

    /// The ring of the cell. An outdated reference may name anything, even the anchor of an
    /// account. Then any slot will do: the head will have changed.
    #[inline]
    pub(super) fn ring<'a>(&'a self, cell: &'a Cell, reference: RingRef) -> Ring<'a> {
        if reference.is_ring() {
            let rings = self.rings.get(reference.class()).and_then(OnceBox::get);
            if let Some(slots) = rings.and_then(|rings| rings.block_if_there(reference.block())) {
                return Ring::new(slots);
            }
        }
        Ring::new(core::slice::from_ref(&cell.ring))
    }

    #[inline]
    fn slots_at(&self, reference: RingRef) -> Option<&[AtomicU64]> {
        if !reference.is_ring() {
            return None;
        }
        self.rings.get(reference.class())?.get()?.block_if_there(reference.block())
    }

    /// Prefetches a cell. Returns the words that lead to its ring.
    #[inline]
    pub(super) fn prefetch(&self, id: u32) -> (Head, RingRef) {
        let cell = self.cells.element_if_there(id);
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        cell.map_or((Head(0), RingRef(0)), |cell| (Head(read(&cell.head)), RingRef(read(&cell.ring))))
    }

    /// Prefetches the ring, if the reference names one.
    #[inline]
    pub(super) fn prefetch_ring(&self, head: Head, reference: RingRef) -> u64 {
        let slot = self.slots_at(reference).and_then(|slots| slots.get(head.pos()));
        slot.map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// The slots of a ring of this class: a power of two, or, for the smallest class that fits the
    /// largest limit, exactly that limit. Only reservations need longer rings.
    pub(super) fn slots_of(&self, class: usize) -> usize {
        let slots = |class| if class == 0 { 1 } else { 2_usize << class };
        let is_enough = slots(class) >= self.longest && (class == 0 || slots(class - 1) < self.longest);
        if is_enough { self.longest } else { slots(class) }
    }

    /// The smallest class with this many slots.
    fn class_for(&self, slots: usize) -> usize {
        debug_assert!(slots <= MAX_SLOTS, "a ring of {slots} slots");
        (0..CLASSES).find(|&class| self.slots_of(class) >= slots).unwrap_or(CLASSES - 1)
    }

    /// The pool for rings of this class.
    pub(super) fn rings_of(&self, class: usize) -> &Slab {
        // There are at most as many rings in use as cells.
        self.rings[class].get_or_init(|| Box::new(Slab::new(self.slots_of(class), u32::MAX >> 1)))
    }

    /// Makes the slabs before threads start: the model checker needs that.
    fn make_all_pools(&self) {
        for class in 1..=self.class_for(2 * self.longest) {
            self.rings_of(class);
        }
        if let Some(blocks) = &self.blocks {
            blocks.make_all_pools();
        }
    }

    /// A ring of at least `slots` slots that the caller owns. All slots hold a sentinel, as if
    /// published in the lap before `lap`.
    pub(super) fn new_ring(&self, ring_parity: bool, slots: usize, lap: u64) -> (RingRef, Ring<'_>) {
        let class = self.class_for(slots);
        let rings = self.rings_of(class);
        let block = rings.alloc().expect("there are more blocks than there can be cells");
        let number = self.next_sentinel();
        let words = rings.block(block);
        for word in words {
            // Released, as in `write_last`: a reader of the block's last owner that sees it also
            // sees that the head has moved.
            word.store(Slot::sentinel(number, lap).0, Ordering::Release);
        }
        (RingRef::new(ring_parity, class, number, block), Ring::new(words))
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
            let rings = match &self.blocks {
                Some(blocks) if reference.is_block() => blocks.of(reference.class()),
                _ => self.rings_of(reference.class()),
            };
            rings.free(reference.block());
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
            + self.blocks.as_ref().map_or(0, |blocks| blocks.bytes())
            + self.rings.iter().filter_map(OnceBox::get).map(|slab| slab.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}
