//! The fast path: the key is known, its cell is open, and no other thread's claim is in progress.

use super::find::Table;
use crate::cell::Head;
use crate::clock::Clock;
use crate::decision::{AtOnce, PerQuota, Status};
use crate::fingerprint::Fingerprint;

/// Retries after a lost claim, before the slow path.
const TRIES: u32 = if cfg!(tollgate_loom) { 1 } else { 4 };

/// The pause before the first retry, in turns of [`spin_loop`](core::hint::spin_loop); each further
/// pause is twice as long. The first takes about a microsecond, all together a dozen.
const FIRST_PAUSE: u32 = if cfg!(tollgate_loom) { 0 } else { 48 };

impl Table {
    /// Decides a request of `cost` permits, between 1 and the limit, or returns `None`: then the
    /// slow path decides.
    #[inline(always)]
    pub(crate) fn decide_at_once(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<AtOnce> {
        let seat = self.current(self.route()).find_at_once(fingerprint, &self.cells)?;
        // Read after the head (INV-CLOCK-LAST).
        match self.cells.decide_at_once(seat, cost, clock.now()) {
            None => self.decide_after_others(seat.seat().id, seat.seat().head, fingerprint, cost, clock),
            decided => decided,
        }
    }

    /// As [`decide_at_once`](Self::decide_at_once), with the permits left. Tries once.
    #[inline(always)]
    pub(crate) fn status_at_once(
        &self,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
        left: &mut PerQuota,
    ) -> Option<AtOnce> {
        let found = self.current(self.route()).find_at_once(fingerprint, &self.cells);
        // Read after the head (INV-CLOCK-LAST).
        found.and_then(|seat| self.cells.status_at_once(seat, cost, clock.now(), left))
    }

    /// The answer to a peek, if the key is known and the fast path can tell.
    #[inline(always)]
    pub(super) fn peek_at_once(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<Status> {
        let found = self.current(self.route()).find_at_once(fingerprint, &self.cells);
        found.and_then(|seat| self.cells.peek_at_once(seat, cost, clock.now()))
    }

    /// Retries after a lost claim.
    ///
    /// Two threads that claim on one cell in turns spend their time on moving its cache line. So a
    /// thread backs off after a failed compare-and-swap, while the other completes several claims.
    /// The pause ends by itself; no thread waits for another.
    #[cold]
    #[inline(never)]
    fn decide_after_others(
        &self,
        id: u32,
        mut head: Head,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<AtOnce> {
        for tries in 0..TRIES {
            let seen = self.cells.seat_for(id, head.incarnation(), fingerprint)?;
            if seen.head == head {
                // No claim was lost, so the slow path is needed.
                return None;
            }
            (0..FIRST_PAUSE << tries).for_each(|_| core::hint::spin_loop());
            let seat = self.cells.open_seat_for(id, head.incarnation(), fingerprint)?;
            let decided = self.cells.decide_at_once(seat, cost, clock.now());
            if decided.is_some() {
                return decided;
            }
            head = seat.seat().head;
        }
        None
    }
}
