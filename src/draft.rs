//! [`Draft`]: what a limiter is built from, with the options that the builders share.

#[cfg(feature = "snapshot")]
use core::time::Duration;

use once_cell::race::OnceBox;

use crate::caps::{AtKeyCap, DEFAULT_KEY_CAP, MAX_DIMENSIONS, MAX_KEY_CAP};
use crate::clock::Clock;
use crate::counts::Tally;
use crate::engine::{Engine, LimiterId};
use crate::error::BuildError;
#[cfg(feature = "snapshot")]
use crate::fingerprint::Fingerprinter;
use crate::modes::ModeSettings;
use crate::observer::Observers;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::{RestoreError, Snapshot};
use crate::state::table::Table;
use crate::sync::plain::AtomicBool;
use crate::texts::error_if;
use crate::tier::Tiers;

/// What a limiter is built from.
#[derive(Debug, Clone)]
pub(crate) struct Draft<C, F> {
    pub(crate) settings: Settings,
    clock: C,
    fingerprinter: F,
}

/// The options of a builder, except clock and fingerprinter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    kind: Kind,
    /// The quotas of the dimensions. A limiter that is not joint has one.
    pub(crate) quotas: Vec<Vec<Quota>>,
    /// The names of the dimensions of a joint limiter.
    names: Vec<Box<str>>,
    /// The dimensions and names of the tiers.
    tiers: Vec<(usize, Box<str>)>,
    quotas_of_tiers: Vec<Vec<Quota>>,
    pub(crate) key_cap: Option<usize>,
    pub(crate) expected_keys: usize,
    pub(crate) at_key_cap: AtKeyCap,
    pub(crate) count_decisions: bool,
    pub(crate) keys_with_quotas: usize,
    modes: Option<ModeSettings>,
    pub(crate) observers: Observers,
}

/// The kind of a limiter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Kind {
    /// It has one key.
    Direct,
    /// It has many keys, of one dimension.
    #[default]
    Keyed,
    /// Its keys are of several dimensions. What that takes is behind pointers, so that no other program
    /// has code for it.
    Joint { check: fn(&Settings) -> Result<(), BuildError>, table: fn(Table) -> Table },
}

impl<C, F> Draft<C, F> {
    pub(crate) fn new(kind: Kind, quotas: Vec<Vec<Quota>>, clock: C, fingerprinter: F) -> Self {
        Self { settings: Settings { kind, quotas, ..Settings::default() }, clock, fingerprinter }
    }

    pub(crate) fn with_clock<D>(self, clock: D) -> Draft<D, F> {
        Draft { settings: self.settings, clock, fingerprinter: self.fingerprinter }
    }

    pub(crate) fn with_fingerprinter<G>(self, fingerprinter: G) -> Draft<C, G> {
        Draft { settings: self.settings, clock: self.clock, fingerprinter }
    }

    pub(crate) fn build(self) -> Result<Engine<C, F>, BuildError>
    where
        C: Clock,
    {
        let Self { settings, clock, fingerprinter } = self;
        if let Kind::Joint { check, .. } = settings.kind {
            check(&settings)?;
        }
        let (groups, dimensions) = (settings.groups(), settings.quotas.len());
        groups.iter().try_for_each(|quotas| Quota::validate_all(quotas))?;
        let tiers = Tiers::new(dimensions, settings.tiers.clone())?;
        let key_cap = settings.checked_key_cap()?;
        // By a clock that knows no wall clock, phases count from its origin.
        let since_1970 = clock.since_1970().unwrap_or_default();
        let keyed = || Table::new(&groups, since_1970, key_cap, settings.expected_keys);
        let mut engine = Engine {
            table: match settings.kind {
                Kind::Direct => Table::single(groups[0], since_1970),
                Kind::Keyed => keyed(),
                Kind::Joint { table, .. } => table(keyed()),
            },
            clock,
            fingerprinter,
            admits_at_cap: AtomicBool::new(settings.at_key_cap == AtKeyCap::Admit),
            tiers,
            may_have_own: settings.keys_with_quotas > 0,
            tally: settings.count_decisions.then(Tally::new),
            id: LimiterId::new(),
            is_plain: AtomicBool::new(false),
            modes: settings.modes.map_or(Ok(OnceBox::new()), |modes| (modes.make)(modes, dimensions, key_cap))?,
            observers: settings.observers,
            names: settings.names.into(),
        };
        let is_plain = engine.modes.get().is_none() && engine.tally.is_none() && engine.observers.is_empty();
        *engine.is_plain.get_mut() = is_plain;
        Ok(engine)
    }
}

#[cfg(feature = "snapshot")]
impl<C: Clock, F: Fingerprinter> Draft<C, F> {
    /// Builds a limiter with the permits of a snapshot that was taken so long ago.
    pub(crate) fn restore(self, snapshot: &Snapshot, elapsed: Duration) -> Result<Engine<C, F>, RestoreError> {
        snapshot.check_quotas(&self.settings.groups())?;
        let fingerprinter = snapshot.fingerprinter(self.fingerprinter)?;
        let engine = Self { fingerprinter, ..self }.build()?;
        snapshot.restore_quotas(&engine.table, engine.may_have_own, &engine.clock)?;
        snapshot.restore(&engine.table, engine.modes.get(), elapsed, &engine.clock)?;
        Ok(engine)
    }
}

impl Settings {
    pub(crate) fn modes(&mut self) -> &mut ModeSettings {
        self.modes.get_or_insert_with(ModeSettings::none)
    }

    pub(crate) fn add_dimension(&mut self, name: impl Into<Box<str>>, quotas: impl IntoIterator<Item = Quota>) {
        self.names.push(name.into());
        self.quotas.push(quotas.into_iter().collect());
    }

    pub(crate) fn add_tier(
        &mut self,
        dimension: usize,
        name: impl Into<Box<str>>,
        quotas: impl IntoIterator<Item = Quota>,
    ) {
        self.tiers.push((dimension, name.into()));
        self.quotas_of_tiers.push(quotas.into_iter().collect());
    }

    /// The quotas of each dimension, and of each tier.
    fn groups(&self) -> Vec<&[Quota]> {
        self.quotas.iter().chain(&self.quotas_of_tiers).map(Vec::as_slice).collect()
    }

    /// Checks the dimensions of a joint limiter: their number, which its type may name, that their
    /// names differ, and that no quota counts refused requests.
    pub(crate) fn check_dimensions(&self, named: Option<usize>) -> Result<(), BuildError> {
        let (given, most) = (self.names.len(), MAX_DIMENSIONS);
        error_if! { !(1..=most).contains(&given) => BuildError::DimensionCount { dimensions: given, most }; }
        if let Some(named) = named.filter(|&named| named != given) {
            return Err(BuildError::OtherDimensionCount { given, named });
        }
        for (second, name) in self.names.iter().enumerate() {
            error_if! { name.trim().is_empty() => BuildError::EmptyDimensionName { dimension: second }; }
            if let Some(first) = self.names[..second].iter().position(|other| other == name) {
                return Err(BuildError::RepeatedDimensionName { first, second });
            }
        }
        let counts_refused = self.groups().into_iter().flatten().any(Quota::is_counting_refused);
        if counts_refused { Err(BuildError::CountingRefusedAlone) } else { Ok(()) }
    }

    /// The key cap, under which the expected keys and those with quotas of their own fit.
    fn checked_key_cap(&self) -> Result<usize, BuildError> {
        let Self { expected_keys, keys_with_quotas, .. } = *self;
        match self.key_cap.unwrap_or(DEFAULT_KEY_CAP) {
            0 => Err(BuildError::ZeroKeyCap),
            key_cap if key_cap > MAX_KEY_CAP => Err(BuildError::KeyCapTooLarge { key_cap }),
            key_cap if expected_keys > key_cap => Err(BuildError::ExpectedKeysPastCap { expected_keys, key_cap }),
            key_cap if keys_with_quotas > key_cap => Err(BuildError::OwnQuotasPastCap { keys_with_quotas, key_cap }),
            key_cap => Ok(key_cap),
        }
    }
}

/// Setters of a builder, in short: each takes the builder, changes a setting, and gives it back.
macro_rules! setters {
    ($(
        $(#[$doc:meta])*
        $public:vis fn $name:ident($($argument:ident: $type:ty),+) { settings.$($change:tt)+ }
    )+) => { $(
        $(#[$doc])*
        $public fn $name(mut self, $($argument: $type),+) -> Self {
            self.draft.settings.$($change)+;
            self
        }
    )+ };
}

pub(crate) use setters;
