//! Rings grow: a larger ring is prepared in private and offered by one compare-and-swap.

use super::ring::Ring;
use super::words::{Head, RingRef, Slot, State};
use super::{CLASSES, Cells, HEAD, RING};
use crate::slab::Slab;
use crate::sync::{AtomicU64, Ordering};

impl Cells {
    /// How many slots a ring of this class has. No ring is longer than the limit.
    pub(super) fn slots_of(&self, class: usize) -> usize {
        if class == 0 { 1 } else { (2_usize << class).min(self.limit) }
    }

    /// The smallest class with this many slots, or the largest there is.
    fn class_for(&self, slots: usize) -> usize {
        let slots = slots.min(self.limit);
        (0..CLASSES).find(|&class| self.slots_of(class) >= slots).unwrap_or(CLASSES - 1)
    }

    /// The pool for rings of this class.
    fn rings_of(&self, class: usize) -> &Slab {
        // As many rings as blocks can be numbered: what bounds them is that a cell has at most one.
        self.rings[class].get_or_init(|| Box::new(Slab::new(self.slots_of(class), 0, u32::MAX >> 1)))
    }

    /// Makes the pools before they are needed, as the model checker wants it.
    pub(super) fn make_all_pools(&self) {
        for class in 1..=self.class_for(self.limit) {
            self.rings_of(class);
        }
    }

    /// A ring with room for `slots`, for the caller alone, with a mark of its own, which it also gives, in all of its slots.
    pub(super) fn new_ring(
        &self,
        epoch: bool,
        slots: usize,
        previous_class: usize,
        lap: u64,
    ) -> (RingRef, Ring<'_>, u64) {
        let class = self.class_for(slots);
        let rings = self.rings_of(class);
        let block = rings.take().expect("there are more blocks than there can be cells");
        let mark = self.marks.fetch_add(1, Ordering::Relaxed);
        let words = rings.block(block);
        for word in words {
            // Released here and in `write`: a reader of the block's last owner that sees it sees that its head has moved on.
            word.store(Slot::ancient(mark, lap).0, Ordering::Release);
        }
        (RingRef::new(epoch, class, previous_class, mark, block), Ring::new(words), mark)
    }

    /// Gives back a ring that the caller alone owns.
    pub(super) fn drop_ring(&self, reference: RingRef) {
        if reference.is_ring() {
            self.rings_of(reference.class()).give_back(reference.block());
        }
    }

    /// Replaces a ring that is full of live stamps, or shorter than the request, by one with room for `needed` more.
    #[cold]
    pub(super) fn grow(&self, words: &[AtomicU64], head: Head, needed: usize, time: u64) {
        let growing = head.with_state(State::Growing);
        if words[HEAD].compare_exchange(head.0, growing.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.finish_growth(words, growing, needed, time);
        }
    }

    /// Does what is left to do for a cell that was marked as growing at `head`, and opens it again.
    #[cold]
    pub(super) fn finish_growth(&self, words: &[AtomicU64], head: Head, needed: usize, time: u64) {
        let mut reference = RingRef(words[RING].load(Ordering::Acquire));
        if reference.epoch() == head.epoch() {
            self.settle(words, head, self.ring(words, reference), time);
            // The slot inside the cell is the reference, and settling may just have changed it.
            reference = RingRef(words[RING].load(Ordering::Acquire));
            if reference.epoch() == head.epoch() {
                self.offer_larger_ring(words, head, reference, needed, time);
                reference = RingRef(words[RING].load(Ordering::Acquire));
            }
        }
        // A stale helper may see anything here; its swap of a head that is gone fails.
        let pos = self.slots_of(reference.previous_class());
        let open = Head::new(State::Open, !head.epoch(), head.life(), head.lap() + 1, pos);
        let _ = words[HEAD].compare_exchange(head.0, open.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Copies the stamps into a larger ring and offers it in place of `reference`.
    fn offer_larger_ring(&self, words: &[AtomicU64], head: Head, reference: RingRef, needed: usize, time: u64) {
        let old = self.ring(words, reference);
        let lap = head.lap().wrapping_add(1);
        let (offer, new, mark) = self.new_ring(!head.epoch(), old.len() + needed, reference.class(), lap);
        let newest = old.load(head.pos() + old.len() - 1);
        // Where even the newest stamp has expired, all have; the horizon keeps clocks from going back behind it. Otherwise
        // those have that had when it was granted, because no later decision is taken by an earlier time.
        let idle = time.saturating_sub(newest.time()) >= self.window;
        if idle {
            self.horizon.fetch_max(self.end_of(newest), Ordering::AcqRel);
        }
        for position in 0..old.len() {
            let stamp = old.load(head.pos() + position);
            let expired = idle || newest.time().saturating_sub(stamp.time()) >= self.window;
            new.write(position, if expired { mark } else { stamp.time() }, lap);
        }
        // A reference never returns, so success says that the old ring stood still while it was copied.
        let swap = words[RING].compare_exchange(reference.0, offer.0, Ordering::AcqRel, Ordering::Relaxed);
        self.drop_ring(if swap.is_ok() { reference } else { offer });
    }
}

impl Ring<'_> {
    /// Writes a stamp into a ring that the caller alone has, as published in `lap`.
    pub(super) fn write(self, index: usize, time: u64, lap: u64) {
        self.slot(index).store(Slot::new(time, false, lap).0, Ordering::Release);
    }
}
