//! Permits that can be refunded.

use super::body::{AtCap, Engine};
use crate::cell::Ask;
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::reservation::Charges;
use crate::single::Single;

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request that accepts a wait of `within` nanoseconds, and returns its charges.
    pub(crate) fn acquire_within(
        &self,
        key: Fingerprint,
        cost: u32,
        within: u64,
    ) -> Result<(Status, Charges), CostExceedsLimit> {
        let key = self.checked(key, cost)?;
        if cost == 0 {
            return Ok((self.peek(key, 0), Charges::Nothing));
        }
        if let Some(modes) = self.modes.get() {
            let mut charges = Charges::Nothing;
            let status = self.decide_in_modes(modes, key, cost, Ask::PeekReserve { within }, |clock| {
                let status;
                (status, charges) = self.ask_quota_refundable(key, cost, within, clock);
                (status, matches!(charges, Charges::One(_)))
            });
            return Ok((status, charges));
        }
        let (status, charges) = self.ask_quota_refundable(key, cost, within, &self.clock);
        self.count(status.is_admitted());
        Ok((status, charges))
    }

    pub(super) fn ask_quota_refundable(
        &self,
        key: Fingerprint,
        cost: u32,
        within: u64,
        clock: &impl Clock,
    ) -> (Status, Charges) {
        loop {
            match self.table.acquire_within(key, cost, within, clock) {
                Ok((status, refundable)) => return (status, Charges::One(refundable)),
                Err(retry_after_ns) => {
                    let mut charges = Charges::Nothing;
                    let shared = |shared: &Single| {
                        let (status, refundable) = shared.acquire_within(cost, within, clock);
                        charges = Charges::Overflow(refundable);
                        status
                    };
                    if let Some(status) = self.decide_at_cap(key, cost, retry_after_ns, shared) {
                        return (status, charges);
                    }
                }
            }
        }
    }

    /// Refunds the permits of these charges that still count, and returns how many. Of several
    /// keys, the count of the key with the most.
    pub(crate) fn refund(&self, charges: &Charges) -> u32 {
        match (charges, &self.at_cap) {
            (Charges::One(refundable), _) => self.table.refund(refundable, &self.clock),
            (Charges::Overflow(refundable), AtCap::Share(shared)) => shared.table.refund(refundable, &self.clock),
            (Charges::Several(charges), _) => {
                charges.iter().map(|refundable| self.table.refund(refundable, &self.clock)).max().unwrap_or(0)
            }
            (Charges::Overflow(_) | Charges::Nothing, _) => 0,
        }
    }
}
