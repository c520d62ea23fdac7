//! [`Wanted`]: what a policy says of one limiter in use.

use tollgate::{ChangeError, Clock, LiveSettings, Quota, Tier};

use crate::apply_error::ApplyError;
use crate::model::{Dimension, Policy};

/// What a policy says of one limiter.
pub(crate) struct Wanted<'a> {
    policy: &'a Policy,
    /// In the order of the limiter.
    dimensions: Vec<&'a Dimension>,
}

impl<'a> Wanted<'a> {
    /// For a limiter with dimensions of these names.
    pub(crate) fn of<'n>(policy: &'a Policy, names: impl IntoIterator<Item = &'n str>) -> Result<Self, ApplyError> {
        let of_name =
            |name: &str| policy.dimension(name).map_err(|_| ApplyError::NotInPolicy { dimension: name.to_owned() });
        Ok(Self { policy, dimensions: names.into_iter().map(of_name).collect::<Result<_, _>>()? })
    }

    /// Checks all of it. Changes nothing.
    pub(crate) fn check<C: Clock, F>(&self, settings: LiveSettings<'_, C, F>) -> Result<(), ApplyError> {
        if self.policy.store.is_some() {
            return Err(ApplyError::ForStore);
        }
        let is = settings.key_cap();
        if let Some(asked) = self.policy.key_cap.filter(|&asked| asked != is) {
            return Err(ApplyError::KeyCap { is, asked });
        }
        self.each(|at, it| settings.check_quotas(at, &it.quotas).map_err(Box::new))?;
        self.each_tier(settings, |tier, quotas| settings.check_quotas_of_tier(tier, quotas).map_err(Box::new))
    }

    /// Sets all of it. Shadow mode begins first and ends last, key by key, so that no request is denied by what
    /// either policy has in shadow mode alone.
    pub(crate) fn set<C: Clock, F>(&self, settings: LiveSettings<'_, C, F>) -> Result<(), ApplyError> {
        self.check(settings)?;
        let refused = |error: ChangeError| ApplyError::Refused { dimension: None, reason: error.to_string() };
        let percent = self.policy.enforced();
        if percent < settings.enforced_percent() {
            settings.set_enforced_percent(percent).map_err(refused)?;
        }
        self.set_shadow(settings, true)?;
        self.each(|at, it| settings.set_quotas(at, &it.quotas).map_err(Box::new))?;
        self.each_tier(settings, |tier, quotas| settings.set_quotas_of_tier(tier, quotas).map_err(Box::new))?;
        self.each(|at, it| settings.set_penalty(at, it.penalty).map_err(Box::new))?;
        self.set_shadow(settings, false)?;
        settings.set_at_key_cap(self.policy.at_key_cap.unwrap_or_default());
        settings.set_enforced_percent(percent).map_err(refused)
    }

    /// Does this with each tier that has quotas. An error names its dimension.
    fn each_tier<C: Clock, F>(
        &self,
        settings: LiveSettings<'_, C, F>,
        change: impl Fn(Tier, &[Quota]) -> Result<(), Box<ChangeError>>,
    ) -> Result<(), ApplyError> {
        for (at, it) in self.dimensions.iter().enumerate() {
            for tier in it.limited_tiers() {
                let dimension = || it.name.to_string();
                let missing = || ApplyError::NoTier { dimension: dimension(), tier: tier.name.to_string() };
                let found = settings.tier(at, &tier.name).ok_or_else(missing)?;
                change(found, &tier.quotas).map_err(|error| ApplyError::Change { dimension: dimension(), error })?;
            }
        }
        Ok(())
    }

    /// Begins the shadow mode of the dimensions that are to have it, or ends that of the others.
    fn set_shadow<C: Clock, F>(&self, settings: LiveSettings<'_, C, F>, is_on: bool) -> Result<(), ApplyError> {
        self.each(|at, it| match it.shadow == is_on {
            true => settings.set_shadow_dimension(at, is_on).map_err(Box::new),
            false => Ok(()),
        })
    }

    /// Does this with each dimension. An error names it.
    fn each(&self, change: impl Fn(usize, &Dimension) -> Result<(), Box<ChangeError>>) -> Result<(), ApplyError> {
        self.dimensions.iter().enumerate().try_for_each(|(at, it)| {
            let of_dimension = |error| ApplyError::Change { dimension: it.name.to_string(), error };
            change(at, it).map_err(of_dimension)
        })
    }
}
