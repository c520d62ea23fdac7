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

    /// Changes the numbers of the present key.
    pub(crate) fn change(&mut self, other: impl Fn(Left) -> Left) {
        self.items(self.from).for_each(|quota| quota.left = other(quota.left));
    }

    /// The present key, of several, denies a request of this cost.
    pub(crate) fn violate(&mut self, cost: u32) {
        self.items(self.from).for_each(|quota| quota.is_violated = quota.left.remaining < cost);
    }

    /// No permits of a key are left for at least so long.
    pub(crate) fn block(&mut self, dimension: usize, wait_ns: u64) {
        for quota in self.items(0).filter(|quota| quota.dimension() == dimension) {
            let Left { limit, remaining, next_after_ns, reset_after_ns } = quota.left;
            // The remaining permits are free once the block has ended.
            let next_after_ns = if remaining > 0 { wait_ns } else { next_after_ns.max(wait_ns) };
            quota.left = Left { limit, remaining: 0, next_after_ns, reset_after_ns: reset_after_ns.max(wait_ns) };
            quota.is_violated = true;
        }
    }

    /// The quotas from this one on.
    #[inline]
    fn items(&mut self, from: u8) -> impl Iterator<Item = &mut QuotaStatus> {
        let (from, inline) = (usize::from(from), usize::from(self.count).min(INLINE));
        let more = self.more.get_mut(from.saturating_sub(INLINE)..).unwrap_or_default();
        self.inline[from.min(inline)..inline].iter_mut().chain(more)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = QuotaStatus> + Clone {
        (0..usize::from(self.count)).map(|place| {
            let quota = self.inline.get(place).copied().unwrap_or_else(|| self.more[place - INLINE]);
            QuotaStatus { is_violated: quota.is_violated || quota.left.remaining < self.denied, ..quota }
        })
    }

    #[cfg(test)]
    pub(crate) fn first(&self) -> Left {
        self.inline[0].left
    }
}
