//! Decisions by an account.

use super::account_view::{AccountState, AccountView, Running};
use super::layout::EraKind;
use super::view::Counter;
use crate::cell::algorithm::{Algorithm, Ask, Attempt, Charge, Draft};
use crate::cell::memory::At;
use crate::cell::words::{RingRef, Slot, State, time_of};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, FastDecision, Left, PerQuota, Status};
use crate::rule::{Account, Step};

fn denied(wait_ns: u64) -> Decision {
    Decision::Denied(Denial::new(wait_ns, DenialReason::Quota, 0))
}

impl<'a> Counter<'a> {
    /// The fast path: decides by the running account.
    #[inline(always)]
    pub(super) fn fast_decide(self, at: At<'a>, cost: u32, reading: u64) -> Option<FastDecision> {
        self.fast_with(at, cost, reading).map(|(decided, _)| decided)
    }

    /// Decides as [`fast_decide`](Self::fast_decide) does, and returns the permits left.
    #[inline]
    pub(super) fn fast_status(self, at: At<'a>, cost: u32, reading: u64, left: &mut PerQuota) -> Option<FastDecision> {
        let (decided, account) = self.fast_with(at, cost, reading)?;
        let (current, time) = (self.view.current, time_of(reading));
        left.set_one(if cost == 1 && !decided.is_admitted() {
            // None are left, and the denial's wait is that until one is.
            let reset_after_ns = current.rule.reset_after(account, time);
            Left { limit: current.limit(), remaining: 0, next_after_ns: decided.wait_ns(), reset_after_ns }
        } else {
            current.left(account, time)
        });
        Some(decided)
    }

    /// The answer to a peek.
    #[inline]
    pub(super) fn fast_peek(self, at: At<'a>, cost: u32, reading: u64) -> Option<Status> {
        let (view, time) = (self.view, time_of(reading));
        let state = view.state(at.head, at.cell.slot());
        let AccountState::Running(Running { account, is_current: true, .. }) = state else { return None };
        if cost == 0 || cost > view.current.limit() {
            return None;
        }
        let decision = match view.rule().step(account, time, cost) {
            Step::Deny { wait_ns } => denied(wait_ns),
            Step::Charge { .. } => Decision::Admitted(Admission::delayed(view.rule().delay_ns(account, time))),
            Step::Open { .. } | Step::Advance { .. } => return None,
        };
        at.validate().then_some(Status { decision, left: PerQuota::one(view.current.left(account, time)) })
    }

    /// Decides, and returns the account after the decision.
    #[inline(always)]
    fn fast_with(self, at: At<'a>, cost: u32, reading: u64) -> Option<(FastDecision, Account)> {
        let (view, At { cell, head }) = (self.view, at);
        let slot = cell.slot();
        let AccountState::Running(Running { account, is_current: true, .. }) = view.state(head, slot) else {
            return None;
        };
        if cost > view.current.limit() {
            return None;
        }
        let time = time_of(reading);
        match view.rule().step(account, time, cost) {
            Step::Charge { used } => {
                at.claim(view.layout().charged(head, used))?;
                Some((FastDecision::admitted(view.rule().delay_ns(account, time)), Account { used, ..account }))
            }
            Step::Deny { wait_ns } => {
                let is_valid = at.validate();
                is_valid.then(|| (FastDecision::denied(wait_ns, 0), account))
            }
            Step::Open { used } => {
                view.opens_again(at, slot, account, used, time)?;
                Some((FastDecision::admitted(0), Account { anchor: view.rule().anchor_at(time), used }))
            }
            Step::Advance { .. } => None,
        }
    }

    /// A clock reading. `None` if the quota has changed since it was read: by the old one, the
    /// reading might find an account over that goes on under the new one (INV-VERSION).
    pub(super) fn read(self, at: At<'a>, clock: &impl Clock) -> Option<u64> {
        let time = time_of(clock.now());
        self.is_current(at.cell).then_some(time)
    }

    /// Prepares a joint claim of at least one permit, and returns the account after it; or closes
    /// an account that is over so that the next can open. `None` if the request does not fit, or
    /// something had to be published or closed first.
    pub(super) fn draft(self, at: At<'a>, reference: RingRef, cost: u32, time: u64) -> Option<(Draft, Account)> {
        let (view, head, slot) = (self.view, at.head, Slot(reference.0));
        let fits = |next, before, mark, after| {
            let admission = Admission::delayed(view.rule().delay_ns(before, time));
            Some((Draft { next, rings: None, mark, admission }, after))
        };
        match view.state(head, slot) {
            AccountState::Running(running) if !running.is_current => {
                view.renew(at, slot, &running, time);
                None
            }
            AccountState::Running(running) => {
                let step = view.rule().step(running.account, time, cost);
                match AccountView::goes_on(slot, running.account, time, step) {
                    Step::Open { .. } => {
                        self.close(at, slot, time);
                        None
                    }
                    step => {
                        let (next, mark) = view.next(head, slot, &running, step)?;
                        let after = match step {
                            Step::Advance { used } => Account { anchor: mark, used },
                            Step::Charge { used } | Step::Open { used } => Account { used, ..running.account },
                            Step::Deny { .. } => running.account,
                        };
                        fits(next, running.account, mark, after)
                    }
                }
            }
            AccountState::Over(since) if slot.joined() => {
                // Nothing has been used since.
                let next = view.layout().next_by(head, view.number(), EraKind::Opens, cost.into());
                let opens = if slot.is_sentinel() { time.max(self.store.timestamp_floor()) } else { time };
                let after = Account { anchor: view.rule().anchor_at(opens.max(since)), used: cost.into() };
                fits(next, Account { anchor: since, used: 0 }, 0, after)
            }
            AccountState::Over(_) => {
                self.close(at, slot, time);
                None
            }
            AccountState::Unpublished => {
                self.help(at, reference, time);
                None
            }
        }
    }

    /// Closes an account that is over, so that the next can open. The version that it was written
    /// under says since when.
    fn close(self, at: At<'a>, slot: Slot, time: u64) {
        let layout = self.view.layout();
        let closed = layout.next(at.head, EraKind::Closes, layout.used(at.head));
        let _ = self.view.begin(at, closed, slot, time);
    }

    /// One attempt at a decision.
    pub(super) fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt {
        let (view, head) = (self.view, at.head);
        if head.state() == State::Held {
            self.store.help_joint(head);
            return at.lost();
        }
        let slot = at.cell.slot();
        // Read after the head (INV-CLOCK-LAST), at each attempt.
        let Some(time) = self.read(at, clock) else { return at.lost() };
        let rule = view.rule();
        let (running, account) = match view.state(head, slot) {
            // Once per change; a denial writes nothing else.
            AccountState::Running(running) if !running.is_current && ask != Ask::Peek => {
                view.renew(at, slot, &running, time);
                return at.lost();
            }
            AccountState::Running(running) => (Some(running), running.account),
            // Nothing has been used since.
            AccountState::Over(since) => (None, Account { anchor: since, used: 0 }),
            AccountState::Unpublished => {
                self.help(at, RingRef(slot.0), time);
                return at.lost();
            }
        };
        let step = match running {
            _ if cost > view.current.limit() => Step::Deny { wait_ns: u64::MAX },
            Some(_) if cost == 0 => Step::Charge { used: account.used },
            Some(_) => rule.step(account, time, cost),
            None => Step::Open { used: cost.into() },
        };
        let (step, delay) = match ask {
            Ask::Reserve { within } if running.is_some() && cost <= view.current.limit() => {
                rule.reserve(account, time, cost, within)
            }
            _ => (step, rule.delay_ns(account, time)),
        };
        let step = if running.is_some() { AccountView::goes_on(slot, account, time, step) } else { step };
        let delay = Admission::delayed(delay);
        let told = |decision, account, charge| {
            Attempt::Decided(Status { decision, ..view.current.status(account, time) }, charge)
        };
        if ask == Ask::Peek || matches!(step, Step::Deny { .. }) {
            let decision = match step {
                Step::Deny { wait_ns } => denied(wait_ns),
                _ => Decision::Admitted(delay),
            };
            return if at.validate() { told(decision, account, Charge::nothing(head)) } else { at.lost() };
        }
        let claimed = match (running.and_then(|running| view.next(head, slot, &running, step)), step) {
            (Some((next, anchor)), Step::Advance { used }) => {
                let begun = view.begin(at, next, slot, time);
                begun.map(|charge| (Account { anchor, used }, Charge { mark: anchor, ..charge }))
            }
            (Some((next, mark)), Step::Charge { used }) => {
                at.claim(next).map(|()| (Account { used, ..account }, Charge { head: next, mark }))
            }
            (_, Step::Open { used }) if slot.joined() => {
                // A key with a cell and no permits: see `Algorithm::help`.
                let time = if slot.is_sentinel() { time.max(self.store.timestamp_floor()) } else { time };
                let anchor = rule.anchor_at(time.max(slot.time()));
                let next = view.layout().next_by(head, view.number(), EraKind::Opens, used);
                let begun = view.begin(at, next, slot, time);
                begun.map(|charge| (Account { anchor, used }, charge))
            }
            _ => {
                // Retry, with the old account closed.
                self.close(at, slot, time);
                None
            }
        };
        claimed.map_or_else(|| at.lost(), |(account, charge)| told(Decision::Admitted(delay), account, charge))
    }
}
