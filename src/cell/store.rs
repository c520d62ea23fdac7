//! The memory of cells and of their rings, and the horizon.

use once_cell::race::OnceBox;

use super::descriptor::Joint;
use super::log::ring::Ring;
use super::memory::Cell;
use super::quantised::blocks::Blocks;
use super::words::{CLASSES, Head, RingRef, Slot};
use crate::slab::{FIRST_PAGES, Slab};
use crate::sync::{Apart, AtomicU64, Ordering};

/// All the cells of a limiter and their rings.
pub(super) struct Store {
    pub(super) cells: Slab<Cell, FIRST_PAGES>,
    /// The largest limit of a log.
    longest: usize,
    /// Rings by size class, from class 1 on; class 0 is the slot inside the cell.
    rings: [OnceBox<Slab>; CLASSES],
    /// Blocks of steps, where there are such.
    pub(super) blocks: Option<Box<Blocks>>,
    /// Marks for slots that were never used.
    marks: Apart<AtomicU64>,
    /// No stamp that is chosen for a new key or a new ring is earlier: the latest end of a stamp that was lost with its cell,
    /// or the newest stamp of a ring that was given back.
    horizon: Apart<AtomicU64>,
    /// Claims on several cells, where there are such.
    pub(super) joint: Option<Box<Joint>>,
}

impl Store {
    /// Room for so many cells, whose rings have up to `longest` slots and whose blocks have up to `largest_block` words.
    pub(super) fn new(key_cap: u32, longest: usize, largest_block: usize, joint: Option<Box<Joint>>) -> Self {
        let store = Self {
            cells: Slab::new(1, key_cap),
            longest,
            rings: [const { OnceBox::new() }; CLASSES],
            blocks: Blocks::up_to(largest_block),
            marks: Apart(AtomicU64::new(0)),
            horizon: Apart(AtomicU64::new(0)),
            joint,
        };
        if cfg!(tollgate_loom) {
            store.make_all_pools();
        }
        store
    }

    /// The ring of the cell. A reference that is long out of date may name anything, also what never was a ring, because the cell has
    /// an account by now. Any slot will do then.
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

    /// Reads a cell for nothing but to have it in the cache; gives what leads to its ring.
    #[inline]
    pub(super) fn touch(&self, id: u32) -> (Head, RingRef) {
        let cell = self.cells.element_if_there(id);
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        cell.map_or((Head(0), RingRef(0)), |cell| (Head(read(&cell.head)), RingRef(read(&cell.ring))))
    }

    /// Reads the ring for nothing but to have it in the cache, if it is one.
    #[inline]
    pub(super) fn touch_ring(&self, head: Head, reference: RingRef) -> u64 {
        let slot = self.slots_at(reference).and_then(|slots| slots.get(head.pos()));
        slot.map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// How many slots a ring of this class has: a power of two or, the smallest that is long enough for the largest limit, just so
    /// many. A ring is longer only where permits are reserved.
    pub(super) fn slots_of(&self, class: usize) -> usize {
        let slots = |class| if class == 0 { 1 } else { 2_usize << class };
        let is_enough = slots(class) >= self.longest && (class == 0 || slots(class - 1) < self.longest);
        if is_enough { self.longest } else { slots(class) }
    }

    /// The smallest class with this many slots, or the largest there is.
    fn class_for(&self, slots: usize) -> usize {
        (0..CLASSES).find(|&class| self.slots_of(class) >= slots).unwrap_or(CLASSES - 1)
    }

    /// The pool for rings of this class.
    pub(super) fn rings_of(&self, class: usize) -> &Slab {
        // As many rings as blocks can be numbered: what bounds them is that a cell has at most one.
        self.rings[class].get_or_init(|| Box::new(Slab::new(self.slots_of(class), u32::MAX >> 1)))
    }

    /// Makes the pools before they are needed, as the model checker wants it.
    fn make_all_pools(&self) {
        for class in 1..=self.class_for(2 * self.longest) {
            self.rings_of(class);
        }
        if let Some(blocks) = &self.blocks {
            blocks.make_all_pools();
        }
    }

    /// A ring with room for `slots`, for the caller alone: all of its slots hold a mark that never returns, as if published in
    /// the lap before `lap`.
    pub(super) fn new_ring(&self, epoch: bool, slots: usize, lap: u64) -> (RingRef, Ring<'_>) {
        let class = self.class_for(slots);
        let rings = self.rings_of(class);
        let block = rings.take().expect("there are more blocks than there can be cells");
        let mark = self.next_mark();
        let words = rings.block(block);
        for word in words {
            // Released here and in `write_last`: a reader of the block's last owner that sees it sees that its head has moved on.
            word.store(Slot::ancient(mark, lap).0, Ordering::Release);
        }
        (RingRef::new(epoch, class, mark, block), Ring::new(words))
    }

    /// A mark that never returns.
    pub(super) fn next_mark(&self) -> u64 {
        self.marks.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives back a ring that the caller alone owns, whose stamps, as far as others may have seen them, are no later than
    /// `newest`.
    pub(super) fn drop_ring(&self, reference: RingRef, newest: Slot) {
        if reference.is_ring() {
            self.raise_horizon(newest.time());
            let rings = match &self.blocks {
                Some(blocks) if reference.is_block() => blocks.of(reference.class()),
                _ => self.rings_of(reference.class()),
            };
            rings.give_back(reference.block());
        }
    }

    /// Gives back a ring that no other thread has seen, or whose stamps the horizon has reached.
    pub(super) fn drop_unused_ring(&self, reference: RingRef) {
        self.drop_ring(reference, Slot::ancient(0, 0));
    }

    #[inline]
    pub(super) fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// Sees to it that no stamp that is chosen for a new key or a new ring from now on is earlier than `time`.
    ///
    /// Released for the clock's sake: a thread that has seen the horizon reads no less than the clock had shown when it was raised. That
    /// the horizon itself is seen is due to the block or the cell, which is released after it.
    pub(super) fn raise_horizon(&self, time: u64) {
        if self.horizon.load(Ordering::Relaxed) < time {
            self.horizon.fetch_max(time, Ordering::AcqRel);
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.cells.bytes()
            + self.joint.as_ref().map_or(0, |joint| joint.bytes())
            + self.blocks.as_ref().map_or(0, |blocks| blocks.bytes())
            + self.rings.iter().filter_map(OnceBox::get).map(|slab| slab.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}
