//! The driver of accounts.

use super::layout::EraKind;
use super::view::Counter;
use crate::cell::driver::{Driver, Known};
use crate::cell::memory::{At, Cell};
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, Slot};

impl<'a> Driver<'a> for Counter<'a> {
    fn store(self) -> &'a Store {
        self.store
    }

    fn help(self, at: At<'a>, reference: RingRef, time: u64) {
        self.publish_era(at, Slot(reference.0), time.max(self.store.timestamp_floor()));
    }

    fn is_current(self, cell: &Cell) -> bool {
        self.versions.is_current(|| cell.key())
    }

    fn known(self, at: At<'a>, reference: RingRef) -> Known {
        let slot = Slot(reference.0);
        self.over_at(at.head, slot).map_or(Known::Unpublished, |over| Known::Until(over, slot))
    }

    /// The account opens with its first request. With a cost of zero it is over since before time
    /// began, unless a new key has used something from the start.
    fn first(self, opened: Head, cost: u32, elsewhere: bool) -> (RingRef, Head) {
        let (layout, number) = (self.plan.layout, self.versions.current.number);
        let used = self.plan.rule.opening(cost).used;
        let kind = if used == 0 { EraKind::Closes } else { EraKind::Opens };
        let head = layout.next(opened, number, kind, used);
        let sentinel = if elsewhere { Slot::sentinel_after_ring } else { Slot::sentinel };
        // Over, if it is published.
        let is_published = kind == EraKind::Closes;
        let slot = sentinel(opened.sentinel_number(), layout.era(head) + u64::from(is_published));
        (RingRef(slot.0), head)
    }

    fn empty(self, _resizing: At<'a>, _old: RingRef, _newest: Slot) {
        // An account is never resized: the head is out of date, and the cell was a log's.
    }
}
