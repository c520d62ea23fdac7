//! The permits of keys to a snapshot and back, under another clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::{Account, STATE_BITS};
use super::key::Key;
use super::plan::Plan;
use super::request::Seen;
use super::ring::Rings;
use super::table::Table;
use super::word::{MAX_TIME, Word};
use crate::clock::Clock;
use crate::quota::Quota;
use crate::quotas::ChangeError;

/// The permits of a key. Ages are in nanoseconds, and negative if a clock lags behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Export {
    /// The ages of the live stamps of a log, oldest first.
    Stamps(Vec<i64>),
    /// The state of an account, and the time at which it was read.
    Account { at: u64, state: u128 },
    /// The steps of a quantised log, oldest first: the age of each one's end, and its permits.
    Steps(Vec<(i64, u32)>),
}

/// Why an import failed.
#[derive(Debug)]
pub(crate) enum ImportError {
    /// The key's quotas can't have produced the export.
    Contradictory,
    /// There are more keys than places.
    NoRoom,
}

/// The time of an export, by the clock of the import.
#[derive(Clone, Copy)]
pub(super) struct Import {
    /// The time now.
    pub(super) now: u64,
    /// Nanoseconds since the export.
    pub(super) elapsed: u64,
}

impl Import {
    /// The time of an age. A time long past has expired under any window.
    pub(super) fn at(self, age: i64) -> u64 {
        let time = i128::from(self.now) - i128::from(age) - i128::from(self.elapsed);
        u64::try_from(time.max(1)).unwrap_or(MAX_TIME).min(MAX_TIME)
    }

    /// Permits with their times. `None` if they are more than a log of the largest limit has.
    fn permits(self, ages: impl Iterator<Item = (i64, u32)> + Clone, limit: u32) -> Option<Vec<(u64, u32)>> {
        let count: u64 = ages.clone().map(|(_, permits)| u64::from(permits)).sum();
        let is_possible =
            count <= 2 * u64::from(limit) && ages.clone().is_sorted_by(|(older, _), (newer, _)| older >= newer);
        is_possible.then(|| ages.map(|(age, permits)| (self.at(age), permits)).collect())
    }
}

/// The age of a time.
pub(super) fn age(now: u64, time: u64) -> i64 {
    i64::try_from(i128::from(now) - i128::from(time)).unwrap_or(i64::MAX)
}

impl Plan {
    /// Exports the permits that still count. `None` if the word changed meanwhile.
    fn export(&self, seen: Seen<'_>) -> Option<Option<Export>> {
        Some(match self {
            Self::Log(log) => {
                let permits = log.permits(seen)?;
                let ages = || permits.iter().map(|&(time, _)| age(seen.now, time)).collect();
                (!permits.is_empty()).then(|| Export::Stamps(ages()))
            }
            Self::QuantisedLog(log) => {
                let permits = log.permits(seen)?;
                let ages = || permits.iter().map(|&(time, permits)| (age(seen.now, time), permits)).collect();
                (!permits.is_empty()).then(|| Export::Steps(ages()))
            }
            Self::Account(account) => {
                let state = seen.word.state();
                (account.over_at(state) > seen.now).then_some(Export::Account { at: seen.now, state })
            }
        })
    }

    /// The word of a key with these permits, new if none count. `None` if it can't have them.
    fn import(&self, rings: &Rings, export: &Export, import: Import) -> Option<Word> {
        match (self, export) {
            (Self::Log(log), Export::Stamps(ages)) => {
                let permits = import.permits(ages.iter().map(|&age| (age, 1)), Quota::MAX_LIMIT)?;
                Some(log.imported(rings, &permits, import.now))
            }
            (Self::QuantisedLog(log), Export::Steps(steps)) => {
                let permits = import.permits(steps.iter().copied(), Quota::MAX_CAPACITY)?;
                Some(log.imported(rings, &permits, import.now))
            }
            (Self::Account(account), &Export::Account { at, state }) if state < 1 << STATE_BITS => {
                let by = i128::from(import.now) - i128::from(import.elapsed) - i128::from(at);
                let state = account.moved_in_time(state, by, import.now);
                Some(if account.over_at(state) > import.now { Word::of(state) } else { Word::NEW })
            }
            _ => None,
        }
    }
}

impl Table {
    /// The number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.plans().all.len()
    }

    /// The quotas of each slot.
    pub(crate) fn quotas_of_slots(&self) -> Vec<Arc<[Quota]>> {
        self.plans().all.iter().map(|version| Arc::clone(&version.quotas)).collect()
    }

    /// The keys with quotas of their own, and these.
    pub(crate) fn own_quotas(&self) -> BTreeMap<u64, Arc<[Quota]>> {
        let mut all = BTreeMap::new();
        for plans in self.shards().iter().map(|shard| shard.plans()) {
            let own = plans.own.iter().flat_map(|own| own.iter());
            all.extend(own.map(|(key, version)| (key.tag(), Arc::clone(&version.quotas))));
        }
        all
    }

    /// Gives a key quotas of its own, before the first request. Returns whether there can be such a
    /// key. The error is the reason why it can't have these quotas.
    pub(crate) fn import_own(&self, tag: u64, quotas: &[Quota], clock: &impl Clock) -> Result<bool, ChangeError> {
        let Some(key) = Key::with_tag(tag).filter(|key| key.slot() < self.slots()) else { return Ok(false) };
        ChangeError::check(&self.version(key.slot()).quotas, quotas)?;
        self.change_own(key, quotas, clock);
        Ok(true)
    }

    /// Exports each key with its quotas, while other threads decide.
    pub(crate) fn export(&self, clock: &impl Clock) -> BTreeMap<u64, (Export, Arc<[Quota]>)> {
        let mut exports = BTreeMap::new();
        for shard in self.shards() {
            for key in shard.keys() {
                let export = self
                    .with_shard(shard, clock)
                    .look(key, |version, seen| Some((version.plan.export(seen)?, Arc::clone(&version.quotas))));
                if let Some((Some(export), quotas)) = export {
                    exports.insert(key.tag(), (export, quotas));
                }
            }
        }
        exports
    }

    /// Imports the permits of a key, exported `elapsed` nanoseconds ago. The first import of a key
    /// counts.
    pub(crate) fn import(
        &self,
        tag: u64,
        export: &Export,
        elapsed: u64,
        clock: &impl Clock,
    ) -> Result<(), ImportError> {
        let key = Key::with_tag(tag).filter(|key| key.slot() < self.slots()).ok_or(ImportError::Contradictory)?;
        let imported = self.with(key, clock).change(key, |seat| {
            if seat.vacant_until.is_none() {
                return Some((None, Ok(())));
            }
            let (plan, Seen { place, now, .. }) = (&seat.version(key).plan, seat.seen());
            Some(match plan.import(place.rings, export, Import { now, elapsed }) {
                Some(word) => ((word != Word::NEW).then_some(word), Ok(())),
                None => (None, Err(ImportError::Contradictory)),
            })
        });
        imported.unwrap_or(Err(ImportError::NoRoom))
    }
}
