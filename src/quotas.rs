//! The quotas of a limiter: validation, and `Debug`.

use core::fmt;

use crate::caps::{MAX_KEY_CAP, MAX_QUOTAS};
use crate::error::BuildError;
use crate::quota::{Algorithm, Quota};

/// Validates the quotas of a key, at least one. Several quotas must be sliding window logs, which
/// share one ring of stamps.
pub(crate) fn validate(quotas: &[Quota]) -> Result<(), BuildError> {
    quotas.iter().try_for_each(Quota::validate)?;
    if quotas.is_empty() {
        return Err(BuildError::NoQuota);
    }
    if quotas.len() > MAX_QUOTAS {
        return Err(BuildError::TooManyQuotas { quotas: quotas.len(), most: MAX_QUOTAS });
    }
    let other = quotas.iter().map(Quota::algorithm).find(|&algorithm| algorithm != Algorithm::SlidingWindowLog);
    match other {
        Some(algorithm) if quotas.len() > 1 => Err(BuildError::QuotasDontCombine { algorithm }),
        _ => Ok(()),
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

/// Why quotas can't be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    OtherAlgorithm,
    OtherSteps,
    OtherRefused,
    NoneOfItsOwn,
}

impl Unchanged {
    /// Whether quotas can take the place of others. Both are validated.
    pub(crate) fn check(is: &[Quota], asked: &[Quota]) -> Result<(), Self> {
        let counts_refused = |quotas: &[Quota]| quotas.iter().any(Quota::is_counting_refused);
        let steps = |quota: &Quota| quota.resolution().map(|resolution| (resolution, quota.window()));
        if is[0].algorithm() != asked[0].algorithm() {
            Err(Self::OtherAlgorithm)
        } else if counts_refused(is) != counts_refused(asked) {
            Err(Self::OtherRefused)
        } else if steps(&is[0]) != steps(&asked[0]) {
            Err(Self::OtherSteps)
        } else {
            Ok(())
        }
    }
}
