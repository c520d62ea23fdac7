//! Exports the permits of all keys of a table, and imports them.

use super::find::{Located, Table};
use super::index::Put;
use crate::cell::{Export, Unchanged, Version, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;

/// Why an import failed.
pub(crate) enum ImportError {
    /// A key's plan does not exist, or can't have produced the export.
    Contradictory,
    /// There are more keys than places.
    NoRoom,
}

impl Table {
    /// Exports each key, while other threads decide, and the version that its permits count under. A
    /// key that gets another cell meanwhile may appear twice: the last is the newer.
    pub(crate) fn export(&self, clock: &impl Clock) -> impl Iterator<Item = (Fingerprint, Export, &Version)> {
        self.cells.numbers().filter_map(move |id| self.export_of(id, clock))
    }

    /// The key of a cell and its permits. A cell that the index does not lead to belongs to an
    /// unfinished request, which may find another cell of its key: it holds no granted permits
    /// (INV-EXPORT).
    pub(super) fn export_of(&self, id: u32, clock: &impl Clock) -> Option<(Fingerprint, Export, &Version)> {
        loop {
            let fingerprint = self.cells.fingerprint_of(id)?;
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) if seat.id == id => {
                    if let Some(export) = self.cells.export(seat, clock) {
                        return export.map(|(export, version)| (fingerprint, export, version));
                    }
                }
                Located::Outdated => {}
                Located::Current(_) | Located::Old(_) | Located::Nowhere => return None,
            }
        }
    }

    /// The keys with quotas of their own, and the current version of each.
    pub(crate) fn of_single_keys(&self) -> impl Iterator<Item = (Fingerprint, &Version)> {
        self.cells.of_single_keys()
    }

    /// Gives keys of existing plans quotas of their own, before the first request, and makes room
    /// for the exports that will be imported.
    pub(crate) fn restore_quotas<'a>(
        &mut self,
        keys: &[(Fingerprint, Vec<Quota>)],
        exports: impl Iterator<Item = (Fingerprint, &'a Export)>,
    ) -> Result<(), Unchanged> {
        self.cells.restore_quotas(keys, exports)
    }

    /// Whether the key's plan can have produced this export.
    pub(crate) fn can_have(&self, fingerprint: Fingerprint, export: &Export) -> bool {
        self.cells.can_have(fingerprint, export)
    }

    /// Imports the permits of a key, exported `elapsed` nanoseconds ago. Expired permits do no
    /// harm. The first import of a key counts.
    pub(crate) fn import(
        &self,
        fingerprint: Fingerprint,
        export: &Export,
        elapsed: u64,
        clock: &impl Clock,
    ) -> Result<(), ImportError> {
        if !self.can_have(fingerprint, export) {
            return Err(ImportError::Contradictory);
        }
        loop {
            let route = self.route();
            self.sweep_some(route, clock);
            if !self.reserve(route) {
                self.make_way(route, clock);
                continue;
            }
            let time = time_of(clock.now());
            let Some((id, incarnation)) = self.cells.import(fingerprint, export, elapsed, time) else {
                self.unreserve(route);
                return Err(ImportError::NoRoom);
            };
            match self.current(route).put(fingerprint, id, incarnation, &self.cells) {
                Put::Done | Put::There => return Ok(()),
                Put::Other => {
                    self.cells.discard(id);
                    self.unreserve(route);
                    return Ok(());
                }
                Put::Outdated | Put::Full => {
                    self.cells.discard(id);
                    self.unreserve(route);
                }
            }
        }
    }
}
