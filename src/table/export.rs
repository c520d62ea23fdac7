//! Exports the permits of all keys of a table, and imports them.

use super::find::Table;
use super::index::Put;
use crate::cell::{Export, Version, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;

/// Why an import failed.
pub(crate) enum ImportError {
    /// A key's plan does not exist, or can't have produced the export.
    Contradictory,
    /// There are more keys than places.
    NoRoom,
}

impl Table {
    /// Exports each key, while other threads decide, and the version that its permits count under.
    /// A key that gets another cell meanwhile may appear twice: the last is the newer.
    pub(crate) fn export(&self, clock: &impl Clock) -> impl Iterator<Item = (Fingerprint, Export, &Version)> {
        self.cells.numbers().filter_map(move |id| self.export_of(id, clock))
    }

    /// The key of a cell and its permits. A cell that the index does not lead to belongs to an
    /// unfinished request, which may find another cell of its key: it holds no granted permits
    /// (INV-EXPORT).
    pub(super) fn export_of(&self, id: u32, clock: &impl Clock) -> Option<(Fingerprint, Export, &Version)> {
        loop {
            let fingerprint = self.cells.fingerprint_of(id)?;
            let seat = self.seat_of(fingerprint).filter(|seat| seat.id == id)?;
            if let Some(export) = self.cells.export(seat, clock) {
                return export.map(|(export, version)| (fingerprint, export, version));
            }
        }
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
        if !self.cells.can_have(fingerprint, export) {
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
            // The permits may expire before those of other keys (INV-CAP).
            self.note_idle();
            match self.insert(route, fingerprint, id, incarnation) {
                Put::Done | Put::There | Put::Other => return Ok(()),
                Put::Outdated | Put::Full => {}
            }
        }
    }
}
