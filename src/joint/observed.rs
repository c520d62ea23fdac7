//! What the observers of a limiter in several dimensions see.

use std::sync::Arc;

use super::limiter::JointLimiter;
use crate::clock::Clock;
use crate::engine::Together;
use crate::error::JointError;
use crate::fingerprint::Fingerprinter;
use crate::keys::{Dimensions, Keys};
use crate::observer::{OfDimensions, Request, Told, ToldError};

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Decides a request, and tells the observers, if there are any.
    pub(crate) fn charged<T: Told, E: ToldError + From<JointError>>(
        &self,
        keys: impl Keys<D>,
        cost: u32,
        charge: impl FnOnce(&Together) -> Result<T, E>,
    ) -> Result<T, E> {
        let fingerprints = self.hashed(&keys)?;
        if !self.observers.is_empty() {
            return self.observed(keys, fingerprints, cost, charge);
        }
        self.check_cost(&fingerprints, cost)?;
        charge(&fingerprints)
    }

    /// Decides a request with these keys, and tells the observers.
    #[cold]
    #[inline(never)]
    pub(super) fn observed<T: Told, E: ToldError + From<JointError>, A: Keys<D>>(
        &self,
        keys: A,
        fingerprints: Together,
        cost: u32,
        decide: impl FnOnce(&Together) -> Result<T, E>,
    ) -> Result<T, E> {
        let checked = self.check_cost(&fingerprints, cost).map_err(E::from);
        let answer = checked.and_then(|()| decide(&fingerprints));
        let quotas = |dimension: usize| {
            let key = fingerprints.get(dimension).copied().flatten();
            key.map_or_else(Arc::default, |key| self.engine.table.quotas_for(key))
        };
        let keys = OfDimensions::<D, A>::new(&keys);
        self.observers.tell(&Request::new(&keys, &fingerprints, &self.names, cost), &answer, quotas);
        answer
    }
}
