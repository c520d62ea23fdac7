//! Prefetches the memory of many keys at once.

use super::find::Table;
use crate::fingerprint::Fingerprint;

/// The keys that are prefetched together: enough to keep the memory busy, few enough to stay in the
/// nearest cache.
pub(crate) const TOGETHER: usize = 32;

impl Table {
    /// Reads the memory that decisions on these keys will read, and decides nothing: first each
    /// key's slot of the index, then each key's cell, then each key's ring. Reads of one kind do
    /// not wait for each other; in one decision after the other they would.
    pub(crate) fn prefetch(&self, keys: &[Fingerprint]) {
        let index = self.current(self.route());
        let seen = keys.iter().fold(0, |seen, &key| seen ^ index.prefetch(key));
        core::hint::black_box(seen);
        let mut rings = [None; TOGETHER];
        for (ring, &key) in rings.iter_mut().zip(keys) {
            *ring = index.likely_cell(key).map(|id| self.cells.prefetch(id));
        }
        let seen = rings.into_iter().flatten().fold(0, |seen, ring| seen ^ self.cells.prefetch_ring(ring));
        core::hint::black_box(seen);
    }
}
