//! Cells whose permits are a ring of stamps: the sliding window log. The essay is in `cell.rs`.

use super::growth::Wanted;
use super::memory::Cell;
use super::plan::{Limits, Refusal, admitted};
use super::ring::{Published, Ring};
use super::words::{Head, RingRef, Slot, State, time_of};
use super::{Ask, Attempt, Cells, Charged};
use crate::clock::Clock;
use crate::decision::{AtOnce, Status};
use crate::sync::Ordering;

impl Cells {
    /// Decides on an open cell, if that takes nothing out of the ordinary.
    #[inline(always)]
    pub(super) fn log_at_once(
        &self,
        limits: &Limits,
        cell: &Cell,
        head: Head,
        cost: u32,
        reading: u64,
    ) -> Option<AtOnce> {
        let reference = cell.reference();
        let ring = self.ring(cell, reference);
        let newest = ring.newest(head)?;
        if newest.is_ancient() {
            return None;
        }
        let time = limits.not_before(time_of(reading)).max(newest.time());
        let needed = cost as usize;
        if let Some(refusal) = limits.refusal(ring, head, time, needed) {
            if limits.counts_refused() {
                return None;
            }
            // The loads above were acquired, so a head that still stands here stood there throughout.
            let stands = cell.stands(head);
            return stands.then(|| refusal.at_once(time_of(reading)));
        }
        // A ring that is not as long as the limit may have to grow, or to keep stamps that no limit asks for any more.
        if ring.len() != limits.limit() && !ring.has_room(head, needed, limits.live_from(time)) {
            return None;
        }
        ring.claim(&cell.head, head, needed, limits, time)?;
        Some(AtOnce::admitted(0))
    }

    /// The earliest time that a decision is taken by, however far a clock lags: the newest stamp or, where that was lost, the
    /// horizon.
    pub(super) fn floor(&self, newest: Slot) -> u64 {
        if newest.is_ancient() { self.horizon.load(Ordering::Acquire) } else { newest.time() }
    }

    /// The log of a cell once all of it is published. `None` if something had to be done first, or has changed.
    pub(super) fn log_view<'a>(
        &'a self,
        limits: &Limits,
        cell: &'a Cell,
        head: Head,
        clock: &impl Clock,
    ) -> Option<View<'a>> {
        if head.state() == State::Held {
            self.help(head);
            return None;
        }
        let reference = cell.reference();
        if reference.epoch() != head.epoch() {
            if head.state().is_growing() {
                self.open(cell, head);
            }
            return None;
        }
        // Before the clock, so that only a clock that lags shows less.
        let horizon = self.horizon.load(Ordering::Acquire);
        // Read anew at each attempt: a reading from before a lost race may be stale by any amount.
        let reading = time_of(clock.now());
        let ring = self.ring(cell, reference);
        let Some(newest) = ring.newest(head) else {
            self.settle(cell, head, reference, reading);
            return None;
        };
        let floor = self.floor(newest);
        let by_clock = limits.not_before(reading);
        Some(View { reference, ring, newest, horizon, reading, by_clock, floor, time: by_clock.max(floor) })
    }

    /// One attempt at a decision.
    pub(super) fn log_attempt(
        &self,
        limits: &Limits,
        ask: Ask,
        cell: &Cell,
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Attempt {
        let lost = || Attempt::Lost(cell.head());
        let Some(view) = self.log_view(limits, cell, head, clock) else { return lost() };
        let View { reference, ring, newest, reading, time, .. } = view;
        let needed = cost as usize;
        let live = ring.live_at(head, limits.live_from(time));
        let refusal = view.refusal(limits, head, needed);
        let (limit, left) = if view.is_behind(head) { limits.none() } else { limits.left(ring, head, time, live) };
        // Of a log that counts refused requests none is reserved ahead: see `refused.rs`.
        if let (Some(refusal), Ask::Reserve { within }, false) = (refusal, ask, limits.counts_refused()) {
            return self.reserve_ahead(limits, cell, head, &view, refusal, needed, within);
        }
        if refusal.is_none() && ask != Ask::Peek {
            let granted = |time: u64, left: usize, charged| {
                let reset_after = time.saturating_add(limits.window()).saturating_sub(reading);
                let status = admitted(limit, left.saturating_sub(needed), reset_after);
                Attempt::Decided(status, charged)
            };
            // Loads of different heads may contradict each other. Then there may be no room for what is not refused.
            if live + needed > limits.limit() {
                return lost();
            }
            if head.state().is_growing() || ring.len() - live < needed {
                let wanted = Wanted { needed, live, newest, time };
                return self.grow(cell, limits, head, reference, wanted, clock).map_or_else(lost, |(time, fewer)| {
                    // What has expired meanwhile, in the widest quota at least.
                    let left = if limits.is_one() { left + (live - fewer) } else { left };
                    granted(time, left, Charged { head, mark: time })
                });
            }
            let Ask::Reserve { .. } = ask else {
                // No receipt is written for it.
                let claimed = ring.claim(&cell.head, head, needed, limits, time);
                return claimed.map_or_else(lost, |_| granted(time, left, Charged::nothing(head)));
            };
            let floor = self.earliest_stamp(limits, cell, head, &view, needed);
            return match ring.claim(&cell.head, head, needed, limits, time) {
                None => lost(),
                Some(Published::ByClaimant) => granted(time, left, Charged { head, mark: time }),
                Some(Published::Unknown) => granted(time, left, self.charged_in_ring(cell, head, floor)),
            };
        }
        let idle_after = match live {
            0 => 0,
            _ => newest.time().saturating_add(limits.window()).saturating_sub(reading),
        };
        let mut status = admitted(limit, left, idle_after);
        if let Some(refusal) = refusal {
            status = Status { decision: refusal.denial(reading), ..status };
            // What is reserved is not to be put off.
            if limits.counts_refused() && ask != Ask::Peek && !view.is_behind(head) {
                return self.refuse_and_count(limits, cell, head, &view, needed, status);
            }
        }
        if view.stands(cell, head) { Attempt::Decided(status, Charged::nothing(head)) } else { lost() }
    }
}

/// A log, all of it published, as of a head.
pub(super) struct View<'a> {
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

impl View<'_> {
    /// The time by which stamps are live beside those that are reserved.
    pub(super) fn live_at(&self, head: Head) -> u64 {
        if head.state().may_be_ahead() { self.by_clock } else { self.time }
    }

    /// Whether something is reserved for later than now.
    pub(super) fn is_behind(&self, head: Head) -> bool {
        head.state().may_be_ahead() && self.reading < self.newest.time()
    }

    /// Why so many permits are not to be had now. What was reserved is not overtaken.
    pub(super) fn refusal(&self, limits: &Limits, head: Head, needed: usize) -> Option<Refusal> {
        if needed == 0 {
            return None;
        }
        let refusal = limits.refusal(self.ring, head, self.time, needed);
        refusal.or_else(|| self.is_behind(head).then(|| limits.reserved_until(self.newest.time())))
    }

    /// Whether what was seen was there all the time. While a cell grows its head stands still, but the ring may be given away.
    pub(super) fn stands(&self, cell: &Cell, head: Head) -> bool {
        cell.stands(head) && cell.refers_to(self.reference)
    }
}
