//! Looking at many keys at once, so that the memory that they need is fetched at the same time.

use super::find::Table;
use crate::fingerprint::Fingerprint;

/// How many keys are looked at together: enough to keep the memory busy, few enough to stay in the nearest cache.
pub(crate) const TOGETHER: usize = 32;

impl Table {
    /// Reads what decisions on these keys will read, and decides nothing: where the index begins to be looked through for each, then the
    /// cell that this leads to for each, then its ring. Reads of one kind do not wait for each other, where decisions one after the other
    /// wait for each in turn.
    pub(crate) fn touch(&self, keys: &[Fingerprint]) {
        let index = self.current(self.route());
        let seen = keys.iter().fold(0, |seen, &key| seen ^ index.touch(key));
        core::hint::black_box(seen);
        let mut rings = [None; TOGETHER];
        for (ring, &key) in rings.iter_mut().zip(keys) {
            *ring = index.likely_cell(key).map(|id| self.cells.touch(id));
        }
        let seen = rings.into_iter().flatten().fold(0, |seen, ring| seen ^ self.cells.touch_ring(ring));
        core::hint::black_box(seen);
    }
}
