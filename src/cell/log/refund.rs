//! Refunds of a log: permits that are free for others at once.
//!
//! The ring is replaced by one without the refunded stamps (INV-RESIZE). The claimant may not know
//! its stamp: a helper with an earlier clock may have published it. So it reads the ring, or, if
//! that is gone, uses a *mark*, a lower bound of its stamp. The oldest stamps from the mark on are
//! removed (INV-REFUND). With a mark that is too late, a later permit would be removed in its
//! place, or none.
//!
//! A stamp leaves a ring only once it has expired: a claim replaces it, or a resize leaves it out.
//! A clock that is behind must not take another stamp for it. So permits come back only if the mark
//! is live by three times:
//!
//! - the clock;
//! - the newest stamp, unless stamps are reserved: it says how late claims in place were;
//! - the timestamp floor, which each resize raises to the time by which it leaves stamps out (see
//!   [`offer`](crate::cell::driver::Driver::offer)).
//!
//! A clock that never goes back reads no less than the floor, so it loses nothing by this. After a
//! clock is set back, nothing comes back until it has caught up; the permits then expire as if they
//! were used.

use super::view::{Log, View};
use crate::cell::descriptor::Part;
use crate::cell::driver::{Charge, Refund};
use crate::cell::memory::{At, Cell};
use crate::clock::Clock;

impl<'a> Refund<'a> for Log<'a> {
    fn charge_of(self, cell: &'a Cell, part: &Part) -> Charge {
        match part.rings {
            None => self.charge_in_ring(At { cell, head: part.seen }, part.mark),
            Some(_) => Charge { head: part.next, mark: part.mark },
        }
    }

    fn refund(self, at: At<'a>, Charge { mark, .. }: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        let view = self.view(at, clock)?;
        let now = view.live_at();
        let live = view.live(self.plan.live_from(now));
        let count = cost as usize;
        let first = view.last(live).position(|stamp| stamp >= mark).unwrap_or(live);
        // Read after the ring: stamps that the ring lacks had expired by then, by any clock.
        let latest = now.max(self.store.timestamp_floor());
        if mark < self.plan.live_from(latest) || live - first < count {
            return view.validate().then_some(0);
        }
        let resizing = at.begin_resize(at.head.state().resizing())?;
        self.replace_without(resizing, &view, live, first..first + count).then_some(cost)
    }
}

impl<'a> Log<'a> {
    /// A lower bound of the stamp of a claim of `cost` slots, whichever thread publishes it: see
    /// `help` in `publish.rs`. Read before the claim.
    pub(super) fn earliest_stamp(self, view: &View<'_>, cost: usize) -> u64 {
        let loosest = self.versions.all.loosest();
        let loosest = loosest.as_ref().unwrap_or(self.plan);
        let pos = view.at.head.pos();
        let last = view.ring.load(pos + cost - 1).time();
        let earliest = loosest.earliest(view.ring, pos, cost).max(loosest.end_of(last));
        // The claimant may publish its first slots itself, at its own time.
        view.lower_bound.max(earliest).max(view.timestamp_floor.min(view.time))
    }

    /// The charge of permits that were claimed in the ring at that head, with a stamp no earlier
    /// than `lower_bound`.
    ///
    /// The stamp is read, because a helper with a lagging clock may have published it. If the ring
    /// was replaced, or claimed all round, `lower_bound` is used.
    pub(super) fn charge_in_ring(self, At { cell, head }: At<'a>, lower_bound: u64) -> Charge {
        // Acquired: if the head has moved on, a helper may have published them.
        self.store.head_once_released(cell);
        let reference = cell.reference();
        let ring = self.store.ring(cell, reference);
        let stamp = ring.load(head.pos()).time();
        // During a resize the head stays the same, but the ring may be freed (INV-VALIDATE).
        let is_there = ring.is_held_since(head, self.store.head_once_released(cell))
            && reference.ring_parity() == head.ring_parity()
            && cell.refers_to(reference);
        Charge { head, mark: if is_there { stamp } else { lower_bound } }
    }
}
