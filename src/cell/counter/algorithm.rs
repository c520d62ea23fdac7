//! An account as an algorithm of cells.

use super::view::Counter;
use crate::cell::algorithm::{Algorithm, Ask, Attempt, Charge, Draft, Known};
use crate::cell::descriptor::Part;
#[cfg(feature = "snapshot")]
use crate::cell::export::{Export, Import, age};
use crate::cell::memory::{At, Cell};
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, Slot, State};
use crate::clock::Clock;
use crate::decision::{FastDecision, PerQuota, Status};

impl<'a> Algorithm<'a> for Counter<'a> {
    fn store(self) -> &'a Store {
        self.store
    }

    #[inline(always)]
    fn fast_decide(self, at: At<'a>, cost: u32, reading: u64) -> Option<FastDecision> {
        self.fast_decide(at, cost, reading)
    }

    #[inline(always)]
    fn fast_status(self, at: At<'a>, cost: u32, reading: u64, left: &mut PerQuota) -> Option<FastDecision> {
        self.fast_status(at, cost, reading, left)
    }

    #[inline(always)]
    fn fast_peek(self, at: At<'a>, cost: u32, reading: u64) -> Option<Status> {
        self.fast_peek(at, cost, reading)
    }

    fn attempt(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt {
        self.decide(ask, at, cost, clock)
    }

    fn prepare(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft> {
        if at.head.state() == State::Held {
            self.store.help_joint(at.head);
            return None;
        }
        let reference = at.cell.reference();
        let time = self.read(at, clock)?;
        let (draft, account) = self.draft(at, reference, cost, time)?;
        if let Some(left) = left {
            *left = PerQuota::one(self.view.current.left(account, time));
        }
        Some(draft)
    }

    fn charge_of(self, cell: &'a Cell, part: &Part) -> Charge {
        match part.mark {
            0 => self.view.charge_of(cell, part.next, None),
            mark => Charge { head: part.next, mark },
        }
    }

    fn help(self, at: At<'a>, reference: RingRef, time: u64) {
        self.view.help(at, Slot(reference.0), time.max(self.store.timestamp_floor()));
    }

    fn is_current(self, cell: &Cell) -> bool {
        self.view.is_current(cell)
    }

    fn known(self, at: At<'a>, reference: RingRef) -> Known {
        let slot = Slot(reference.0);
        self.view.over_at(at.head, slot).map_or(Known::Unpublished, |over| Known::Until(over, slot))
    }

    fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        self.refund(at, charge, cost, clock)
    }

    fn first(self, opened: Head, cost: u32, _elsewhere: bool) -> (RingRef, Head) {
        let (head, slot) = self.view.first(opened, cost, opened.sentinel_number());
        (RingRef(slot.0), head)
    }

    fn empty(self, _resizing: At<'a>, _old: RingRef, _newest: Slot) {
        // An account is never resized: the head is out of date, and the cell was a log's.
    }

    #[cfg(feature = "snapshot")]
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>> {
        if at.head.state() == State::Held {
            self.store.help_joint(at.head);
            return None;
        }
        let reference = at.cell.reference();
        let now = self.read(at, clock)?;
        let Some(export) = self.view.export(at.head, Slot(reference.0), now) else {
            self.help(at, reference, now);
            return None;
        };
        let export = export.map(|(opened, used)| Export::Account { age: age(now, opened), used });
        (at.validate() && at.cell.refers_to(reference)).then_some(export)
    }

    #[cfg(feature = "snapshot")]
    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head) {
        let (head, slot) = match *export {
            Export::Account { age, used } => self.view.reopened(opened, import.at(age), used),
            // Ruled out by `NewKeys::can_have`.
            Export::Stamps(_) | Export::Steps(_) => self.view.first(opened, 0, opened.sentinel_number()),
        };
        (RingRef(slot.0), head)
    }
}
