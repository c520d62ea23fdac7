//! Decisions by a log.

use super::left::AsOf;
use super::publish::Published;
use super::resize::Wanted;
use super::ring::Ring;
use super::view::{Log, View};
use crate::cell::driver::{Ask, Charge, Decide, Draft, Fast};
use crate::cell::memory::At;
use crate::cell::store::Store;
use crate::cell::words::{Slot, State};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, FastDecision, PerQuota, Status};

impl<'a> Decide<'a> for Log<'a> {
    type Newest = (Ring<'a>, Slot);

    #[inline(always)]
    fn newest(store: &'a Store, At { cell, head }: At<'a>) -> Option<Self::Newest> {
        let ring = store.ring(cell, cell.reference());
        let newest = ring.newest(head)?;
        if newest.is_sentinel() {
            return None;
        }
        Some((ring, newest))
    }

    #[inline(always)]
    fn fast_decide(self, fast: Fast<'a, Self::Newest>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision> {
        let Fast { at, newest: (ring, newest), reading } = fast;
        let head = at.head;
        let time = self.plan.not_before(reading).max(newest.time());
        let (cost, log) = (cost as usize, AsOf { ring, head, newest: newest.time(), time, reading });
        if let Some(refusal) = self.plan.refusal(ring, head, time, cost) {
            if self.plan.counts_refused {
                return None;
            }
            match left {
                // None are left, and the denial's wait is that until one is.
                Some(left) if cost == 1 && self.plan.is_alone() => {
                    left.set_one(self.plan.none_left(log, refusal.until))
                }
                Some(left) => self.plan.write_left(log, 0, left),
                None => {}
            }
            // The loads above acquire, so they belong to a head that is unchanged (INV-DENIAL).
            let is_valid = at.validate();
            return is_valid.then(|| refusal.fast_denial(reading));
        }
        // A ring that is shorter than the limit may have to grow. A longer one may hold stamps that
        // no limit needs.
        if ring.len() != self.plan.limit() && !ring.has_room(head, cost, self.plan.live_from(time)) {
            return None;
        }
        // Before the claim, whose success shows that the loads were of this head (INV-VALIDATE).
        if let Some(left) = left {
            self.plan.write_left(log, cost, left);
        }
        ring.claim(at, cost, self.plan, time)?;
        Some(FastDecision::admitted(0))
    }

    /// The answer to a peek, also of a log that counts refused requests: a peek is not one.
    #[inline(always)]
    fn fast_peek(self, fast: Fast<'a, Self::Newest>, cost: u32) -> Option<Status> {
        let Fast { at, newest: (ring, newest), reading } = fast;
        let head = at.head;
        let time = self.plan.not_before(reading).max(newest.time());
        let refusal = if cost == 0 { None } else { self.plan.refusal(ring, head, time, cost as usize) };
        let decision = refusal.map_or(Decision::Admitted(Admission::COUNTED), |refusal| refusal.denial(reading));
        let left = self.plan.left(AsOf { ring, head, newest: newest.time(), time, reading }, 0);
        at.validate().then_some(Status { decision, left })
    }

    fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Option<(Status, Charge)> {
        let view = self.view(at, clock)?;
        let cost = cost as usize;
        match (self.refusal(&view, cost), ask) {
            (None, _) if !ask.charges() => self.told(&view, Decision::Admitted(Admission::COUNTED)),
            (None, _) => self.grant(ask, &view, cost, clock),
            // A log that counts refused requests reserves nothing: INV-REFUSED.
            (Some(refusal), Ask::Reserve { within } | Ask::PeekReserve { within }) if !self.plan.counts_refused => {
                self.reserve(&view, refusal, cost, within, ask.charges())
            }
            // Reserved stamps must not be postponed.
            (Some(refusal), Ask::Acquire | Ask::Reserve { .. }) if self.plan.counts_refused && !view.is_behind() => {
                self.refuse_and_count(&view, cost, refusal.denial(view.reading))
            }
            (Some(refusal), _) => self.told(&view, refusal.denial(view.reading)),
        }
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
}

impl<'a> Log<'a> {
    /// One attempt to grant permits that fit.
    fn grant(self, ask: Ask, view: &View<'a>, cost: usize, clock: &impl Clock) -> Option<(Status, Charge)> {
        let View { at, ring, time, .. } = *view;
        let live = view.live(self.plan.live_from(time));
        let granted = |left, charge| Some((Status { decision: Decision::Admitted(Admission::COUNTED), left }, charge));
        // Loads of different heads may contradict each other. Then a request that was not refused
        // may not fit.
        if live + cost > self.plan.limit() {
            return None;
        }
        if at.head.state().is_resizing() || ring.len() - live < cost {
            let (time, left) = self.grow(view, Wanted { cost, live }, clock)?;
            return granted(left, Charge { head: at.head, mark: time });
        }
        let left = self.plan.left(view.as_of(), cost);
        let Ask::Reserve { .. } = ask else {
            // No receipt is needed.
            ring.claim(at, cost, self.plan, time)?;
            return granted(left, Charge::nothing(at.head));
        };
        let lower_bound = self.earliest_stamp(view, cost);
        match ring.claim(at, cost, self.plan, time)? {
            Published::ByClaimant => granted(left, Charge { head: at.head, mark: time }),
            Published::Unknown => granted(left, self.charge_in_ring(at, lower_bound)),
        }
    }

    /// Answers, and charges nothing.
    pub(super) fn told(self, view: &View<'a>, decision: Decision) -> Option<(Status, Charge)> {
        let left = match view.is_behind() {
            true => self.plan.left_behind(view.as_of(), view.newest.time()),
            false => self.plan.left(view.as_of(), 0),
        };
        view.validate().then(|| (Status { decision, left }, Charge::nothing(view.at.head)))
    }
}
