//! How a key is limited: its quotas, made ready to decide by.

#[cfg(feature = "serde")]
use super::keep::Kept;
use super::layout::Layout;
use super::ring::Ring;
use super::steps::Stepped;
use super::words::{Head, TIME_ZERO};
use crate::decision::{Admission, AtOnce, Decision, Denial, DenialReason, Status};
use crate::quota::Quota;
use crate::rule::{Account, Rule};

/// How the keys of one plan are limited.
// A tag of its own is read in one instruction, where a niche has to be worked out.
#[repr(u8)]
pub(crate) enum Plan {
    /// By one or more sliding window logs, which share one ring of stamps.
    Log(Limits),
    /// By an account of permits used.
    Account(Metered),
    /// By a log in steps.
    Steps(Stepped),
}

/// A rule and its quota.
pub(crate) struct Metered {
    pub(super) rule: Rule,
    pub(super) layout: Layout,
    quota: Quota,
}

/// Sliding window logs that one ring serves: at most so many stamps in any window, for each of them.
pub(crate) struct Limits {
    /// The one with the most permits in the longest window. The ring is kept for it.
    widest: Bound,
    /// Those with fewer permits in shorter windows, most permits first. One that is neither can never be in the way.
    within: Box<[Bound]>,
    /// The first stamp that counts. Those before it had expired under other quotas, before these.
    from: u64,
    /// When they began.
    since: u64,
    /// Whether refused requests count as well.
    counts_refused: bool,
    /// The most permits of these and of those before them.
    most: usize,
}

/// One sliding window log.
#[derive(Clone, Copy)]
struct Bound {
    limit: usize,
    window: u64,
    /// Which of the quotas it is, in the order in which they were given.
    quota: u8,
}

/// Why a request does not fit: which quota is in the way for longest, and until when.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    until: u64,
    quota: u8,
}

impl Plan {
    /// The plan of quotas that have been validated: sliding window logs, at least one, or one quota of another kind.
    ///
    /// If it takes the place of another, from the time on that is given, what that knew is remembered as far as it says.
    pub(super) fn new(quotas: &[Quota], last: Option<(&Self, u64)>) -> Self {
        if let Some(stepped) = Stepped::of(&quotas[0]) {
            return Self::Steps(match last {
                Some((Self::Steps(last), _)) => stepped.laid_out_as(last),
                _ => stepped,
            });
        }
        match (Rule::of(quotas[0], TIME_ZERO), last) {
            (Some(rule), Some((Self::Account(last), _))) => {
                Self::Account(Metered { rule, layout: last.layout, quota: quotas[0] })
            }
            (Some(rule), _) => Self::Account(Metered { rule, layout: Layout::of(&rule), quota: quotas[0] }),
            (None, Some((Self::Log(last), since))) => Self::Log(Limits::after(last, quotas, since)),
            (None, _) => Self::Log(Limits::new(quotas)),
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Log(limits) => size_of_val(&*limits.within),
            Self::Account(_) | Self::Steps(_) => 0,
        }
    }

    /// Whether what was kept of a key can have been kept by this plan.
    #[cfg(feature = "serde")]
    pub(crate) fn can_have(&self, kept: &Kept) -> bool {
        match (self, kept) {
            (Self::Log(_), Kept::Stamps(ages)) => ages.is_sorted_by(|older, newer| older >= newer),
            (Self::Account(metered), Kept::Account { used, .. }) => *used < metered.rule.used_below(),
            (Self::Steps(stepped), Kept::Steps(steps)) => stepped.can_have(steps),
            _ => false,
        }
    }

    /// How many slots a key's ring may need.
    pub(crate) fn longest_ring(&self) -> usize {
        match self {
            Self::Log(limits) => limits.limit(),
            Self::Account(_) | Self::Steps(_) => 1,
        }
    }

    /// How many words a key's block of steps may need.
    pub(super) fn largest_block(&self) -> usize {
        match self {
            Self::Steps(stepped) => stepped.largest_block(),
            _ => 0,
        }
    }

    /// How long a key matters at most after its last permit.
    pub(super) fn longest_window(&self) -> u64 {
        match self {
            Self::Log(limits) => limits.window(),
            Self::Account(metered) => metered.quota.window_ns(),
            Self::Steps(stepped) => stepped.longest_window(),
        }
    }

    /// The earliest time at which a key is as new again whose first request of `cost` permits comes at `time`. Of two keys the one
    /// that came later may be as new sooner: it depends on what they took. A key without permits is
    /// as new at once, unless its account has begun to earn them.
    pub(super) fn first_end(&self, cost: u32, time: u64) -> u64 {
        match self {
            Self::Log(_) | Self::Steps(_) if cost == 0 => time,
            Self::Log(limits) => time.saturating_add(limits.window()),
            Self::Account(Metered { rule, .. }) => {
                rule.over_at(Account { anchor: rule.anchor_at(time), used: rule.opening(cost).used })
            }
            Self::Steps(stepped) => stepped.first_end(time),
        }
    }

    /// What a key without permits is told at `time` that asks for `cost` of them, and only looks.
    pub(super) fn status_of_nothing(&self, cost: u32, time: u64) -> Status {
        match self {
            Self::Log(limits) => {
                let (limit, remaining) = limits.all();
                admitted(limit, remaining, 0)
            }
            Self::Account(metered) => {
                let unseen = metered.rule.opening(0).used;
                Status { decision: metered.first_decision(cost, 0), ..metered.opened(unseen, time, 0) }
            }
            Self::Steps(stepped) => stepped.status_of_nothing(),
        }
    }

    /// What a key is told that has just asked for its first `cost` permits, at `time` by a clock that lags by `lead`.
    pub(super) fn first_status(&self, cost: u32, time: u64, lead: u64) -> Status {
        match self {
            Self::Log(limits) => {
                let (limit, remaining) = limits.all();
                admitted(limit, remaining.saturating_sub(cost as usize), limits.window() + lead)
            }
            Self::Account(metered) => {
                let used = metered.rule.opening(cost).used;
                Status { decision: metered.first_decision(cost, lead), ..metered.opened(used, time, lead) }
            }
            Self::Steps(stepped) => stepped.first_status(cost, time, lead),
        }
    }
}

impl Limits {
    fn new(quotas: &[Quota]) -> Self {
        let bound =
            |(quota, given): (u8, &Quota)| Bound { limit: given.limit() as usize, window: given.window_ns(), quota };
        let mut bounds: Vec<Bound> = (0..=u8::MAX).zip(quotas).map(bound).collect();
        // Widest first; of those with the same limit, the longest window says it all.
        bounds.sort_by_key(|bound| (core::cmp::Reverse(bound.limit), bound.window));
        let mut kept: Vec<Bound> = Vec::new();
        for bound in bounds {
            // Whoever keeps to this one keeps to those with as many permits or more in no longer a window.
            kept.retain(|wider| wider.window > bound.window);
            kept.push(bound);
        }
        let counts_refused = quotas.iter().any(Quota::is_counting_refused);
        let (widest, within) = (kept[0], kept[1..].into());
        Self { widest, within, from: 0, since: 0, counts_refused, most: widest.limit }
    }

    /// Those that take the place of others.
    fn after(last: &Self, quotas: &[Quota], since: u64) -> Self {
        let next = Self::new(quotas);
        Self { from: last.live_from(since), since, most: next.most.max(last.most), ..next }
    }

    /// One quota, of no particular place among others.
    pub(super) fn one(limit: usize, window: u64) -> Self {
        let widest = Bound { limit, window, quota: 0 };
        Self { widest, within: Box::default(), from: 0, since: 0, counts_refused: false, most: limit }
    }

    /// The time to decide by where a clock shows this: not before they began, as what does not count any more may count by then.
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
    fn live_in(&self, bound: &Bound, time: u64) -> u64 {
        // A time is past the longest window.
        (time + 1 - bound.window).max(self.from)
    }

    /// When a stamp ends to be live.
    pub(super) fn end_of(&self, stamp: u64) -> u64 {
        if stamp < self.from { 0 } else { stamp.saturating_add(self.window()) }
    }

    /// Whether refused requests count as well.
    #[inline]
    pub(super) fn counts_refused(&self) -> bool {
        self.counts_refused
    }

    /// How many requests are remembered where refused ones count: see `refused.rs`.
    pub(super) fn remembered(&self) -> usize {
        (2 * self.most).min(Quota::MAX_LIMIT as usize)
    }

    /// Whether there is but one.
    pub(super) fn is_one(&self) -> bool {
        self.within.is_empty()
    }

    fn each(&self) -> impl Iterator<Item = &Bound> {
        core::iter::once(&self.widest).chain(&self.within)
    }

    /// Why `cost` permits do not fit at `time`. They fit into a quota of N if the stamp from which on N - cost + 1 are newer or the
    /// same has left its window. What a ring is too short to hold has expired.
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
            // It has become less than the cost.
            return Some(Refusal { until: u64::MAX, quota: bound.quota });
        }
        let back = bound.limit + 1 - cost;
        if back > ring.len() {
            return None;
        }
        let stamp = ring.load(head.pos() + ring.len() - back).time();
        // Neither sum comes near an overflow: a window is less than 2^60, a time less than 2^62.
        (stamp >= self.live_in(bound, time)).then(|| Refusal { until: stamp + bound.window, quota: bound.quota })
    }

    /// The limit of the quota that leaves the fewest permits, and how many, where `live` stamps are live in the widest.
    pub(super) fn left(&self, ring: Ring<'_>, head: Head, time: u64, live: usize) -> (usize, usize) {
        let within = self.within.iter().map(|bound| (bound.limit, ring.live_at(head, self.live_in(bound, time))));
        let all = core::iter::once((self.widest.limit, live)).chain(within);
        let left = all.map(|(limit, live)| (limit, limit.saturating_sub(live)));
        left.min_by_key(|&(limit, left)| (left, limit)).unwrap_or_default()
    }

    /// As [`left`](Self::left), of a key whose next permits are reserved.
    pub(super) fn none(&self) -> (usize, usize) {
        (self.all().0, 0)
    }

    /// The refusal of whoever would overtake what is reserved until then.
    pub(super) fn reserved_until(&self, until: u64) -> Refusal {
        Refusal { until, quota: self.widest.quota }
    }

    /// As [`left`](Self::left), of a key without permits.
    fn all(&self) -> (usize, usize) {
        let least = self.each().map(|bound| bound.limit).min().unwrap_or_default();
        (least, least)
    }

    /// A stamp as it is kept when a clock that lags shows `reading` and its claim is stamped with a later `time`: what is live at the
    /// reading has to be live then too, because it may have been granted just now.
    pub(super) fn put_off(&self, stamp: u64, reading: u64, time: u64) -> u64 {
        let live = self.each().filter(|bound| stamp >= self.live_in(bound, reading));
        live.map(|bound| (time + 1).saturating_sub(bound.window)).fold(stamp, u64::max)
    }

    /// The earliest time at which the claim of `cost` slots, the first of them at `first`, can have been made: what it needed
    /// to have left its window has. Of the claim's own slots, those are looked at that they still hold the stamps before it.
    pub(super) fn earliest(&self, ring: Ring<'_>, first: usize, cost: usize) -> u64 {
        let bounds = self.each().filter_map(|bound| {
            let back = (bound.limit + 1).checked_sub(cost).filter(|&back| back <= ring.len())?;
            let stamp = ring.load(first + ring.len() - back).time();
            (stamp >= self.from).then(|| stamp.saturating_add(bound.window))
        });
        bounds.max().unwrap_or(0)
    }
}

impl Metered {
    /// The most permits that a request may ask for.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.quota.limit()
    }

    /// What the first request of a key is told.
    fn first_decision(&self, cost: u32, lead: u64) -> Decision {
        match self.rule.opening(cost).wait_ns {
            None => Decision::Admitted(Admission::COUNTED),
            Some(wait) => Decision::Denied(Denial::new(wait.saturating_add(lead), DenialReason::Quota, 0)),
        }
    }

    /// The state of an account that has just been opened with this `used`.
    fn opened(&self, used: u64, time: u64, lead: u64) -> Status {
        self.status(Account { anchor: self.rule.anchor_at(time + lead), used }, time)
    }

    /// What is left of an account, as an admission.
    pub(super) fn status(&self, account: Account, time: u64) -> Status {
        let remaining = self.rule.remaining(account, time) as usize;
        admitted(self.quota.limit() as usize, remaining, self.rule.reset_after(account, time))
    }
}

impl Refusal {
    /// When the request would fit.
    pub(super) fn until(self) -> u64 {
        self.until
    }

    /// The same, for no less long.
    pub(super) fn no_sooner_than(self, until: u64) -> Self {
        Self { until: self.until.max(until), ..self }
    }

    /// What a request is told at `time` that would wait for so long.
    pub(super) fn denial_within(self, time: u64, within: u64) -> Decision {
        Self { until: self.until.saturating_sub(within), ..self }.denial(time)
    }

    /// What a request is told at `time`, in short.
    #[inline]
    pub(super) fn at_once(self, time: u64) -> AtOnce {
        AtOnce::denied(self.until.saturating_sub(time), self.quota)
    }

    /// What a request is told at `time`.
    #[inline]
    pub(super) fn denial(self, time: u64) -> Decision {
        self.at_once(time).into()
    }
}

/// An admission that leaves so many permits.
pub(super) fn admitted(limit: usize, remaining: usize, reset_after_ns: u64) -> Status {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let decision = Decision::Admitted(Admission::COUNTED);
    Status { decision, limit: number(limit), remaining: number(remaining), reset_after_ns }
}
