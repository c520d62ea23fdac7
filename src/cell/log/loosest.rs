//! The loosest quotas that a log has had.
//!
//! A helper postpones a claim to the earliest time at which it can have been made: the stamps that
//! it replaced had left their window. If the quotas never changed, that window is known. After a
//! change it is not: a claimant may have read the old quotas and stalled, and a claim does not say
//! which. Postponed by the present quotas, its stamp could lie a window ahead of every clock. So a
//! helper postpones it only as far as *any* version would: the most permits in the shortest window.
//!
//! That holds for stamps that a version no longer counts, too: they had left a window when it
//! began, and no thread decides as of a time before (INV-VERSION).

use super::plan::LogPlan;
use crate::sync::{AtomicU64, Ordering};

/// A version is included here before it is current. So a thread that sees a claim sees the version
/// that it was made under.
pub(in crate::cell) struct Loosest {
    most: AtomicU64,
    shortest: AtomicU64,
}

impl Loosest {
    pub(in crate::cell) fn of(first: Option<&LogPlan>) -> Self {
        let loosest = Self { most: AtomicU64::new(0), shortest: AtomicU64::new(u64::MAX) };
        if let Some(first) = first {
            loosest.include(first);
        }
        loosest
    }

    /// Includes these limits.
    pub(in crate::cell) fn include(&self, plan: &LogPlan) {
        self.most.fetch_max(plan.limit() as u64, Ordering::Relaxed);
        self.shortest.fetch_min(plan.window(), Ordering::Relaxed);
    }

    pub(in crate::cell) fn plan(&self) -> LogPlan {
        let most = usize::try_from(self.most.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        LogPlan::one(most, self.shortest.load(Ordering::Relaxed))
    }
}
