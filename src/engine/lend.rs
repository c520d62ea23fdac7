//! Permits that may be given back.

use super::body::{AtCap, Engine};
use super::wants::Wants;
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::reservation::Lents;
use crate::single::Single;

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request that would wait for up to `within` nanoseconds, and says what could be
    /// given back of it.
    pub(crate) fn acquire_within(
        &self,
        key: Fingerprint,
        cost: u32,
        within: u64,
    ) -> Result<(Status, Lents), CostExceedsLimit> {
        let key = self.checked(key, cost)?;
        if cost == 0 {
            return Ok((self.look(key, 0), Lents::Nothing));
        }
        if let Some(modes) = &self.modes {
            let mut wants = Wants::ToBeLent { within, lents: Lents::Nothing };
            let status = self.decide_in_modes(modes, key, cost, &mut wants);
            let lents = if let Wants::ToBeLent { lents, .. } = wants { lents } else { Lents::Nothing };
            return Ok((status, lents));
        }
        let (status, lents) = self.ask_quota_to_lend(key, cost, within, &self.clock);
        self.count(status.is_admitted());
        Ok((status, lents))
    }

    pub(super) fn ask_quota_to_lend(
        &self,
        key: Fingerprint,
        cost: u32,
        within: u64,
        clock: &impl Clock,
    ) -> (Status, Lents) {
        loop {
            match self.table.acquire_within(key, cost, within, clock) {
                Ok((status, lent)) => return (status, Lents::One(lent)),
                Err(retry_after_ns) => {
                    let mut lents = Lents::Nothing;
                    let shared = |shared: &Single| {
                        let (status, lent) = shared.acquire_within(cost, within, clock);
                        lents = Lents::Overflow(lent);
                        status
                    };
                    if let Some(status) = self.decide_at_cap(key, cost, retry_after_ns, shared) {
                        return (status, lents);
                    }
                }
            }
        }
    }

    /// Gives back what still counts of these permits. Says how many: of several keys, of the one of
    /// which most came back.
    pub(crate) fn refund(&self, lents: &Lents) -> u32 {
        match (lents, &self.at_cap) {
            (Lents::One(lent), _) => self.table.refund(lent, &self.clock),
            (Lents::Overflow(lent), AtCap::Share(shared)) => shared.refund(lent, &self.clock),
            (Lents::Several(lents), _) => {
                let given = lents.iter().map(|lent| self.table.refund(lent, &self.clock));
                given.fold(0, u32::max)
            }
            (Lents::Overflow(_) | Lents::Nothing, _) => 0,
        }
    }
}
