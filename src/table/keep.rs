//! What all the keys of a table hold, written down and put back.

use super::find::{Located, Table};
use super::index::Put;
use crate::cell::{Kept, time_of};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;

/// Why what was kept could not be put back.
pub(crate) enum PutBackError {
    /// A key is of a plan that there is not, or holds what its plan can't.
    Contradictory,
    /// There are more keys than places.
    NoRoom,
}

impl Table {
    /// The permits of each key, key by key, while others decide. A key that gets another cell meanwhile may come twice: then the last is
    /// the newer.
    pub(crate) fn keep(&self, clock: &impl Clock) -> impl Iterator<Item = (Fingerprint, Kept)> {
        self.cells.numbers().filter_map(move |id| self.keep_of(id, clock))
    }

    /// The key of a cell and its permits. A cell that the index does not lead to belongs to a request that is not decided yet, and that may
    /// still find another cell of its key: it holds nothing that was granted.
    pub(super) fn keep_of(&self, id: u32, clock: &impl Clock) -> Option<(Fingerprint, Kept)> {
        loop {
            let fingerprint = self.cells.fingerprint_of(id)?;
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) if seat.id == id => {
                    if let Some(kept) = self.cells.keep(seat, clock) {
                        return kept.map(|kept| (fingerprint, kept));
                    }
                }
                Located::Outdated => {}
                Located::Current(_) | Located::Old(_) | Located::Nowhere => return None,
            }
        }
    }

    /// Whether a key can hold this.
    pub(crate) fn can_have(&self, fingerprint: Fingerprint, kept: &Kept) -> bool {
        self.cells.can_have(fingerprint, kept)
    }

    /// Puts back what a key held `elapsed` nanoseconds ago. What has expired since does no harm. The first that is put back of a key
    /// counts.
    pub(crate) fn put_back(
        &self,
        fingerprint: Fingerprint,
        kept: &Kept,
        elapsed: u64,
        clock: &impl Clock,
    ) -> Result<(), PutBackError> {
        if !self.can_have(fingerprint, kept) {
            return Err(PutBackError::Contradictory);
        }
        loop {
            let route = self.route();
            self.sweep_some(route, clock);
            if !self.reserve(route) {
                self.make_way(route, clock);
                continue;
            }
            let time = time_of(clock.now());
            let Some((id, life)) = self.cells.put_back(fingerprint, kept, elapsed, time) else {
                self.unreserve(route);
                return Err(PutBackError::NoRoom);
            };
            match self.current(route).put(fingerprint, id, life, &self.cells) {
                Put::Done | Put::There => return Ok(()),
                Put::Other => {
                    self.cells.discard(id);
                    self.unreserve(route);
                    return Ok(());
                }
                Put::Outdated | Put::Full => {
                    self.cells.discard(id);
                    self.unreserve(route);
                }
            }
        }
    }
}
