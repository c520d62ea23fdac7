//! The permits of keys to a snapshot and back, under another clock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::account::{Account, STATE_BITS};
use super::cell::{Key, MAX_TIME, Word};
use super::code::{Numbers, with_algorithm};
use super::concurrency::Concurrency;
use super::log::{Layout, LogPlan};
use super::request::Seen;
use super::ring::Rings;
use super::shard::{Full, back_off};
use super::table::Table;
use crate::clock::Clock;
use crate::quota::Quota;
use crate::quotas::ChangeError;

/// The permits of a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Export {
    /// The live stamps of a log, oldest first, with the permits of each. A stamp is an age in
    /// nanoseconds. That of a quantised log is the age of the end of a step. An age is negative if the
    /// stamp is later than the clock.
    Stamps(Vec<(i64, u32)>),
    /// The state of an account, and the time at which it was read.
    Account { at: u64, state: u128 },
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
struct Import {
    /// The time now.
    now: u64,
    /// Nanoseconds since the export.
    elapsed: u64,
}

impl Import {
    /// The time of a stamp of this age. A time long past has expired under any window.
    fn time(self, age: i64) -> u64 {
        let time = i128::from(self.now) - i128::from(age) - i128::from(self.elapsed);
        u64::try_from(time.max(1)).unwrap_or(MAX_TIME).min(MAX_TIME)
    }
}

/// An algorithm whose keys go to a snapshot and back.
trait Exported {
    /// Exports the permits that still count. `None` if the word changed meanwhile.
    fn export(&self, seen: Seen<'_>) -> Option<Option<Export>>;

    /// The word of a key with these permits, new if none count. `None` if it can't have them.
    fn import(&self, rings: &Rings, export: &Export, import: Import) -> Option<Word>;
}

impl<L: Layout> Exported for LogPlan<L> {
    fn export(&self, seen: Seen<'_>) -> Option<Option<Export>> {
        let age = |time| i64::try_from(i128::from(seen.now) - i128::from(time)).unwrap_or(i64::MAX);
        let permits = self.permits(seen)?;
        let ages = || permits.iter().map(|&(time, permits)| (age(time), permits)).collect();
        Some((!permits.is_empty()).then(|| Export::Stamps(ages())))
    }

    fn import(&self, rings: &Rings, export: &Export, import: Import) -> Option<Word> {
        let Export::Stamps(ages) = export else { return None };
        let count: u64 = ages.iter().map(|&(_, permits)| u64::from(permits)).sum();
        let is_possible = count <= L::AT_ONCE.max(2 * Quota::MAX_LIMIT).into()
            && ages.iter().all(|&(_, permits)| permits <= L::AT_ONCE)
            && ages.is_sorted_by(|older, newer| older.0 >= newer.0);
        let permits = || ages.iter().map(|&(age, permits)| (import.time(age), permits)).collect::<Vec<_>>();
        is_possible.then(|| self.imported(rings, &permits(), import.now))
    }
}

impl<A: Account> Exported for A {
    fn export(&self, seen: Seen<'_>) -> Option<Option<Export>> {
        let state = seen.word.state();
        let exported = || Export::Account { at: seen.now, state: self.exported(state, seen.now) };
        Some((Account::over_at(self, state) > seen.now).then(exported))
    }

    fn import(&self, _: &Rings, export: &Export, import: Import) -> Option<Word> {
        match export {
            &Export::Account { state: 0, .. } => Some(Word::NEW),
            &Export::Account { at, state } => {
                let by = i128::from(import.now) - i128::from(import.elapsed) - i128::from(at);
                (state < 1 << STATE_BITS).then(|| Word::of(self.moved_in_time(state, by, import.now)))
            }
            Export::Stamps(ages) => self.of_stamp(import.time(ages.last()?.0)).map(Word::of),
        }
    }
}

/// No request is in flight after a restart.
impl Exported for Concurrency {
    fn export(&self, _: Seen<'_>) -> Option<Option<Export>> {
        Some(None)
    }

    fn import(&self, _: &Rings, _: &Export, _: Import) -> Option<Word> {
        None
    }
}

impl Table {
    /// The number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.plans().all.len()
    }

    /// The quotas of each group.
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

    /// Gives keys quotas of their own, before the first request: tags and valid quotas. Returns whether
    /// there can be such keys. The error is the reason why one can't have these quotas.
    pub(crate) fn import_own(&self, own: &[(u64, Vec<Quota>)], clock: &dyn Clock) -> Result<bool, ChangeError> {
        let mut of_keys = HashMap::new();
        for (tag, quotas) in own {
            let Some(key) = self.key_with_tag(*tag) else { return Ok(false) };
            ChangeError::check(&self.version(key.group()).quotas, quotas)?;
            of_keys.insert(key, &**quotas);
        }
        self.set_own(&of_keys, clock);
        Ok(true)
    }

    /// The key of this table with this tag, if there can be one.
    fn key_with_tag(&self, tag: u64) -> Option<Key> {
        Key::with_tag(tag).filter(|key| key.group() < self.groups())
    }

    /// Exports each key with its quotas, while other threads decide.
    pub(crate) fn export(&self, clock: &dyn Clock) -> BTreeMap<u64, (Export, Arc<[Quota]>)> {
        let mut exports = BTreeMap::new();
        for (with, key) in self.keys(clock) {
            let export = with.look(key, |version, seen| {
                let export = with_algorithm!(&version.plan.numbers, algorithm => algorithm.export(seen))?;
                Some((export, Arc::clone(&version.quotas)))
            });
            if let Some((Some(export), quotas)) = export {
                exports.insert(key.tag(), (export, quotas));
            }
        }
        exports
    }

    /// Imports the permits of keys, exported `elapsed` nanoseconds ago. The first import of a key
    /// counts.
    ///
    /// Exports are in the order of the table. In that order, keys pile up at the beginning of a table
    /// that is still to grow, and each is looked for past all others. So they come in another.
    pub(crate) fn import(&self, exports: &[(u64, Export)], elapsed: u64, clock: &dyn Clock) -> Result<(), ImportError> {
        spread(exports.len()).try_for_each(|index| {
            let (tag, export) = &exports[index];
            let key = self.key_with_tag(*tag).ok_or(ImportError::Contradictory)?;
            self.import_key(key, export, elapsed, clock)
        })
    }

    fn import_key(&self, key: Key, export: &Export, elapsed: u64, clock: &dyn Clock) -> Result<(), ImportError> {
        let (with, mut taken, mut lost) = (self.with(key, clock), None, 0);
        loop {
            let seat = with.seat(key, &mut taken).map_err(|Full| ImportError::NoRoom)?;
            if seat.vacant_until.is_none() {
                return Ok(());
            }
            let (plan, Seen { cell, now, .. }) = (&seat.version(key).plan, seat.seen());
            let import = Import { now, elapsed };
            let imported = with_algorithm!(&plan.numbers, algorithm => algorithm.import(cell.rings, export, import));
            let word = imported.ok_or(ImportError::Contradictory)?;
            if plan.over_at(cell, word) <= now || seat.change(key, word, None, taken.take()).swap() {
                return Ok(());
            }
            back_off(&mut lost);
        }
    }
}

/// The numbers below `count`, each once, in an order whose beginnings are spread evenly over all of
/// them: steps around a circle, by the golden ratio of it.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let divisor = |step: usize| {
        let (mut larger, mut smaller) = (count, step);
        while smaller > 0 {
            (larger, smaller) = (smaller, larger % smaller);
        }
        larger
    };
    // Without a common divisor they meet each number.
    let golden = count / 1000 * 618 + 1;
    let step = (golden..).find(|&step| divisor(step) == 1).unwrap_or(1);
    (0..count).scan(0, move |next, _| Some(core::mem::replace(next, (*next + step) % count)))
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
