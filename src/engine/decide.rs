//! Decisions on one key.

use super::body::Engine;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Left, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::reservation::Charges;
use crate::state::plan::Ask;
use crate::state::table::TOGETHER;

impl<C: Clock, F> Engine<C, F> {
    /// The key, if its quotas allow this cost, or if a request of any cost has an answer: the key
    /// is on a list, or the limiter is in shadow mode.
    #[inline]
    pub(crate) fn checked(&self, key: Fingerprint, cost: u32) -> Result<Fingerprint, CostExceedsLimit> {
        let checked = self.table.version_for(key).check_cost(cost);
        if checked.is_err() && self.modes.get().is_some_and(|modes| modes.answer_any_cost(key)) {
            return Ok(key);
        }
        checked.map(|()| key)
    }

    #[inline(always)]
    pub(crate) fn decide(&self, key: Fingerprint, cost: u32) -> Decision {
        if cost == 0 || self.modes.get().is_some() {
            return self.decide_in_full(key, cost).decision;
        }
        match self.table.decide(key, Ask::acquire(cost), &self.clock, None) {
            Ok(decision) => {
                self.count(decision.is_admitted());
                decision.into()
            }
            Err(retry_after_ns) => self.decide_at_cap(key, retry_after_ns).decision,
        }
    }

    #[inline]
    pub(super) fn count(&self, is_admitted: bool) {
        if let Some(tally) = &self.tally {
            tally.count(is_admitted);
        }
    }

    /// Decides one permit for each key, in order.
    pub(crate) fn decide_many(&self, mut keys: impl Iterator<Item = Fingerprint>) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(keys.size_hint().0);
        let mut together = [Fingerprint::new(0, 0); TOGETHER];
        loop {
            let mut count = 0;
            for (place, key) in together.iter_mut().zip(keys.by_ref()) {
                *place = key;
                count += 1;
            }
            self.table.prefetch(&together[..count]);
            decisions.extend(together[..count].iter().map(|&key| self.decide(key, 1)));
            if count < TOGETHER {
                return decisions;
            }
        }
    }

    /// Decides, with the permits left.
    #[inline(always)]
    pub(crate) fn decide_in_full(&self, key: Fingerprint, cost: u32) -> Status {
        if cost == 0 {
            return self.peek(key, 0);
        }
        if let Some(modes) = self.modes.get() {
            return self.decide_in_modes(modes, key, Ask::acquire(cost)).0;
        }
        // Written in place, because to move a status costs as much as to decide.
        let mut status = Status::nothing();
        match self.table.decide(key, Ask::acquire(cost), &self.clock, Some(&mut status.left)) {
            Ok(decision) => {
                self.count(decision.is_admitted());
                status.decision = decision.into();
                status.left.denied = if status.is_denied() { cost } else { 0 };
            }
            Err(retry_after_ns) => status = self.decide_at_cap(key, retry_after_ns),
        }
        status
    }

    pub(crate) fn peek(&self, key: Fingerprint, cost: u32) -> Status {
        self.peek_as(key, Ask::acquire(cost))
    }

    /// The answer that such a request would get.
    pub(crate) fn peek_as(&self, key: Fingerprint, ask: Ask) -> Status {
        match self.modes.get() {
            // A request of cost zero is always admitted.
            Some(modes) if ask.cost > 0 => self.peek_in_modes(modes, key, ask),
            _ if ask.cost > 0 => self.preview_quota(key, ask, &self.clock),
            _ => self.table.peek(key, ask, &self.clock),
        }
    }

    /// The quota's decision, and what a refund needs, if it is by the key's own permits.
    #[inline]
    pub(super) fn ask_quota(&self, key: Fingerprint, ask: Ask, clock: &impl Clock) -> (Status, Charges) {
        match self.table.acquire(key, ask, clock) {
            Ok((status, refundable)) => (status, Charges::One(refundable)),
            Err(retry_after_ns) => (self.answer_at_cap(key, retry_after_ns), Charges::Nothing),
        }
    }

    /// The quota's answer to a peek.
    pub(super) fn preview_quota(&self, key: Fingerprint, ask: Ask, clock: &impl Clock) -> Status {
        let previewed = self.table.preview(key, ask, clock);
        previewed.unwrap_or_else(|retry_after_ns| self.answer_at_cap(key, retry_after_ns))
    }

    /// The answer to a new key at the key cap, counted.
    #[cold]
    fn decide_at_cap(&self, key: Fingerprint, retry_after_ns: u64) -> Status {
        let status = self.answer_at_cap(key, retry_after_ns);
        self.count(status.is_admitted());
        status
    }

    /// The answer to a new key at the key cap.
    #[cold]
    pub(super) fn answer_at_cap(&self, key: Fingerprint, retry_after_ns: u64) -> Status {
        let version = self.table.version_for(key);
        if self.at_cap.admits() {
            return Status::by_other(Decision::Admitted(Admission::UNCOUNTED), &version.quotas, Left::all);
        }
        let denied = Decision::Denied(Denial::new(retry_after_ns, DenialReason::KeyCap, 0));
        Status::by_other(denied, &version.quotas, |limit| Left::none_for(limit, retry_after_ns))
    }
}
