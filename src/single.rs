//! A table with one key, for limits without keys.

use crate::cell::Versions;
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::table::{Refundable, Table};

/// The state of quotas without a key.
pub(crate) struct Single {
    pub(crate) table: Table,
}

impl Single {
    /// The one key.
    pub(crate) const KEY: Fingerprint = Fingerprint::new(0, 0);

    /// Cells of the table: one for the key, others for threads that lose the race to insert it, and
    /// for forgotten cells that are not swept yet. An unused cell takes no memory.
    pub(crate) const PLACES: usize = if cfg!(tollgate_loom) { 4 } else { 1 << 16 };

    /// The quotas are validated.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        Self { table: Table::of_plans([Versions::new(quotas)].into(), Self::PLACES, 0) }
    }

    pub(crate) fn acquire(&self, cost: u32, clock: &impl Clock) -> Status {
        loop {
            // There are cells enough, and each attempt sweeps a part of the index.
            if let Ok(status) = self.table.acquire(Self::KEY, cost, clock) {
                return status;
            }
        }
    }

    /// As [`Table::acquire_within`].
    pub(crate) fn acquire_within(&self, cost: u32, within: u64, clock: &impl Clock) -> (Status, Refundable) {
        loop {
            // As above.
            if let Ok(refundable) = self.table.acquire_within(Self::KEY, cost, within, clock) {
                return refundable;
            }
        }
    }
}
