//! The core that [`Limiter`](crate::Limiter), [`DirectLimiter`](crate::DirectLimiter) and
//! [`JointLimiter`](crate::JointLimiter) share: a table, a clock, the modes, the answer at the key
//! cap, and changes of quotas. They differ in how a request names its keys.

pub(crate) mod full;

use core::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::Arc;

use once_cell::race::OnceBox;

use crate::caps::AtKeyCap;
use crate::clock::Clock;
use crate::counts::{Counts, Tally};
use crate::decision::{Decision, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
#[cfg(feature = "snapshot")]
use crate::fingerprint::Fingerprinter;
use crate::lists::Lists;
use crate::modes::Modes;
use crate::observer::Observers;
use crate::quota::Quota;
use crate::quotas::ChangeError;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;
use crate::state::joint::Together;
use crate::state::request::Request;
use crate::state::table::{Scope, THE_KEY, TOGETHER, Table};
use crate::sync::plain::{AtomicBool, Ordering};
use crate::tier::Tiers;

/// A limiter whose keys are fingerprints.
pub(crate) struct Engine<C, F> {
    pub(crate) table: Table,
    pub(crate) clock: C,
    pub(crate) fingerprinter: F,
    /// Whether new keys at the key cap are admitted, uncounted.
    pub(crate) admits_at_cap: AtomicBool,
    pub(crate) tiers: Tiers,
    /// Whether single keys may have quotas of their own.
    pub(crate) may_have_own: bool,
    /// Whether decisions are neither changed by modes, nor counted, nor observed.
    pub(crate) is_plain: AtomicBool,
    pub(crate) tally: Option<Tally>,
    pub(crate) id: LimiterId,
    /// Shadow mode, penalties and lists, if there are any.
    pub(crate) modes: OnceBox<Modes>,
    pub(crate) observers: Observers,
    /// The names of the dimensions, if there are any.
    pub(crate) names: Box<[Box<str>]>,
}

/// A number that identifies a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimiterId(u64);

impl LimiterId {
    /// A random number. Two limiters have the same number with a probability of 2^-64.
    pub(crate) fn new() -> Self {
        Self(RandomState::new().hash_one(()))
    }
}

impl<C, F> Engine<C, F> {
    /// The answer to new keys at the key cap.
    pub(crate) fn at_key_cap(&self) -> AtKeyCap {
        if self.admits_at_cap.load(Ordering::Relaxed) { AtKeyCap::Admit } else { AtKeyCap::Deny }
    }

    pub(crate) fn set_at_key_cap(&self, answer: AtKeyCap) {
        self.admits_at_cap.store(answer == AtKeyCap::Admit, Ordering::Relaxed);
    }
}

impl<C: Clock, F> Engine<C, F> {
    /// The current quotas of a group; group 0 if there are no dimensions.
    pub(crate) fn quotas(&self, group: usize) -> Arc<[Quota]> {
        Arc::clone(&self.table.version(group).quotas)
    }

    /// Whether decisions are neither changed by modes, nor counted, nor observed: one look for all
    /// three.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed)
    }

    /// Whether decisions are told to observers.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// Decides a request of one key with the permits left, or asks it if there are observers to tell.
    #[inline(always)]
    pub(crate) fn decide_status_or(
        &self,
        key: Fingerprint,
        cost: u32,
        observed: impl FnOnce(Request) -> Status,
    ) -> Status {
        if self.is_observed() { observed(Request::acquire(cost)) } else { self.decide_status(key, cost) }
    }

    /// The answer that such a request would get, if its cost is within all limits.
    pub(crate) fn peek_within_limits(
        &self,
        keys: &[Option<Fingerprint>],
        request: Request,
    ) -> Result<Status, CostExceedsLimit> {
        let status = self.peek(keys, request);
        self.fits(keys, request.cost, status.decision).map(|()| status)
    }

    /// The key in this dimension, with the group of its tier, or that of the dimension.
    pub(crate) fn with_group(&self, key: Fingerprint, dimension: usize) -> Fingerprint {
        let (tier, key) = (key.group(), key.in_dimension(dimension));
        if tier == 0 {
            return key;
        }
        self.tiers.check(tier, Some(dimension));
        key.of_group(tier)
    }

    /// Whether keys may have other quotas than those of their dimension: of their own, or of a tier.
    pub(crate) fn keys_differ(&self) -> bool {
        self.may_have_own || self.tiers.any()
    }

    /// Checks that the quotas of a group, or of one of its keys, can change to these: a group is a
    /// dimension or a tier, and group 0 that of a limiter without dimensions.
    pub(crate) fn can_change(&self, group: usize, scope: Scope, quotas: &[Quota]) -> Result<(), ChangeError> {
        Quota::validate_all(quotas).map_err(ChangeError::Unusable)?;
        if scope != Scope::All && !self.may_have_own {
            return Err(ChangeError::NoneOfItsOwn);
        }
        ChangeError::check(&self.quotas(group), quotas)
    }

    /// Changes them. Keys keep their permits. A change to the quotas that there are costs nothing.
    pub(crate) fn set_quotas(&self, group: usize, scope: Scope, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.can_change(group, scope, quotas)?;
        self.table.change(group, scope, quotas, &self.clock);
        Ok(())
    }

    /// Forgets the permits of a key and ends its block. Returns whether it had either.
    pub(crate) fn forget(&self, key: Fingerprint) -> bool {
        let penalties = self.modes.get().and_then(|modes| modes.penalties_for(key, &self.tiers));
        let penalised = penalties.is_some_and(|penalties| penalties.forget(key, &self.clock));
        self.table.forget(key, &self.clock) | penalised
    }

    pub(crate) fn clear(&self) {
        self.table.clear(&self.clock);
        if let Some(modes) = self.modes.get() {
            modes.all_penalties().for_each(|penalties| penalties.table.clear(&self.clock));
        }
    }

    /// The counts of the limiter. `own_bytes` is the size of the limiter without its heap memory.
    pub(crate) fn counts(&self, own_bytes: usize) -> Counts {
        let held = self.table.counts(&self.clock);
        let modes = self.modes.get();
        let penalties = || modes.into_iter().flat_map(Modes::all_penalties);
        Counts {
            live_keys: held.live_keys,
            cells: held.cells,
            bytes: own_bytes
                + self.table.bytes()
                + self.tiers.bytes()
                + self.observers.bytes()
                + self.names.iter().map(|name| size_of_val(name) + name.len()).sum::<usize>()
                + self.tally.as_ref().map_or(0, Tally::bytes)
                + modes.map_or(0, Modes::bytes),
            decisions: self.tally.as_ref().map(Tally::totals),
            refused_at_cap: self.table.refused_at_cap(),
            overruled: modes.map_or(0, Modes::overruled),
            penalties: penalties().map(|it| it.begun()).sum(),
            penalties_refused: penalties().map(|it| it.table.refused_at_cap()).sum(),
            listed: modes.and_then(|modes| modes.lists.as_ref()).map_or(0, Lists::count),
        }
    }
}

/// The shortest ways of requests: of one key, and of many in turn, without modes and observers.
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
        let request = Request::acquire(cost);
        let decision = self.table.acquire_one(key, request, &self.clock);
        decision.unwrap_or_else(|| self.table.acquire(self.keyed(&[Some(key)], request), &self.clock, None, None))
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

#[cfg(feature = "snapshot")]
impl<C: Clock, F: Fingerprinter> Engine<C, F> {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.table, self.modes.get(), &self.fingerprinter, &self.clock)
    }
}
