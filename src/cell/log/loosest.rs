//! The loosest that the quotas of a log have been.
//!
//! Who publishes somebody else's claim puts it off to when it can have been made at the earliest: what it took the place of had left
//! its window. As long as the quotas have never changed it is known which window that is. Afterwards it is not: the claimant may have
//! read them before the change and stopped, and a claim does not say what it was made by. Were it put off as the present quotas
//! would have it, its stamp could lie a window ahead of every clock. So it is put off only as far as **any** quotas that there have been
//! would have it: the most permits in the shortest window. What does not count any more under some quotas had left a window when they began, and
//! nobody decides by quotas as of a time before they began; so this holds for that, too.

use super::limits::Limits;
use crate::sync::{AtomicU64, Ordering};

/// What is written here of some quotas is there before they are heard of, so who sees a claim sees by what it may have been made.
pub(in crate::cell) struct Loosest {
    most: AtomicU64,
    shortest: AtomicU64,
}

impl Loosest {
    pub(in crate::cell) fn of(first: Option<&Limits>) -> Self {
        let loosest = Self { most: AtomicU64::new(0), shortest: AtomicU64::new(u64::MAX) };
        if let Some(first) = first {
            loosest.include(first);
        }
        loosest
    }

    /// Makes it as loose as these.
    pub(in crate::cell) fn include(&self, limits: &Limits) {
        self.most.fetch_max(limits.limit() as u64, Ordering::Relaxed);
        self.shortest.fetch_min(limits.window(), Ordering::Relaxed);
    }

    pub(in crate::cell) fn limits(&self) -> Limits {
        let most = usize::try_from(self.most.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        Limits::one(most, self.shortest.load(Ordering::Relaxed))
    }
}
