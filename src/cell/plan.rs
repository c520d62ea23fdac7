//! How the keys of one plan are limited: by quotas of one kind.

use super::algorithm::NewKeys;
use super::counter::metered::Metered;
use super::log::limits::Limits;
use super::quantised::plan::Stepped;
use crate::quota::Quota;

/// Quotas of one kind.
// A tag of its own is read in one instruction, where a niche has to be worked out.
#[repr(u8)]
pub(crate) enum Plan {
    /// One or more sliding window logs, which share one ring of stamps.
    Log(Limits),
    /// An account of permits used: a bucket, a queue or a counter.
    Counter(Metered),
    /// A log in steps.
    Quantised(Stepped),
}

impl Plan {
    /// The plan of quotas that have been validated: sliding window logs, at least one, or one quota of another kind.
    ///
    /// If it takes the place of another, from the time on that is given, what that knew is remembered as far as it says.
    pub(super) fn new(quotas: &[Quota], last: Option<(&Self, u64)>) -> Self {
        if let Some(stepped) = Stepped::of(&quotas[0]) {
            let last = if let Some((Self::Quantised(last), _)) = last { Some(last) } else { None };
            return Self::Quantised(stepped.laid_out_as(last));
        }
        let before = if let Some((Self::Counter(last), _)) = last { Some(last) } else { None };
        if let Some(metered) = Metered::of(quotas[0], before) {
            return Self::Counter(metered);
        }
        Self::Log(match last {
            Some((Self::Log(last), since)) => Limits::after(last, quotas, since),
            _ => Limits::new(quotas),
        })
    }

    /// What they say about keys that have no cell.
    pub(super) fn new_keys(&self) -> &dyn NewKeys {
        match self {
            Self::Log(limits) => limits,
            Self::Counter(metered) => metered,
            Self::Quantised(stepped) => stepped,
        }
    }
}
