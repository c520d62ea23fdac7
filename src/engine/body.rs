//! [`Engine`]: a table, a clock, the modes, the answer at the key cap, and changes of quotas.

use core::fmt;
use std::sync::PoisonError;

use once_cell::race::OnceBox;

use crate::cell::{Scope, Unchanged, time_of};
use crate::clock::Clock;
use crate::counts::{Counts, Tally};
use crate::fingerprint::Fingerprint;
#[cfg(feature = "snapshot")]
use crate::fingerprint::Fingerprinter;
use crate::lists::Lists;
use crate::modes::Modes;
use crate::quota::Quota;
use crate::reservation::LimiterId;
use crate::single::Single;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::sync::Mutex;
use crate::sync::plain::{AtomicBool, Ordering};
use crate::table::Table;

/// A limiter whose keys are fingerprints.
pub(crate) struct Engine<C, F> {
    pub(crate) table: Table,
    pub(crate) clock: C,
    pub(crate) fingerprinter: F,
    pub(crate) at_cap: AtCap,
    /// Held while quotas change, so that the keys and the shared quota get the same changes in the
    /// same order.
    pub(super) changes: Mutex<()>,
    pub(super) tally: Option<Tally>,
    pub(crate) id: LimiterId,
    /// Shadow mode, penalties and lists, if there are any.
    pub(crate) modes: OnceBox<Modes>,
}

/// The answer to a new key at the key cap.
pub(crate) enum AtCap {
    /// Deny it, or admit it uncounted: whether to admit.
    Answer(AtomicBool),
    /// Decide by a quota that all such keys share.
    Share(Box<Single>),
    /// Try again. The limiter has one key, so there are cells enough, and each attempt sweeps a
    /// part of the index.
    Retry,
}

/// A change of the quotas of a dimension, or of one of its keys. The quotas have been validated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) dimension: usize,
    pub(crate) scope: Scope,
    pub(crate) quotas: &'a [Quota],
}

impl<C: Clock, F> Engine<C, F> {
    /// The current quotas of a dimension; dimension 0 if there are no dimensions.
    pub(crate) fn quotas(&self, dimension: usize) -> &[Quota] {
        &self.table.version(dimension).quotas
    }

    /// Makes all of these changes, of different dimensions, or none. An error has the index of the
    /// change that can't be made. Keys keep their permits. A lock makes changes serial; no decision
    /// takes it. Changes to the quotas that there are cost nothing.
    pub(crate) fn change(&self, changes: &[Change<'_>]) -> Result<(), (usize, Unchanged)> {
        if self.different(changes).next().is_none() {
            return Ok(());
        }
        let _turn = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.can_change(changes)?;
        for (at, &Change { dimension, scope, quotas }) in self.different(changes) {
            let mut changed = self.table.change(dimension, scope, quotas, &self.clock);
            if let (Ok(()), AtCap::Share(shared), Scope::All) = (changed, &self.at_cap, scope) {
                changed = shared.table.change(0, scope, quotas, &self.clock);
            }
            changed.map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Whether these changes can be made, if no others come between.
    pub(crate) fn can_change(&self, changes: &[Change<'_>]) -> Result<(), (usize, Unchanged)> {
        self.different(changes).try_for_each(|(at, &Change { dimension, scope, quotas })| {
            let versions = self.table.cells.versions(dimension);
            let can = versions.can_change(scope, quotas, || time_of(self.clock.now()));
            can.map_err(|error| (at, error))
        })
    }

    /// The changes to quotas that there are not, each with its index.
    fn different<'a>(&self, changes: &'a [Change<'a>]) -> impl Iterator<Item = (usize, &'a Change<'a>)> {
        let differs =
            |change: &Change<'_>| !self.table.cells.versions(change.dimension).are(change.scope, change.quotas);
        changes.iter().enumerate().filter(move |(_, change)| differs(change))
    }

    /// Forgets the permits of a key and ends its block. Returns whether it had either.
    pub(crate) fn forget(&self, key: Fingerprint) -> bool {
        let penalties = self.modes.get().and_then(|modes| modes.penalties(key));
        let penalised = penalties.is_some_and(|penalties| penalties.forget(key, &self.clock));
        self.table.forget(key, &self.clock) | penalised
    }

    pub(crate) fn clear(&self) {
        self.table.clear(&self.clock);
        if let Some(modes) = self.modes.get() {
            modes.all_penalties().for_each(|penalties| penalties.table.clear(&self.clock));
        }
        if let AtCap::Share(shared) = &self.at_cap {
            let _ = shared.table.forget(Single::KEY, &self.clock);
        }
    }

    /// The counts of the limiter. `own_bytes` is the size of the limiter without its heap memory.
    pub(crate) fn counts(&self, own_bytes: usize) -> Counts {
        let held = self.table.counts(&self.clock);
        let modes = self.modes.get();
        let shared =
            if let AtCap::Share(shared) = &self.at_cap { size_of::<Single>() + shared.table.bytes() } else { 0 };
        let penalties = || modes.into_iter().flat_map(Modes::all_penalties);
        Counts {
            live_keys: held.live_keys,
            cells: held.cells,
            bytes: own_bytes
                + self.table.bytes()
                + shared
                + self.tally.as_ref().map_or(0, Tally::bytes)
                + modes.map_or(0, Modes::bytes),
            decisions: self.tally.as_ref().map(Tally::totals),
            refused_at_cap: self.table.refused_at_cap(),
            overruled: modes.map_or(0, Modes::overruled),
            penalties: penalties().map(|it| it.begun()).sum(),
            penalties_refused: penalties().map(|it| it.table.refused_at_cap()).sum(),
            listed: modes.and_then(|modes| modes.lists.as_ref()).map_or(0, Lists::count),
        }
    }
}

#[cfg(feature = "snapshot")]
impl<C: Clock, F: Fingerprinter> Engine<C, F> {
    /// The snapshot of a limiter with this number of dimensions.
    pub(crate) fn snapshot(&self, dimensions: usize) -> Snapshot {
        Snapshot::take(&self.table, self.modes.get(), dimensions, &self.fingerprinter, &self.clock)
    }

    /// Imports, before the first request.
    pub(crate) fn import(&mut self, snapshot: &Snapshot, elapsed: core::time::Duration) -> Result<(), RestoreError> {
        snapshot.restore_quotas(&mut self.table)?;
        snapshot.restore(&self.table, self.modes.get(), elapsed, &self.clock)
    }
}

impl AtCap {
    pub(crate) fn admits(&self) -> bool {
        matches!(self, Self::Answer(admits) if admits.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for AtCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer(_) if self.admits() => "Admit",
            Self::Answer(_) => "Deny",
            Self::Share(_) => "Share",
            Self::Retry => "Retry",
        })
    }
}
