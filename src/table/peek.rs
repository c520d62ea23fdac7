//! Peeks: the answer to a request, without its charge.
//!
//! At the key cap a peek at a new key makes room as its request would, so both give the same
//! answer.

use super::find::Table;
use crate::cell::Ask;
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;

impl Table {
    /// The answer of [`acquire`](Self::acquire). Charges nothing.
    pub(crate) fn preview(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Result<Status, u64> {
        loop {
            if let Some(status) = self.peek_cell(fingerprint, cost, clock) {
                return Ok(status);
            }
            let made = if self.cells.has_room() { Ok(()) } else { self.make_room(1, clock) };
            match made {
                Ok(()) => return Ok(self.cells.status_of_nothing(fingerprint, cost, clock)),
                // The key may have got a place meanwhile.
                Err(_) if self.seat_of(fingerprint).is_some() => {}
                Err(retry_after_ns) => return Err(retry_after_ns),
            }
        }
    }

    /// The answer of the key's cell to a request of `cost` permits; `None` if it has none. Writes
    /// nothing.
    pub(super) fn peek_cell(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<Status> {
        let mut status = self.fast_peek(fingerprint, cost, clock);
        while status.is_none() {
            status = self.cells.decide(Ask::Peek, self.seat_of(fingerprint)?, cost, clock);
        }
        status
    }
}
