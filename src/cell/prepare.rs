//! What a claim on several cells asks of each: whether it fits, and which head follows.

use super::account::Ready;
use super::growth::Wanted;
use super::joint::Part;
use super::plan::{Limits, Plan};
use super::words::{Head, RingRef, State, time_of};
use super::{Cells, HEAD, RING, Seat};
use crate::clock::Clock;
use crate::decision::Admission;
use crate::sync::{AtomicU64, Ordering};

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
        let Seat { cell, words, .. } = seat;
        let head = Head(words[HEAD].load(Ordering::Acquire));
        if head.life() != seat.head.life() {
            return Prepared::Again;
        }
        match head.state() {
            State::Open => {}
            State::Held => {
                self.help(head);
                return Prepared::Again;
            }
            // Nothing grows by itself here.
            State::Free | State::Growing | State::Dead => return Prepared::Again,
        }
        let reference = RingRef(words[RING].load(Ordering::Acquire));
        match self.plan(seat.plan) {
            Plan::Log(limits) => self.prepare_log(limits, words, cell, head, reference, cost, clock),
            Plan::Account(metered) => {
                match self.account_ready(metered, words, head, reference, cost, time_of(clock.now())) {
                    Ready::Claim(next, admission) => {
                        Prepared::Fits(Part { cell, seen: head, next, rings: None }, admission)
                    }
                    Ready::Again => Prepared::Again,
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one cell, and what is asked of it")]
    fn prepare_log(
        &self,
        limits: &Limits,
        words: &[AtomicU64],
        cell: u32,
        head: Head,
        reference: RingRef,
        cost: u32,
        clock: &impl Clock,
    ) -> Prepared {
        let reading = time_of(clock.now());
        let ring = self.ring(words, reference);
        let Some(newest) = ring.newest(head).filter(|_| reference.epoch() == head.epoch()) else {
            self.settle(words, head, reference, reading);
            return Prepared::Again;
        };
        // The one slot in the cell may have been published between the two looks at it; then it is not what a larger ring
        // would replace.
        if !reference.is_ring() && reference.0 != newest.0 {
            return Prepared::Again;
        }
        let time = reading.max(self.floor(newest));
        let needed = cost as usize;
        if limits.refusal(ring, head, time, needed).is_some() {
            return Prepared::Again;
        }
        let live = ring.live_at(head, time, limits.window());
        if live + needed > limits.limit() {
            return Prepared::Again;
        }
        let part = |next, rings| Prepared::Fits(Part { cell, seen: head, next, rings }, Admission::COUNTED);
        if ring.len() - live >= needed {
            return part(head.advanced(needed, ring.len()), None);
        }
        let larger = self.larger_ring(words, limits, head, reference, Wanted { needed, live, newest, time }, clock);
        part(head.on_larger_ring(), Some((reference, larger.offer)))
    }

    /// Whether the cell has been taken back since the part was prepared.
    pub(crate) fn has_lost(&self, part: &Part) -> bool {
        Head(self.cells.block(part.cell)[HEAD].load(Ordering::Acquire)).life() != part.seen.life()
    }

    /// Publishes what was claimed of a cell together with others, if nobody else has.
    pub(crate) fn publish(&self, part: &Part, clock: &impl Clock) {
        let words = self.cells.block(part.cell);
        let head = Head(words[HEAD].load(Ordering::Acquire));
        if head == part.next {
            let reference = RingRef(words[RING].load(Ordering::Acquire));
            self.settle(words, head, reference, time_of(clock.now()));
        }
    }
}
