//! A published log, as of one head.

use super::left::AsOf;
use super::plan::{LogPlan, Refusal};
use super::ring::Ring;
use crate::cell::driver::Driver;
use crate::cell::memory::At;
use crate::cell::store::Store;
use crate::cell::versions::ForKey;
use crate::cell::words::{RingRef, Slot, time_of};
use crate::clock::Clock;

/// The log of one key.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Log<'a> {
    pub(in crate::cell) store: &'a Store,
    pub(in crate::cell) plan: &'a LogPlan,
    pub(in crate::cell) versions: ForKey<'a>,
}

/// A log whose claims are all published, as of a head.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) at: At<'a>,
    pub(super) reference: RingRef,
    pub(super) ring: Ring<'a>,
    pub(super) newest: Slot,
    /// The timestamp floor, from before the clock was read.
    pub(super) timestamp_floor: u64,
    /// The clock reading.
    pub(super) reading: u64,
    /// The same, but not before the version began (INV-VERSION).
    pub(super) by_clock: u64,
    /// A lower bound of every stamp that is chosen from now on.
    pub(super) lower_bound: u64,
    /// The time to decide by: the reading, or `lower_bound` if the clock lags behind it. If the
    /// newest stamp is reserved, the log is [behind](Self::is_behind) it.
    pub(super) time: u64,
}

impl<'a> Log<'a> {
    /// The log of a cell. `None` if the cell had to be helped, or has changed.
    pub(super) fn view(self, at: At<'a>, clock: &impl Clock) -> Option<View<'a>> {
        let head = at.head;
        let reference = self.ring_of(at)?;
        let ring = self.store.ring(at.cell, reference);
        let newest = ring.newest(head);
        // Before the clock, so that only a lagging clock shows less (INV-FLOOR).
        let timestamp_floor = self.store.timestamp_floor();
        // Read at each attempt, after the newest stamp was seen (INV-CLOCK-LAST).
        let reading = time_of(clock.now());
        let Some(newest) = newest else {
            self.help(at, reference, reading);
            return None;
        };
        let lower_bound = self.lower_bound(newest);
        // After the reading and the newest stamp, which was a reading, too (INV-VERSION).
        if !self.is_current(at.cell) {
            return None;
        }
        let by_clock = self.plan.not_before(reading);
        Some(View {
            at,
            reference,
            ring,
            newest,
            timestamp_floor,
            reading,
            by_clock,
            lower_bound,
            time: by_clock.max(lower_bound),
        })
    }

    /// The earliest time of a decision, however far the clock lags: the newest stamp or, if that
    /// was dropped, the timestamp floor.
    fn lower_bound(self, newest: Slot) -> u64 {
        if newest.is_sentinel() { self.store.timestamp_floor() } else { newest.time() }
    }

    /// The refusal of so many permits, if they do not fit now. Reserved permits are not overtaken
    /// (INV-RESERVED).
    pub(super) fn refusal(self, view: &View<'_>, cost: usize) -> Option<Refusal> {
        if cost == 0 {
            return None;
        }
        let refusal = self.plan.refusal(view.ring, view.at.head, view.time, cost);
        refusal.or_else(|| view.is_behind().then(|| self.plan.reserved_until(view.newest.time())))
    }
}

impl<'a> View<'a> {
    /// This view, as the count of the permits left needs it.
    pub(super) fn as_of(&self) -> AsOf<'a> {
        let Self { at, ring, newest, time, reading, .. } = *self;
        AsOf { ring, head: at.head, newest: newest.time(), time, reading }
    }

    /// The time by which stamps are live beside reserved ones.
    pub(super) fn live_at(&self) -> u64 {
        if self.at.head.state().may_have_reserved() { self.by_clock } else { self.time }
    }

    /// How many stamps are no earlier than `live_from`.
    pub(super) fn live(&self, live_from: u64) -> usize {
        self.ring.live_at(self.at.head, live_from)
    }

    /// The `count` newest stamps, oldest first.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = u64> {
        let (ring, pos) = (self.ring, self.at.head.pos());
        (ring.len() - count..ring.len()).map(move |position| ring.load(pos + position).time())
    }

    /// Whether a reserved stamp is later than the clock.
    pub(super) fn is_behind(&self) -> bool {
        self.at.head.state().may_have_reserved() && self.reading < self.newest.time()
    }

    /// Whether head and ring are unchanged (INV-VALIDATE). During a resize the head stays the same,
    /// but the ring may be freed.
    pub(super) fn validate(&self) -> bool {
        self.at.validate() && self.at.cell.refers_to(self.reference)
    }
}
