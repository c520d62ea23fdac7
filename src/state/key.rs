//! A key as the table knows it.

use crate::fingerprint::Fingerprint;

/// A *tag*: 59 bits that stand for the key, one that is always set, and the number of its quotas in
/// the lowest four. No tag is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(super) tag: u64,
}

/// The bits of a tag that have the number of the key's quotas.
const SLOT: u64 = 0xf;
const SET: u64 = SLOT + 1;

/// The most shards, as a power of two.
pub(super) const MOST_SHARD_BITS: u32 = if cfg!(tollgate_loom) { 0 } else { 4 };

impl Key {
    /// The key with this fingerprint.
    #[inline]
    pub(crate) fn of(fingerprint: Fingerprint) -> Self {
        Self { tag: fingerprint.spread() & !SLOT | fingerprint.plan() as u64 | SET }
    }

    /// The key with this tag, if it is one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn with_tag(tag: u64) -> Option<Self> {
        (tag & SET != 0).then_some(Self { tag })
    }

    /// The tag.
    #[cfg(feature = "snapshot")]
    pub(crate) fn tag(self) -> u64 {
        self.tag
    }

    /// The number of its quotas: its dimension, or its tier.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.tag & SLOT) as usize
    }

    /// The place of so many at which the search for it begins.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the product is less than the number of places")]
    pub(super) fn place(self, places: usize) -> usize {
        // The keys of a shard have the highest bits in common.
        ((u128::from(self.tag << MOST_SHARD_BITS) * places as u128) >> 64) as usize
    }

    /// The number of its shard, of `1 << bits`.
    #[inline]
    pub(super) fn shard(self, bits: u32) -> usize {
        // Two steps, because a shift by 64 bits is none.
        (self.tag >> 1 >> (63 - bits)) as usize
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
