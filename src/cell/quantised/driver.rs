//! The driver of quantised logs.

use super::view::{Newest, Quantised};
use crate::cell::driver::{Driver, Known};
use crate::cell::memory::{At, Cell};
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, Slot};
use crate::slab::low_half;
use crate::sync::Ordering;

impl<'a> Driver<'a> for Quantised<'a> {
    fn store(self) -> &'a Store {
        self.store
    }

    fn help(self, at: At<'a>, reference: RingRef, time: u64) {
        let time = time.max(self.store.timestamp_floor());
        let Some(newest) = self.block_of(reference).map(|block| block.step) else { return };
        let seen = Newest(newest.load(Ordering::Acquire));
        // The step belongs to this head only if the head is unchanged. During a resize the head
        // stays the same, but the block may be freed (INV-VALIDATE).
        let is_valid = at.validate() && at.cell.refers_to(reference);
        if reference.ring_parity() != at.head.ring_parity() || seen.step().is_some() || !is_valid {
            return;
        }
        // If this fails, another thread has published it.
        let step = Newest::known(self.plan.steps.step_of(time));
        let _ = newest.compare_exchange(seen.0, step.0, Ordering::Release, Ordering::Relaxed);
    }

    fn is_current(self, _cell: &Cell) -> bool {
        // All versions have the same window.
        true
    }

    fn known(self, At { head, .. }: At<'a>, reference: RingRef) -> Known {
        if reference.ring_parity() != head.ring_parity() {
            return Known::OfAnotherRing;
        }
        let steps = &self.plan.steps;
        let Some(history) = self.history(head, reference) else {
            let is_empty = self.plan.used(head) == 0;
            return if is_empty { Known::Until(0, Slot::sentinel(0, 0)) } else { Known::Unpublished };
        };
        // What had expired when the newest step began is not in the block (INV-FLOOR).
        let begun = steps.begin_of(history.step);
        match history.newest() {
            // The timestamp floor must be no later than a reading of some clock.
            Some(step) => Known::Until(steps.free_at(step).max(begun), Slot::new(steps.begin_of(step), false, 0)),
            None => Known::Until(begun, Slot::sentinel(0, 0)),
        }
    }

    fn first(self, opened: Head, cost: u32, _elsewhere: bool) -> (RingRef, Head) {
        let head = self.plan.opened(opened, false, cost);
        (self.new_empty_block(head), head)
    }

    fn empty(self, resizing: At<'a>, old: RingRef, _newest: Slot) {
        let offer = self.new_empty_block(self.opened_by(resizing.head, 0));
        self.offer(resizing, old, 0, offer);
    }

    fn opened(self, resizing: Head, reference: RingRef) -> Head {
        let block = self.block_of(reference);
        self.opened_by(resizing, block.map_or(0, |block| low_half(block.counts.load(Ordering::Acquire))))
    }
}

impl Quantised<'_> {
    /// The open head of a resizing cell, on a block whose step began with so many permits.
    fn opened_by(self, resizing: Head, used: u32) -> Head {
        self.plan.opened(resizing, !resizing.ring_parity(), used)
    }
}
