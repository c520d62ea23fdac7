//! The permits left of a quota.

/// The permits left of one quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) next_after_ns: u64,
    pub(crate) reset_after_ns: u64,
}

impl Left {
    pub(super) const NOTHING: Self = Self { limit: 0, remaining: 0, next_after_ns: 0, reset_after_ns: 0 };

    /// All permits are left.
    pub(crate) const fn all(limit: u32) -> Self {
        Self { limit, remaining: limit, ..Self::NOTHING }
    }

    /// No permits are left, and all are free after `wait_ns`.
    pub(crate) const fn none_for(limit: u32, wait_ns: u64) -> Self {
        Self { limit, remaining: 0, next_after_ns: wait_ns, reset_after_ns: wait_ns }
    }

    /// The same, told by a clock that reads so much less.
    pub(crate) fn after(self, lag: u64) -> Self {
        let later = |wait: u64| if wait == 0 { 0 } else { wait + lag };
        Self { next_after_ns: later(self.next_after_ns), reset_after_ns: later(self.reset_after_ns), ..self }
    }

    /// The same while something else denies the key: no permits are left, and a wait is as `later`
    /// says.
    pub(crate) fn denied(self, later: impl Fn(u64) -> u64) -> Self {
        // The remaining permits are free once that ends.
        let next_after_ns = if self.remaining > 0 { 0 } else { self.next_after_ns };
        Self {
            limit: self.limit,
            remaining: 0,
            next_after_ns: later(next_after_ns),
            reset_after_ns: later(self.reset_after_ns),
        }
    }
}
