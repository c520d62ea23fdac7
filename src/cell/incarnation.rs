//! The incarnations of a cell: allocated for a key with its first permits, then freed when all have
//! expired, or forgotten.

use super::cells::{AnyDriver, Cells, Seat, dispatch};
use super::driver::{Driver, Known};
use super::memory::At;
use super::versions::Version;
use super::words::{Head, MAX_TIME, RingRef, Slot, State, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// The outcome of an attempt to free a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    /// The cell was freed, or is of another incarnation.
    Gone,
    /// The cell has a live stamp; the newest expires at this time.
    Live(u64),
}

/// A cell for a new key.
pub(crate) struct NewCell<'a> {
    pub(crate) seat: Seat<'a>,
    /// The permits that are claimed in it and unpublished.
    pub(crate) claimed: u32,
    /// The quotas that it was made under.
    pub(crate) version: &'a Version,
}

impl Cells {
    /// A cell for a new key with `cost` permits claimed, or none if that exceeds the limit. (The
    /// limit may have become smaller since the request was checked.) The caller owns the cell until
    /// it inserts it into the index. `None` if all cells are taken.
    ///
    /// The permits get their stamp once the cell is reachable, from
    /// [`publish_first`](Self::publish_first) or from a helper (INV-FIRST).
    pub(crate) fn new_cell(&self, fingerprint: Fingerprint, cost: u32) -> Option<NewCell<'_>> {
        let id = self.store.cells.alloc()?;
        let cell = self.store.cells.element(id);
        let free = Head(cell.head.load(Ordering::Relaxed));
        let opened = free.with_state(State::Open);
        // See `free_memory`.
        let left = RingRef(cell.ring.load(Ordering::Relaxed));
        let elsewhere = left.is_ring() || Slot(left.0).is_after_ring();
        let versions = self.versions_of(fingerprint);
        let claimed = if cost > versions.current.most { 0 } else { cost };
        let (reference, head) = dispatch!(self.driver_by(versions), driver => driver.first(opened, claimed, elsewhere));
        cell.give_to(fingerprint, reference, head);
        let seat = Seat { id, head, plan: fingerprint.plan(), cell };
        Some(NewCell { seat, claimed, version: versions.current })
    }

    /// Publishes the first permits of a cell that was just inserted. If its head has moved, another
    /// thread has published them, or the key was forgotten.
    pub(crate) fn publish_first(&self, created: Seat<'_>, clock: &impl Clock) {
        self.publish_at(created.at(), clock);
    }

    /// Frees a cell from [`new_cell`](Self::new_cell) that was never inserted.
    pub(crate) fn discard(&self, id: u32) {
        let cell = self.store.cells.element(id);
        let head = Head(cell.head.load(Ordering::Relaxed));
        // The incarnation stays, because no thread has seen it. The lap moves on (INV-HEAD).
        let free = Head::new(State::Free, false, head.incarnation(), head.lap() + 1, 0);
        cell.head.store(free.0, Ordering::Release);
        self.free_memory(id, Slot::sentinel(0, 0), false);
    }

    /// Frees the cell of this incarnation if all its stamps have expired, at `time` and by the
    /// `clock`, or its key was forgotten (INV-FREE). Raises the timestamp floor to the end of the
    /// newest stamp that is lost.
    ///
    /// The clock is read after the head, and only if the stamps have expired at `time`.
    ///
    /// A claim that is found unpublished may be later than `time`, so it is stamped by the `clock`,
    /// read after the claim was seen (INV-CLOCK-LAST).
    ///
    /// Incarnations are numbered modulo 256. After each load of the head, `may_be` tells whether
    /// the number still means the caller's incarnation (INV-INCARNATION).
    pub(crate) fn free_if(
        &self,
        id: u32,
        incarnation: u64,
        time: u64,
        clock: &impl Clock,
        may_be: impl Fn() -> bool,
    ) -> Freed {
        let cell = self.store.cells.element(id);
        loop {
            let at = At::now(cell);
            let head = at.head;
            if head.incarnation() != incarnation || !may_be() {
                return Freed::Gone;
            }
            match head.state() {
                State::Free => return Freed::Gone,
                State::Held => {
                    self.store.help_joint(head);
                    continue;
                }
                _ => {}
            }
            let reference = cell.reference();
            let driver = self.driver_of(cell);
            let (end, newest) = match dispatch!(driver, driver => driver.known(at, reference)) {
                Known::Until(end, newest) => (end, newest),
                Known::Unpublished => {
                    dispatch!(driver, driver => driver.help(at, reference, time_of(clock.now())));
                    continue;
                }
                // Either a resize that is not finished, or the head has moved.
                Known::OfAnotherRing => {
                    if head.state().is_resizing() {
                        dispatch!(driver, driver => driver.open(at));
                    }
                    continue;
                }
            };
            // Otherwise it may belong to the cell's next key, or the ring to another cell.
            if !at.validate() || !cell.refers_to(reference) {
                continue;
            }
            if head.state() != State::Dead {
                // `time` is from before the head, and the clock may have been set back since.
                if time < end || time_of(clock.now()) < end {
                    return Freed::Live(end.min(MAX_TIME));
                }
                // By other quotas it may be live.
                if !dispatch!(driver, driver => driver.is_current(cell)) {
                    continue;
                }
            }
            // Before the cell is free: a thread that finds its key gone must see the floor.
            let floor = if head.state() == State::Dead { newest.time() } else { end };
            self.store.raise_timestamp_floor(floor);
            if head.state().is_resizing() {
                dispatch!(driver, driver => driver.empty(at, reference, newest));
                continue;
            }
            let free = head.freed();
            if at.claim(free).is_some() {
                self.free_memory(id, newest, floor <= newest.time());
                return Freed::Gone;
            }
        }
    }

    /// Frees the memory of a cell whose head the caller has set free. `may_return` says that the
    /// newest stamp or anchor is no earlier than the timestamp floor, so the next key may have it.
    ///
    /// A thread that stalls in a resize may still want to replace the one slot that the cell once
    /// had by its ring. After a `forget`, that slot's stamp could return in the next incarnation if
    /// the clock stands still. So such a cell starts its next incarnation with a ring
    /// (INV-REFERENCE). The reference that stays in the cell says so, or a sentinel: that of an
    /// account that was charged nothing, or one that another account leaves. It stays until later
    /// stamps have come and gone.
    fn free_memory(&self, id: u32, newest: Slot, may_return: bool) {
        let cell = self.store.cells.element(id);
        let reference = cell.reference();
        // The anchor of a running account has the bit of a ring reference.
        let is_log = !matches!(self.driver_of(cell), AnyDriver::Counter(_));
        if is_log {
            self.store.drop_ring(reference, newest);
        }
        let is_sentinel = newest.is_sentinel();
        let stays = is_log && (may_return || is_sentinel);
        if may_return && !is_sentinel && !is_log {
            cell.ring.store(Slot::sentinel_after_ring(0, 0).0, Ordering::Release);
        } else if reference.is_ring() && !stays {
            cell.ring.store(0, Ordering::Release);
        }
        self.store.cells.free(id);
    }

    /// Makes a cell dead that decided for its key at this head: the key starts afresh. Returns
    /// whether this call did; if not, the cell may no longer decide for the key.
    pub(crate) fn forget_at(&self, id: u32, head: Head, clock: &impl Clock) -> bool {
        let mut at = At { cell: self.store.cells.element(id), head };
        loop {
            match at.head.state() {
                State::Free | State::Dead => return false,
                // Emptied first: another thread may be about to offer a ring.
                State::Resizing | State::ResizingReserved | State::ResizingToReserved => {
                    self.empty_what_grows(at, clock)
                }
                State::Held => self.store.help_joint(at.head),
                // Emptied too: no stamp that is lost was claimed in place (INV-RESERVED).
                State::Reserved if !self.is_empty(at) => {
                    // If this fails, the head has changed.
                    let _ = at.begin_resize(State::ResizingReserved);
                }
                _ => {
                    if at.claim(at.head.with_state(State::Dead)).is_some() {
                        return true;
                    }
                }
            }
            let now = at.cell.head();
            if !at.head.goes_on_at(now) {
                return false;
            }
            at = at.with(now);
        }
    }

    /// Whether the ring of an open cell has never held a stamp.
    fn is_empty(&self, at: At<'_>) -> bool {
        let known = dispatch!(self.driver_of(at.cell), driver => driver.known(at, at.cell.reference()));
        matches!(known, Known::Until(_, newest) if newest.is_sentinel())
    }

    /// Takes one step towards an open cell without stamps, unless another ring is offered first.
    fn empty_what_grows(&self, resizing: At<'_>, clock: &impl Clock) {
        let reference = resizing.cell.reference();
        dispatch!(self.driver_of(resizing.cell), driver => match driver.known(resizing, reference) {
            Known::Until(_, newest) => driver.empty(resizing, reference, newest),
            Known::Unpublished => driver.help(resizing, reference, time_of(clock.now())),
            Known::OfAnotherRing => driver.open(resizing),
        });
    }

    /// Forgets whatever the cell decides for now.
    pub(crate) fn forget_any(&self, id: u32, clock: &impl Clock) {
        let Some(cell) = self.store.cells.element_if_there(id) else { return };
        loop {
            let head = cell.head();
            if matches!(head.state(), State::Free | State::Dead) || self.forget_at(id, head, clock) {
                return;
            }
        }
    }

    /// The numbers of all cells ever used.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.store.cells.handed_out()).map(|number| self.store.cells.nth(number))
    }

    /// The fingerprint that the cell decides for, if any.
    pub(crate) fn fingerprint_of(&self, id: u32) -> Option<Fingerprint> {
        self.store.cells.element_if_there(id).map(|cell| cell.key())
    }

    /// The fingerprint of the cell in this incarnation, unless that is over.
    pub(crate) fn fingerprint_in(&self, id: u32, incarnation: u64) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint_of(id)?;
        // Loaded after the fingerprint, which acquires; see `seat_for`.
        let head = Head(self.store.cells.element(id).head.load(Ordering::Relaxed));
        (head.incarnation() == incarnation).then_some(fingerprint)
    }

    /// Whether a cell can be allocated; an estimate.
    pub(crate) fn has_room(&self) -> bool {
        self.store.cells.has_room()
    }

    /// The number of cells that can be allocated, up to `most`; an estimate.
    pub(crate) fn room_up_to(&self, most: usize) -> usize {
        self.store.cells.room_up_to(most)
    }

    /// The most cells in use at once.
    #[cfg(feature = "policy")]
    pub(crate) fn key_cap(&self) -> usize {
        self.store.cells.max_blocks()
    }

    /// Whether the cell is in use, and whether it has a live stamp at `time`.
    pub(crate) fn is_used_and_live(&self, id: u32, time: u64) -> (bool, bool) {
        self.idle_from(id, time).map_or((false, false), |(_, end)| (true, time < end))
    }

    /// The incarnation of the cell, and the time from which it can be freed; `None` if it is free.
    /// Writes nothing. A cell that is being claimed counts as live for one nanosecond after `time`.
    pub(crate) fn idle_from(&self, id: u32, time: u64) -> Option<(u64, u64)> {
        let cell = self.store.cells.element_if_there(id)?;
        let claimed_now = time.saturating_add(1);
        loop {
            let at = At::now(cell);
            let head = at.head;
            let reference = cell.reference();
            match head.state() {
                State::Free => return None,
                State::Dead => return Some((head.incarnation(), 0)),
                // A joint claim is in progress.
                State::Held => return Some((head.incarnation(), claimed_now)),
                _ => {}
            }
            // An unpublished claim was made just now; a ring that was just replaced has live
            // stamps.
            let end = match dispatch!(self.driver_of(cell), driver => driver.known(at, reference)) {
                Known::Until(end, _) => end,
                Known::Unpublished | Known::OfAnotherRing => claimed_now,
            };
            if at.validate() && cell.refers_to(reference) {
                return Some((head.incarnation(), end));
            }
        }
    }
}

/// For models and tests of a single cell, which has fewer than 256 incarnations there.
#[cfg(test)]
impl Cells {
    /// A new cell and its incarnation.
    pub(crate) fn create(&self, fingerprint: Fingerprint, cost: u32) -> Option<(u32, u64)> {
        self.new_cell(fingerprint, cost).map(|new| (new.seat.id, new.seat.head.incarnation()))
    }

    pub(crate) fn grant(&self, id: u32, incarnation: u64, clock: &impl Clock) {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        if head.incarnation() == incarnation && head.state().is_open() {
            self.publish_at(At { cell, head }, clock);
        }
    }

    pub(crate) fn free(&self, id: u32, incarnation: u64, time: u64, clock: &impl Clock) -> Freed {
        self.free_if(id, incarnation, time, clock, || true)
    }

    pub(crate) fn forget(&self, id: u32, incarnation: u64, clock: &impl Clock) -> bool {
        loop {
            let head = Head(self.store.cells.element(id).head.load(Ordering::Acquire));
            if head.incarnation() != incarnation || matches!(head.state(), State::Free | State::Dead) {
                return false;
            }
            if self.forget_at(id, head, clock) {
                return true;
            }
        }
    }
}
