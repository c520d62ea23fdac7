//! The quotas of a log, made ready to decide by.

use crate::quota::Quota;

/// Sliding window logs that one ring serves.
#[derive(Debug)]
pub(crate) struct LogPlan {
    /// The quotas that can deny, most permits and longest window first. A quota with as many
    /// permits or more in no longer a window than another never denies.
    widest: Bound,
    more: Box<[Bound]>,
    /// All quotas, in the given order.
    given: Box<[Bound]>,
    counts_refused: bool,
}

impl LogPlan {
    /// Bytes on the heap.
    pub(in crate::state) fn bytes(&self) -> usize {
        size_of_val(&*self.more) + size_of_val(&*self.given)
    }
}

/// One sliding window log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::state) struct Bound {
    pub(in crate::state) limit: u32,
    pub(in crate::state) window: u64,
    /// Its place in the given order.
    pub(in crate::state) quota: u8,
}

/// A denial: the quota with the longest wait, of as long waits the one with most permits, and the
/// time at which the request fits.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) struct Refusal {
    pub(in crate::state) until: u64,
    /// The number of its bound.
    pub(in crate::state) bound: usize,
}

impl LogPlan {
    /// The plan of validated quotas, at least one.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        let bound = |(quota, given): (u8, &Quota)| Bound { limit: given.limit(), window: given.window_ns(), quota };
        let given: Box<[Bound]> = (0..=u8::MAX).zip(quotas).map(bound).collect();
        let mut bounds = given.to_vec();
        // Of quotas with the same limit, the longest window implies the others.
        bounds.sort_by_key(|bound| (core::cmp::Reverse(bound.limit), bound.window));
        let mut kept: Vec<Bound> = Vec::new();
        for bound in bounds {
            kept.retain(|wider| wider.window > bound.window);
            kept.push(bound);
        }
        let widest = kept.remove(0);
        let counts_refused = quotas.iter().any(Quota::is_counting_refused);
        Self { widest, more: kept.into(), given, counts_refused }
    }

    #[inline]
    pub(in crate::state) fn bounds(&self) -> impl Iterator<Item = &Bound> {
        core::iter::once(&self.widest).chain(&self.more)
    }

    /// A bound by its number.
    #[inline]
    pub(in crate::state) fn bound(&self, number: usize) -> Bound {
        if number == 0 { self.widest } else { self.more[number - 1] }
    }

    pub(in crate::state) fn given(&self) -> impl Iterator<Item = Bound> {
        self.given.iter().copied()
    }

    /// Whether refused requests are added to the log.
    #[inline]
    pub(in crate::state) fn counts_refused(&self) -> bool {
        self.counts_refused
    }

    /// The most live permits that a ring needs slots for.
    pub(in crate::state) fn most_slots(&self) -> u32 {
        if self.counts_refused { self.remembered() } else { self.widest.limit }
    }

    /// The most permits that a log remembers: reserved permits beside those that are live, or the
    /// newest requests, refused or not. Decisions read half of them.
    pub(in crate::state) fn remembered(&self) -> u32 {
        2 * self.given.iter().map(|bound| bound.limit).max().unwrap_or(0)
    }

    /// How far ahead permits may be reserved. Further ahead the log would have to remember more than
    /// twice the limit. If refused requests count, nothing is reserved ahead.
    #[inline]
    pub(in crate::state) fn furthest_ahead(&self) -> u64 {
        if self.counts_refused { 0 } else { self.window() }
    }

    /// How long a permit is live.
    #[inline]
    pub(in crate::state) fn window(&self) -> u64 {
        self.widest.window
    }

    /// The first stamp that is live at a time. Times are past the longest window.
    #[inline]
    pub(in crate::state) fn live_from(&self, time: u64) -> u64 {
        (time + 1).saturating_sub(self.window())
    }
}
