//! [`Status`]: a decision with the numbers behind it.

use core::time::Duration;

use super::answer::{Admission, Decision};
use super::denial::Denial;

/// A decision with the numbers that response headers show, taken at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a decision that is not looked at limits nothing"]
pub struct Status {
    pub(crate) decision: Decision,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) reset_after_ns: u64,
}

impl Status {
    /// An admission that leaves so many permits.
    pub(crate) fn granted(limit: usize, remaining: usize, reset_after_ns: u64) -> Self {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let decision = Decision::Admitted(Admission::COUNTED);
        Self { decision, limit: number(limit), remaining: number(remaining), reset_after_ns }
    }

    /// A decision that asked nobody for the numbers.
    pub(crate) const fn bare(decision: Decision) -> Self {
        Self { decision, limit: 0, remaining: 0, reset_after_ns: 0 }
    }

    /// The decision itself.
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// The denial, if it is one.
    pub(crate) fn denial(&self) -> Option<Denial> {
        match self.decision {
            Decision::Admitted(_) => None,
            Decision::Denied(denial) => Some(denial),
        }
    }

    /// Whether the request may go on (of a peek: whether it could).
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        self.decision.is_admitted()
    }

    /// Whether the request was turned away (of a peek: whether it would be).
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.decision.is_denied()
    }

    /// How long to wait before the same request can succeed; `None` when it was admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// The wait in whole seconds, as [`Decision::retry_after_secs`] says it.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        self.decision.retry_after_secs()
    }

    /// Permits per window.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Permits that are still free after this decision.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.remaining
    }

    /// How long until every permit is free again if nothing else is granted; zero when all are free. A key that is blocked has
    /// none before its block has ended, and one on the deny list never: [`Duration::MAX`].
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        if self.reset_after_ns == Denial::NEVER { Duration::MAX } else { Duration::from_nanos(self.reset_after_ns) }
    }
}
