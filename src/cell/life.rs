//! The lives of a cell: made for a key with its first permits, reclaimed when all have expired, or forgotten.

use super::algorithm::{Algorithm, Known};
use super::cells::{Cells, Rules, Seat, by};
#[cfg(feature = "serde")]
use super::kept::{Kept, Restored};
use super::memory::At;
use super::words::{Head, MAX_TIME, RingRef, Slot, State, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// What became of an attempt to reclaim a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reclaimed {
    /// The cell has been freed, or is of another life by now.
    Gone,
    /// The cell has a live stamp; the newest expires at this time.
    Live(u64),
}

impl Cells {
    /// A cell for a new key with `cost` permits claimed and not yet published. The caller alone has it until its number and
    /// life are published. `None` when all cells are taken.
    ///
    /// The permits get their stamp only once the cell is known, from [`publish_first`](Self::publish_first) or from whoever meets the cell
    /// first. A stamp chosen before would be too early if meanwhile another cell for the same key came and went.
    pub(crate) fn new_cell(&self, fingerprint: Fingerprint, cost: u32) -> Option<Seat<'_>> {
        let id = self.store.cells.take()?;
        let cell = self.store.cells.element(id);
        let free = Head(cell.head.load(Ordering::Relaxed));
        let opened = free.with_state(State::Open);
        // See `release`.
        let elsewhere = RingRef(cell.ring.load(Ordering::Relaxed)).is_ring();
        let (reference, head) = by!(self.rules(fingerprint), algorithm => algorithm.first(opened, cost, elsewhere));
        cell.give_to(fingerprint, reference, head);
        Some(Seat { id, head, plan: fingerprint.plan(), cell })
    }

    /// Publishes the first permits of a cell that has just become known. If its head has moved, another thread has published them, or the key
    /// was forgotten.
    pub(crate) fn publish_first(&self, created: Seat<'_>, clock: &impl Clock) {
        self.publish_at(created.at(), clock);
    }

    /// Takes back a cell from [`new_cell`](Self::new_cell) that was never published.
    pub(crate) fn discard(&self, id: u32) {
        let cell = self.store.cells.element(id);
        let head = Head(cell.head.load(Ordering::Relaxed));
        // The life stays: nothing was published that could be mistaken for the next. The lap moves on.
        let free = Head::new(State::Free, false, head.life(), head.lap() + 1, 0);
        cell.head.store(free.0, Ordering::Release);
        self.release(id, Slot::ancient(0, 0), false);
    }

    /// Frees the cell of this life if all its stamps have expired at `time`, or its key was forgotten. Raises the horizon to the
    /// end of the newest of the stamps that are lost with it.
    ///
    /// A claim that is found unpublished may be later than `time`, so it is stamped by the `clock`, read after it was seen.
    ///
    /// Lives are numbered modulo 256: after each read of the head `may_be` says whether the number means the life that the caller means.
    pub(crate) fn reclaim_if(
        &self,
        id: u32,
        life: u64,
        time: u64,
        clock: &impl Clock,
        may_be: impl Fn() -> bool,
    ) -> Reclaimed {
        let cell = self.store.cells.element(id);
        loop {
            let at = At::now(cell);
            let head = at.head;
            if head.life() != life || !may_be() {
                return Reclaimed::Gone;
            }
            match head.state() {
                State::Free => return Reclaimed::Gone,
                State::Held => {
                    self.store.help(head);
                    continue;
                }
                _ => {}
            }
            let reference = cell.reference();
            let rules = self.rules_of(cell);
            let (end, newest) = match by!(rules, algorithm => algorithm.known(at, reference)) {
                Known::Until(end, newest) => (end, newest),
                Known::Unpublished => {
                    by!(rules, algorithm => algorithm.settle(at, reference, time_of(clock.now())));
                    continue;
                }
                // Either a growth that is not finished, or the head has moved.
                Known::OfAnotherRing => {
                    if head.state().is_growing() {
                        by!(rules, algorithm => algorithm.open(at));
                    }
                    continue;
                }
            };
            // What was read may be of the cell's next key.
            if !at.stands() {
                continue;
            }
            if head.state() != State::Dead && time < end {
                return Reclaimed::Live(end.min(MAX_TIME));
            }
            // Before the cell is free: whoever finds its key gone has to see it.
            self.store.raise_horizon(if head.state() == State::Dead { newest.time() } else { end });
            if head.state().is_growing() {
                by!(rules, algorithm => algorithm.empty(at, reference, newest));
                continue;
            }
            let free = head.freed();
            if at.claim(free).is_some() {
                self.release(id, newest, head.state() == State::Dead);
                return Reclaimed::Gone;
            }
        }
    }

    /// Gives back the memory of a cell whose head has just been set free by the caller.
    ///
    /// A thread that sleeps in a growth may still want to put its ring in the place of the one slot that the cell once had. That
    /// slot's stamp could return in the cell's next life if its key was forgotten and the clock stands still. Such a cell starts its
    /// next life with a ring, which is known by the reference that is left here; until stamps that are later have come and gone.
    fn release(&self, id: u32, newest: Slot, forgotten: bool) {
        let cell = self.store.cells.element(id);
        let reference = cell.reference();
        // An account that is closed has in its second word what would look like a ring.
        let is_log = !matches!(self.rules_of(cell), Rules::Counter(_));
        if is_log {
            self.store.drop_ring(reference, newest);
        }
        if reference.is_ring() && !(is_log && (forgotten || newest.is_ancient())) {
            cell.ring.store(0, Ordering::Release);
        }
        self.store.cells.give_back(id);
    }

    /// Makes a cell dead that decided for its key at this head: the key starts afresh. Says whether this call did it; if not, the cell
    /// may no longer decide for the key.
    pub(crate) fn forget_at(&self, id: u32, head: Head, clock: &impl Clock) -> bool {
        let mut at = At { cell: self.store.cells.element(id), head };
        loop {
            match at.head.state() {
                State::Free | State::Dead => return false,
                // Emptied first: whoever wants the ring to grow may be about to replace it.
                State::Growing | State::GrowingAhead | State::GoingAhead => self.empty_what_grows(at, clock),
                State::Held => self.store.help(at.head),
                // Emptied too, so that what is lost with it was not claimed in place.
                State::Ahead if !self.is_empty(at) => {
                    // Failing is as good: then its head has changed.
                    let _ = at.begin_resize(State::GrowingAhead);
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
        let known = by!(self.rules_of(at.cell), algorithm => algorithm.known(at, at.cell.reference()));
        matches!(known, Known::Until(_, newest) if newest.is_ancient())
    }

    /// Takes the next step towards a growing cell that is open again, with nothing in it unless another ring came first.
    fn empty_what_grows(&self, growing: At<'_>, clock: &impl Clock) {
        let reference = growing.cell.reference();
        by!(self.rules_of(growing.cell), algorithm => match algorithm.known(growing, reference) {
            Known::Until(_, newest) => algorithm.empty(growing, reference, newest),
            Known::Unpublished => algorithm.settle(growing, reference, time_of(clock.now())),
            Known::OfAnotherRing => algorithm.open(growing),
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

    /// The numbers of all cells that have ever been in use.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.store.cells.handed_out()).map(|number| self.store.cells.nth(number))
    }

    /// The key that the cell decides for, if it does.
    pub(crate) fn fingerprint_of(&self, id: u32) -> Option<Fingerprint> {
        self.store.cells.element_if_there(id).map(|cell| cell.key())
    }

    /// Whose the cell is in this life, unless that is over.
    pub(crate) fn fingerprint_in(&self, id: u32, life: u64) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint_of(id)?;
        // Read after the key, which acquires: see `seat_for`.
        let head = Head(self.store.cells.element(id).head.load(Ordering::Relaxed));
        (head.life() == life).then_some(fingerprint)
    }

    /// Whether a cell can be created, as far as can be told.
    pub(crate) fn has_room(&self) -> bool {
        self.store.cells.has_room()
    }

    /// The number of cells that can be created, counted up to `most`, as far as can be told.
    pub(crate) fn room_up_to(&self, most: usize) -> usize {
        self.store.cells.room_up_to(most)
    }

    /// Whether the cell is in use, and whether it has a live stamp at `time`.
    pub(crate) fn look(&self, id: u32, time: u64) -> (bool, bool) {
        self.idle_from(id, time).map_or((false, false), |(_, end)| (true, time < end))
    }

    /// The life of the cell, and the time from which on it can be reclaimed; `None` if it is free.
    /// Writes nothing. At `time` a cell that is just being claimed counts as live for one more
    /// nanosecond.
    pub(crate) fn idle_from(&self, id: u32, time: u64) -> Option<(u64, u64)> {
        let cell = self.store.cells.element_if_there(id)?;
        let claimed_now = time.saturating_add(1);
        loop {
            let at = At::now(cell);
            let head = at.head;
            let reference = cell.reference();
            match head.state() {
                State::Free => return None,
                State::Dead => return Some((head.life(), 0)),
                // A claim is being made just now.
                State::Held => return Some((head.life(), claimed_now)),
                _ => {}
            }
            // A claim that is not yet published was made just now; a ring that has just grown has live stamps.
            let end = match by!(self.rules_of(cell), algorithm => algorithm.known(at, reference)) {
                Known::Until(end, _) => end,
                Known::Unpublished | Known::OfAnotherRing => claimed_now,
            };
            if at.stands() {
                return Some((head.life(), end));
            }
        }
    }

    /// A cell for a key that holds what was kept of it `elapsed` nanoseconds ago, as far as that still matters. Nobody else knows
    /// of it until its number and life, which this gives, are published. `None` when all cells are taken.
    #[cfg(feature = "serde")]
    pub(crate) fn put_back(&self, fingerprint: Fingerprint, kept: &Kept, elapsed: u64, now: u64) -> Option<(u32, u64)> {
        let id = self.store.cells.take()?;
        let cell = self.store.cells.element(id);
        let opened = Head(cell.head.load(Ordering::Relaxed)).with_state(State::Open);
        let restored = Restored { now, elapsed };
        let (reference, head) = by!(self.rules(fingerprint), algorithm => algorithm.restore(opened, kept, restored));
        cell.give_to(fingerprint, reference, head);
        Some((id, head.life()))
    }
}

/// As models and tests of a single cell ask, which has fewer than 256 lives there.
#[cfg(test)]
impl Cells {
    /// A new cell and its life.
    pub(crate) fn create(&self, fingerprint: Fingerprint, cost: u32) -> Option<(u32, u64)> {
        self.new_cell(fingerprint, cost).map(|created| (created.id, created.head.life()))
    }

    pub(crate) fn grant(&self, id: u32, life: u64, clock: &impl Clock) {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        if head.life() == life && head.state().is_open() {
            self.publish_at(At { cell, head }, clock);
        }
    }

    pub(crate) fn reclaim(&self, id: u32, life: u64, time: u64, clock: &impl Clock) -> Reclaimed {
        self.reclaim_if(id, life, time, clock, || true)
    }

    pub(crate) fn forget(&self, id: u32, life: u64, clock: &impl Clock) -> bool {
        loop {
            let head = Head(self.store.cells.element(id).head.load(Ordering::Acquire));
            if head.life() != life || matches!(head.state(), State::Free | State::Dead) {
                return false;
            }
            if self.forget_at(id, head, clock) {
                return true;
            }
        }
    }
}
