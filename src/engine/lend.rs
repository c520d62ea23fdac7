//! Permits that may be given back, of a limiter for many keys.

use core::hash::Hash;

use super::keyed::Limiter;
use super::wants::Wants;
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::keys::AsKey;
use crate::reservation::Lents;
use crate::single::Single;

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Decides a request that would wait for up to `within` nanoseconds, and says what could be given back of it.
    pub(crate) fn acquire_within(
        &self,
        key: impl AsKey<K>,
        cost: u32,
        within: u64,
    ) -> Result<(Status, Lents), CostExceedsLimit> {
        let fingerprint = self.checked(key, cost)?;
        if cost == 0 {
            return Ok((self.look_up(fingerprint, 0), Lents::Nothing));
        }
        if let Some(modes) = &self.modes {
            let mut wants = Wants::ToBeLent { within, lents: Lents::Nothing };
            let status = self.decide_in_modes(modes, fingerprint, cost, &mut wants);
            let lents = if let Wants::ToBeLent { lents, .. } = wants { lents } else { Lents::Nothing };
            return Ok((status, lents));
        }
        let (status, lents) = self.ask_quota_to_lend(fingerprint, cost, within, &self.clock);
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
        match self.table.acquire_within(key, cost, within, clock) {
            Ok((status, lent)) => (status, Lents::One(lent)),
            Err(retry_after_ns) => {
                let mut lents = Lents::Nothing;
                let shared = |overflow: &Single| {
                    let (status, lent) = overflow.acquire_within(cost, within, clock);
                    lents = Lents::Overflow(lent);
                    status
                };
                (self.decide_at_cap(cost, retry_after_ns, shared), lents)
            }
        }
    }

    pub(crate) fn give_back(&self, lents: &Lents) -> u32 {
        match (lents, &self.overflow) {
            (Lents::One(lent), _) => self.table.give_back(lent, &self.clock),
            (Lents::Overflow(lent), Some(overflow)) => overflow.give_back(lent, &self.clock),
            _ => 0,
        }
    }
}
