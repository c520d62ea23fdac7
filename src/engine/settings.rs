//! [`Settings`]: the options that all builders share.

use super::body::{AtCap, Engine, LimiterId};
use crate::caps::{AtKeyCap, DEFAULT_KEY_CAP};
use crate::counts::Tally;
use crate::error::BuildError;
use crate::modes::ModeSettings;
use crate::observer::Observers;
use crate::quota::Quota;
use crate::quotas::check_keys;
use crate::state::table::Table;
use crate::tier::Tiers;

/// The options of a builder, except quotas, clock and fingerprinter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) key_cap: Option<usize>,
    pub(crate) expected_keys: usize,
    pub(crate) at_key_cap: AtKeyCap,
    pub(crate) count_decisions: bool,
    pub(crate) keys_with_quotas: usize,
    pub(crate) modes: ModeSettings,
    pub(crate) tiers: Vec<TierSettings>,
    pub(crate) observers: Observers,
}

/// A tier of a builder.
#[derive(Debug, Clone)]
pub(crate) struct TierSettings {
    pub(crate) dimension: usize,
    pub(crate) name: Box<str>,
    pub(crate) quotas: Vec<Quota>,
}

impl Settings {
    /// The engine of a limiter for many keys, each with these quotas, or those of its tier.
    pub(crate) fn keyed<C, F>(self, quotas: &[Quota], clock: C, fingerprinter: F) -> Result<Engine<C, F>, BuildError> {
        self.engine(&[quotas], false, &[], (clock, fingerprinter))
    }

    /// The engine of a limiter for one key.
    pub(crate) fn direct<C, F>(self, quotas: &[Quota], clock: C, fingerprinter: F) -> Result<Engine<C, F>, BuildError> {
        self.engine(&[quotas], true, &[], (clock, fingerprinter))
    }

    /// The engine of a limiter for keys of several dimensions, each with quotas of its own.
    pub(crate) fn joint<C, F>(
        self,
        quotas: &[Vec<Quota>],
        names: &[Box<str>],
        clock: C,
        fingerprinter: F,
    ) -> Result<Engine<C, F>, BuildError> {
        let of_tiers = self.tiers.iter().flat_map(|tier| &tier.quotas);
        if quotas.iter().flatten().chain(of_tiers).any(Quota::is_counting_refused) {
            return Err(BuildError::CountingRefusedAlone);
        }
        let quotas: Vec<&[Quota]> = quotas.iter().map(Vec::as_slice).collect();
        self.engine(&quotas, false, names, (clock, fingerprinter))
    }

    /// The quotas of each dimension, and of each tier.
    pub(crate) fn slots<'a>(&'a self, dimensions: &[&'a [Quota]]) -> Vec<&'a [Quota]> {
        dimensions.iter().copied().chain(self.tiers.iter().map(|tier| &*tier.quotas)).collect()
    }

    fn engine<C, F>(
        self,
        dimensions: &[&[Quota]],
        is_single: bool,
        names: &[Box<str>],
        (clock, fingerprinter): (C, F),
    ) -> Result<Engine<C, F>, BuildError> {
        let slots = self.slots(dimensions);
        slots.iter().try_for_each(|quotas| Quota::validate_all(quotas))?;
        let tiers = self.tiers.iter().map(|tier| (tier.dimension, tier.name.clone()));
        let tiers = Tiers::new(dimensions.len(), tiers.collect())?;
        let key_cap = self.key_cap.unwrap_or(DEFAULT_KEY_CAP);
        check_keys(key_cap, self.expected_keys)?;
        if self.keys_with_quotas > key_cap {
            return Err(BuildError::OwnQuotasPastCap { keys_with_quotas: self.keys_with_quotas, key_cap });
        }
        Ok(Engine {
            table: if is_single { Table::single(slots[0]) } else { Table::new(&slots, key_cap, self.expected_keys) },
            clock,
            fingerprinter,
            at_cap: AtCap::new(self.at_key_cap),
            tiers,
            may_have_own: self.keys_with_quotas > 0,
            tally: self.count_decisions.then(Tally::new),
            id: LimiterId::new(),
            modes: self.modes.made(dimensions.len(), key_cap)?,
            observers: self.observers,
            names: names.into(),
        })
    }
}
