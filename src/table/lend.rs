//! Permits that may be given back, and permits that are reserved.

use super::find::{Located, Table};
use crate::cell::{Ask, Charged};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;

/// Permits of a key that may be given back.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(super) fingerprint: Fingerprint,
    pub(super) charged: Charged,
    pub(super) cost: u32,
    /// Where they were charged. Lives of other cells have the same numbers.
    pub(super) id: u32,
}

impl Table {
    /// Decides a request of `cost` permits, between 1 and the limit, that would wait for up to `within` nanoseconds. An error says
    /// how long until there may be a place for the key.
    pub(crate) fn acquire_within(
        &self,
        fingerprint: Fingerprint,
        cost: u32,
        within: u64,
        clock: &impl Clock,
    ) -> Result<(Status, Lent), u64> {
        loop {
            let seat = self.seat(fingerprint, clock).inspect_err(|_| self.count_refused())?;
            if let Some((status, charged)) = self.cells.decide_to_lend(Ask::Reserve { within }, seat, cost, clock) {
                return Ok((status, Lent { fingerprint, charged, cost, id: seat.id }));
            }
        }
    }

    /// Gives back what still counts of these permits, and says how many those were.
    pub(crate) fn give_back(&self, lent: &Lent, clock: &impl Clock) -> u32 {
        loop {
            match self.locate::<false>(self.route(), lent.fingerprint) {
                Located::Current(seat) | Located::Old(seat) => {
                    // The key was forgotten, and has been seen again.
                    if seat.id != lent.id {
                        return 0;
                    }
                    if let Some(given) = self.cells.give_back(seat, lent.charged, lent.cost, clock) {
                        // Its cell may be idle sooner than a sweep has noted.
                        self.turns.note_forgotten();
                        return given;
                    }
                }
                Located::Nowhere => return 0,
                Located::Outdated => {}
            }
        }
    }
}
