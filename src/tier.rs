//! [`Tiers`]: the tiers of a limiter, by their names.

use crate::caps::MAX_DIMENSIONS_AND_TIERS;
use crate::error::BuildError;
use crate::keys::Tier;
use crate::texts::error_if;

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
        error_if! { tiers > most => BuildError::TooManyTiers { tiers, most }; }
        for (second, tier) in all.iter().enumerate() {
            error_if! {
                tier.0 >= dimensions => BuildError::NoSuchDimension { dimension: tier.0, dimensions };
                tier.1.trim().is_empty() => BuildError::EmptyTierName { tier: second };
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
