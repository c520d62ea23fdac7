//! A log as a decision sees it: all of it published, as of one head.

use super::left::AsOf;
use super::limits::{Limits, Refusal};
use super::ring::Ring;
use crate::cell::algorithm::Algorithm;
use crate::cell::memory::At;
use crate::cell::revisions::Revisions;
use crate::cell::store::Store;
use crate::cell::words::{RingRef, Slot, State, time_of};
use crate::clock::Clock;

/// The log of one key.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Log<'a> {
    pub(in crate::cell) store: &'a Store,
    pub(in crate::cell) limits: &'a Limits,
    pub(in crate::cell) revisions: &'a Revisions,
}

/// A log, all of it published, as of a head.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) at: At<'a>,
    pub(super) reference: RingRef,
    pub(super) ring: Ring<'a>,
    pub(super) newest: Slot,
    /// The horizon, before the clock was read.
    pub(super) horizon: u64,
    /// What the clock showed.
    pub(super) reading: u64,
    /// The same, but not before the quotas began.
    pub(super) by_clock: u64,
    /// No stamp that is chosen from now on is earlier.
    pub(super) floor: u64,
    /// The time to decide by: that or, for a clock that lags, the newest stamp. Where that lies ahead for another reason, the
    /// log is [behind](Self::is_behind) it.
    pub(super) time: u64,
}

impl<'a> Log<'a> {
    /// The log of a cell once all of it is published. `None` if something had to be done first, or has changed.
    pub(super) fn view(self, at: At<'a>, clock: &impl Clock) -> Option<View<'a>> {
        let head = at.head;
        if head.state() == State::Held {
            self.store.help(head);
            return None;
        }
        let reference = at.cell.reference();
        if reference.epoch() != head.epoch() {
            if head.state().is_growing() {
                self.open(at);
            }
            return None;
        }
        // Before the clock, so that only a clock that lags shows less.
        let horizon = self.store.horizon();
        // Read anew at each attempt: a reading from before a lost race may be stale by any amount.
        let reading = time_of(clock.now());
        let ring = self.store.ring(at.cell, reference);
        let Some(newest) = ring.newest(head) else {
            self.settle(at, reference, reading);
            return None;
        };
        let floor = self.floor(newest);
        let by_clock = self.limits.not_before(reading);
        Some(View { at, reference, ring, newest, horizon, reading, by_clock, floor, time: by_clock.max(floor) })
    }

    /// The earliest time that a decision is taken by, however far a clock lags: the newest stamp or, where that was lost, the
    /// horizon.
    fn floor(self, newest: Slot) -> u64 {
        if newest.is_ancient() { self.store.horizon() } else { newest.time() }
    }

    /// Why so many permits are not to be had now. What was reserved is not overtaken.
    pub(super) fn refusal(self, view: &View<'_>, needed: usize) -> Option<Refusal> {
        if needed == 0 {
            return None;
        }
        let refusal = self.limits.refusal(view.ring, view.at.head, view.time, needed);
        refusal.or_else(|| view.is_behind().then(|| self.limits.reserved_until(view.newest.time())))
    }
}

impl<'a> View<'a> {
    /// What quotas are counted by.
    pub(super) fn as_of(&self) -> AsOf<'a> {
        let Self { at, ring, newest, time, reading, .. } = *self;
        AsOf { ring, head: at.head, newest: newest.time(), time, reading }
    }

    /// The time by which stamps are live beside those that are reserved.
    pub(super) fn live_at(&self) -> u64 {
        if self.at.head.state().may_be_ahead() { self.by_clock } else { self.time }
    }

    /// How many stamps are live, if that is the first.
    pub(super) fn live(&self, live_from: u64) -> usize {
        self.ring.live_at(self.at.head, live_from)
    }

    /// The `count` newest stamps, oldest first.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = u64> {
        let (ring, pos) = (self.ring, self.at.head.pos());
        (ring.len() - count..ring.len()).map(move |position| ring.load(pos + position).time())
    }

    /// Whether something is reserved for later than now.
    pub(super) fn is_behind(&self) -> bool {
        self.at.head.state().may_be_ahead() && self.reading < self.newest.time()
    }

    /// Whether what was seen was there all the time. While a cell grows its head stands still, but the ring may be given away.
    pub(super) fn stands(&self) -> bool {
        self.at.stands() && self.at.cell.refers_to(self.reference)
    }
}
