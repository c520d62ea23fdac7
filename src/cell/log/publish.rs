//! Claiming slots of a ring, publishing their stamps, and publishing for those who stalled.

use super::limits::Limits;
use super::ring::{Place, Ring};
use crate::cell::memory::At;
use crate::cell::words::{Head, Slot};
use crate::sync::Ordering;

/// Which thread chose the stamp of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// The claimant: the stamp is the time of the claim.
    ByClaimant,
    /// The claimant, or a thread that helped it.
    Unknown,
}

impl Ring<'_> {
    /// Claims `cost` permits at `time` and publishes them. `None` when the head has moved, and nothing was claimed.
    ///
    /// The caller has seen, at `head`, that the `cost` oldest stamps have expired at `time`.
    #[inline]
    pub(super) fn claim(self, at: At<'_>, cost: usize, limits: &Limits, time: u64) -> Option<Published> {
        let head = at.head;
        let first = self.load(head.pos());
        let next = head.advanced(cost, self.len());
        at.claim(next)?;
        if cost == 1 {
            // Failing is as good: then somebody else has published it.
            let stamp = Slot::new(time, false, head.lap());
            let slot = self.slot(head.pos());
            let swap = slot.compare_exchange(first.0, stamp.0, Ordering::Release, Ordering::Relaxed);
            Some(if swap.is_ok() { Published::ByClaimant } else { Published::Unknown })
        } else {
            Some(self.publish(at, next, cost, limits, time))
        }
    }

    /// Publishes a claim of several permits that moved the head to `next`.
    #[inline(never)]
    pub(super) fn publish(self, at: At<'_>, next: Head, cost: usize, limits: &Limits, time: u64) -> Published {
        let stands = || at.cell.stands(next);
        if !self.publish_alone(at.head, cost, time, stands) {
            self.settle(next, limits, time, stands);
            return Published::Unknown;
        }
        Published::ByClaimant
    }

    /// Publishes a claim of several permits that was made at `head`, as long as nobody else takes part. Says whether all of it is done.
    #[inline(always)]
    fn publish_alone(self, head: Head, cost: usize, time: u64, stands: impl Fn() -> bool) -> bool {
        let mut place = Place { index: head.pos(), lap: head.lap() };
        for left in (0..cost).rev() {
            let slot = self.load(place.index);
            // What was read is of this claim only if its head still stands, as in `settle`.
            if slot.is_of_lap(place.lap) || !stands() {
                return false;
            }
            let stamp = Slot::new(time, left > 0, place.lap);
            let swap = self.slot(place.index).compare_exchange(slot.0, stamp.0, Ordering::Release, Ordering::Relaxed);
            if swap.is_err() {
                return false;
            }
            place = self.after(place);
        }
        true
    }

    /// Publishes what was claimed last, if that has not been done; proposes `time`, or as little later as it takes, for the
    /// stamp. Does nothing once the head, and the ring with it, no longer `stands`.
    #[cold]
    pub(super) fn settle(self, head: Head, limits: &Limits, time: u64, stands: impl Fn() -> bool) {
        let last = self.last(head);
        // Back to the first slot of the claim that is not published. The slots of a claim are published in order.
        let mut first = self.after(last);
        let mut stamp = time.max(limits.end_of(self.load(last.index).time()));
        for unpublished in 0..self.len() {
            let place = self.before(first);
            let slot = self.load(place.index);
            if slot.is_of_lap(place.lap) {
                // Either the claim's own first slots, whose stamp is chosen then, or the claim before it.
                let claimed = stamp.max(slot.time()).max(limits.earliest(self, first.index, unpublished));
                stamp = if slot.joined() { slot.time() } else { claimed };
                break;
            }
            first = place;
        }
        let mut place = first;
        loop {
            if place.index == self.after(last).index && place.lap == self.after(last).lap {
                return;
            }
            let slot = self.load(place.index);
            // A ring of one that has just grown: the slot in the cell has become the reference to the new ring.
            if self.len() == 1 && slot.joined() {
                return;
            }
            // What was read is of this head only if the head still stands: the parity alone may be that of a later lap.
            if !stands() {
                return;
            }
            if slot.is_of_lap(place.lap) {
                stamp = slot.time();
            } else {
                let joined = place.index != last.index;
                let new = Slot::new(stamp, joined, place.lap);
                let swap = self.slot(place.index).compare_exchange(slot.0, new.0, Ordering::Release, Ordering::Relaxed);
                if swap.is_err() {
                    continue;
                }
            }
            place = self.after(place);
        }
    }
}
