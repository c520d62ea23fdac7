//! The short way of an exact log: a request as of now under one quota, in the ring that there is.

use super::plan::{Bound, Plain};
use super::{Layout, LogPlan, LogState, MAX_RUN, Permits, Seen};

impl LogPlan<Permits> {
    /// Decides a request for so many permits, at most the limit, as `propose` does.
    #[inline(always)]
    pub(super) fn decide_plainly(&self, seen: Seen<'_>, cost: u32) -> Plain {
        let Some(Bound { limit, window, .. }) = self.single else { return Plain::Unknown };
        let LogState { newest, run, position, ring, reserved } = Permits::unpack(seen.word);
        let slots = self.layout.slots_of(ring.class);
        // A reserved stamp may be later than the clock, and a key without a ring may get one.
        if reserved || cost > slots.min(MAX_RUN) {
            return Plain::Unknown;
        }
        let (stamp, slots_of_ring) = (seen.now.max(newest), seen.cell.rings.get(ring.start, slots));
        let back = |back: u32| match back {
            _ if back <= run => newest,
            // Behind the ring there is no permit that counts.
            _ if back > slots => 0,
            _ => slots_of_ring.load(position, back),
        };
        let decides = limit + 1 - cost;
        let until = back(decides) + window;
        if until > stamp {
            return Plain::Denied(until);
        }
        if newest + window > stamp {
            // The grant may not write over a live stamp. In a full-grown ring it is the one that decided.
            let last = slots + 1 - cost;
            if last != decides && back(last) + window > stamp {
                return Plain::Unknown;
            }
            slots_of_ring.raise(position, run, newest);
        }
        let end = position + cost;
        let position = if end < slots { end } else { end - slots };
        Plain::Granted(Permits::pack(LogState { newest: stamp, run: cost, position, ring, reserved }))
    }
}
