//! [`Wanted`]: what a policy says of one limiter in use.

use super::apply_error::ApplyError;
use super::model::{Dimension, Policy};
use crate::caps::AtKeyCap;
use crate::change::ChangeError;
use crate::clock::Clock;
use crate::engine::{Change, Engine};
use crate::modes::Modes;
use crate::penalty::{Penalties, Penalty};
use crate::quotas::Unchanged;
use crate::state::table::Scope;
use crate::sync::plain::Ordering;

/// What a policy says of one limiter.
pub(super) struct Wanted<'a> {
    policy: &'a Policy,
    /// In the order of the limiter.
    dimensions: Vec<&'a Dimension>,
}

impl<'a> Wanted<'a> {
    /// For a limiter with dimensions of these names.
    pub(super) fn of<'n>(policy: &'a Policy, names: impl IntoIterator<Item = &'n str>) -> Result<Self, ApplyError> {
        let of_name =
            |name: &str| policy.dimension(name).map_err(|_| ApplyError::NotInPolicy { dimension: name.to_owned() });
        Ok(Self { policy, dimensions: names.into_iter().map(of_name).collect::<Result<_, _>>()? })
    }

    /// Checks all of it. Changes nothing.
    pub(super) fn check<C: Clock, F>(&self, engine: &Engine<C, F>) -> Result<(), ApplyError> {
        if self.policy.store.is_some() {
            return Err(ApplyError::ForStore);
        }
        let is = engine.table.key_cap();
        if let Some(asked) = self.policy.key_cap.filter(|&asked| asked != is) {
            return Err(ApplyError::KeyCap { is, asked });
        }
        engine.can_change(&self.changes()).map_err(|(dimension, error)| self.error(engine, dimension, error))?;
        Ok(())
    }

    /// Sets all of it. Shadow mode begins first and ends last, key by key, so that no request is denied by what
    /// either policy has in shadow mode alone.
    pub(super) fn set<C: Clock, F>(&self, engine: &Engine<C, F>) -> Result<(), ApplyError> {
        let percent = self.policy.enforced();
        if percent < 100 {
            self.modes(engine).enforce_at_most(percent);
        }
        engine.change(&self.changes()).map_err(|(dimension, error)| self.error(engine, dimension, error))?;
        for (dimension, penalty) in self.penalties() {
            let there_is = engine.modes.get().and_then(|modes| modes.penalties_of(dimension));
            match (there_is, penalty) {
                (Some(there_is), _) => there_is.change(penalty, &engine.clock),
                (None, Some(penalty)) => {
                    // It was validated when the policy was read, as it was before.
                    if let Ok(penalties) = Penalties::new(penalty, engine.table.key_cap()) {
                        self.modes(engine).add_penalties(dimension, penalties);
                    }
                }
                (None, None) => {}
            }
        }
        engine.at_cap.0.store(self.policy.at_key_cap == Some(AtKeyCap::Admit), Ordering::Relaxed);
        if let Some(modes) = engine.modes.get() {
            modes.enforce(percent);
        }
        Ok(())
    }

    fn modes<'e, C, F>(&self, engine: &'e Engine<C, F>) -> &'e Modes {
        engine.modes.get_or_init(|| Box::new(Modes::none(self.dimensions.len())))
    }

    fn changes(&self) -> Vec<Change<'_>> {
        let change = |(slot, it): (usize, &&'a Dimension)| Change { slot, scope: Scope::All, quotas: &it.quotas };
        self.dimensions.iter().enumerate().map(change).collect()
    }

    fn penalties(&self) -> impl Iterator<Item = (usize, Option<Penalty>)> {
        self.dimensions.iter().map(|dimension| dimension.penalty).enumerate()
    }

    fn error<C: Clock, F>(&self, engine: &Engine<C, F>, dimension: usize, error: Unchanged) -> ApplyError {
        let Dimension { name, quotas, .. } = self.dimensions[dimension];
        let error = Box::new(ChangeError::of(error, engine.quotas(dimension), quotas));
        ApplyError::Change { dimension: name.to_string(), error }
    }
}
