//! The plan of a log: its quotas, made ready to decide by.

use super::ring::Ring;
use crate::cell::driver::NewKeys;
#[cfg(feature = "snapshot")]
use crate::cell::export::Export;
use crate::cell::words::Head;
#[cfg(feature = "snapshot")]
use crate::cell::words::MAX_SLOTS;
use crate::decision::{Admission, Decision, FastDecision, Status};
use crate::quota::Quota;

/// Sliding window logs that one ring serves: at most so many stamps in any window, for each of
/// them.
#[derive(Default)]
pub(crate) struct LogPlan {
    /// The quota with the most permits in the longest window. The ring is kept for it.
    pub(super) widest: Bound,
    /// Quotas with fewer permits in shorter windows, most permits first. A quota with neither never
    /// denies.
    within: Box<[Bound]>,
    /// All quotas in the order given, if there are several.
    given: Box<[Bound]>,
    /// The first stamp that counts: earlier ones had expired before this version (INV-VERSION).
    from: u64,
    /// The time at which this version began.
    since: u64,
    /// Whether refused requests count as well.
    pub(super) counts_refused: bool,
    /// The largest limit of this version and those before.
    most: usize,
}

/// One sliding window log.
#[derive(Clone, Copy, Default)]
pub(super) struct Bound {
    pub(super) limit: usize,
    pub(super) window: u64,
    /// Which of the quotas it is, in the order in which they were given.
    quota: u8,
}

/// A refusal: the quota with the longest wait, and its end.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    /// The time at which the request fits.
    pub(super) until: u64,
    quota: u8,
}

impl LogPlan {
    pub(in crate::cell) fn new(quotas: &[Quota]) -> Self {
        let bound =
            |(quota, given): (u8, &Quota)| Bound { limit: given.limit() as usize, window: given.window_ns(), quota };
        let mut bounds: Vec<Bound> = (0..=u8::MAX).zip(quotas).map(bound).collect();
        let given = if bounds.len() > 1 { bounds.as_slice().into() } else { Box::default() };
        // Widest first. Of quotas with the same limit, the longest window implies the others.
        bounds.sort_by_key(|bound| (core::cmp::Reverse(bound.limit), bound.window));
        let mut kept: Vec<Bound> = Vec::new();
        for bound in bounds {
            // This one implies those with as many permits or more in no longer a window.
            kept.retain(|wider| wider.window > bound.window);
            kept.push(bound);
        }
        let counts_refused = quotas.iter().any(Quota::is_counting_refused);
        let (widest, within) = (kept[0], kept[1..].into());
        Self { widest, within, given, from: 0, since: 0, counts_refused, most: widest.limit }
    }

    /// Begins after another version. One since time zero comes from a snapshot, and every stamp
    /// counts that is imported.
    pub(in crate::cell) fn follow(&mut self, last: &Self, since: u64) {
        self.from = if since == 0 { 0 } else { last.live_from(since) };
        (self.since, self.most) = (since, self.most.max(last.most));
    }

    /// One quota, without a place among others.
    pub(super) fn one(limit: usize, window: u64) -> Self {
        Self { widest: Bound { limit, window, quota: 0 }, most: limit, ..Self::default() }
    }

    /// The time to decide by at this reading: not before the version began (INV-VERSION).
    #[inline]
    pub(super) fn not_before(&self, time: u64) -> u64 {
        time.max(self.since)
    }

    /// The most stamps that can be live.
    #[inline]
    pub(super) fn limit(&self) -> usize {
        self.widest.limit
    }

    /// How long a stamp is live.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.widest.window
    }

    /// The first stamp that is live at a time.
    #[inline]
    pub(super) fn live_from(&self, time: u64) -> u64 {
        self.live_in(&self.widest, time)
    }

    #[inline]
    pub(super) fn live_in(&self, bound: &Bound, time: u64) -> u64 {
        // A time is past the longest window.
        (time + 1 - bound.window).max(self.from)
    }

    /// The time at which a stamp expires. If it had expired before this version, the time at which
    /// the version began: a clock has shown it.
    pub(super) fn end_of(&self, stamp: u64) -> u64 {
        if stamp < self.from { self.since } else { stamp.saturating_add(self.window()) }
    }

    /// Remembers as many stamps, as if the limit had been larger.
    #[cfg(feature = "snapshot")]
    pub(in crate::cell) fn remember(&mut self, stamps: usize) {
        self.most = self.most.max(stamps.div_ceil(2));
    }

    /// How many stamps a log that counts refused requests keeps (INV-REFUSED).
    pub(super) fn remembered(&self) -> usize {
        2 * self.most
    }

    /// Whether only one quota was given.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.given.is_empty()
    }

    /// All given quotas, in order.
    pub(super) fn given(&self) -> &[Bound] {
        if self.is_alone() { core::slice::from_ref(&self.widest) } else { &self.given }
    }

    fn each(&self) -> impl Iterator<Item = &Bound> {
        core::iter::once(&self.widest).chain(&self.within)
    }

    /// The refusal of `cost` permits at `time`, if they do not fit. They fit into a quota of N if
    /// the stamp with N - cost stamps after it has left its window. A stamp that the ring is too
    /// short to hold has expired.
    #[inline(always)]
    pub(super) fn refusal(&self, ring: Ring<'_>, head: Head, time: u64, cost: usize) -> Option<Refusal> {
        if !self.within.is_empty() {
            return self.refusal_by_any(ring, head, time, cost);
        }
        self.refusal_by(&self.widest, ring, head, time, cost)
    }

    #[inline(never)]
    fn refusal_by_any(&self, ring: Ring<'_>, head: Head, time: u64, cost: usize) -> Option<Refusal> {
        let longest = |one: Refusal, other: Refusal| if other.until > one.until { other } else { one };
        self.each().filter_map(|bound| self.refusal_by(bound, ring, head, time, cost)).reduce(longest)
    }

    #[inline(always)]
    fn refusal_by(&self, bound: &Bound, ring: Ring<'_>, head: Head, time: u64, cost: usize) -> Option<Refusal> {
        if cost > bound.limit {
            // The limit has become less than the cost.
            return Some(Refusal { until: u64::MAX, quota: bound.quota });
        }
        let back = bound.limit + 1 - cost;
        if back > ring.len() {
            return None;
        }
        let stamp = ring.load(head.pos() + ring.len() - back).time();
        // No overflow: a window is less than 2^60, a time less than 2^62.
        (stamp >= self.live_in(bound, time)).then(|| Refusal { until: stamp + bound.window, quota: bound.quota })
    }

    /// The refusal of a request before a reserved stamp (INV-RESERVED).
    pub(super) fn reserved_until(&self, until: u64) -> Refusal {
        Refusal { until, quota: self.widest.quota }
    }

    /// A stamp, postponed: a lagging clock shows `reading`, its claim is stamped with the later
    /// `time`. A stamp that is live at the reading must be live at that time, because it may have
    /// been granted just now.
    pub(super) fn postpone(&self, stamp: u64, reading: u64, time: u64) -> u64 {
        let live = self.each().filter(|bound| stamp >= self.live_in(bound, reading));
        live.map(|bound| (time + 1).saturating_sub(bound.window)).fold(stamp, u64::max)
    }

    /// The earliest time of the claim of `cost` slots from `first` on, in every quota
    /// (INV-SPACING). The slots of the claim that are read must still hold the stamps before it.
    pub(super) fn earliest(&self, ring: Ring<'_>, first: usize, cost: usize) -> u64 {
        let bounds = self.each().filter_map(|bound| {
            let back = (bound.limit + 1).checked_sub(cost).filter(|&back| back <= ring.len())?;
            let stamp = ring.load(first + ring.len() - back).time();
            (stamp >= self.from).then(|| stamp.saturating_add(bound.window))
        });
        bounds.max().unwrap_or(0)
    }
}

impl Bound {
    /// The limit, as it is shown.
    #[inline]
    pub(super) fn limit_shown(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(u32::MAX)
    }
}

impl NewKeys for LogPlan {
    fn longest_window(&self) -> u64 {
        self.window()
    }

    fn first_end(&self, cost: u32, time: u64) -> u64 {
        if cost == 0 { time } else { time.saturating_add(self.window()) }
    }

    fn first_status(&self, _cost: u32, charged: u32, _time: u64, lead: u64) -> Status {
        Status { decision: Decision::Admitted(Admission::COUNTED), left: self.left_of_new(charged as usize, lead) }
    }

    #[cfg(feature = "snapshot")]
    fn can_have(&self, export: &Export) -> bool {
        matches!(export, Export::Stamps(ages)
            if ages.len() <= MAX_SLOTS && ages.is_sorted_by(|older, newer| older >= newer))
    }

    fn longest_ring(&self) -> usize {
        self.limit()
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.within) + size_of_val(&*self.given)
    }
}

impl Refusal {
    /// The same, with a wait until `until` at least.
    pub(super) fn no_sooner_than(self, until: u64) -> Self {
        Self { until: self.until.max(until), ..self }
    }

    /// The denial at `time` of a request that accepts a wait of `within`.
    pub(super) fn denial_within(self, time: u64, within: u64) -> Decision {
        Self { until: self.until.saturating_sub(within), ..self }.denial(time)
    }

    /// The denial at `time`, in two words.
    #[inline]
    pub(super) fn fast_denial(self, time: u64) -> FastDecision {
        FastDecision::denied(self.until.saturating_sub(time), self.quota)
    }

    /// The denial at `time`.
    #[inline]
    pub(super) fn denial(self, time: u64) -> Decision {
        self.fast_denial(time).into()
    }
}
