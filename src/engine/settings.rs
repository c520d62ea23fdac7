//! [`Settings`]: the options that all builders share.

use super::body::{AtCap, Engine};
use crate::caps::{AtKeyCap, DEFAULT_KEY_CAP};
use crate::counts::Tally;
use crate::error::BuildError;
use crate::modes::ModeSettings;
use crate::observer::Observers;
use crate::quota::Quota;
use crate::quotas::{check_keys, validate};
use crate::reservation::LimiterId;
use crate::state::table::Table;

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
        self.engine(&[quotas], None, (clock, fingerprinter))
    }

    /// The engine of a limiter for one key.
    pub(crate) fn direct<C, F>(self, quotas: &[Quota], clock: C, fingerprinter: F) -> Result<Engine<C, F>, BuildError> {
        validate(quotas)?;
        self.engine(&[quotas], Some(Table::single(quotas)), (clock, fingerprinter))
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
        let quotas: Vec<&[Quota]> = quotas.iter().map(Vec::as_slice).collect();
        self.engine(&quotas, None, (clock, fingerprinter))
    }

    fn engine<C, F>(
        self,
        quotas: &[&[Quota]],
        table: Option<Table>,
        (clock, fingerprinter): (C, F),
    ) -> Result<Engine<C, F>, BuildError> {
        let Self { key_cap, expected_keys, at_key_cap, count_decisions, keys_with_quotas, modes, .. } = self;
        let key_cap = key_cap.unwrap_or(DEFAULT_KEY_CAP);
        check_keys(key_cap, expected_keys)?;
        let modes = modes.made(quotas.len(), key_cap)?;
        if keys_with_quotas > key_cap {
            return Err(BuildError::OwnQuotasPastCap { keys_with_quotas, key_cap });
        }
        let table = table.unwrap_or_else(|| Table::new(quotas, key_cap, expected_keys));
        let at_cap = AtCap::new(at_key_cap);
        let (may_have_own, tally) = (keys_with_quotas > 0, count_decisions.then(Tally::new));
        Ok(Engine { table, clock, fingerprinter, at_cap, may_have_own, tally, id: LimiterId::new(), modes })
    }
}
