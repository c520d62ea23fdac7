//! What a claim on several cells asks of each: whether it fits, and which head follows.

use super::account::Ready;
use super::growth::Wanted;
use super::joint::Part;
use super::log::View;
use super::memory::Cell;
use super::plan::Limits;
use super::words::{Head, State, time_of};
use super::{Cells, Charged, Rules, Seat};
use crate::clock::Clock;
use crate::decision::Admission;
use crate::sync::Ordering;

/// How a part of a claim stands.
pub(crate) enum Prepared {
    /// It fits: this is what to claim, and what to say if it can be.
    Fits(Part, Admission),
    /// It is denied by now, or something had to be done first, or has changed: look again.
    Again,
}

impl Cells {
    /// Prepares to claim `cost` permits of a cell, at least 1.
    pub(crate) fn prepare(&self, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Prepared {
        let Seat { id, head, cell, .. } = seat;
        match head.state() {
            State::Open | State::Ahead => {}
            // A thread that gives something back, or refuses what counts, may have stopped halfway.
            _ if head.state().is_growing() => {}
            State::Held => {
                self.help(head);
                return Prepared::Again;
            }
            _ => return Prepared::Again,
        }
        match self.rules_at(seat) {
            Rules::Log(limits) => self.prepare_log(limits, cell, id, head, cost, clock),
            Rules::Steps(stepped) if cost > stepped.limit() => Prepared::Again,
            Rules::Steps(stepped) => self.prepare_steps(stepped, cell, id, head, cost, clock),
            Rules::Account(books) => {
                let reference = cell.reference();
                match self.account_ready(books, cell, head, reference, cost, time_of(clock.now())) {
                    Ready::Claim(next, admission, mark) => {
                        Prepared::Fits(Part { id, seen: head, next, rings: None, mark }, admission)
                    }
                    Ready::Again => Prepared::Again,
                }
            }
        }
    }

    fn prepare_log(
        &self,
        limits: &Limits,
        cell: &Cell,
        id: u32,
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Prepared {
        let Some(view) = self.log_view(limits, cell, head, clock) else { return Prepared::Again };
        if head.state().is_growing() {
            self.end_growth(limits, cell, head, &view);
            return Prepared::Again;
        }
        let View { reference, ring, newest, time, .. } = view;
        // The one slot in the cell may have been published between the two looks at it; then it is not what a larger ring
        // would replace.
        if !reference.is_ring() && reference.0 != newest.0 {
            return Prepared::Again;
        }
        let needed = cost as usize;
        if view.refusal(limits, head, needed).is_some() {
            return Prepared::Again;
        }
        let live = ring.live_at(head, limits.live_from(time));
        if live + needed > limits.limit() {
            return Prepared::Again;
        }
        let part = |next, rings, mark| Prepared::Fits(Part { id, seen: head, next, rings, mark }, Admission::COUNTED);
        if ring.len() - live >= needed {
            // Its stamp is known once it is published.
            return part(head.advanced(needed, ring.len()), None, view.floor);
        }
        let larger = self.larger_ring(cell, limits, head, reference, Wanted { needed, live, newest, time }, clock);
        part(head.with_state(State::Open).on_new_ring(), Some((reference, larger.offer)), larger.time)
    }

    /// Whether the cell has been taken back since the part was prepared.
    pub(crate) fn has_lost(&self, part: &Part) -> bool {
        Head(self.cells.element(part.id).head.load(Ordering::Acquire)).life() != part.seen.life()
    }

    /// Publishes what was claimed of a cell together with others, if nobody else has.
    pub(crate) fn publish(&self, part: &Part, clock: &impl Clock) {
        self.publish_at(self.cells.element(part.id), part.next, clock);
    }

    /// What has to be known to give back what was claimed of a cell together with others, and is published.
    pub(crate) fn charged_to(&self, part: &Part) -> Charged {
        let cell = self.cells.element(part.id);
        match self.rules_of(cell) {
            Rules::Account(books) if part.mark == 0 => books.charged(cell, part.next, None),
            Rules::Log(_) if part.rings.is_none() => self.charged_in_ring(cell, part.seen, part.mark),
            _ => Charged { head: part.next, mark: part.mark },
        }
    }
}
