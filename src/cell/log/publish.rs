//! Claims slots of a ring, publishes their stamps, and helps claimants that stalled.

use super::plan::LogPlan;
use super::ring::{Place, Ring};
use crate::cell::memory::At;
use crate::cell::words::{Head, Slot};
use crate::sync::Ordering;

/// Which thread chose the stamp of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// The claimant: the stamp is the time of the claim.
    ByClaimant,
    /// The claimant or a helper.
    Unknown,
}

impl Ring<'_> {
    /// Claims `cost` permits at `time` and publishes them. `None` when the head has moved, and
    /// nothing was claimed.
    ///
    /// The caller has seen, at `head`, that the `cost` oldest stamps have expired at `time`.
    #[inline(always)]
    pub(super) fn claim(self, at: At<'_>, cost: usize, plan: &LogPlan, time: u64) -> Option<Published> {
        let head = at.head;
        let first = self.load(head.pos());
        let next = head.advanced(cost, self.len());
        at.claim(next)?;
        if cost == 1 {
            // If this fails, a helper has published it.
            let stamp = Slot::new(time, false, head.lap());
            let slot = self.slot(head.pos());
            let swap = slot.compare_exchange(first.0, stamp.0, Ordering::Release, Ordering::Relaxed);
            Some(if swap.is_ok() { Published::ByClaimant } else { Published::Unknown })
        } else {
            Some(self.publish(at, next, cost, plan, time))
        }
    }

    /// Publishes a claim of several permits that moved the head to `next`.
    #[inline(never)]
    pub(super) fn publish(self, at: At<'_>, next: Head, cost: usize, plan: &LogPlan, time: u64) -> Published {
        let validate = || at.with(next).validate();
        if !self.publish_alone(at.head, cost, time, validate) {
            self.help(next, plan, time, validate);
            return Published::Unknown;
        }
        Published::ByClaimant
    }

    /// Publishes a claim of several permits that was made at `head`, unless a helper takes part.
    /// Returns whether all of it is published.
    #[inline(always)]
    fn publish_alone(self, head: Head, cost: usize, time: u64, validate: impl Fn() -> bool) -> bool {
        let mut place = Place { index: head.pos(), lap: head.lap() };
        for left in (0..cost).rev() {
            let slot = self.load(place.index);
            // As in `help` (INV-VALIDATE).
            if slot.is_of_lap(place.lap) || !validate() {
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

    /// Helps: publishes the last claim if it is unpublished. Proposes `time`, raised to the
    /// earliest stamp that the log allows (INV-ORDER, INV-SPACING). Does nothing once
    /// `validate` fails: the head has moved, and the ring may be another.
    #[cold]
    pub(super) fn help(self, head: Head, plan: &LogPlan, time: u64, validate: impl Fn() -> bool) {
        let last = self.last(head);
        // Go back to the first unpublished slot. The slots of a claim are published in order.
        let mut first = self.after(last);
        let mut stamp = time.max(plan.end_of(self.load(last.index).time()));
        for unpublished in 0..self.len() {
            let place = self.before(first);
            let slot = self.load(place.index);
            if slot.is_of_lap(place.lap) {
                // Either the claim's own first slots, whose stamp is chosen (INV-ONE-STAMP), or the
                // claim before it.
                let claimed = stamp.max(slot.time()).max(plan.earliest(self, first.index, unpublished));
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
            // A ring of one that was just replaced: the slot in the cell is now the reference.
            if self.len() == 1 && slot.joined() {
                return;
            }
            // The parity alone may be that of a later lap (INV-VALIDATE).
            if !validate() {
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
