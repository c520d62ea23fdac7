//! Decisions by an account.

use super::view::{AccountState, Counter, KeptBy, Running, View};
use crate::cell::driver::{Ask, Charge, Decide, Draft, Fast};
use crate::cell::memory::At;
use crate::cell::store::Store;
use crate::cell::words::Slot;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, FastDecision, Left, PerQuota, Status};
use crate::rule::{Account, Effect};

fn denied(wait_ns: u64) -> Decision {
    FastDecision::denied(wait_ns, 0).into()
}

impl<'a> Decide<'a> for Counter<'a> {
    type Newest = Slot;

    #[inline(always)]
    fn newest(_store: &'a Store, at: At<'a>) -> Option<Slot> {
        // The rule tells whether it is published.
        Some(at.cell.slot())
    }

    #[inline(always)]
    fn fast_decide(self, fast: Fast<'a, Slot>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision> {
        let Fast { at, newest: slot, reading: time } = fast;
        let (kept_by, head) = (self.kept_by, at.head);
        let plan = kept_by.plan;
        let Some(AccountState::Running(Running { account, is_current: true, .. })) = kept_by.state(head, slot) else {
            return None;
        };
        if cost > plan.limit {
            return None;
        }
        let (decided, after) = match plan.rule.effect(account, time, cost) {
            Effect::Charge { used } => {
                at.claim(plan.layout.charged(head, used))?;
                (FastDecision::admitted(plan.rule.delay_ns(account, time)), Account { used, ..account })
            }
            Effect::Deny { wait_ns } => {
                at.validate().then_some(())?;
                (FastDecision::denied(wait_ns, 0), account)
            }
            Effect::Open { used } => {
                kept_by.opens_again(at, slot, account, used, time)?;
                (FastDecision::admitted(0), Account { anchor: plan.rule.anchor_at(time), used })
            }
            Effect::Advance { .. } => return None,
        };
        if let Some(left) = left {
            left.set_one(if cost == 1 && !decided.is_admitted() {
                // None are left, and the denial's wait is that until one is.
                let reset_after_ns = plan.rule.reset_after(account, time);
                Left { limit: plan.limit, remaining: 0, next_after_ns: decided.wait_ns(), reset_after_ns }
            } else {
                plan.left(after, time)
            });
        }
        Some(decided)
    }

    #[inline]
    fn fast_peek(self, fast: Fast<'a, Slot>, cost: u32) -> Option<Status> {
        let Fast { at, newest: slot, reading: time } = fast;
        let (kept_by, plan) = (self.kept_by, self.plan);
        let state = kept_by.state(at.head, slot)?;
        let AccountState::Running(Running { account, is_current: true, .. }) = state else { return None };
        if cost == 0 || cost > plan.limit {
            return None;
        }
        let decision = match plan.rule.effect(account, time, cost) {
            Effect::Deny { wait_ns } => denied(wait_ns),
            Effect::Charge { .. } => Decision::Admitted(Admission::delayed(plan.rule.delay_ns(account, time))),
            Effect::Open { .. } | Effect::Advance { .. } => return None,
        };
        at.validate().then_some(Status { decision, left: PerQuota::one(plan.left(account, time)) })
    }

    fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Option<(Status, Charge)> {
        let (head, rule, limit) = (at.head, &self.plan.rule, self.plan.limit);
        let View { slot, time, state } = self.view(at, clock)?;
        let (running, account) = match state {
            // Once per change; a denial writes nothing else.
            AccountState::Running(running) if !running.is_current && ask.charges() => {
                self.renew(at, slot, &running, time);
                return None;
            }
            AccountState::Running(running) => (Some(running), running.account),
            // Nothing has been used since.
            AccountState::Over(since) => (None, Account { anchor: since, used: 0 }),
        };
        let effect = match running {
            _ if cost > limit => Effect::Deny { wait_ns: u64::MAX },
            Some(_) if cost == 0 => Effect::Charge { used: account.used },
            Some(_) => rule.effect(account, time, cost),
            None => rule.effect_once_over(account, time, cost),
        };
        let (effect, delay) = match ask {
            Ask::Reserve { within } | Ask::PeekReserve { within } if cost <= limit => {
                rule.reserve(account, time, cost, effect, within)
            }
            _ => (effect, rule.delay_ns(account, time)),
        };
        let effect = if running.is_some() { KeptBy::goes_on(slot, account, time, effect) } else { effect };
        let told = |decision, account, charge| {
            let left = match (effect, self.plan.left(account, time)) {
                // A place in the queue that is too far behind for this request.
                (Effect::Deny { wait_ns }, left) if left.remaining >= cost => {
                    Left { remaining: 0, next_after_ns: wait_ns, ..left }
                }
                (_, left) => left,
            };
            Some((Status { decision, left: PerQuota::one(left) }, charge))
        };
        let decision = match effect {
            Effect::Deny { wait_ns } => denied(wait_ns),
            _ => Decision::Admitted(Admission::delayed(delay)),
        };
        if !ask.charges() || matches!(effect, Effect::Deny { .. }) {
            at.validate().then_some(())?;
            return told(decision, account, Charge::nothing(head));
        }
        match (running.and_then(|running| self.next(head, slot, &running, effect)), effect) {
            (Some((next, mark, after)), Effect::Advance { .. }) => {
                let charge = self.begin(at, next, slot, time)?;
                told(decision, after, Charge { mark, ..charge })
            }
            (Some((next, mark, after)), _) => {
                at.claim(next)?;
                told(decision, after, Charge { head: next, mark })
            }
            (None, Effect::Open { used }) if slot.is_over() => {
                let (next, time, after) = self.opening(head, slot, used, time);
                let charge = self.begin(at, next, slot, time)?;
                told(decision, after, charge)
            }
            _ => {
                // Retry, with the old account closed.
                self.close(at, slot, time);
                None
            }
        }
    }

    fn prepare(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft> {
        let (head, rule) = (at.head, &self.plan.rule);
        let View { slot, time, state } = self.view(at, clock)?;
        // The limit has become less than the cost.
        if cost > self.plan.limit {
            return None;
        }
        let (before, (next, mark, after)) = match state {
            AccountState::Running(running) if !running.is_current => {
                self.renew(at, slot, &running, time);
                return None;
            }
            AccountState::Running(running) => {
                let account = running.account;
                let effect = KeptBy::goes_on(slot, account, time, rule.effect(account, time, cost));
                if let Effect::Open { .. } = effect {
                    self.close(at, slot, time);
                }
                (account, self.next(head, slot, &running, effect)?)
            }
            AccountState::Over(since) if slot.is_over() => {
                // Nothing has been used since. The mark is known once it is published.
                let before = Account { anchor: since, used: 0 };
                let Effect::Open { used } = rule.effect_once_over(before, time, cost) else { return None };
                let (next, _, after) = self.opening(head, slot, used, time);
                (before, (next, 0, after))
            }
            AccountState::Over(_) => {
                self.close(at, slot, time);
                return None;
            }
        };
        if let Some(left) = left {
            *left = PerQuota::one(self.plan.left(after, time));
        }
        Some(Draft { next, rings: None, mark, admission: Admission::delayed(rule.delay_ns(before, time)) })
    }
}
