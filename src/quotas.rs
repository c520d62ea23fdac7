//! The quotas of a limiter: which it may have, which it may change to ([`ChangeError`]), and `Debug`.

use core::fmt;

use crate::caps::MAX_QUOTAS;
use crate::error::{BuildError, JointError};
use crate::quota::{Algorithm, Quota};
use crate::texts::{error_if, texts};

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
        error_if! {
            quotas.is_empty() => BuildError::NoQuota;
            quotas.len() > MAX_QUOTAS => BuildError::TooManyQuotas { quotas: quotas.len(), most: MAX_QUOTAS };
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

/// Why quotas were not changed. The old ones stay in force.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ChangeError, Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
/// let bucket = Quota::token_bucket(10, 1, Duration::from_secs(1));
/// let error = limiter.set_quotas(&[bucket]).unwrap_err();
/// assert!(matches!(error, ChangeError::OtherAlgorithm { .. }));
/// assert_eq!(*limiter.quotas(), [Quota::per_minute(2)]);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// No limiter could be built with the quotas, the penalty or the percentage.
    Unusable(BuildError),
    /// The quotas are of another algorithm. Permits of one algorithm can't be counted by another:
    /// build another limiter.
    OtherAlgorithm {
        /// The algorithm that the limiter was built with.
        is: Algorithm,
        /// The algorithm of the new quotas.
        asked: Algorithm,
    },
    /// Of the new and the present quotas, one list [counts refused
    /// requests](Quota::counting_refused) and the other does not. Build another limiter.
    OtherRefused,
    /// The window or the resolution of a quantised log is another: permits that were counted in
    /// steps can't be counted in others.
    OtherSteps {
        /// The quota that there is.
        is: Quota,
    },
    /// The limiter was built without [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas).
    NoneOfItsOwn,
    /// The keys are not those of the limiter's dimensions.
    Keys(JointError),
    /// There is no such dimension.
    NoSuchDimension {
        /// The one that was asked for.
        dimension: usize,
        /// How many there are.
        dimensions: usize,
    },
}

impl ChangeError {
    /// Whether quotas can take the place of others. Both are validated.
    pub(crate) fn check(is: &[Quota], asked: &[Quota]) -> Result<(), Self> {
        let counts_refused = |quotas: &[Quota]| quotas.iter().any(Quota::is_counting_refused);
        let steps = |quota: &Quota| quota.resolution().map(|resolution| (resolution, quota.window()));
        if is[0].algorithm() != asked[0].algorithm() {
            Err(Self::OtherAlgorithm { is: is[0].algorithm(), asked: asked[0].algorithm() })
        } else if counts_refused(is) != counts_refused(asked) {
            Err(Self::OtherRefused)
        } else if steps(&is[0]) != steps(&asked[0]) {
            Err(Self::OtherSteps { is: is[0] })
        } else {
            Ok(())
        }
    }
}

texts! { ChangeError {
    Unusable(error) => "{error}";
    Keys(error) => "{error}";
    OtherAlgorithm { is, asked } => "a {is} can't become a {asked}: build another limiter for it";
    OtherRefused => "whether refused requests count can't change: build another limiter for quotas that count them \
        differently";
    OtherSteps { is } => "of a quantised log ({is}) only the limit can change: build another limiter for other steps";
    NoneOfItsOwn => "no key may have quotas of its own: say on the builder how many may, with `keys_with_quotas`";
    NoSuchDimension { dimension, dimensions } => "there is no dimension {dimension}: there are {dimensions}, counted \
        from zero";
} }

impl core::error::Error for ChangeError {}
