//! The shortest ways of requests: of one key, and of many in turn, without modes and observers.

use super::Engine;
use super::full::Together;
use crate::clock::Clock;
use crate::decision::{Decision, Status};
use crate::fingerprint::Fingerprint;
use crate::state::request::Request;
use crate::state::table::{THE_KEY, TOGETHER};

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request of one key of a plain limiter.
    #[inline(always)]
    pub(crate) fn decide_plain(&self, key: Fingerprint, cost: u32) -> Decision {
        if cost > 0 {
            if let Some(decision) = self.table.decide(key, cost, &self.clock, None) {
                return decision.into();
            }
        }
        self.decide_anew(key, cost)
    }

    /// The same for the key of a limiter that has no other.
    #[inline(always)]
    pub(crate) fn decide_single(&self, cost: u32) -> Decision {
        if cost > 0 {
            if let Some(decision) = self.table.decide_single(cost, &self.clock) {
                return decision.into();
            }
        }
        self.decide_anew(THE_KEY, cost)
    }

    /// The way of new keys, and of those that another thread changes.
    #[inline(never)]
    fn decide_anew(&self, key: Fingerprint, cost: u32) -> Decision {
        if cost == 0 {
            return self.decide_fully(&[Some(key)], Request::acquire(cost), None).decision;
        }
        // The short way has no answer for a new key, one that moves, or a lost swap.
        self.table.acquire(self.keyed(&[Some(key)], Request::acquire(cost)), &self.clock, None, None)
    }

    /// The same of any limiter, for a caller that tells the observers.
    #[inline(never)]
    pub(crate) fn decide(&self, key: Fingerprint, cost: u32) -> Decision {
        if cost == 0 || self.modes.get().is_some() {
            return self.decide_fully(&[Some(key)], Request::acquire(cost), None).decision;
        }
        let decision = self.decide_plain(key, cost);
        self.count(decision);
        decision
    }

    /// The same, with the permits left.
    #[inline(always)]
    pub(crate) fn decide_status(&self, key: Fingerprint, cost: u32) -> Status {
        if cost > 0 && self.modes.get().is_none() {
            // Written in place, because to move a status costs as much as to decide.
            let mut status = Status::nothing();
            if let Some(decision) = self.table.decide(key, cost, &self.clock, Some(&mut status.left)) {
                status.decision = decision.into();
                self.count(status.decision);
                status.left.denied = if status.is_denied() { cost } else { 0 };
                return status;
            }
        }
        self.decide_fully(&[Some(key)], Request::acquire(cost), None)
    }

    /// Decides a request of one key of each dimension.
    pub(crate) fn decide_together(&self, keys: &[Option<Fingerprint>], cost: u32) -> Decision {
        if cost == 0 || self.modes.get().is_some() {
            return self.decide_fully(keys, Request::acquire(cost), None).decision;
        }
        let decision = self.table.acquire(self.keyed(keys, Request::acquire(cost)), &self.clock, None, None);
        self.count(decision);
        decision
    }

    /// Decides one permit for each key, in order.
    pub(crate) fn decide_many(&self, mut keys: impl Iterator<Item = Fingerprint>) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(keys.size_hint().0);
        let mut batch = Vec::with_capacity(TOGETHER);
        loop {
            batch.clear();
            batch.extend(keys.by_ref().take(TOGETHER));
            self.table.prefetch(&batch);
            decisions.extend(batch.iter().map(|&key| self.decide(key, 1)));
            if batch.len() < TOGETHER {
                return decisions;
            }
        }
    }

    /// Decides several requests in order, each for one permit of each of its keys.
    pub(crate) fn decide_many_together<E>(
        &self,
        mut requests: impl Iterator<Item = Result<Together, E>>,
        dimensions: usize,
    ) -> Vec<Result<Decision, E>> {
        let mut decisions = Vec::with_capacity(requests.size_hint().0);
        let most = TOGETHER / dimensions.max(1);
        loop {
            let batch: Vec<_> = requests.by_ref().take(most).collect();
            let keys: Vec<Fingerprint> = batch.iter().flatten().flatten().flatten().copied().collect();
            self.table.prefetch(&keys);
            let count = batch.len();
            decisions.extend(batch.into_iter().map(|keys| Ok(self.decide_together(&keys?, 1))));
            if count < most {
                return decisions;
            }
        }
    }
}
