//! The driver of logs.

use super::plan::LogPlan;
use super::view::Log;
use crate::cell::driver::{Driver, Known};
use crate::cell::memory::{At, Cell};
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, Slot};

impl<'a> Driver<'a> for Log<'a> {
    fn store(self) -> &'a Store {
        self.store
    }

    fn help(self, at: At<'a>, reference: RingRef, time: u64) {
        let time = self.plan.not_before(time.max(self.store.timestamp_floor()));
        if reference.ring_parity() != at.head.ring_parity() {
            return;
        }
        // During a resize the head stays the same, but the ring may be freed (INV-VALIDATE).
        let validate = || at.validate() && (!reference.is_ring() || at.cell.refers_to(reference));
        let loosest = self.versions.all.loosest();
        let loosest: &LogPlan = loosest.as_ref().unwrap_or(self.plan);
        self.store.ring(at.cell, reference).help(at.head, loosest, time, validate);
    }

    fn is_current(self, cell: &Cell) -> bool {
        self.versions.is_current(|| cell.key())
    }

    fn known(self, At { cell, head }: At<'a>, reference: RingRef) -> Known {
        if reference.ring_parity() != head.ring_parity() {
            return Known::OfAnotherRing;
        }
        let newest = self.store.ring(cell, reference).newest(head);
        newest.map_or(Known::Unpublished, |newest| Known::Until(self.plan.end_of(newest.time()), newest))
    }

    #[inline]
    fn first(self, opened: Head, cost: u32, elsewhere: bool) -> (RingRef, Head) {
        let cost = cost as usize;
        let slots = if elsewhere { cost.max(2) } else { cost };
        if slots <= 1 {
            let slot = Slot::sentinel(opened.sentinel_number(), opened.lap());
            return (RingRef(slot.0), opened.advanced(cost, 1));
        }
        let (reference, ring) = self.store.new_ring(false, slots, opened.lap());
        (reference, opened.advanced(cost, ring.len()))
    }

    #[cold]
    fn empty(self, resizing: At<'a>, old: RingRef, newest: Slot) {
        let head = resizing.head;
        let by = if head.state().may_have_reserved() { 0 } else { newest.time() };
        let slots = self.store.ring(resizing.cell, old).len() + 1;
        let (offer, _) = self.store.new_ring(!head.ring_parity(), slots, head.lap().wrapping_add(1));
        self.offer(resizing, old, by, offer);
    }
}
