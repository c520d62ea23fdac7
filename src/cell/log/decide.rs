//! Decisions by a log.

use super::left::AsOf;
use super::plan::Refusal;
use super::publish::Published;
use super::resize::Wanted;
use super::view::{Log, View};
use crate::cell::algorithm::{Ask, Attempt, Charge};
use crate::cell::memory::At;
use crate::cell::words::time_of;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, FastDecision, PerQuota, Status};

impl<'a> Log<'a> {
    #[inline(always)]
    pub(super) fn fast_decide(self, at: At<'a>, cost: u32, reading: u64) -> Option<FastDecision> {
        self.fast_with(at, cost, reading, |_, _| ()).map(|(decided, ())| decided)
    }

    /// Decides as [`fast_decide`](Self::fast_decide) does, and writes the permits left to
    /// `left`.
    #[inline(always)]
    pub(super) fn fast_status(self, at: At<'a>, cost: u32, reading: u64, left: &mut PerQuota) -> Option<FastDecision> {
        let decided = self.fast_with(at, cost, reading, |log, refusal| match refusal {
            // None are left, and the denial's wait is that until one is.
            Some(refusal) if cost == 1 && self.plan.is_alone() => {
                left.set_one(self.plan.none_left(log, refusal.until()));
            }
            Some(_) => self.plan.write_left(log, 0, left),
            None => self.plan.write_left(log, cost as usize, left),
        });
        decided.map(|(decided, ())| decided)
    }

    /// The answer to a peek, also of a log that counts refused requests: a peek is not one.
    #[inline(always)]
    pub(super) fn fast_peek(self, at: At<'a>, cost: u32, reading: u64) -> Option<Status> {
        let At { cell, head } = at;
        let (ring, reading) = (self.store.ring(cell, cell.reference()), time_of(reading));
        let newest = ring.newest(head).filter(|newest| !newest.is_sentinel())?;
        let time = self.plan.not_before(reading).max(newest.time());
        let refusal = if cost == 0 { None } else { self.plan.refusal(ring, head, time, cost as usize) };
        let decision = refusal.map_or(Decision::Admitted(Admission::COUNTED), |refusal| refusal.denial(reading));
        let left = self.plan.left(AsOf { ring, head, newest: newest.time(), time, reading }, 0);
        at.validate().then_some(Status { decision, left })
    }

    /// Decides. `with` computes the second result from the log and the refusal, if there is one.
    #[inline(always)]
    fn fast_with<T>(
        self,
        at: At<'a>,
        cost: u32,
        reading: u64,
        with: impl FnOnce(AsOf<'a>, Option<Refusal>) -> T,
    ) -> Option<(FastDecision, T)> {
        let At { cell, head } = at;
        let reference = cell.reference();
        let ring = self.store.ring(cell, reference);
        let newest = ring.newest(head)?;
        if newest.is_sentinel() {
            return None;
        }
        let time = self.plan.not_before(time_of(reading)).max(newest.time());
        let (cost, log) = (cost as usize, AsOf { ring, head, newest: newest.time(), time, reading: time_of(reading) });
        if let Some(refusal) = self.plan.refusal(ring, head, time, cost) {
            if self.plan.counts_refused() {
                return None;
            }
            let told = with(log, Some(refusal));
            // The loads above acquire, so they belong to a head that is unchanged (INV-DENIAL).
            let is_valid = at.validate();
            return is_valid.then(|| (refusal.fast_denial(time_of(reading)), told));
        }
        // A ring that is shorter than the limit may have to grow. A longer one may hold stamps that
        // no limit needs.
        if ring.len() != self.plan.limit() && !ring.has_room(head, cost, self.plan.live_from(time)) {
            return None;
        }
        // Before the claim, whose success shows that the loads were of this head (INV-VALIDATE).
        let told = with(log, None);
        ring.claim(at, cost, self.plan, time)?;
        Some((FastDecision::admitted(0), told))
    }

    /// One attempt at a decision.
    pub(super) fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt {
        let Some(view) = self.view(at, clock) else { return at.lost() };
        let cost = cost as usize;
        match (self.refusal(&view, cost), ask) {
            (None, Ask::Peek) => self.told(&view, Decision::Admitted(Admission::COUNTED)),
            (None, _) => self.grant(ask, &view, cost, clock),
            // A log that counts refused requests reserves nothing: INV-REFUSED.
            (Some(refusal), Ask::Reserve { within }) if !self.plan.counts_refused() => {
                self.reserve(&view, refusal, cost, within)
            }
            // Reserved stamps must not be postponed.
            (Some(refusal), Ask::Acquire | Ask::Reserve { .. }) if self.plan.counts_refused() && !view.is_behind() => {
                self.refuse_and_count(&view, cost, refusal.denial(view.reading))
            }
            (Some(refusal), _) => self.told(&view, refusal.denial(view.reading)),
        }
    }

    /// One attempt to grant permits that fit.
    fn grant(self, ask: Ask, view: &View<'a>, cost: usize, clock: &impl Clock) -> Attempt {
        let View { at, ring, time, .. } = *view;
        let live = view.live(self.plan.live_from(time));
        let granted =
            |left, charge| Attempt::Decided(Status { decision: Decision::Admitted(Admission::COUNTED), left }, charge);
        // Loads of different heads may contradict each other. Then a request that was not refused
        // may not fit.
        if live + cost > self.plan.limit() {
            return at.lost();
        }
        if at.head.state().is_resizing() || ring.len() - live < cost {
            let Some((time, left)) = self.grow(view, Wanted { cost, live }, clock) else { return at.lost() };
            return granted(left, Charge { head: at.head, mark: time });
        }
        let left = self.plan.left(view.as_of(), cost);
        let Ask::Reserve { .. } = ask else {
            // No receipt is needed.
            let claimed = ring.claim(at, cost, self.plan, time);
            return claimed.map_or_else(|| at.lost(), |_| granted(left, Charge::nothing(at.head)));
        };
        let lower_bound = self.earliest_stamp(view, cost);
        match ring.claim(at, cost, self.plan, time) {
            None => at.lost(),
            Some(Published::ByClaimant) => granted(left, Charge { head: at.head, mark: time }),
            Some(Published::Unknown) => granted(left, self.charge_in_ring(at, lower_bound)),
        }
    }

    /// The permits left of each quota.
    fn left(self, view: &View<'_>) -> PerQuota {
        if view.is_behind() {
            return self.plan.left_behind(view.as_of(), view.newest.time());
        }
        self.plan.left(view.as_of(), 0)
    }

    /// Answers, and charges nothing.
    pub(super) fn told(self, view: &View<'a>, decision: Decision) -> Attempt {
        let status = Status { decision, left: self.left(view) };
        if view.validate() { Attempt::Decided(status, Charge::nothing(view.at.head)) } else { view.at.lost() }
    }
}
