//! A log as an algorithm of cells.

use super::plan::LogPlan;
use super::resize::Wanted;
use super::view::Log;
use crate::cell::algorithm::{Algorithm, Ask, Attempt, Charge, Draft, Known};
use crate::cell::descriptor::Part;
#[cfg(feature = "snapshot")]
use crate::cell::export::{Export, Import, age};
use crate::cell::memory::{At, Cell};
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, Slot, State};
use crate::clock::Clock;
use crate::decision::{Admission, FastDecision, PerQuota, Status};

impl<'a> Algorithm<'a> for Log<'a> {
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
        let view = self.view(at, clock)?;
        if at.head.state().is_resizing() {
            self.end_resize(&view);
            return None;
        }
        // The one slot in the cell may have been published between the two loads. Then a larger
        // ring would replace another value.
        if !view.reference.is_ring() && view.reference.0 != view.newest.0 {
            return None;
        }
        let cost = cost as usize;
        if self.refusal(&view, cost).is_some() {
            return None;
        }
        let live = view.live(self.plan.live_from(view.time));
        if live + cost > self.plan.limit() {
            return None;
        }
        let draft = |next, rings, mark| Some(Draft { next, rings, mark, admission: Admission::COUNTED });
        if view.ring.len() - live >= cost {
            if let Some(left) = left {
                *left = self.plan.left(view.as_of(), cost);
            }
            // The stamp is known once it is published.
            return draft(at.head.advanced(cost, view.ring.len()), None, view.lower_bound);
        }
        let larger = self.larger_ring(at, &view, Wanted { cost, live }, clock);
        if let Some(left) = left {
            *left = larger.left;
        }
        let next = at.head.with_state(State::Open).on_new_ring();
        draft(next, Some((view.reference, larger.offer)), larger.time)
    }

    fn charge_of(self, cell: &'a Cell, part: &Part) -> Charge {
        match part.rings {
            None => self.charge_in_ring(At { cell, head: part.seen }, part.mark),
            Some(_) => Charge { head: part.next, mark: part.mark },
        }
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

    fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        self.refund(at, charge.mark, cost, clock)
    }

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

    #[cfg(feature = "snapshot")]
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>> {
        let view = self.view(at, clock)?;
        // Reserved stamps are exported beside live ones.
        let live = view.live(self.plan.live_from(view.live_at()));
        let ages: Vec<i64> = view.last(live).map(|stamp| age(view.reading, stamp)).collect();
        view.validate().then(|| (!ages.is_empty()).then_some(Export::Stamps(ages)))
    }

    #[cfg(feature = "snapshot")]
    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head) {
        let ages: &[i64] = if let Export::Stamps(ages) = export { ages } else { &[] };
        let is_reserved = ages.last().is_some_and(|&age| import.at(age) > import.now);
        let opened = if is_reserved { opened.with_state(State::Reserved) } else { opened };
        match ages {
            [] => (RingRef(Slot::sentinel(opened.sentinel_number(), opened.lap()).0), opened),
            [age] => (RingRef(Slot::new(import.at(*age), false, opened.lap() + 1).0), opened),
            _ => {
                let (reference, ring) = self.store.new_ring(false, ages.len(), opened.lap());
                ring.write_last(ages.len(), ages.iter().map(|&age| import.at(age)), opened.lap());
                (reference, opened)
            }
        }
    }
}
