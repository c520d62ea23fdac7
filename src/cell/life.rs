//! The lives of a cell: made for a key with its first permits, reclaimed when all have expired, or forgotten.

use super::memory::Cell;
use super::words::{Head, MAX_TIME, RingRef, Slot, State, time_of};
use super::{Cells, Known, Rules, Seat};
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
        let id = self.cells.take()?;
        let cell = self.cells.element(id);
        let free = Head(cell.head.load(Ordering::Relaxed));
        let (lap, cost) = (free.lap(), cost as usize);
        let mark = free.ancient_mark();
        let opened = free.with_state(State::Open);
        // See `release`.
        let slots = if RingRef(cell.ring.load(Ordering::Relaxed)).is_ring() { cost.max(2) } else { cost };
        let (reference, head) = match self.rules(fingerprint) {
            Rules::Account(books) => {
                let (head, slot) = books.first(opened, cost, mark);
                (RingRef(slot.0), head)
            }
            Rules::Log(_) if slots <= 1 => (RingRef(Slot::ancient(mark, lap).0), opened.advanced(cost, 1)),
            Rules::Log(_) => {
                let (reference, ring) = self.new_ring(false, slots, lap);
                (reference, opened.advanced(cost, ring.len()))
            }
            Rules::Steps(stepped) => self.first_steps(stepped, opened, u32::try_from(cost).unwrap_or(u32::MAX)),
        };
        // Released: see `new_ring`.
        cell.ring.store(reference.0, Ordering::Release);
        // Released: see `seat_for`.
        cell.low.store(fingerprint.low, Ordering::Release);
        cell.high.store(fingerprint.high, Ordering::Release);
        cell.head.store(head.0, Ordering::Release);
        Some(Seat { id, head, plan: fingerprint.plan(), cell })
    }

    /// Publishes the first permits of a cell that has just become known. If its head has moved, another thread has published them, or the key
    /// was forgotten.
    pub(crate) fn publish_first(&self, created: Seat<'_>, clock: &impl Clock) {
        self.publish_at(created.cell, created.head, clock);
    }

    /// Publishes the claim that led to this head, unless the head has moved.
    pub(super) fn publish_at(&self, cell: &Cell, head: Head, clock: &impl Clock) {
        if cell.head() == head {
            let reference = cell.reference();
            self.settle(cell, head, reference, time_of(clock.now()));
        }
    }

    /// Takes back a cell from [`new_cell`](Self::new_cell) that was never published.
    pub(crate) fn discard(&self, id: u32) {
        let cell = self.cells.element(id);
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
        let cell = self.cells.element(id);
        loop {
            let head = cell.head();
            if head.life() != life || !may_be() {
                return Reclaimed::Gone;
            }
            match head.state() {
                State::Free => return Reclaimed::Gone,
                State::Held => {
                    self.help(head);
                    continue;
                }
                _ => {}
            }
            let reference = cell.reference();
            let (end, newest) = match self.known_of(cell, head, reference) {
                Known::Until(end, newest) => (end, newest),
                Known::Unpublished => {
                    self.settle(cell, head, reference, time_of(clock.now()));
                    continue;
                }
                // Either a growth that is not finished, or the head has moved.
                Known::OfAnotherRing => {
                    if head.state().is_growing() {
                        self.open(cell, head);
                    }
                    continue;
                }
            };
            // What was read may be of the cell's next key.
            if !cell.stands(head) {
                continue;
            }
            if head.state() != State::Dead && time < end {
                return Reclaimed::Live(end.min(MAX_TIME));
            }
            // Before the cell is free: whoever finds its key gone has to see it.
            self.raise_horizon(if head.state() == State::Dead { newest.time() } else { end });
            if head.state().is_growing() {
                self.empty(cell, head, reference, newest);
                continue;
            }
            let free = head.freed();
            if cell.claim(head, free).is_some() {
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
        let cell = self.cells.element(id);
        let reference = cell.reference();
        // An account that is closed has in its second word what would look like a ring.
        let is_log = !matches!(self.rules_of(cell), Rules::Account(_));
        if is_log {
            self.drop_ring(reference, newest);
        }
        if reference.is_ring() && !(is_log && (forgotten || newest.is_ancient())) {
            cell.ring.store(0, Ordering::Release);
        }
        self.cells.give_back(id);
    }

    /// Makes a cell dead that decided for its key at this head: the key starts afresh. Says whether this call did it; if not, the cell
    /// may no longer decide for the key.
    pub(crate) fn forget_at(&self, id: u32, mut head: Head, clock: &impl Clock) -> bool {
        let cell = self.cells.element(id);
        loop {
            match head.state() {
                State::Free | State::Dead => return false,
                // Emptied first: whoever wants the ring to grow may be about to replace it.
                State::Growing | State::GrowingAhead | State::GoingAhead => self.empty_what_grows(cell, head, clock),
                State::Held => self.help(head),
                // Emptied too, so that what is lost with it was not claimed in place.
                State::Ahead if !self.is_empty(cell, head) => {
                    // Failing is as good: then its head has changed.
                    let _ = cell.begin_resize(head, head.with_state(State::GrowingAhead));
                }
                _ => {
                    let dead = head.with_state(State::Dead);
                    if cell.claim(head, dead).is_some() {
                        return true;
                    }
                }
            }
            let now = cell.head();
            if !head.goes_on_at(now) {
                return false;
            }
            head = now;
        }
    }

    /// Whether the ring of an open cell has never held a stamp.
    fn is_empty(&self, cell: &Cell, head: Head) -> bool {
        let reference = cell.reference();
        matches!(self.known_of(cell, head, reference), Known::Until(_, newest) if newest.is_ancient())
    }

    /// Takes the next step towards a growing cell that is open again, with nothing in it unless another ring came first.
    fn empty_what_grows(&self, cell: &Cell, growing: Head, clock: &impl Clock) {
        let reference = cell.reference();
        match self.known_of(cell, growing, reference) {
            Known::Until(_, newest) => self.empty(cell, growing, reference, newest),
            Known::Unpublished => self.settle(cell, growing, reference, time_of(clock.now())),
            Known::OfAnotherRing => self.open(cell, growing),
        }
    }

    /// Forgets whatever the cell decides for now.
    pub(crate) fn forget_any(&self, id: u32, clock: &impl Clock) {
        let Some(cell) = self.cells.element_if_there(id) else { return };
        loop {
            let head = cell.head();
            if matches!(head.state(), State::Free | State::Dead) || self.forget_at(id, head, clock) {
                return;
            }
        }
    }

    /// The numbers of all cells that have ever been in use.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.cells.handed_out()).map(|number| self.cells.nth(number))
    }

    /// The key that the cell decides for, if it does.
    pub(crate) fn fingerprint_of(&self, id: u32) -> Option<Fingerprint> {
        self.cells.element_if_there(id).map(Cell::key)
    }

    /// Whose the cell is in this life, unless that is over.
    pub(crate) fn fingerprint_in(&self, id: u32, life: u64) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint_of(id)?;
        // Read after the key, which acquires: see `seat_for`.
        let head = Head(self.cells.element(id).head.load(Ordering::Relaxed));
        (head.life() == life).then_some(fingerprint)
    }

    /// How long a key matters at most after its last permit.
    pub(crate) fn longest_window(&self) -> u64 {
        self.plans.iter().map(|plan| plan.current().plan.longest_window()).max().unwrap_or(0)
    }

    /// Whether a cell can be created, as far as can be told.
    pub(crate) fn has_room(&self) -> bool {
        self.cells.has_room()
    }

    /// The number of cells that can be created, counted up to `most`, as far as can be told.
    pub(crate) fn room_up_to(&self, most: usize) -> usize {
        self.cells.room_up_to(most)
    }

    /// Whether the cell is in use, and whether it has a live stamp at `time`.
    pub(crate) fn look(&self, id: u32, time: u64) -> (bool, bool) {
        self.idle_from(id, time).map_or((false, false), |(_, end)| (true, time < end))
    }

    /// The life of the cell, and the time from which on it can be reclaimed; `None` if it is free.
    /// Writes nothing. At `time` a cell that is just being claimed counts as live for one more
    /// nanosecond.
    pub(crate) fn idle_from(&self, id: u32, time: u64) -> Option<(u64, u64)> {
        let cell = self.cells.element_if_there(id)?;
        let claimed_now = time.saturating_add(1);
        loop {
            let head = cell.head();
            let reference = cell.reference();
            match head.state() {
                State::Free => return None,
                State::Dead => return Some((head.life(), 0)),
                // A claim is being made just now.
                State::Held => return Some((head.life(), claimed_now)),
                _ => {}
            }
            // A claim that is not yet published was made just now; a ring that has just grown has live stamps.
            let end = match self.known_of(cell, head, reference) {
                Known::Until(end, _) => end,
                Known::Unpublished | Known::OfAnotherRing => claimed_now,
            };
            if cell.stands(head) {
                return Some((head.life(), end));
            }
        }
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
        let cell = self.cells.element(id);
        let head = cell.head();
        if head.life() == life && head.state().is_open() {
            self.publish_at(cell, head, clock);
        }
    }

    pub(crate) fn reclaim(&self, id: u32, life: u64, time: u64, clock: &impl Clock) -> Reclaimed {
        self.reclaim_if(id, life, time, clock, || true)
    }

    pub(crate) fn forget(&self, id: u32, life: u64, clock: &impl Clock) -> bool {
        loop {
            let head = Head(self.cells.element(id).head.load(Ordering::Acquire));
            if head.life() != life || matches!(head.state(), State::Free | State::Dead) {
                return false;
            }
            if self.forget_at(id, head, clock) {
                return true;
            }
        }
    }
}
