//! The lookup of the index, and the fast path: the key is known, its cell is open, and no other
//! thread's claim is in progress. Prefetches of many keys.

use super::find::Table;
use super::index::{Index, Route, SIZES};
use crate::cell::Head;
use crate::clock::Clock;
use crate::decision::{FastDecision, PerQuota, Status};
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// Retries after a lost claim, before the slow path.
const TRIES: u32 = if cfg!(tollgate_loom) { 1 } else { 4 };

/// The pause before the first retry, in turns of [`spin_loop`](core::hint::spin_loop); each further
/// pause is twice as long. The first takes about a microsecond, all together a dozen.
const FIRST_BACKOFF: u32 = if cfg!(tollgate_loom) { 0 } else { 48 };

/// The keys that are prefetched together: enough to keep the memory busy, few enough to stay in the
/// nearest cache.
pub(crate) const TOGETHER: usize = 32;

impl Table {
    #[inline]
    pub(super) fn route(&self) -> Route {
        Route(self.route.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn current(&self, route: Route) -> Index<'_> {
        self.index(route.size(), route.generation())
    }

    pub(super) fn old(&self, route: Route) -> Index<'_> {
        self.index(route.old_size(), route.generation().wrapping_sub(1))
    }

    #[inline]
    fn index(&self, size: u32, generation: u32) -> Index<'_> {
        let memory = self.indexes[size as usize % SIZES][(generation & 1) as usize].get();
        let memory = memory.expect("a route names an index only once its memory is there");
        #[expect(clippy::cast_possible_truncation, reason = "entries export the lower half")]
        Index::new(memory, generation as u16)
    }

    /// Decides a request of `cost` permits, between 1 and the limit, or returns `None`: then the
    /// slow path decides.
    #[inline(always)]
    pub(crate) fn fast_decide(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<FastDecision> {
        let seat = self.current(self.route()).fast_find(fingerprint, &self.cells)?;
        match self.cells.fast_decide(seat, cost, clock, None) {
            None => self.decide_after_backoff(seat.seat().id, seat.seat().head, fingerprint, cost, clock),
            decided => decided,
        }
    }

    /// As [`fast_decide`](Self::fast_decide), with the permits left. Tries once.
    #[inline(always)]
    pub(crate) fn fast_status(
        &self,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
        left: &mut PerQuota,
    ) -> Option<FastDecision> {
        let found = self.current(self.route()).fast_find(fingerprint, &self.cells);
        found.and_then(|seat| self.cells.fast_decide(seat, cost, clock, Some(left)))
    }

    /// The answer to a peek, if the key is known and the fast path can tell.
    #[inline(always)]
    pub(super) fn fast_peek(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<Status> {
        let found = self.current(self.route()).fast_find(fingerprint, &self.cells);
        found.and_then(|seat| self.cells.fast_peek(seat, cost, clock))
    }

    /// Retries after a lost claim.
    ///
    /// Two threads that claim on one cell in turns spend their time on moving its cache line. So a
    /// thread backs off after a failed compare-and-swap, while the other completes several claims.
    /// The pause ends by itself; no thread waits for another.
    #[cold]
    #[inline(never)]
    fn decide_after_backoff(
        &self,
        id: u32,
        mut head: Head,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<FastDecision> {
        for tries in 0..TRIES {
            let seen = self.cells.seat_for(id, head.incarnation(), fingerprint)?;
            if seen.head == head {
                // No claim was lost, so the slow path is needed.
                return None;
            }
            (0..FIRST_BACKOFF << tries).for_each(|_| core::hint::spin_loop());
            let seat = self.cells.open_seat_for(id, head.incarnation(), fingerprint)?;
            let decided = self.cells.fast_decide(seat, cost, clock, None);
            if decided.is_some() {
                return decided;
            }
            head = seat.seat().head;
        }
        None
    }

    /// Reads the memory that decisions on these keys will read, and decides nothing: first each
    /// key's slot of the index, then each key's cell, then each key's ring. Reads of one kind do
    /// not wait for each other; in one decision after the other they would.
    pub(crate) fn prefetch(&self, keys: &[Fingerprint]) {
        let index = self.current(self.route());
        let seen = keys.iter().fold(0, |seen, &key| seen ^ index.prefetch(key));
        core::hint::black_box(seen);
        let mut rings = [None; TOGETHER];
        for (ring, &key) in rings.iter_mut().zip(keys) {
            *ring = index.likely_cell(key).map(|id| self.cells.prefetch(id));
        }
        let seen = rings.into_iter().flatten().fold(0, |seen, ring| seen ^ self.cells.prefetch_ring(ring));
        core::hint::black_box(seen);
    }
}
