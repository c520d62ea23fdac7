//! Peeks: the answer to a request, without its charge.
//!
//! At the key cap a peek at a new key makes room as its request would, so both give the same
//! answer.

use super::find::{Located, Placed, Table};
use crate::cell::Ask;
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;

impl Table {
    /// The answer of [`acquire`](Self::acquire). Charges nothing.
    pub(crate) fn preview(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Placed {
        loop {
            if let Some(status) = self.peek_cell(fingerprint, cost, clock) {
                return Placed::Decided(status);
            }
            let made = if self.cells.has_room() { Ok(()) } else { self.make_room(1, clock) };
            match made {
                Ok(()) => return Placed::Decided(self.cells.status_of_nothing(fingerprint, cost, clock)),
                // The key may have got a place meanwhile.
                Err(_) if self.has_cell(fingerprint) => {}
                Err(retry_after_ns) => return Placed::NoRoom { retry_after_ns },
            }
        }
    }

    /// The answer of the key's cell to a request of `cost` permits; `None` if it has none. Writes
    /// nothing.
    pub(super) fn peek_cell(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<Status> {
        let fast = self.fast_peek(fingerprint, cost, clock);
        if fast.is_some() {
            return fast;
        }
        loop {
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) => {
                    let status = self.cells.decide(Ask::Peek, seat, cost, clock);
                    if status.is_some() {
                        return status;
                    }
                }
                Located::Nowhere => return None,
                Located::Outdated => {}
            }
        }
    }

    /// Whether the key has a cell.
    pub(super) fn has_cell(&self, fingerprint: Fingerprint) -> bool {
        !matches!(self.locate::<false>(self.route(), fingerprint), Located::Nowhere)
    }
}
