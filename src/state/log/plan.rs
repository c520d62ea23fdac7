//! The quotas of a log, made ready to decide by.

use crate::quota::Quota;

/// Sliding window logs that one ring serves.
#[derive(Debug)]
pub(in crate::state) struct LogPlan<L> {
    pub(super) layout: L,
    /// The quotas that can deny, most permits and longest window first. A quota with as many
    /// permits or more in no longer a window than another never denies.
    pub(super) bounds: Box<[Bound]>,
    /// The only quota, unless refused requests count.
    pub(super) single: Option<Bound>,
    /// All quotas, in the given order.
    pub(super) given: Box<[Bound]>,
    /// Whether refused requests are added to the log.
    pub(super) counts_refused: bool,
    /// The most permits that a log remembers: reserved permits beside those that are live, or the
    /// newest requests, refused or not. Decisions read half of them.
    pub(super) remembered: u32,
}

/// One sliding window log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::state) struct Bound {
    pub(in crate::state) limit: u32,
    /// In steps.
    pub(in crate::state) window: u64,
    /// Its index in the given order.
    pub(in crate::state) quota: u8,
}

impl Bound {
    /// The first stamp that is live after so many steps. They are past the longest window.
    #[inline]
    pub(super) fn live_from(&self, passed: u64) -> u64 {
        (passed + 1).saturating_sub(self.window)
    }
}

/// A denial: the quota with the longest wait, of as long waits the one with most permits, and the
/// step at whose end the request fits.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) struct Refusal {
    pub(in crate::state) until: u64,
    /// The number of its bound.
    pub(in crate::state) bound: usize,
}

impl<L> LogPlan<L> {
    /// The plan of validated quotas, at least one. Their windows are so many steps.
    pub(super) fn of_quotas(layout: L, quotas: &[Quota], window: impl Fn(&Quota) -> u64) -> Self {
        let bound = |(quota, given): (u8, &Quota)| Bound { limit: given.limit(), window: window(given), quota };
        let given: Box<[Bound]> = (0..=u8::MAX).zip(quotas).map(bound).collect();
        // They are few, and a sort of the standard library adds 7 KB to a program. Of equal ones the last
        // is kept.
        let mut kept: Vec<Bound> = Vec::new();
        for bound in given.iter().rev() {
            if kept.iter().all(|other| other.limit > bound.limit || other.window < bound.window) {
                kept.retain(|other| other.limit < bound.limit || other.window > bound.window);
                kept.insert(kept.partition_point(|other| other.limit > bound.limit), *bound);
            }
        }
        let counts_refused = quotas.iter().any(Quota::is_counting_refused);
        let single = if let ([only], false) = (&*given, counts_refused) { Some(*only) } else { None };
        let most = given.iter().map(|bound| bound.limit).max().unwrap_or(0);
        Self { layout, bounds: kept.into(), single, given, counts_refused, remembered: most.saturating_mul(2) }
    }

    /// The quota, if there is one.
    #[inline]
    pub(super) fn only(&self) -> Option<&Bound> {
        if let [only] = &*self.given { Some(only) } else { None }
    }

    /// The most live permits that a ring needs room for.
    pub(super) fn most_live(&self) -> u32 {
        if self.counts_refused { self.remembered } else { self.bounds[0].limit }
    }

    /// How long a permit is live, in steps.
    pub(super) fn window(&self) -> u64 {
        self.bounds[0].window
    }

    /// The first stamp that is live by the longest window.
    #[inline]
    pub(super) fn live_from(&self, passed: u64) -> u64 {
        self.bounds[0].live_from(passed)
    }
}
