//! Decisions by a quantised log.

use super::history::{History, Verdict};
use super::view::{Contents, Newest, Quantised, View};
use crate::cell::algorithm::{Algorithm, Ask, Attempt, Charge, Draft};
use crate::cell::memory::At;
use crate::cell::words::{Head, RingRef, State, time_of};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, FastDecision, PerQuota, Status};

impl<'a> Quantised<'a> {
    #[inline]
    pub(super) fn fast_decide(self, at: At<'a>, cost: u32, reading: u64) -> Option<FastDecision> {
        self.fast_with(at, cost, reading, |_, _| ()).map(|(decided, ())| decided)
    }

    /// Decides as [`fast_decide`](Self::fast_decide) does, and writes the permits left to
    /// `left`.
    pub(super) fn fast_status(self, at: At<'a>, cost: u32, reading: u64, left: &mut PerQuota) -> Option<FastDecision> {
        let (steps, time) = (&self.plan.steps, time_of(reading));
        let (decided, told) = self.fast_with(at, cost, reading, |history, granted| match granted {
            0 => history.left(steps, time),
            _ => history.left_after(steps, time, history.step, granted),
        })?;
        left.set_one(told);
        Some(decided)
    }

    /// Decides. `with` computes the second result from the permits granted.
    #[inline(always)]
    fn fast_with<T>(
        self,
        at: At<'a>,
        cost: u32,
        reading: u64,
        with: impl FnOnce(History<'a>, u32) -> T,
    ) -> Option<(FastDecision, T)> {
        let reference = at.cell.reference();
        if reference.ring_parity() != at.head.ring_parity() || cost > self.plan.limit() {
            return None;
        }
        let history = self.history(at.head, reference)?;
        let time = time_of(reading);
        match history.verdict(&self.plan.steps, time, cost) {
            Verdict::Charge => {
                // Before the claim, whose success shows that the loads were of this head
                // (INV-VALIDATE).
                let told = with(history, cost);
                at.claim(self.plan.charged(at.head, cost))?;
                Some((FastDecision::admitted(0), told))
            }
            Verdict::Begin(_) => None,
            Verdict::Deny(until) => {
                let told = with(history, 0);
                let is_valid = at.validate();
                is_valid.then(|| (FastDecision::denied(until.saturating_sub(time), 0), told))
            }
        }
    }

    /// One attempt at a decision.
    pub(super) fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt {
        let plan = self.plan;
        if cost > plan.limit() {
            let Some(view) = self.view(at, clock) else { return at.lost() };
            let status = Status { decision: denied(u64::MAX, 0), ..plan.status(&view.history, view.time) };
            return if view.validate() { Attempt::Decided(status, Charge::nothing(at.head)) } else { at.lost() };
        }
        let Some(view) = self.view(at, clock) else { return at.lost() };
        let View { reference, history, time, .. } = view;
        let verdict = history.verdict(&plan.steps, time, cost);
        let told = |decision| {
            let status = Status { decision, ..plan.status(&history, time) };
            if view.validate() { Attempt::Decided(status, Charge::nothing(at.head)) } else { at.lost() }
        };
        let admitted = Decision::Admitted(Admission::COUNTED);
        let step = match verdict {
            Verdict::Deny(until) => return told(denied(until, time)),
            _ if ask == Ask::Peek => return told(admitted),
            Verdict::Charge => history.step,
            Verdict::Begin(step) => step,
        };
        // From before the claim.
        let left = PerQuota::one(history.left_after(&plan.steps, time, step, cost));
        let claimed = if step == history.step && at.head.state().is_open() {
            let charged = plan.charged(at.head, cost);
            at.claim(charged).map(|()| charged)
        } else {
            at.begin_resize(State::Resizing).and_then(|resizing| {
                let (offer, opened) = self.next_block(resizing.head, &history, step, cost);
                self.offer(resizing, reference, 0, offer).then_some(opened)
            })
        };
        let Some(head) = claimed else { return at.lost() };
        Attempt::Decided(Status { decision: admitted, left }, Charge { head, mark: mark_of(step) })
    }

    /// A block that the caller owns, with a claim of `cost` permits in this step, the newest or a
    /// later one; and its head.
    pub(super) fn next_block(self, head: Head, history: &History<'_>, step: u64, cost: u32) -> (RingRef, Head) {
        let begins = step != history.step;
        let used = if begins { cost } else { history.used.saturating_add(cost) };
        let start = if begins { history.start.wrapping_add(history.used) } else { history.start };
        let opened = self.plan.opened(head, !head.ring_parity(), used);
        let entries = history.kept(&self.plan.steps, step);
        let most = entries.size_hint().1.unwrap_or(history.entries.len() + 1);
        let contents = Contents { newest: Newest::known(step), start, used, most, entries };
        (self.new_block(opened, contents), opened)
    }

    /// Prepares a joint claim of `cost` permits.
    pub(super) fn draft(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft> {
        if cost > self.plan.limit() {
            return None;
        }
        let view = self.view(at, clock)?;
        let History { step: newest, .. } = view.history;
        let draft = |next, rings, step| {
            if let Some(left) = left {
                *left = PerQuota::one(view.history.left_after(&self.plan.steps, view.time, step, cost));
            }
            Some(Draft { next, rings, mark: mark_of(step), admission: Admission::COUNTED })
        };
        match view.history.verdict(&self.plan.steps, view.time, cost) {
            Verdict::Deny(_) => None,
            // A refund may have stalled in a resize. Finish it, because no other path does.
            _ if at.head.state().is_resizing() => {
                let (offer, _) = self.next_block(at.head, &view.history, newest, 0);
                self.offer(at, view.reference, 0, offer);
                None
            }
            Verdict::Charge => draft(self.plan.charged(at.head, cost), None, newest),
            Verdict::Begin(step) => {
                let (offer, opened) = self.next_block(at.head, &view.history, step, cost);
                draft(opened, Some((view.reference, offer)), step)
            }
        }
    }
}

/// The mark of a charge in a step: never zero.
fn mark_of(step: u64) -> u64 {
    step + 1
}

fn denied(until: u64, time: u64) -> Decision {
    Decision::Denied(Denial::new(until.saturating_sub(time), DenialReason::Quota, 0))
}
