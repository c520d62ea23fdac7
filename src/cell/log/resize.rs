//! Replaces rings: a ring is prepared in private, with the claim that needs it, and offered by one
//! compare-and-swap (INV-RESIZE).

use super::left::AsOf;
use super::ring::Ring;
use super::view::{Log, View};
use crate::cell::driver::Driver;
use crate::cell::memory::At;
use crate::cell::words::{RingRef, State, time_of};
use crate::clock::Clock;
use crate::decision::PerQuota;

/// A claim that does not fit into its ring.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) cost: usize,
    /// The permits that are live at the view's time. With `cost` they are at most the limit.
    pub(super) live: usize,
}

/// A ring with a claim prepared in it.
pub(super) struct Larger {
    pub(super) offer: RingRef,
    /// The stamp of the claim.
    pub(super) time: u64,
    /// The permits left after the claim.
    pub(super) left: PerQuota,
}

/// A ring that the caller owns, to be offered to a resizing cell.
pub(super) struct Replacement<'a> {
    pub(super) offer: RingRef,
    pub(super) ring: Ring<'a>,
    /// The time that live stamps are postponed to.
    pub(super) later: u64,
}

impl<'a> Log<'a> {
    /// Claims permits by a resize. Returns the time of the claim and the permits left after it;
    /// `None` if another ring or another change came first.
    #[cold]
    pub(super) fn grow(self, view: &View<'a>, wanted: Wanted, clock: &impl Clock) -> Option<(u64, PerQuota)> {
        // A permit claimed now is later than all reserved ones.
        let state = view.at.head.state();
        let resizing = view.at.begin_resize(if state.is_open() { State::Resizing } else { state })?;
        let Larger { offer, time, left } = self.larger_ring(resizing, view, wanted, clock);
        // A reserved stamp does not tell the time.
        let by = if resizing.head.state().may_have_reserved() { time } else { view.newest.time() };
        self.offer(resizing, view.reference, by, offer).then_some((time, left))
    }

    /// A ring that the caller owns, with the live stamps of the old ring and those of the claim.
    pub(super) fn larger_ring(
        self,
        at: At<'a>,
        view: &View<'a>,
        Wanted { cost, live }: Wanted,
        clock: &impl Clock,
    ) -> Larger {
        let (plan, ring) = (self.plan, view.ring);
        let next = at.head.on_new_ring();
        let (offer, new) = self.store.new_ring(next.ring_parity(), (live + cost).max(ring.len() + 1), next.lap());
        // Read after the ring was taken: no earlier than the floor was when its last owner freed
        // it (INV-FLOOR).
        let timestamp_floor = self.store.timestamp_floor();
        let reading = view.reading.max(time_of(clock.now()));
        let time = reading.max(view.time).max(timestamp_floor);
        // All that were live at the view's time, for which the quotas were current (INV-VERSION).
        // Also those that have expired since must be live at the floor (INV-LATE).
        let kept = view.last(live).map(|stamp| plan.postpone(stamp, view.time, timestamp_floor));
        new.write_last(live + cost, kept.chain(core::iter::repeat_n(time, cost)), next.lap());
        let left = plan.left(AsOf { ring: new, head: next, newest: time, time, reading }, 0);
        Larger { offer, time, left }
    }

    /// A ring with `slots` slots for a resizing cell, by a clock that showed `now`. `None` if the
    /// timestamp floor has passed `now` since the clock was read: the reading may be long out of
    /// date.
    pub(super) fn replacement(
        self,
        resizing: At<'a>,
        view: &View<'a>,
        slots: usize,
        now: u64,
    ) -> Option<Replacement<'a>> {
        let next = resizing.head.on_new_ring();
        let (offer, ring) = self.store.new_ring(next.ring_parity(), slots.max(2), next.lap());
        // Read after the ring was taken: see `larger_ring`.
        let timestamp_floor = self.store.timestamp_floor();
        if timestamp_floor > now.max(view.timestamp_floor) {
            self.store.drop_unused_ring(offer);
            return None;
        }
        Some(Replacement { offer, ring, later: now.max(timestamp_floor) })
    }

    /// Offers a ring with the `live` newest stamps except those in `without`, counted from the
    /// oldest. Returns whether it was taken.
    pub(super) fn replace_without(
        self,
        resizing: At<'a>,
        view: &View<'a>,
        live: usize,
        without: core::ops::Range<usize>,
    ) -> bool {
        let (now, left) = (view.live_at(), live - without.len());
        let Some(new) = self.replacement(resizing, view, left, now) else { return false };
        let kept = view.last(live).enumerate().filter(|(nth, _)| !without.contains(nth));
        let kept = kept.map(|(_, stamp)| self.plan.postpone(stamp, now, new.later));
        new.ring.write_last(left, kept, resizing.head.on_new_ring().lap());
        self.offer(resizing, view.reference, now, new.offer)
    }

    /// Helps: replaces the ring of a resizing cell by one with the same stamps.
    #[cold]
    pub(super) fn end_resize(self, view: &View<'a>) {
        let live = view.live(self.plan.live_from(view.live_at()));
        self.replace_without(view.at, view, live, 0..0);
    }
}
