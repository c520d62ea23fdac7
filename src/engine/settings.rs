//! [`Settings`]: the options that all builders share.

use super::body::{AtCap, Engine};
use crate::caps::{AtKeyCap, DEFAULT_KEY_CAP};
use crate::cell::Versions;
use crate::counts::Tally;
use crate::error::BuildError;
use crate::modes::ModeSettings;
use crate::observer::Observers;
use crate::quota::Quota;
use crate::quotas::{check_keys, validate};
use crate::reservation::LimiterId;
use crate::single::Single;
use crate::sync::Mutex;
use crate::sync::plain::AtomicBool;
use crate::table::Table;

/// The options of a builder, except quotas, clock and fingerprinter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) key_cap: Option<usize>,
    pub(crate) expected_keys: usize,
    pub(crate) at_key_cap: AtKeyCap,
    pub(crate) count_decisions: bool,
    pub(crate) keys_with_quotas: usize,
    pub(crate) modes: ModeSettings,
    /// They are of the limiter, and no part of the engine.
    pub(crate) observers: Observers,
}

impl Settings {
    /// The engine of a limiter for many keys, each with these quotas.
    pub(crate) fn keyed<C, F>(self, quotas: &[Quota], clock: C, fingerprinter: F) -> Result<Engine<C, F>, BuildError> {
        validate(quotas)?;
        let at_cap = match self.at_key_cap {
            AtKeyCap::Deny => AtCap::Answer(AtomicBool::new(false)),
            AtKeyCap::Admit => AtCap::Answer(AtomicBool::new(true)),
            AtKeyCap::Share => AtCap::Share(Box::new(Single::new(quotas))),
        };
        self.engine(&[quotas], Table::of_plans, at_cap, (clock, fingerprinter))
    }

    /// The engine of a limiter for one key.
    pub(crate) fn direct<C, F>(self, quotas: &[Quota], clock: C, fingerprinter: F) -> Result<Engine<C, F>, BuildError> {
        validate(quotas)?;
        let settings = Self { key_cap: Some(Single::PLACES), ..self };
        settings.engine(&[quotas], Table::of_plans, AtCap::Retry, (clock, fingerprinter))
    }

    /// The engine of a limiter for keys of several dimensions, each with quotas of its own.
    pub(crate) fn joint<C, F>(
        self,
        quotas: &[Vec<Quota>],
        clock: C,
        fingerprinter: F,
    ) -> Result<Engine<C, F>, BuildError> {
        quotas.iter().try_for_each(|quotas| validate(quotas))?;
        if quotas.iter().flatten().any(Quota::is_counting_refused) {
            return Err(BuildError::CountingRefusedAlone);
        }
        let at_cap = match self.at_key_cap {
            AtKeyCap::Deny => AtCap::Answer(AtomicBool::new(false)),
            AtKeyCap::Admit => AtCap::Answer(AtomicBool::new(true)),
            AtKeyCap::Share => return Err(BuildError::NothingToShare),
        };
        self.engine(quotas, Table::together, at_cap, (clock, fingerprinter))
    }

    fn engine<C, F>(
        self,
        quotas: &[impl AsRef<[Quota]>],
        table: fn(Box<[Versions]>, usize, usize) -> Table,
        at_cap: AtCap,
        (clock, fingerprinter): (C, F),
    ) -> Result<Engine<C, F>, BuildError> {
        let Self { key_cap, expected_keys, count_decisions, keys_with_quotas, modes, .. } = self;
        let key_cap = key_cap.unwrap_or(DEFAULT_KEY_CAP);
        check_keys(key_cap, expected_keys)?;
        let modes = modes.made(quotas.len(), key_cap)?;
        if keys_with_quotas > key_cap {
            return Err(BuildError::OwnQuotasPastCap { keys_with_quotas, key_cap });
        }
        let plans = quotas.iter().map(|quotas| Versions::with_own(quotas.as_ref(), keys_with_quotas)).collect();
        let (table, tally) = (table(plans, key_cap, expected_keys), count_decisions.then(Tally::new));
        Ok(Engine { table, clock, fingerprinter, at_cap, changes: Mutex::new(()), tally, id: LimiterId::new(), modes })
    }
}
