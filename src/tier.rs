//! [`Tier`]: a named set of quotas, which the key of a request chooses.

use crate::caps::MAX_DIMENSIONS_AND_TIERS;
use crate::error::BuildError;

/// A tier of a limiter: a named set of quotas, which the key of a request chooses.
///
/// Customers of one plan share a tier, or endpoints of one class. Each key has its own permits. The
/// tier is part of the key: a key in two tiers has permits in each, and a key that goes to another
/// tier starts there anew. Lists, penalties and [`enforced_percent`] are of the key in all tiers.
///
/// A tier costs nothing: the number of the tier is in the fingerprint of the key. A limiter has at
/// most 15 tiers; a [`JointLimiter`](crate::JointLimiter) has 16 dimensions and tiers together.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::builder(Quota::per_minute(60))
///     .tier("premium", [Quota::per_minute(600)])
///     .build()?;
/// let premium = limiter.tier("premium").unwrap();
/// assert_eq!(limiter.peek("bob").remaining(), 60);
/// assert_eq!(limiter.peek(premium.key("alice")).remaining(), 600);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// `Tier::default()` is that of keys which name none. It has the quotas of the limiter itself:
///
/// ```
/// # let builder = tollgate::Limiter::<String>::builder(tollgate::Quota::per_minute(60));
/// # let limiter = builder.build()?;
/// # let plan = "free";
/// let tier = limiter.tier(plan).unwrap_or_default();
/// assert_eq!(limiter.peek(tier.key("bob")), limiter.peek("bob"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// A tier is a number: use it with the limiter that it comes from. A request with a tier that its
/// limiter does not have panics.
///
/// [`enforced_percent`]: crate::LimiterBuilder::enforced_percent
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tier(u8);

impl Tier {
    /// The key in this tier, for every method that takes a key.
    ///
    /// `key` has any form that [`AsKey`](crate::AsKey) allows. A tuple is in the tier of its parts.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<str>::builder(Quota::per_minute(1));
    /// let limiter = builder.tier("premium", [Quota::per_minute(2)]).build()?;
    /// let premium = limiter.tier("premium").unwrap();
    ///
    /// let alice = premium.key("alice");
    /// assert!(limiter.try_acquire(alice).is_admitted());
    /// assert_eq!(limiter.peek(alice).remaining(), 1);
    /// assert!(limiter.forget(alice));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub const fn key<A>(self, key: A) -> TierKey<A> {
        TierKey { tier: self, key }
    }

    pub(crate) fn group(self) -> usize {
        self.0.into()
    }

    /// This tier, or the other if this is none.
    pub(crate) fn or(self, other: Self) -> Self {
        if self.0 == 0 { other } else { self }
    }
}

/// A key in a tier: see [`Tier::key`].
///
/// ```
/// use tollgate::{AsKey, Limiter, Quota, TierKey};
///
/// let builder = Limiter::<str>::builder(Quota::per_minute(1));
/// let limiter = builder.tier("premium", [Quota::per_minute(2)]).build()?;
/// let key: TierKey<&str> = limiter.tier("premium").unwrap().key("alice");
/// assert!(limiter.try_acquire(key).is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TierKey<A> {
    pub(crate) tier: Tier,
    pub(crate) key: A,
}

/// The tiers of a limiter. Their groups come after those of the dimensions.
#[derive(Debug)]
pub(crate) struct Tiers {
    /// The number of the limiter's dimensions.
    pub(crate) dimensions: usize,
    /// The dimension and the name of each.
    all: Box<[(usize, Box<str>)]>,
}

impl Tiers {
    /// The tiers with these dimensions and names.
    pub(crate) fn new(dimensions: usize, all: Vec<(usize, Box<str>)>) -> Result<Self, BuildError> {
        let (tiers, most) = (all.len(), MAX_DIMENSIONS_AND_TIERS - dimensions);
        if tiers > most {
            return Err(BuildError::TooManyTiers { tiers, most });
        }
        for (second, tier) in all.iter().enumerate() {
            if tier.0 >= dimensions {
                return Err(BuildError::NoSuchDimension { dimension: tier.0, dimensions });
            }
            if tier.1.trim().is_empty() {
                return Err(BuildError::EmptyTierName { tier: second });
            }
            if let Some(first) = all[..second].iter().position(|other| other == tier) {
                return Err(BuildError::RepeatedTierName { first, second });
            }
        }
        Ok(Self { dimensions, all: all.into() })
    }

    pub(crate) fn named(&self, dimension: usize, name: &str) -> Option<Tier> {
        let place = self.all.iter().position(|(of, other)| *of == dimension && **other == *name)?;
        u8::try_from(self.dimensions + place).ok().map(Tier)
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// The number of groups: dimensions, then tiers.
    pub(crate) fn groups(&self) -> usize {
        self.dimensions + self.all.len()
    }

    /// The dimension of a group.
    pub(crate) fn dimension_of(&self, group: usize) -> usize {
        group.checked_sub(self.dimensions).map_or(group, |tier| self.all[tier].0)
    }

    /// Panics if there is no tier of this group, or it is one of another dimension.
    pub(crate) fn check(&self, group: usize, dimension: Option<usize>) {
        let tier = group.checked_sub(self.dimensions).and_then(|tier| self.all.get(tier));
        let is_there = tier.is_some_and(|(of, _)| dimension.is_none_or(|dimension| *of == dimension));
        assert!(is_there, "the tier of a request is that of another limiter or dimension: use the limiter's `tier`");
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.all) + self.all.iter().map(|(_, name)| name.len()).sum::<usize>()
    }
}
