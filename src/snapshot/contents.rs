//! [`Snapshot`]: the state of a limiter, to bytes and back, across a restart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::quotas::{Numbers, OwnQuota, compared, number, numbers};
use crate::clock::Clock;
use crate::clock::nanos;
use crate::error::BuildError;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::modes::Modes;
use crate::quota::{Algorithm, Quota};
use crate::quotas::ChangeError;
use crate::state::export::{Export, ImportError};
use crate::state::table::Table;
use crate::texts::{error_if, texts, wraps};

/// The state of a limiter: the live permits of each key, under the key's fingerprint.
///
/// - **Quotas**: it has the numbers of the quotas of all keys, to check that those of the restored
///   limiter match. After [`set_quotas`](crate::Limiter::set_quotas), build the limiter with the
///   quotas that were in force.
/// - **[Quotas of single keys](crate::Limiter::set_quotas_of)** are in it, and in force after the
///   restore. Build the limiter with [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas).
/// - **[Penalties](crate::Penalty)**: it has the blocks with their numbers, and the denials that
///   count towards one. They are left out if the restored limiter has no penalty.
/// - **Lists** of [allowed](crate::Limiter::allow) and [denied](crate::Limiter::deny) keys are
///   settings of the service and not in it: list the keys again after the restore.
///
/// Taking a snapshot does not stop traffic. Each key is as it was at some moment while the snapshot
/// was taken, and different keys may be of different moments. Permits that are granted later are
/// not in it. So take one when the service stops, and as often in between as a crash may cost
/// permits. If the quotas of all keys change meanwhile, it is taken anew.
///
/// A snapshot has the ages of permits and no clock readings, so the clock may start anew.
/// [Aligned windows](Quota::aligned), and those of a sliding window counter, begin at the same times
/// if the clock knows the wall clock. Otherwise, and with another phase, they may begin at others.
/// What has been used of a window that goes on counts until the present window of the restored
/// limiter ends: up to one window longer or shorter than before. A key with quotas of its own keeps
/// their phase.
///
/// Keys are stored as fingerprints. So a limiter with other types of keys, or with its dimensions
/// in another order, is not recognised as another: it starts with permits that belong to no key.
///
/// **Keep it private.** It has the secret seed of the fingerprints. An attacker who knows the seed
/// can make keys that share permits.
///
/// ```
/// use tollgate::{Limiter, Quota, Snapshot};
///
/// let before = Limiter::<String>::new(Quota::per_hour(1))?;
/// assert!(before.try_acquire("alice").is_admitted());
/// let bytes = before.snapshot().to_bytes();
///
/// // After a restart.
/// let snapshot = Snapshot::from_bytes(&bytes)?;
/// let after = Limiter::<String>::builder(Quota::per_hour(1)).restore(&snapshot)?;
/// assert!(after.try_acquire("alice").is_denied());
/// assert!(after.try_acquire("bob").is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With quotas of single keys and a penalty:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Penalty, Quota};
///
/// let penalty = Penalty::new(1, Duration::from_secs(60), Duration::from_secs(3600));
/// let builder = |quota| Limiter::<String>::builder(quota).keys_with_quotas(1000).penalty(penalty);
/// let before = builder(Quota::per_hour(5)).build()?;
/// before.set_quotas(&[Quota::per_hour(1)])?;
/// before.set_quotas_of("alice", &[Quota::per_hour(10)])?;
/// assert!(before.try_acquire("mallory").is_admitted());
/// assert!(before.try_acquire("mallory").is_denied(), "blocked");
///
/// let after = builder(before.quotas()[0]).restore(&before.snapshot())?;
/// assert_eq!(after.peek("alice").remaining(), 10);
/// assert!(after.peek("mallory").is_denied());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time of the snapshot, in nanoseconds since 1970.
    pub(super) taken_at: u64,
    pub(super) secret: Option<[u64; 2]>,
    pub(super) probe: (u64, u64),
    /// For each dimension, and then for each tier, the numbers of its quotas.
    pub(super) dimensions: Vec<Vec<Numbers>>,
    pub(super) keys: Exports,
    /// The quotas of keys that have quotas of their own.
    pub(super) own: Vec<(u64, Vec<OwnQuota>)>,
    /// For each dimension with a penalty, the denials and blocks of its keys.
    pub(super) penalties: Vec<(usize, Exports)>,
}

type Exports = Vec<(u64, Export)>;

/// The halves of the fingerprint of a key that every limiter knows.
fn probe(fingerprinter: &impl Fingerprinter) -> (u64, u64) {
    let Fingerprint { low, high } = fingerprinter.fingerprint("tollgate");
    (low, high)
}

impl Snapshot {
    pub(crate) fn take(
        table: &Table,
        modes: Option<&Modes>,
        fingerprinter: &impl Fingerprinter,
        clock: &impl Clock,
    ) -> Self {
        let alone = |exported: BTreeMap<u64, (Export, Arc<[Quota]>)>| -> Exports {
            exported.into_iter().map(|(tag, (export, _))| (tag, export)).collect()
        };
        let (of_all, exported) = loop {
            let of_all = table.quotas_of_slots();
            let exported = table.export(clock);
            // If quotas of all keys changed meanwhile, some keys are as under the old ones.
            if of_all == table.quotas_of_slots() {
                break (of_all, exported);
            }
        };
        let mut own = table.own_quotas();
        for (tag, (_, quotas)) in &exported {
            // The key's permits are as under the quotas that it had when it was exported.
            if own.get(tag) != Some(quotas) {
                own.remove(tag);
                if !of_all.contains(quotas) {
                    own.insert(*tag, Arc::clone(quotas));
                }
            }
        }
        let penalties = modes.into_iter().flat_map(Modes::tables_of_penalties);
        let penalties = penalties.map(|(dimension, table)| (dimension, alone(table.export(clock)))).collect();
        Self {
            // Read after the keys. So the ages of keys that were read early are too small by the
            // time that it took, and their permits count for longer.
            taken_at: nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            secret: fingerprinter.secret(),
            probe: probe(fingerprinter),
            dimensions: of_all.iter().map(|quotas| quotas.iter().map(numbers).collect()).collect(),
            keys: alone(exported),
            own: own.into_iter().map(|(key, quotas)| (key, quotas.iter().map(OwnQuota::of).collect())).collect(),
            penalties,
        }
    }

    /// The number of keys that it has permits of. Blocked keys and keys with quotas of their own do
    /// not count.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert!(limiter.snapshot().is_empty());
    /// let _ = limiter.try_acquire_many(["alice", "bob", "alice"]);
    /// assert_eq!(limiter.snapshot().len(), 2);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has permits of no key at all.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert!(limiter.snapshot().is_empty());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The time since it was taken, by the system's clock.
    ///
    /// It is zero if that clock has gone back since. Then every permit of the snapshot is restored.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let snapshot = Limiter::<String>::new(Quota::per_hour(5))?.snapshot();
    /// if snapshot.age() > Duration::from_secs(3600) {
    ///     println!("older than the window: nothing in it is live");
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn age(&self) -> Duration {
        let taken_at = UNIX_EPOCH + Duration::from_nanos(self.taken_at);
        SystemTime::now().duration_since(taken_at).unwrap_or_default()
    }

    /// The given fingerprinter, made to give keys the fingerprints of this snapshot, if it can.
    pub(crate) fn fingerprinter<F: Fingerprinter>(&self, fingerprinter: F) -> Result<F, RestoreError> {
        let fingerprinter = match self.secret {
            Some(secret) => fingerprinter.with_secret(secret),
            None => fingerprinter,
        };
        let is_same = probe(&fingerprinter) == self.probe;
        is_same.then_some(fingerprinter).ok_or(RestoreError::OtherFingerprints)
    }

    /// Whether a limiter with these quotas can import this snapshot.
    pub(crate) fn check_quotas(&self, dimensions: &[&[Quota]]) -> Result<(), RestoreError> {
        let fits = |kept: &Vec<Numbers>, quotas: &[Quota]| {
            let log = Algorithm::SlidingWindowLog;
            let logs =
                kept.iter().all(|quota| quota[0] == number(log)) && quotas.iter().all(|quota| quota.algorithm() == log);
            logs || kept.iter().copied().map(compared).eq(quotas.iter().map(numbers).map(compared))
        };
        let same = self.dimensions.len() == dimensions.len();
        let fit = same && self.dimensions.iter().zip(dimensions).all(|(kept, quotas)| fits(kept, quotas));
        fit.then_some(()).ok_or(RestoreError::OtherQuotas)
    }

    /// Gives keys of a new limiter the quotas of their own.
    pub(crate) fn restore_quotas(
        &self,
        table: &Table,
        may_have_own: bool,
        clock: &impl Clock,
    ) -> Result<(), RestoreError> {
        let Some(quotas) = self.own_quotas() else { return Err(RestoreError::Contradictory) };
        error_if! { !quotas.is_empty() && !may_have_own => RestoreError::KeysWithQuotas { keys: quotas.len() }; }
        match table.import_own(&quotas, clock) {
            Ok(true) => Ok(()),
            Err(ChangeError::OtherRefused) => Err(RestoreError::OtherQuotas),
            Ok(false) | Err(_) => Err(RestoreError::Contradictory),
        }
    }

    /// The quotas of single keys, if they can be any.
    fn own_quotas(&self) -> Option<Vec<(u64, Vec<Quota>)>> {
        let of_key = |(tag, quotas): &(u64, Vec<OwnQuota>)| {
            let quotas: Vec<Quota> = quotas.iter().map(OwnQuota::quota).collect::<Option<_>>()?;
            Quota::validate_all(&quotas).is_ok().then_some((*tag, quotas))
        };
        self.own.iter().map(of_key).collect()
    }

    /// Imports the permits of all keys, and what the limiter has penalties for.
    pub(crate) fn restore(
        &self,
        table: &Table,
        modes: Option<&Modes>,
        elapsed: Duration,
        clock: &impl Clock,
    ) -> Result<(), RestoreError> {
        let import = |table: &Table, exports: &Exports, keys: usize| {
            table.import(exports, nanos(elapsed), clock).map_err(|error| match error {
                ImportError::Contradictory => RestoreError::Contradictory,
                ImportError::NoRoom => RestoreError::TooManyKeys { keys },
            })
        };
        if self.penalties.iter().any(|(dimension, _)| *dimension >= self.dimensions.len()) {
            return Err(RestoreError::Contradictory);
        }
        import(table, &self.keys, self.keys.len())?;
        for (dimension, table) in modes.into_iter().flat_map(Modes::tables_of_penalties) {
            for (_, exports) in self.penalties.iter().filter(|(of, _)| *of == dimension) {
                // A key has a cell for its denials, and one for its block.
                import(table, exports, exports.len().div_ceil(2))?;
            }
        }
        Ok(())
    }
}

impl core::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The secret is left out.
        f.debug_struct("Snapshot").field("keys", &self.keys.len()).field("age", &self.age()).finish_non_exhaustive()
    }
}

/// Why a limiter could not be restored from a snapshot.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota, RestoreError};
///
/// let snapshot = Limiter::<String>::new(Quota::per_minute(5))?.snapshot();
/// let bucket = Quota::token_bucket(5, 1, Duration::from_secs(12));
/// let error = Limiter::<String>::builder(bucket).restore(&snapshot).unwrap_err();
/// assert_eq!(error, RestoreError::OtherQuotas);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// The limiter could not be built, for a reason that has nothing to do with the snapshot.
    Build(BuildError),
    /// The quotas are not those of the snapshot. Limits and windows of sliding window logs may
    /// differ, and phases of aligned windows. Other algorithms, their other numbers, and the number
    /// of dimensions may not. Nor, if keys have quotas of their own, whether refused requests
    /// count.
    OtherQuotas,
    /// The fingerprinter is not that of the snapshot: keys would have other fingerprints.
    OtherFingerprints,
    /// Keys in the snapshot have quotas of their own, and the limiter was not built for that: say
    /// on its builder how many keys may have, with
    /// [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas).
    KeysWithQuotas {
        /// The keys with quotas of their own.
        keys: usize,
    },
    /// The snapshot has a key in a state that cannot exist, or with quotas that it cannot have.
    Contradictory,
    /// The snapshot has more keys, or more keys with blocks or denials, than the key cap allows.
    TooManyKeys {
        /// Those keys in the snapshot; of keys with blocks or denials, at least so many.
        keys: usize,
    },
}

texts! { RestoreError {
    Build(error) => "{error}";
    OtherQuotas => "the snapshot is of other quotas: only the limits and windows of sliding window logs, and \
        phases, may change across a restart; build the limiter without it to start afresh";
    OtherFingerprints => "the snapshot is of another fingerprinter: give the limiter the one, with the seed, that it \
        had";
    KeysWithQuotas { keys } => "the snapshot has {keys} keys with quotas of their own: build the limiter with \
        `keys_with_quotas`";
    Contradictory => "the snapshot says of a key what can't be: it was not made by this limiter";
    TooManyKeys { keys } => "the snapshot holds {keys} keys, more than the cap: raise the cap";
} }

wraps! { RestoreError { Build(BuildError) } }
