//! The quotas of a limiter, validated.

use core::fmt;

use crate::caps::{MAX_KEY_CAP, MAX_QUOTAS};
use crate::cell::Versions;
use crate::error::BuildError;
use crate::quota::{Algorithm, Quota};

/// The quotas of every key, in the given order; at least one.
#[derive(Debug, Clone)]
pub(crate) struct Quotas {
    given: Box<[Quota]>,
}

impl Quotas {
    /// Validates the quotas. Several quotas must be sliding window logs, which share one ring of
    /// stamps.
    pub(crate) fn new(given: &[Quota]) -> Result<Self, BuildError> {
        for quota in given {
            quota.validate()?;
        }
        if given.is_empty() {
            return Err(BuildError::NoQuota);
        }
        if given.len() > MAX_QUOTAS {
            return Err(BuildError::TooManyQuotas { quotas: given.len(), most: MAX_QUOTAS });
        }
        let other = given.iter().map(Quota::algorithm).find(|&algorithm| algorithm != Algorithm::SlidingWindowLog);
        if let (Some(algorithm), 2..) = (other, given.len()) {
            return Err(BuildError::QuotasDontCombine { algorithm });
        }
        Ok(Self { given: given.into() })
    }

    pub(crate) fn plan(&self) -> Versions {
        Versions::new(&self.given)
    }

    /// The same, with room for this many keys that have quotas of their own.
    pub(crate) fn plan_with_own(&self, keys: usize) -> Versions {
        Versions::with_own(&self.given, keys)
    }

    /// Whether one of the quotas counts denied requests.
    pub(crate) fn count_refused(&self) -> bool {
        self.given.iter().any(Quota::is_counting_refused)
    }

    pub(crate) fn given(&self) -> &[Quota] {
        &self.given
    }
}

/// Quotas for `Debug`, each as its `Display` writes it.
pub(crate) struct Shown<'a>(pub(crate) &'a [Quota]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for quota in self.0 {
            list.entry(&format_args!("{quota}"));
        }
        list.finish()
    }
}

/// Checks the key cap and the number of expected keys.
pub(crate) fn check_keys(key_cap: usize, expected_keys: usize) -> Result<(), BuildError> {
    if key_cap == 0 {
        return Err(BuildError::ZeroKeyCap);
    }
    if key_cap > MAX_KEY_CAP {
        return Err(BuildError::KeyCapTooLarge { key_cap });
    }
    if expected_keys > key_cap {
        return Err(BuildError::ExpectedKeysPastCap { expected_keys, key_cap });
    }
    Ok(())
}
