//! Rings are replaced: another ring, with the claim that needs it, is prepared in private and offered by one compare-and-swap.

use super::left::AsOf;
use super::ring::Ring;
use super::view::{Log, View};
use crate::cell::algorithm::Algorithm;
use crate::cell::memory::At;
use crate::cell::words::{RingRef, State, time_of};
use crate::clock::Clock;
use crate::decision::PerQuota;

/// A claim that does not fit into its ring.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) needed: usize,
    /// How many permits are live at the view's time. With those that are needed they are no more than the limit.
    pub(super) live: usize,
}

/// A ring that a claim has been prepared in.
pub(super) struct Larger {
    pub(super) offer: RingRef,
    /// The stamp of the claim.
    pub(super) time: u64,
    /// What is left once it is claimed.
    pub(super) left: PerQuota,
}

/// A ring for the caller alone, that is to take the place of a growing cell's.
pub(super) struct Replacement<'a> {
    pub(super) offer: RingRef,
    pub(super) ring: Ring<'a>,
    /// The time that live stamps are put off to.
    pub(super) later: u64,
}

impl<'a> Log<'a> {
    /// Claims permits by replacing the ring with one that has room for them. Gives the time of the claim and what is left
    /// after it; `None` when somebody else's ring, or some other change, came first.
    #[cold]
    pub(super) fn grow(self, view: &View<'a>, wanted: Wanted, clock: &impl Clock) -> Option<(u64, PerQuota)> {
        // What is claimed now is later than all that was reserved.
        let state = view.at.head.state();
        let growing = view.at.begin_resize(if state.is_open() { State::Growing } else { state })?;
        let Larger { offer, time, left } = self.larger_ring(growing, view, wanted, clock);
        // The claim's own stamp does not say the time of a cell that is ahead.
        let by = if growing.head.state().may_be_ahead() { time } else { view.newest.time() };
        self.offer(growing, view.reference, by, offer).then_some((time, left))
    }

    /// A ring for the caller alone, with the live stamps of the old one and those of the claim.
    pub(super) fn larger_ring(
        self,
        at: At<'a>,
        view: &View<'a>,
        Wanted { needed, live }: Wanted,
        clock: &impl Clock,
    ) -> Larger {
        let (limits, ring, head) = (self.limits, view.ring, at.head);
        let next = head.on_new_ring();
        let (offer, new) = self.store.new_ring(next.epoch(), (live + needed).max(ring.len() + 1), next.lap());
        // After the ring has been taken: no earlier than what its last owner knew when it gave the ring back. And before the
        // clock is read, so that only a clock that lags reads less.
        let horizon = self.store.horizon();
        let reading = view.time.max(time_of(clock.now()));
        let time = reading.max(horizon);
        // No more than before, even if what is read here is no longer the cell's.
        let live = live.min(ring.live_at(head, limits.live_from(reading)));
        let kept = view.last(live).map(|stamp| limits.put_off(stamp, reading, time));
        new.write_last(live + needed, kept.chain(core::iter::repeat_n(time, needed)), next.lap());
        let left = limits.left(AsOf { ring: new, head: next, newest: time, time, reading: view.reading }, 0);
        Larger { offer, time, left }
    }

    /// A ring with room for so many `slots`, to take the place of a growing cell's, by a clock that showed `now`. `None` if the horizon
    /// has moved beyond that since the clock was read: then the reading may be long out of date.
    pub(super) fn replacement(
        self,
        growing: At<'a>,
        view: &View<'a>,
        slots: usize,
        now: u64,
    ) -> Option<Replacement<'a>> {
        let next = growing.head.on_new_ring();
        let (offer, ring) = self.store.new_ring(next.epoch(), slots.max(2), next.lap());
        // Read after the ring has been taken: see `larger_ring`.
        let horizon = self.store.horizon();
        if horizon > now.max(view.horizon) {
            self.store.drop_unused_ring(offer);
            return None;
        }
        Some(Replacement { offer, ring, later: now.max(horizon) })
    }

    /// Offers a ring with the `live` newest stamps but those without which it is, counted from the oldest. Says whether it was taken.
    pub(super) fn replace_without(
        self,
        growing: At<'a>,
        view: &View<'a>,
        live: usize,
        without: core::ops::Range<usize>,
    ) -> bool {
        let (now, left) = (view.live_at(), live - without.len());
        let Some(new) = self.replacement(growing, view, left, now) else { return false };
        let kept = view.last(live).enumerate().filter(|(nth, _)| !without.contains(nth));
        let kept = kept.map(|(_, stamp)| self.limits.put_off(stamp, now, new.later));
        new.ring.write_last(left, kept, growing.head.on_new_ring().lap());
        self.offer(growing, view.reference, now, new.offer)
    }

    /// Ends what somebody else has begun: replaces a growing ring by one with the same stamps.
    #[cold]
    pub(super) fn end_resize(self, view: &View<'a>) {
        let live = view.live(self.limits.live_from(view.live_at()));
        self.replace_without(view.at, view, live, 0..0);
    }
}
