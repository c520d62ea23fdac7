//! The core that [`Limiter`](crate::Limiter), [`DirectLimiter`](crate::DirectLimiter) and
//! [`JointLimiter`](crate::JointLimiter) share: a table, a clock, the modes, the answer at the key
//! cap, and changes of quotas. They differ in how a request names its keys.

mod decide;
pub(crate) mod full;

use core::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::Arc;

use once_cell::race::OnceBox;

use crate::caps::AtKeyCap;
use crate::clock::Clock;
use crate::counts::{Counts, Tally};
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
#[cfg(feature = "snapshot")]
use crate::fingerprint::Fingerprinter;
use crate::lists::Lists;
use crate::modes::Modes;
use crate::observer::Observers;
use crate::penalty::Penalties;
use crate::quota::Quota;
use crate::quotas::ChangeError;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;
use crate::state::request::Request;
use crate::state::table::{Scope, Table};
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

    /// The penalties of the key's dimension.
    pub(crate) fn penalties<'a>(&self, modes: &'a Modes, key: Fingerprint) -> Option<&'a Penalties> {
        modes.penalties_of(self.tiers.dimension_of(key.group()))
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
        let penalties = self.modes.get().and_then(|modes| self.penalties(modes, key));
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

#[cfg(feature = "snapshot")]
impl<C: Clock, F: Fingerprinter> Engine<C, F> {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.table, self.modes.get(), &self.fingerprinter, &self.clock)
    }
}
