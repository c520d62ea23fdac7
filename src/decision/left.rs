//! The permits left of each quota of a key.

use crate::caps::MAX_QUOTAS;

/// The permits left of one quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) next_after_ns: u64,
    pub(crate) reset_after_ns: u64,
}

impl Left {
    const NOTHING: Self = Self { limit: 0, remaining: 0, next_after_ns: 0, reset_after_ns: 0 };

    /// All permits are left.
    pub(crate) const fn all(limit: u32) -> Self {
        Self { limit, remaining: limit, ..Self::NOTHING }
    }

    /// No permits are left, and all are free after `wait_ns`.
    pub(crate) const fn none_for(limit: u32, wait_ns: u64) -> Self {
        Self { limit, remaining: 0, next_after_ns: wait_ns, reset_after_ns: wait_ns }
    }

    /// The same, told by a clock that reads so much less.
    pub(crate) fn after(self, lag: u64) -> Self {
        let later = |wait: u64| if wait == 0 { 0 } else { wait + lag };
        Self { next_after_ns: later(self.next_after_ns), reset_after_ns: later(self.reset_after_ns), ..self }
    }
}

/// The permits left of each quota, in the given order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PerQuota {
    first: Left,
    /// Separate, because most keys have one quota.
    others: Option<[Left; MAX_QUOTAS - 1]>,
    count: u8,
    /// The permits that were requested; at least one, if other than the quotas decided.
    pub(crate) cost: u32,
}

impl PerQuota {
    /// An empty list.
    pub(crate) const NONE: Self = Self::asked(0);

    /// No numbers yet, of a request for so many permits.
    #[inline]
    pub(crate) const fn asked(cost: u32) -> Self {
        Self { first: Left::NOTHING, others: None, count: 0, cost }
    }

    pub(crate) fn of(each: impl IntoIterator<Item = Left>) -> Self {
        let mut all = Self::NONE;
        all.set(each);
        all
    }

    /// Replaces the list. `each` has one to [`MAX_QUOTAS`] items.
    #[inline]
    pub(crate) fn set(&mut self, each: impl IntoIterator<Item = Left>) {
        (self.others, self.count) = (None, 0);
        for left in each {
            match self.count {
                0 => self.first = left,
                count => {
                    let others = self.others.get_or_insert([Left::NOTHING; MAX_QUOTAS - 1]);
                    others[usize::from(count) - 1] = left;
                }
            }
            self.count += 1;
        }
    }

    /// Replaces the list by one quota.
    #[inline]
    pub(crate) fn set_one(&mut self, left: Left) {
        (self.first, self.others, self.count) = (left, None, 1);
    }

    /// The same numbers, of a request for so many permits.
    pub(crate) fn to_ask(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    #[inline]
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    #[inline]
    pub(crate) fn first(&self) -> Left {
        self.first
    }

    /// The permits left of the quota at this place.
    pub(crate) fn at(&self, place: u8) -> Left {
        match (place, &self.others) {
            (1.., Some(others)) => others[usize::from(place) - 1],
            _ => self.first,
        }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Left> + Clone + use<> {
        let all = *self;
        (0..self.count).map(move |place| all.at(place))
    }

    /// The list with each item mapped.
    pub(crate) fn map(&self, other: impl FnMut(Left) -> Left) -> Self {
        Self { cost: self.cost, ..Self::of(self.iter().map(other)) }
    }
}

impl core::fmt::Debug for PerQuota {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
