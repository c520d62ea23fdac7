//! The permits left of each quota of a request.

use super::left::Left;
use super::quota_status::QuotaStatus;

/// The permits left of each quota that a request asks, key by key, in the given order.
#[derive(Clone)]
pub(crate) struct PerQuota {
    inline: [QuotaStatus; INLINE],
    /// The quotas after the first [`INLINE`].
    more: Vec<QuotaStatus>,
    count: u8,
    /// The quotas of the present key begin here.
    from: u8,
    /// The dimension of the present key.
    dimension: u8,
    /// The cost of the request, if its one key denies it; otherwise zero.
    pub(crate) denied: u32,
}

/// The number of quotas kept inline. Three dimensions of two quotas are common; eight of eight are
/// possible.
const INLINE: usize = 6;

impl PerQuota {
    /// An empty list.
    pub(crate) const NONE: Self = {
        let none = QuotaStatus { dimension: 0, quota: 0, is_violated: false, left: Left::NOTHING };
        Self { inline: [none; INLINE], more: Vec::new(), count: 0, from: 0, dimension: 0, denied: 0 }
    };

    /// Goes on with the key of a dimension.
    pub(crate) fn begin(&mut self, dimension: usize) {
        self.from = self.count;
        self.dimension = u8::try_from(dimension).unwrap_or(u8::MAX);
    }

    /// Takes the numbers of the present key, for those that were there.
    #[inline]
    pub(crate) fn set(&mut self, each: impl IntoIterator<Item = Left>) {
        self.count = self.from;
        self.more.truncate(usize::from(self.count).saturating_sub(INLINE));
        for (quota, left) in (0..).zip(each) {
            let item = QuotaStatus { dimension: self.dimension, quota, is_violated: false, left };
            match self.inline.get_mut(usize::from(self.count)) {
                Some(next) => *next = item,
                None => self.more.push(item),
            }
            self.count += 1;
        }
    }

    /// Changes the numbers of the key of a dimension.
    pub(crate) fn change_in(&mut self, dimension: usize, other: impl Fn(Left) -> Left) {
        let inline = usize::from(self.count).min(INLINE);
        let all = self.inline[..inline].iter_mut().chain(&mut self.more);
        all.filter(|quota| quota.dimension() == dimension).for_each(|quota| quota.left = other(quota.left));
    }

    /// Changes the numbers of the present key.
    pub(crate) fn change(&mut self, other: impl Fn(Left) -> Left) {
        self.change_in(self.dimension.into(), other);
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone {
        (0..usize::from(self.count)).map(|place| {
            let quota = self.inline.get(place).copied().unwrap_or_else(|| self.more[place - INLINE]);
            QuotaStatus { is_violated: quota.left.remaining < self.denied, ..quota }
        })
    }

    #[cfg(test)]
    pub(crate) fn first(&self) -> Left {
        self.inline[0].left
    }
}
