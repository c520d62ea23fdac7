//! The cells of a limiter, to a snapshot and from it.

use super::cells::{Cells, Seat, dispatch};
use super::driver::Portable;
use super::export::{Export, Import};
use super::plan::Plan;
use super::unchanged::Unchanged;
use super::versions::{Scope, Version, Versions};
use super::words::{Head, State};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::sync::Ordering;

impl Cells {
    /// Whether the key's plan exists and can have exported this.
    pub(crate) fn can_have(&self, key: Fingerprint, export: &Export) -> bool {
        self.plans.get(key.plan()).is_some_and(|plan| plan.current_for(key).plan.new_keys().can_have(export))
    }

    /// The keys with quotas of their own, and the current version of each.
    pub(crate) fn of_single_keys(&self) -> impl Iterator<Item = (Fingerprint, &Version)> {
        self.plans.iter().flat_map(Versions::of_single_keys)
    }

    /// Gives keys of existing plans quotas of their own, before any key has a cell, and makes room
    /// for what is imported.
    pub(crate) fn restore_quotas<'a>(
        &mut self,
        keys: &[(Fingerprint, Vec<Quota>)],
        exports: impl Iterator<Item = (Fingerprint, &'a Export)>,
    ) -> Result<(), Unchanged> {
        for (key, quotas) in keys {
            self.plans[key.plan()].first.plan.make_room_for(&Plan::new(quotas, None));
        }
        for (key, export) in exports {
            self.plans.get_mut(key.plan()).into_iter().for_each(|plan| plan.first.plan.make_room_for_export(export));
        }
        // As if from the beginning, so that all permits count that are imported later.
        keys.iter().try_for_each(|(key, quotas)| self.plans[key.plan()].change(Scope::Key(*key), quotas, || 0))
    }

    /// Exports the permits of a cell, if any matter, and the version that they count under. Blocks
    /// no decision. `None` if the cell may no longer decide for the key.
    pub(crate) fn export(&self, seat: Seat<'_>, clock: &impl Clock) -> Option<Option<(Export, &Version)>> {
        seat.until_some(|seat| {
            let versions = self.plans[seat.plan].for_key(|| seat.cell.key());
            let export = dispatch!(self.driver_by(versions), driver => driver.export(seat.at(), clock))?;
            Some(export.map(|export| (export, versions.current)))
        })
    }

    /// A cell for a key with the permits that were exported `elapsed` nanoseconds ago, as far as
    /// they still matter. The caller owns it until it inserts the number and incarnation that this
    /// returns. `None` if all cells are taken.
    pub(crate) fn import(
        &self,
        fingerprint: Fingerprint,
        export: &Export,
        elapsed: u64,
        now: u64,
    ) -> Option<(u32, u64)> {
        let id = self.store.cells.alloc()?;
        let cell = self.store.cells.element(id);
        let opened = Head(cell.head.load(Ordering::Relaxed)).with_state(State::Open);
        let import = Import { now, elapsed };
        let driver = self.driver_by(self.versions_of(fingerprint));
        let (reference, head) = dispatch!(driver, driver => driver.import(opened, export, import));
        cell.give_to(fingerprint, reference, head);
        Some((id, head.incarnation()))
    }
}
