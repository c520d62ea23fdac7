//! A quantised log as of one word: what counts, and what is told of it. Nothing is written.

use super::fields::{Entry, StepsPlan, StepsState};
use crate::decision::Left;
use crate::state::plan::Place;
use crate::state::ring::Ring;
use crate::state::sync::Ordering;
use crate::state::word::Word;

/// A quantised log as of one word, at one reading of the clock.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) plan: &'a StepsPlan,
    pub(super) state: StepsState,
    /// Unless the key has permits in no step but the newest.
    pub(super) ring: Option<Ring<'a>>,
    /// The clock.
    pub(super) reading: u64,
    /// The step that the request belongs to, the newest or a later one.
    pub(super) step: u64,
    /// The first step that counts.
    pub(super) first: u64,
    /// The number of entries that count.
    pub(super) entries: u32,
    /// The total before those entries, and after them.
    pub(super) expired: u32,
    pub(super) total: u32,
    /// The permits that count.
    pub(super) live: u32,
}

impl<'a> View<'a> {
    /// `None` if the word has changed.
    #[inline]
    pub(super) fn of(plan: &'a StepsPlan, place: Place<'a>, word: Word, reading: u64) -> Option<Self> {
        let state = StepsState::unpack(word);
        let ring = (state.class > 0).then(|| place.rings.get(state.ring()));
        let last = ring.map_or(Entry(0), |ring| entry(ring, state, 1));
        (last.number() < state.number_of(state.newest)).then(|| Self::at(plan, state, ring, last.total(), reading))
    }

    #[inline]
    fn at(plan: &'a StepsPlan, state: StepsState, ring: Option<Ring<'a>>, total: u32, reading: u64) -> Self {
        let (passed, step) = plan.around(state.newest, reading);
        let first = (passed + 1).saturating_sub(plan.window);
        let mut view = Self { plan, state, ring, reading, step, first, entries: 0, expired: total, total, live: 0 };
        if first <= state.newest {
            view.entries = view.count_from(first);
            view.expired = view.back(view.entries + 1).total();
            view.live = total.wrapping_sub(view.expired).wrapping_add(state.used);
        }
        view
    }

    /// The slots of the ring.
    #[inline]
    fn len(&self) -> u32 {
        self.ring.map_or(0, |_| 1 << self.state.class)
    }

    /// The entry so far back: that of the last step before the newest is 1 back. No word reads the
    /// one that is `len` back.
    #[inline]
    pub(super) fn back(&self, back: u32) -> Entry {
        self.ring.map_or(Entry(0), |ring| entry(ring, self.state, back))
    }

    fn step_back(&self, back: u32) -> u64 {
        self.state.step_of(self.back(back))
    }

    /// The number of entries of this step or a later one.
    #[inline]
    pub(super) fn count_from(&self, first: u64) -> u32 {
        // Steps differ. If there is an entry for each, the first look is the last.
        let most = self.state.newest.saturating_sub(first).min(self.len().saturating_sub(2).into());
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let first = self.state.number_of(first);
        let (mut known, mut beyond, mut next) = (0, most + 1, most);
        while beyond - known > 1 {
            if self.back(next).number() >= first {
                known = next
            } else {
                beyond = next
            }
            next = known + (beyond - known) / 2;
        }
        known
    }

    /// The step with the last of the `count` oldest permits that count.
    pub(super) fn step_with(&self, count: u32) -> u64 {
        let (mut known, mut beyond) = (0, self.entries + 1);
        while beyond - known > 1 {
            let next = known + (beyond - known) / 2;
            let until = self.back(next).total().wrapping_sub(self.expired);
            if until >= count { known = next } else { beyond = next }
        }
        if known == 0 { self.state.newest } else { self.step_back(known) }
    }

    /// Until when a request of `cost` permits is denied; `None` if it fits. A request for nothing
    /// fits: after a lagging clock, or under a smaller limit, more than the limit may count.
    #[inline]
    pub(super) fn denied_until(&self, cost: u32) -> Option<u64> {
        let too_many = (u64::from(self.live) + u64::from(cost)).saturating_sub(self.plan.limit.into());
        let too_many = u32::try_from(too_many).unwrap_or(u32::MAX);
        (cost > 0 && too_many > 0).then(|| self.plan.free_at(self.step_with(too_many)))
    }

    /// The permits left.
    pub(super) fn left(&self) -> Left {
        let limit = self.plan.limit;
        if self.live == 0 {
            return Left::all(limit);
        }
        let after = |step: u64| self.plan.free_at(step).saturating_sub(self.reading);
        // A refund may have left nothing in the newest step. Then every entry has permits.
        let last = if self.state.used > 0 { self.state.newest } else { self.step_back(1) };
        Left {
            limit,
            remaining: limit.saturating_sub(self.live),
            next_after_ns: after(self.step_with(self.live.saturating_sub(limit) + 1)),
            reset_after_ns: after(last),
        }
    }

    /// The permits left after `cost` more, for which there is room.
    pub(super) fn left_after(&self, cost: u32) -> Left {
        let before = self.left();
        let reset_after_ns = self.plan.free_at(self.step).saturating_sub(self.reading);
        let next_after_ns = if self.live == 0 { reset_after_ns } else { before.next_after_ns };
        Left { remaining: before.remaining.saturating_sub(cost), next_after_ns, reset_after_ns, ..before }
    }

    /// The entries with permits, of this step or a later one, oldest first: their steps, and the
    /// permits.
    pub(super) fn older_from(&self, first: u64) -> Vec<(u64, u32)> {
        let permits = |back| self.back(back).total().wrapping_sub(self.back(back + 1).total());
        let entries = (1..=self.count_from(first)).rev().map(|back| (self.step_back(back), permits(back)));
        entries.filter(|&(_, permits)| permits > 0).collect()
    }

    /// The steps with permits from that one on, oldest first, with the newest.
    pub(super) fn all_from(&self, first: u64) -> Vec<(u64, u32)> {
        let StepsState { newest, used, .. } = self.state;
        let mut steps = self.older_from(first);
        steps.extend((used > 0 && newest >= first).then_some((newest, used)));
        steps
    }

    /// The first step that may count at any later decision.
    pub(super) fn lasting(&self) -> u64 {
        self.state.newest.saturating_sub(self.plan.window)
    }
}

#[inline]
fn entry(ring: Ring<'_>, state: StepsState, back: u32) -> Entry {
    Entry(ring[state.place(back)].load(Ordering::Acquire))
}
