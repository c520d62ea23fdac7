//! [`Snapshot`]: the state of a limiter, to bytes and back, across a restart.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cell::Export;
use crate::clock::Clock;
use crate::error::BuildError;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::quota::{Kind, Quota};
use crate::table::{ImportError, Table};

/// The state of a limiter: the live permits of each key, under the key's fingerprint.
///
/// Taking a snapshot does not stop traffic. Each key is as it was at some moment while the snapshot
/// was taken, and different keys may be of different moments. Permits that are granted later are
/// not in it. So take one when the service stops, and as often in between as a crash may cost
/// permits.
///
/// A snapshot has the ages of permits and no clock readings, so the clock may start anew.
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
#[derive(Clone, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time of the snapshot, in nanoseconds since 1970.
    pub(super) taken_at: u64,
    pub(super) secret: Option<[u64; 2]>,
    /// The fingerprint of a key that every limiter knows.
    pub(super) probe: (u64, u64),
    /// For each dimension the numbers of its quotas.
    pub(super) dimensions: Vec<Vec<Numbers>>,
    pub(super) keys: Vec<((u64, u64), Export)>,
}

const PROBE: &str = "tollgate";

impl Snapshot {
    pub(crate) fn take(
        table: &Table,
        dimensions: &[&[Quota]],
        fingerprinter: &impl Fingerprinter,
        clock: &impl Clock,
    ) -> Self {
        let Fingerprint { low, high } = fingerprinter.fingerprint(PROBE);
        // A key may appear twice. The later entry replaces the earlier.
        let keys: BTreeMap<_, _> = table.export(clock).map(|(key, export)| ((key.low, key.high), export)).collect();
        Self {
            // Read after the keys. So the ages of keys that were read early are too small by the
            // time that it took, and their permits count for longer.
            taken_at: nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            secret: fingerprinter.secret(),
            probe: (low, high),
            dimensions: dimensions.iter().map(|quotas| quotas.iter().map(numbers).collect()).collect(),
            keys: keys.into_iter().collect(),
        }
    }

    /// The number of keys that it has permits of.
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
        let Fingerprint { low, high } = fingerprinter.fingerprint(PROBE);
        if (low, high) == self.probe { Ok(fingerprinter) } else { Err(RestoreError::OtherFingerprints) }
    }

    /// Whether a limiter with these quotas can import this snapshot.
    pub(crate) fn check_quotas(&self, dimensions: &[&[Quota]]) -> Result<(), RestoreError> {
        let fits = |kept: &Vec<Numbers>, quotas: &[Quota]| {
            let log = Kind::Log.number();
            let logs =
                kept.iter().all(|quota| quota[0] == log) && quotas.iter().all(|quota| quota.kind().number() == log);
            logs || kept.iter().copied().eq(quotas.iter().map(numbers))
        };
        let same = self.dimensions.len() == dimensions.len();
        match same && self.dimensions.iter().zip(dimensions).all(|(kept, quotas)| fits(kept, quotas)) {
            true => Ok(()),
            false => Err(RestoreError::OtherQuotas),
        }
    }

    pub(crate) fn restore(&self, table: &Table, elapsed: Duration, clock: &impl Clock) -> Result<(), RestoreError> {
        for ((low, high), export) in &self.keys {
            table.import(Fingerprint::new(*low, *high), export, nanos(elapsed), clock).map_err(
                |error| match error {
                    ImportError::Contradictory => RestoreError::Contradictory,
                    ImportError::NoRoom => RestoreError::TooManyKeys { keys: self.keys.len() },
                },
            )?;
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
    /// differ. Other algorithms, their numbers, and the number of dimensions may not.
    OtherQuotas,
    /// The fingerprinter is not that of the snapshot: keys would have other fingerprints.
    OtherFingerprints,
    /// The snapshot has a key in a state that cannot exist.
    Contradictory,
    /// The snapshot has more keys than the key cap allows.
    TooManyKeys {
        /// The keys in the snapshot.
        keys: usize,
    },
}

impl core::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::OtherQuotas => f.write_str(
                "the snapshot is of other quotas: only the limits and windows of sliding window logs may change across a restart",
            ),
            Self::OtherFingerprints => {
                f.write_str("the snapshot is of another fingerprinter: give the limiter the one, with the seed, that it had")
            }
            Self::Contradictory => f.write_str("the snapshot says of a key what can't be: it was not made by this limiter"),
            Self::TooManyKeys { keys } => write!(f, "the snapshot holds {keys} keys, more than the cap: raise the cap"),
        }
    }
}

impl core::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuildError> for RestoreError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

/// A quota as numbers: its kind, limit and window, permits and period, longest delay, start and
/// phase (each plus one).
type Numbers = [u64; 8];

fn numbers(quota: &Quota) -> Numbers {
    let (permits, per, most) = match quota.kind() {
        Kind::Log | Kind::FixedWindow => (0, Duration::ZERO, Duration::ZERO),
        Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
            (permits, per, Duration::ZERO)
        }
        Kind::LeakyQueue { leak, per, max_delay } => (leak, per, max_delay),
        Kind::SlidingCounter { window } => (0, window, Duration::ZERO),
        Kind::QuantisedLog { window, resolution } => (0, window, resolution),
    };
    let start = quota.start().map_or(0, |start| u64::from(start) + 1);
    let phase = quota.phase().map_or(0, |phase| nanos(phase).saturating_add(1));
    let (limit, window) = (quota.limit().into(), nanos(quota.window()));
    [quota.kind().number(), limit, window, permits.into(), nanos(per), nanos(most), start, phase]
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
