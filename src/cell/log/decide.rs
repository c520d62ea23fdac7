//! Decisions by a log.

use super::limits::Refusal;
use super::publish::Published;
use super::resize::Wanted;
use super::view::{Log, View};
use crate::cell::algorithm::{Ask, Attempt, Charged};
use crate::cell::memory::At;
use crate::cell::words::time_of;
use crate::clock::Clock;
use crate::decision::{AtOnce, Status};

impl<'a> Log<'a> {
    #[inline(always)]
    pub(super) fn decide_at_once(self, at: At<'a>, cost: u32, reading: u64) -> Option<AtOnce> {
        let At { cell, head } = at;
        let reference = cell.reference();
        let ring = self.store.ring(cell, reference);
        let newest = ring.newest(head)?;
        if newest.is_ancient() {
            return None;
        }
        let time = self.limits.not_before(time_of(reading)).max(newest.time());
        let needed = cost as usize;
        if let Some(refusal) = self.limits.refusal(ring, head, time, needed) {
            if self.limits.counts_refused() {
                return None;
            }
            // The loads above acquire, so they belong to a head that still stands (INV-DENIAL).
            let stands = at.stands();
            return stands.then(|| refusal.at_once(time_of(reading)));
        }
        // A ring that is shorter than the limit may have to grow. A longer one may hold stamps that
        // no limit needs.
        if ring.len() != self.limits.limit() && !ring.has_room(head, needed, self.limits.live_from(time)) {
            return None;
        }
        ring.claim(at, needed, self.limits, time)?;
        Some(AtOnce::admitted(0))
    }

    /// One attempt at a decision.
    pub(super) fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt {
        let Some(view) = self.view(at, clock) else { return at.lost() };
        let needed = cost as usize;
        match (self.refusal(&view, needed), ask) {
            (None, Ask::Peek) => self.told(&view, None),
            (None, _) => self.grant(ask, &view, needed, clock),
            // A log that counts refused requests reserves nothing: INV-REFUSED.
            (Some(refusal), Ask::Reserve { within }) if !self.limits.counts_refused() => {
                self.reserve_ahead(&view, refusal, needed, within)
            }
            // Reserved stamps must not be postponed.
            (Some(refusal), Ask::Acquire | Ask::Reserve { .. })
                if self.limits.counts_refused() && !view.is_behind() =>
            {
                self.refuse_and_count(&view, needed, self.status(&view, Some(refusal)))
            }
            (refusal, _) => self.told(&view, refusal),
        }
    }

    /// One attempt to grant permits that fit.
    fn grant(self, ask: Ask, view: &View<'a>, needed: usize, clock: &impl Clock) -> Attempt {
        let View { at, ring, time, .. } = *view;
        let live = view.live(self.limits.live_from(time));
        let (limit, left) = self.left(view, live);
        let granted = |time: u64, left: usize, charged| {
            let reset_after = time.saturating_add(self.limits.window()).saturating_sub(view.reading);
            Attempt::Decided(Status::granted(limit, left.saturating_sub(needed), reset_after), charged)
        };
        // Loads of different heads may contradict each other. Then a request that was not refused
        // may not fit.
        if live + needed > self.limits.limit() {
            return at.lost();
        }
        if at.head.state().is_growing() || ring.len() - live < needed {
            let Some((time, fewer)) = self.grow(view, Wanted { needed, live }, clock) else { return at.lost() };
            // Permits that expired meanwhile, in the widest quota at least.
            let left = if self.limits.is_one() { left + (live - fewer) } else { left };
            return granted(time, left, Charged { head: at.head, mark: time });
        }
        let Ask::Reserve { .. } = ask else {
            // No receipt is needed.
            let claimed = ring.claim(at, needed, self.limits, time);
            return claimed.map_or_else(|| at.lost(), |_| granted(time, left, Charged::nothing(at.head)));
        };
        let floor = self.earliest_stamp(view, needed);
        match ring.claim(at, needed, self.limits, time) {
            None => at.lost(),
            Some(Published::ByClaimant) => granted(time, left, Charged { head: at.head, mark: time }),
            Some(Published::Unknown) => granted(time, left, self.charged_in_ring(at, floor)),
        }
    }

    /// The limit of the quota that leaves the fewest permits, and how many, where `live` stamps are
    /// live in the widest.
    fn left(self, view: &View<'_>, live: usize) -> (usize, usize) {
        if view.is_behind() {
            return self.limits.none();
        }
        self.limits.left(view.ring, view.at.head, view.time, live)
    }

    /// The permits left, and the denial if there is one.
    fn status(self, view: &View<'_>, refusal: Option<Refusal>) -> Status {
        let live = view.live(self.limits.live_from(view.time));
        let (limit, left) = self.left(view, live);
        let idle_after = match live {
            0 => 0,
            _ => view.newest.time().saturating_add(self.limits.window()).saturating_sub(view.reading),
        };
        let status = Status::granted(limit, left, idle_after);
        match refusal {
            Some(refusal) => Status { decision: refusal.denial(view.reading), ..status },
            None => status,
        }
    }

    /// Answers, and charges nothing.
    fn told(self, view: &View<'a>, refusal: Option<Refusal>) -> Attempt {
        let status = self.status(view, refusal);
        if view.stands() { Attempt::Decided(status, Charged::nothing(view.at.head)) } else { view.at.lost() }
    }
}
