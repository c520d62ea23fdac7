//! Permits of a log that are given back, and are at once there for others.
//!
//! The ring is replaced by one without the stamps that are given back (as growth does, see the essay on cells). Which they are
//! may not be known to the nanosecond: a claim that stalls is published by somebody else, whose clock may show less. So the claimant
//! reads what was published or, if that is gone by then, notes a *mark* that it is no earlier than. What is taken out are **the oldest
//! stamps that are no earlier than the mark**. They are no later than its own, so what is left is live for at least as long as it would
//! be; and there are enough of them for every claim that has not been given back, because each has its own among them. A mark that was too
//! late would have neither: of two permits the one that expires later would be taken out, or none.
//!
//! That holds as long as the claim's own stamp is in the ring. A stamp leaves a ring only once it has expired: a claim is made in
//! its place, or a new ring leaves it out. A clock that is behind the clock that did so must not take another stamp for it.
//!
//! - The newest stamp of a claim in place says how late it was, unless the ring was replaced since, or stamps lie ahead of it.
//! - A replacement raises the *horizon* to the time by which it leaves stamps out, before the ring changes (see
//!   [`offer`](crate::cell::algorithm::Algorithm::offer)). That time is no earlier than any stamp claimed in the old ring.
//!
//! So permits come back only if the mark is live by the clock, by the newest stamp and by the horizon. On a clock that never goes
//! back the horizon is never later than the reading, and this denies nothing. A clock that is set back may find that nothing comes
//! back until it has caught up: the permits then leave their window as if they had been used.

use super::view::{Log, View};
use crate::cell::algorithm::Charged;
use crate::cell::memory::At;
use crate::clock::Clock;

impl<'a> Log<'a> {
    /// The earliest stamp that a claim of `needed` slots can get, whichever thread publishes it: see `settle` in `publish.rs`. Read before
    /// the claim.
    pub(super) fn earliest_stamp(self, view: &View<'_>, needed: usize) -> u64 {
        let loosest = self.revisions.loosest();
        let loosest = loosest.as_ref().unwrap_or(self.limits);
        let pos = view.at.head.pos();
        let last = view.ring.load(pos + needed - 1).time();
        let earliest = loosest.earliest(view.ring, pos, needed).max(loosest.end_of(last));
        // The claimant may publish its first slots itself, at its own time.
        view.floor.max(earliest).max(view.horizon.min(view.time))
    }

    /// What has to be known of permits that were claimed in the ring at that head, and got a stamp no earlier than `floor`.
    ///
    /// Whoever has published them may have done so by a clock that lags behind the claimant's, so the stamp is read. If others have
    /// replaced the ring by now, or come round in it, the floor has to do.
    pub(super) fn charged_in_ring(self, At { cell, head }: At<'a>, floor: u64) -> Charged {
        // Acquired: if the head has moved on, somebody else may have published them.
        self.store.head_once_let_go(cell);
        let reference = cell.reference();
        let ring = self.store.ring(cell, reference);
        let stamp = ring.load(head.pos()).time();
        // While a cell grows its head stands still, but the ring may be given away.
        let is_there = ring.is_held_since(head, self.store.head_once_let_go(cell))
            && reference.epoch() == head.epoch()
            && cell.refers_to(reference);
        Charged { head, mark: if is_there { stamp } else { floor } }
    }

    /// One attempt to take stamps out of the log; `None` if it came to nothing.
    pub(super) fn refund(self, at: At<'a>, mark: u64, cost: u32, clock: &impl Clock) -> Option<u32> {
        let view = self.view(at, clock)?;
        let now = view.live_at();
        let live = view.live(self.limits.live_from(now));
        let count = cost as usize;
        let first = view.last(live).position(|stamp| stamp >= mark).unwrap_or(live);
        // Read after the ring. What was left out of it had expired by then, whatever this clock shows.
        let latest = now.max(self.store.horizon());
        if mark < self.limits.live_from(latest) || live - first < count {
            return view.stands().then_some(0);
        }
        let growing = at.begin_resize(at.head.state().growing())?;
        self.replace_without(growing, &view, live, first..first + count).then_some(cost)
    }
}
