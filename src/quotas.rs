//! The quotas of a limiter: validation, and `Debug`.

use core::fmt;

use crate::caps::{MAX_KEY_CAP, MAX_QUOTAS};
use crate::error::BuildError;
use crate::quota::{Algorithm, Quota};

impl Quota {
    /// Checks that a limiter can be built with these quotas on each key. Several quotas must be
    /// sliding window logs, which share one ring of stamps.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{BuildError, Quota};
    ///
    /// assert!(Quota::validate_all(&[Quota::per_second(5), Quota::per_hour(100)]).is_ok());
    /// assert_eq!(Quota::validate_all(&[]), Err(BuildError::NoQuota));
    /// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// let error = Quota::validate_all(&[Quota::per_hour(100), bucket]).unwrap_err();
    /// assert!(matches!(error, BuildError::QuotasDontCombine { .. }));
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when one of them is not [valid](Self::validate), there is none, there are too
    /// many, or they don't combine.
    pub fn validate_all(quotas: &[Self]) -> Result<(), BuildError> {
        quotas.iter().try_for_each(Self::validate)?;
        if quotas.is_empty() {
            return Err(BuildError::NoQuota);
        }
        if quotas.len() > MAX_QUOTAS {
            return Err(BuildError::TooManyQuotas { quotas: quotas.len(), most: MAX_QUOTAS });
        }
        let other = quotas.iter().map(Self::algorithm).find(|&algorithm| algorithm != Algorithm::SlidingWindowLog);
        match other {
            Some(algorithm) if quotas.len() > 1 => Err(BuildError::QuotasDontCombine { algorithm }),
            _ => Ok(()),
        }
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
