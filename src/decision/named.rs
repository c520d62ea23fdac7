//! [`NamedQuotas`]: the quotas that a function with the attribute `rate_limit` is limited by.

use core::any::Any;
use std::sync::Arc;

use once_cell::race::OnceBox;

use super::denial::Denial;
use crate::quota::Quota;

/// The quotas that a function with the attribute `rate_limit` is limited by, with their names: the
/// name of a dimension, or of the function where the limiter has no dimensions.
///
/// [`Denial::named_quotas`] tells them, for answers that show the limit.
///
/// ```
/// # #[cfg(feature = "macros")]
/// # fn main() {
/// use tollgate::{Denial, Quota, rate_limit};
///
/// #[rate_limit(limit = 1, per = "1m")]
/// fn report() -> Result<(), Denial> {
///     Ok(())
/// }
///
/// assert!(report().is_ok());
/// let quotas = report().unwrap_err().named_quotas().expect("those of the function");
/// let (name, quotas) = quotas.dimensions().next().expect("one dimension");
/// assert_eq!((name, quotas), ("report", &[Quota::per_minute(1)][..]));
/// # }
/// # #[cfg(not(feature = "macros"))]
/// # fn main() {}
/// ```
pub struct NamedQuotas {
    dimensions: Box<[Named]>,
    prepared: OnceBox<Box<dyn Any + Send + Sync>>,
}

/// The name of a dimension, and its quotas.
type Named = (Box<str>, Arc<[Quota]>);

impl NamedQuotas {
    /// The name and the quotas of each dimension. [`Denial::dimension`] and [`Denial::quota`] are
    /// numbers here.
    ///
    /// ```
    /// use tollgate::NamedQuotas;
    ///
    /// fn names(quotas: &NamedQuotas) -> Vec<&str> {
    ///     quotas.dimensions().map(|(name, _)| name).collect()
    /// }
    /// # let _ = names;
    /// ```
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, &[Quota])> {
        self.dimensions.iter().map(|(name, quotas)| (&**name, &**quotas))
    }

    /// A value of these quotas that is made once, such as their texts in header fields. There is one
    /// for each list of quotas: `None` if it has another type.
    ///
    /// ```
    /// use tollgate::NamedQuotas;
    ///
    /// fn text(quotas: &'static NamedQuotas) -> Option<&'static String> {
    ///     quotas.prepared(|| format!("{quotas:?}"))
    /// }
    /// # let _ = text;
    /// ```
    pub fn prepared<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.prepared.get_or_init(|| Box::new(Box::new(make()))).downcast_ref()
    }

    #[cfg(feature = "macros")]
    fn is(&self, dimensions: &[(&str, Arc<[Quota]>)]) -> bool {
        let same = |(own, quotas): &Named, (name, others): &(&str, Arc<[Quota]>)| {
            **own == **name && (Arc::ptr_eq(quotas, others) || quotas == others)
        };
        self.dimensions.len() == dimensions.len()
            && self.dimensions.iter().zip(dimensions).all(|(own, it)| same(own, it))
    }
}

impl core::fmt::Debug for NamedQuotas {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.dimensions()).finish()
    }
}

/// The quotas of all functions, each with a list for each change of its quotas. A denial has no room
/// for more than a number here. Nothing is removed, so a number stays what it is.
static ALL: [OnceBox<NamedQuotas>; MOST] = [const { OnceBox::new() }; MOST];

/// The most lists. A denial of a function beyond them tells no quotas.
const MOST: usize = 1024;

/// The number of these quotas, from one on. Zero if there is no room.
#[cfg(feature = "macros")]
pub(crate) fn number_of(dimensions: &[(&str, Arc<[Quota]>)]) -> u16 {
    let make = || NamedQuotas {
        dimensions: dimensions.iter().map(|(name, quotas)| ((*name).into(), Arc::clone(quotas))).collect(),
        prepared: OnceBox::new(),
    };
    // An entry that another thread has taken meanwhile has other quotas, or these.
    let number = ALL.iter().position(|named| named.get_or_init(|| Box::new(make())).is(dimensions));
    number.and_then(|number| u16::try_from(number + 1).ok()).unwrap_or(0)
}

impl Denial {
    /// The quotas of the function with the attribute `rate_limit` that returns this denial. `None`
    /// for a denial of another call, and where keys may have quotas of their own or tiers.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// assert!(limiter.try_acquire().into_result().unwrap_err().named_quotas().is_none());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn named_quotas(&self) -> Option<&'static NamedQuotas> {
        ALL.get(usize::from(self.named).checked_sub(1)?)?.get()
    }
}

#[cfg(all(test, feature = "macros", not(tollgate_loom)))]
mod tests {
    use super::{ALL, MOST, number_of};
    use crate::quota::Quota;

    #[test]
    fn quotas_have_one_place_until_there_is_no_room() {
        let number = |limit: u32| number_of(&[("room", [Quota::per_day(limit)].into())]);
        let first = number(1);
        assert_eq!((number(1), number(2) > first), (first, true));
        assert_ne!(number_of(&[("another", [Quota::per_day(1)].into())]), first);
        let numbers: Vec<u16> = (1..=2_000).map(number).collect();
        assert!(numbers.contains(&1024) && numbers.ends_with(&[0]), "{numbers:?}");
        assert_eq!((numbers[0], ALL.iter().filter(|named| named.get().is_some()).count()), (first, MOST));
    }
}
