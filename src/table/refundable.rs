//! Charges that can be refunded, and reservations.

use super::find::{Located, Table};
use crate::cell::{Ask, Charge};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;

/// A receipt that is fewer generations old names one incarnation of its cell by its number modulo
/// 256: a cell has at most one new incarnation per generation, from that of the charge to that of
/// the refund (INV-INCARNATION).
const PROOF: u32 = 255;

/// A charge of a key that can be refunded.
#[derive(Debug)]
pub(crate) struct Refundable {
    pub(super) fingerprint: Fingerprint,
    pub(super) charge: Charge,
    pub(super) cost: u32,
    /// The cell that was charged. Incarnations of other cells have the same numbers.
    pub(super) id: u32,
    /// The generation of the index, from before the charge.
    pub(super) generation: u32,
}

impl Table {
    /// Decides a request of `cost` permits, between 1 and the limit, that accepts a wait of
    /// `within`. An error says when there may be a place for the key.
    pub(crate) fn acquire_within(
        &self,
        fingerprint: Fingerprint,
        cost: u32,
        within: u64,
        clock: &impl Clock,
    ) -> Result<(Status, Refundable), u64> {
        let generation = self.route().generation();
        let mut made = 0;
        loop {
            let seat = self.seat(fingerprint, clock, &mut made).inspect_err(|_| self.count_refused())?;
            if let Some((status, charge)) = self.cells.decide_refundable(Ask::Reserve { within }, seat, cost, clock) {
                return Ok((status, Refundable { fingerprint, charge, cost, id: seat.id, generation }));
            }
        }
    }

    /// Refunds the permits of a charge that still count, and returns how many.
    pub(crate) fn refund(&self, refundable: &Refundable, clock: &impl Clock) -> u32 {
        loop {
            let route = self.route();
            match self.locate::<false>(route, refundable.fingerprint) {
                Located::Current(seat) | Located::Old(seat) => {
                    // The key was forgotten, and has been seen again.
                    if seat.id != refundable.id {
                        return 0;
                    }
                    let age = route.generation().wrapping_sub(refundable.generation);
                    if age >= PROOF && !self.cells.goes_on(refundable.charge, seat) {
                        return 0;
                    }
                    if let Some(given) = self.cells.refund(seat, refundable.charge, refundable.cost, clock) {
                        if given > 0 {
                            self.note_idle();
                        }
                        return given;
                    }
                }
                Located::Nowhere => return 0,
                Located::Outdated => {}
            }
        }
    }
}
