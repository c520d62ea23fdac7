//! A table with one key, for limits without keys.

use crate::cell::{Scope, Unchanged, Version};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::quotas::Quotas;
use crate::table::{Placed, Refundable, Table};

/// The state of quotas without a key.
pub(crate) struct Single {
    table: Table,
}

impl Single {
    /// The one key.
    pub(crate) const KEY: Fingerprint = Fingerprint::new(0, 0);

    /// Cells of the table: one for the key, others for threads that lose the race to insert it, and
    /// for forgotten cells that are not swept yet. An unused cell takes no memory.
    pub(crate) const PLACES: usize = if cfg!(tollgate_loom) { 4 } else { 1 << 16 };

    pub(crate) fn new(quotas: &Quotas) -> Self {
        Self { table: Table::new(quotas.plan(), Self::PLACES, 0) }
    }

    pub(crate) fn acquire(&self, cost: u32, clock: &impl Clock) -> Status {
        loop {
            // There are cells enough, and each attempt sweeps a part of the index.
            if let Placed::Decided(status) = self.table.acquire(Self::KEY, cost, clock) {
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

    pub(crate) fn refund(&self, refundable: &Refundable, clock: &impl Clock) -> u32 {
        self.table.refund(refundable, clock)
    }

    pub(crate) fn peek(&self, cost: u32, clock: &impl Clock) -> Status {
        self.table.peek(Self::KEY, cost, clock)
    }

    pub(crate) fn version(&self) -> &Version {
        self.table.version(0)
    }

    pub(crate) fn change(&self, quotas: &[Quota], clock: &impl Clock) -> Result<(), Unchanged> {
        self.table.change(0, Scope::All, quotas, clock)
    }

    pub(crate) fn clear(&self, clock: &impl Clock) {
        let _ = self.table.forget(Self::KEY, clock);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }
}
