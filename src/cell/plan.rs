//! Plans: quotas of one kind, made ready to decide by.

use super::counter::plan::AccountPlan;
use super::driver::NewKeys;
#[cfg(feature = "snapshot")]
use super::export::Export;
use super::log::plan::LogPlan;
use super::quantised::plan::QuantisedPlan;
use crate::quota::Quota;

/// Quotas of one kind.
// A tag of its own is read in one instruction, where a niche has to be worked out.
#[repr(u8)]
pub(crate) enum Plan {
    /// One or more sliding window logs, which share one ring of stamps.
    Log(LogPlan),
    /// An account: a bucket, a queue, a window or a counter.
    Counter(AccountPlan),
    /// A quantised log.
    Quantised(QuantisedPlan),
}

impl Plan {
    /// The plan of validated quotas: one or more sliding window logs, or one quota of another kind.
    ///
    /// `last` is the plan that this one replaces, and from when on.
    pub(super) fn new(quotas: &[Quota], last: Option<(&Self, u64)>) -> Self {
        let quantised = || QuantisedPlan::of(&quotas[0]).map(Self::Quantised);
        let account = || AccountPlan::of(quotas[0]).map(Self::Counter);
        let mut plan = quantised().or_else(account).unwrap_or_else(|| Self::Log(LogPlan::new(quotas)));
        if let Some((last, since)) = last {
            plan.make_room_for(last);
            if let (Self::Log(plan), Self::Log(last)) = (&mut plan, last) {
                plan.follow(last, since);
            }
        }
        plan
    }

    /// Makes room for an export that the plan can have.
    #[cfg(feature = "snapshot")]
    pub(super) fn make_room_for_export(&mut self, export: &Export) {
        if let (Self::Log(plan), Export::Stamps(ages)) = (self, export) {
            plan.remember(ages.len());
        }
    }

    /// Makes room in the heads of cells for the accounts of another plan.
    pub(super) fn make_room_for(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter(plan), Self::Counter(other)) => plan.layout = plan.layout.max(other.layout),
            (Self::Quantised(plan), Self::Quantised(other)) => plan.make_room_for(other),
            _ => {}
        }
    }

    /// The same, for keys without a cell.
    pub(super) fn new_keys(&self) -> &dyn NewKeys {
        match self {
            Self::Log(plan) => plan,
            Self::Counter(plan) => plan,
            Self::Quantised(plan) => plan,
        }
    }
}
