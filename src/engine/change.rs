//! Changes of quotas. A lock makes them serial; no decision takes it.

use std::sync::PoisonError;

use super::body::{AtCap, Engine};
use crate::cell::{Scope, Unchanged, time_of};
use crate::clock::Clock;
use crate::quota::Quota;

/// A change of the quotas of a dimension, or of one of its keys. The quotas have been validated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) dimension: usize,
    pub(crate) scope: Scope,
    pub(crate) quotas: &'a [Quota],
}

impl<C: Clock, F> Engine<C, F> {
    /// Makes all of these changes, of different dimensions, or none. An error has the index of the
    /// change that can't be made. Keys keep their permits.
    pub(crate) fn change(&self, changes: &[Change<'_>]) -> Result<(), (usize, Unchanged)> {
        let _turn = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, change) in changes.iter().enumerate() {
            let versions = self.table.cells.versions(change.dimension);
            let can = versions.can_change(change.scope, change.quotas, || time_of(self.clock.now()));
            can.map_err(|error| (at, error))?;
        }
        for (at, change) in changes.iter().enumerate() {
            self.make(*change).map_err(|error| (at, error))?;
        }
        Ok(())
    }

    fn make(&self, Change { dimension, scope, quotas }: Change<'_>) -> Result<(), Unchanged> {
        self.table.change(dimension, scope, quotas, &self.clock)?;
        match (&self.at_cap, scope) {
            (AtCap::Share(shared), Scope::All) => shared.table.change(0, Scope::All, quotas, &self.clock),
            _ => Ok(()),
        }
    }
}
