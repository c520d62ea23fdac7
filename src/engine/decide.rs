//! Decisions on one key.

use super::body::{AtCap, Engine};
use crate::cell::Ask;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Left, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::single::Single;
use crate::table::TOGETHER;

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
        if cost == 0 {
            return self.peek(key, 0).decision;
        }
        if let Some(modes) = self.modes.get() {
            let status = self.decide_in_modes(modes, key, cost, Ask::Peek, |clock| {
                let fast = self.table.fast_decide(key, cost, clock);
                fast.map_or_else(|| self.ask_quota(key, cost, clock), |fast| (Status::bare(fast.into()), true))
            });
            return status.decision;
        }
        match self.table.fast_decide(key, cost, &self.clock) {
            Some(fast) => {
                self.count(fast.is_admitted());
                fast.into()
            }
            None => self.decide_at_length(key, cost).decision,
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
        // Written in place, because to move a status costs as much as to decide.
        let mut status = Status::nothing();
        let may_be_fast = self.modes.get().is_none();
        let fast = if may_be_fast { self.table.fast_status(key, cost, &self.clock, &mut status.left) } else { None };
        if let Some(fast) = fast {
            self.count(fast.is_admitted());
            status.decision = fast.into();
        } else {
            status = self.decide_at_length(key, cost);
        }
        status
    }

    /// The slow path of a request of at least one permit.
    fn decide_at_length(&self, key: Fingerprint, cost: u32) -> Status {
        if let Some(modes) = self.modes.get() {
            return self.decide_in_modes(modes, key, cost, Ask::Peek, |clock| self.ask_quota(key, cost, clock));
        }
        let (status, _) = self.ask_quota(key, cost, &self.clock);
        self.count(status.is_admitted());
        status
    }

    pub(crate) fn peek(&self, key: Fingerprint, cost: u32) -> Status {
        match self.modes.get() {
            // A request of cost zero is always admitted.
            Some(modes) if cost > 0 => self.peek_in_modes(modes, key, cost),
            _ if cost > 0 => self.preview_quota(Ask::Peek, key, cost, &self.clock),
            _ => self.table.peek(key, 0, &self.clock),
        }
    }

    /// The quota's decision on the slow path, and whether it is by the key's own permits.
    #[inline]
    pub(super) fn ask_quota(&self, key: Fingerprint, cost: u32, clock: &impl Clock) -> (Status, bool) {
        match self.table.acquire(key, cost, clock) {
            Ok(status) => (status, true),
            Err(retry_after_ns) => {
                match self.decide_at_cap(key, cost, retry_after_ns, |shared| shared.acquire(cost, clock)) {
                    Some(status) => (status, false),
                    None => loop {
                        if let Ok(status) = self.table.acquire(key, cost, clock) {
                            return (status, true);
                        }
                    },
                }
            }
        }
    }

    /// The quota's answer to a peek.
    pub(super) fn preview_quota(&self, ask: Ask, key: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        self.table.preview(ask, key, cost, clock).unwrap_or_else(|retry_after_ns| {
            let shared = |shared: &Single| shared.table.peek_as(ask, Single::KEY, cost, clock);
            let at_cap = self.decide_at_cap(key, cost, retry_after_ns, shared);
            at_cap.unwrap_or_else(|| self.table.peek_as(ask, key, cost, clock))
        })
    }

    /// The answer to a new key at the key cap; `None` to try again. `shared` asks the quota that
    /// keys without a place share. It is called only if that quota can ever admit the cost: a key's
    /// own quota may allow more.
    #[cold]
    pub(super) fn decide_at_cap(
        &self,
        key: Fingerprint,
        cost: u32,
        retry_after_ns: u64,
        shared: impl FnOnce(&Single) -> Status,
    ) -> Option<Status> {
        let quotas = &self.table.version_for(key).quotas;
        let denied = || Decision::Denied(Denial::new(retry_after_ns, DenialReason::KeyCap, 0));
        Some(match &self.at_cap {
            AtCap::Retry => return None,
            AtCap::Share(overflow) if overflow.table.version(0).check_cost(cost).is_ok() => shared(overflow),
            at_cap if at_cap.admits() => Status::by_other(Decision::Admitted(Admission::UNCOUNTED), quotas, Left::all),
            AtCap::Answer(_) | AtCap::Share(_) => {
                Status::by_other(denied(), quotas, |limit| Left::none_for(limit, retry_after_ns))
            }
        })
    }
}
