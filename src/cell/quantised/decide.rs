//! Decisions by a quantised log.

use super::history::{History, Verdict};
use super::view::{Contents, Newest, Quantised, View, history};
use crate::cell::driver::{Ask, Charge, Decide, Draft, Driver, Fast};
use crate::cell::memory::At;
use crate::cell::store::Store;
use crate::cell::words::{Head, RingRef, State};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, FastDecision, PerQuota, Status};

impl<'a> Decide<'a> for Quantised<'a> {
    type Newest = History<'a>;

    #[inline(always)]
    fn newest(store: &'a Store, at: At<'a>) -> Option<History<'a>> {
        let reference = at.cell.reference();
        if reference.ring_parity() != at.head.ring_parity() {
            return None;
        }
        history(store, reference)
    }

    #[inline(always)]
    fn fast_decide(self, fast: Fast<'a, History<'a>>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision> {
        let Fast { at, newest, reading: time } = fast;
        if cost > self.plan.steps.limit {
            return None;
        }
        let (steps, history) = (&self.plan.steps, History { used: self.plan.used(at.head), ..newest });
        match history.verdict(steps, time, cost) {
            Verdict::Charge => {
                // Before the claim, whose success shows that the loads were of this head
                // (INV-VALIDATE).
                if let Some(left) = left {
                    left.set_one(history.left_after(steps, time, history.step, cost));
                }
                at.claim(self.plan.charged(at.head, cost))?;
                Some(FastDecision::admitted(0))
            }
            Verdict::Begin(_) => None,
            Verdict::Deny(until) => {
                if let Some(left) = left {
                    left.set_one(history.left(steps, time));
                }
                let is_valid = at.validate();
                is_valid.then(|| FastDecision::denied(until.saturating_sub(time), 0))
            }
        }
    }

    fn fast_peek(self, _fast: Fast<'a, History<'a>>, _cost: u32) -> Option<Status> {
        // The slow path costs little more.
        None
    }

    fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Option<(Status, Charge)> {
        let plan = self.plan;
        let view = self.view(at, clock)?;
        let View { reference, history, time, .. } = view;
        let told = |decision| {
            let status = Status { decision, left: PerQuota::one(history.left(&plan.steps, time)) };
            view.validate().then(|| (status, Charge::nothing(at.head)))
        };
        let denied = |wait_ns| told(FastDecision::denied(wait_ns, 0).into());
        if cost > plan.steps.limit {
            return denied(u64::MAX);
        }
        let admitted = Decision::Admitted(Admission::COUNTED);
        let step = match history.verdict(&plan.steps, time, cost) {
            Verdict::Deny(until) => return denied(until.saturating_sub(time)),
            _ if !ask.charges() => return told(admitted),
            Verdict::Charge => history.step,
            Verdict::Begin(step) => step,
        };
        // From before the claim.
        let left = PerQuota::one(history.left_after(&plan.steps, time, step, cost));
        let head = if step == history.step && at.head.state().is_open() {
            let charged = plan.charged(at.head, cost);
            at.claim(charged)?;
            charged
        } else {
            let resizing = at.begin_resize(State::Resizing)?;
            let (offer, opened) = self.next_block(resizing.head, &history, step, cost);
            self.offer(resizing, reference, 0, offer).then_some(opened)?
        };
        Some((Status { decision: admitted, left }, Charge { head, mark: mark_of(step) }))
    }

    fn prepare(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft> {
        if cost > self.plan.steps.limit {
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

impl Quantised<'_> {
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
}

/// The mark of a charge in a step: never zero.
fn mark_of(step: u64) -> u64 {
    step + 1
}
