//! Permits that can be refunded.

use super::body::Engine;
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::reservation::Charges;
use crate::state::plan::Ask;

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request that accepts a wait of `within` nanoseconds, and returns its charges.
    pub(crate) fn acquire_within(
        &self,
        key: Fingerprint,
        cost: u32,
        within: u64,
    ) -> Result<(Status, Charges), CostExceedsLimit> {
        let (key, ask) = (self.checked(key, cost)?, Ask::reserve(cost, within));
        if cost == 0 {
            return Ok((self.peek(key, 0), Charges::Nothing));
        }
        if let Some(modes) = self.modes.get() {
            return Ok(self.decide_in_modes(modes, key, ask));
        }
        let (status, charges) = self.ask_quota(key, ask, &self.clock);
        self.count(status.is_admitted());
        Ok((status, charges))
    }

    /// Refunds the permits of these charges that still count, and returns how many. Of several
    /// keys, the count of the key with the most.
    pub(crate) fn refund(&self, charges: &Charges) -> u32 {
        match charges {
            Charges::Nothing => 0,
            Charges::One(refundable) => self.table.refund(refundable, &self.clock),
            Charges::Several(charges) => {
                charges.iter().map(|refundable| self.table.refund(refundable, &self.clock)).max().unwrap_or(0)
            }
        }
    }
}
