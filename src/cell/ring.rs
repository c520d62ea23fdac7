//! The ring of stamps: claiming, publishing, and publishing for those who stalled.

use super::plan::Limits;
use super::words::{Head, Slot};
use crate::sync::{AtomicU64, Ordering};

/// The slots of one ring. A ring read through a reference that is out of date may hold anything; whoever acts on what it read
/// finds out by the head, which never has the same value twice.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    slots: &'a [AtomicU64],
}

/// A slot and the lap in which it was, or will be, claimed.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    lap: u64,
}

/// Which thread chose the stamp of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// The claimant: the stamp is the time of the claim.
    ByClaimant,
    /// The claimant, or a thread that helped it.
    Unknown,
}

impl<'a> Ring<'a> {
    #[inline]
    pub(super) fn new(slots: &'a [AtomicU64]) -> Self {
        Self { slots }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.slots.len()
    }

    /// What the slot holds, `position` counted from the ring's start and at most one round too far.
    #[inline]
    pub(super) fn load(self, position: usize) -> Slot {
        self.at(if position >= self.len() { position - self.len() } else { position })
    }

    /// What the slot of this index holds.
    #[inline]
    fn at(self, index: usize) -> Slot {
        // A stale head may point past a shorter ring that it does not belong to; any slot will do then.
        let slot = self.slots.get(index).unwrap_or(&self.slots[0]);
        Slot(slot.load(Ordering::Acquire))
    }

    /// The slot itself.
    pub(super) fn slot(self, index: usize) -> &'a AtomicU64 {
        &self.slots[index]
    }

    #[inline]
    fn before(self, place: Place) -> Place {
        match place.index {
            0 => Place { index: self.len() - 1, lap: place.lap.wrapping_sub(1) },
            index => Place { index: index - 1, ..place },
        }
    }

    fn after(self, place: Place) -> Place {
        if place.index + 1 == self.len() {
            Place { index: 0, lap: place.lap.wrapping_add(1) }
        } else {
            Place { index: place.index + 1, ..place }
        }
    }

    /// The last permit that was claimed before `head`.
    #[inline]
    fn last(self, head: Head) -> Place {
        self.before(Place { index: head.pos(), lap: head.lap() })
    }

    /// The newest stamp, or `None` if its claim has not been published yet.
    #[inline]
    pub(super) fn newest(self, head: Head) -> Option<Slot> {
        let place = self.last(head);
        let slot = self.at(place.index);
        slot.is_of_lap(place.lap).then_some(slot)
    }

    /// Whether `cost` slots can be claimed whose stamps are before the first that is live.
    #[inline]
    pub(super) fn has_room(self, head: Head, cost: usize, live_from: u64) -> bool {
        cost <= self.len() && self.load(head.pos() + cost - 1).time() < live_from
    }

    /// How many stamps are live, if that is the first. They are the newest ones, so that halving finds the oldest of them.
    pub(super) fn live_at(self, head: Head, live_from: u64) -> usize {
        let (mut expired, mut unknown) = (0, self.len());
        while unknown > 0 {
            let half = unknown / 2;
            if self.load(head.pos() + expired + half).time() < live_from {
                expired += half + 1;
                unknown -= half + 1;
            } else {
                unknown = half;
            }
        }
        self.len() - expired
    }

    /// Whether the slot that was claimed at `head` has not been claimed again by `now`, and the ring is the same.
    pub(super) fn is_held_since(self, head: Head, now: Head) -> bool {
        // A ring that takes this one's place starts a lap on, in another epoch; the next but one two laps on.
        let end = match head.laps_until(now) {
            0 => now.pos(),
            1 => now.pos() + self.len(),
            _ => return false,
        };
        now.life() == head.life() && now.epoch() == head.epoch() && end <= head.pos() + self.len()
    }

    /// Claims `cost` permits at `time` and publishes them. `None` when the head has moved, and nothing was claimed.
    ///
    /// The caller has seen, at `head`, that the `cost` oldest stamps have expired at `time`.
    #[inline]
    pub(super) fn claim(
        self,
        word: &AtomicU64,
        head: Head,
        cost: usize,
        limits: &Limits,
        time: u64,
    ) -> Option<Published> {
        let first = self.load(head.pos());
        let next = head.advanced(cost, self.len());
        word.compare_exchange(head.0, next.0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if cost == 1 {
            // Failing is as good: then somebody else has published it.
            let stamp = Slot::new(time, false, head.lap());
            let slot = &self.slots[head.pos()];
            let swap = slot.compare_exchange(first.0, stamp.0, Ordering::Release, Ordering::Relaxed);
            Some(if swap.is_ok() { Published::ByClaimant } else { Published::Unknown })
        } else {
            Some(self.publish(word, head, next, cost, limits, time))
        }
    }

    /// Publishes a claim of several permits that moved the head from `head` to `next`.
    #[inline(never)]
    pub(super) fn publish(
        self,
        word: &AtomicU64,
        head: Head,
        next: Head,
        cost: usize,
        limits: &Limits,
        time: u64,
    ) -> Published {
        let stands = || word.load(Ordering::Relaxed) == next.0;
        if !self.publish_alone(head, cost, time, stands) {
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
            let swap = self.slots[place.index].compare_exchange(slot.0, stamp.0, Ordering::Release, Ordering::Relaxed);
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
                let swap =
                    self.slots[place.index].compare_exchange(slot.0, new.0, Ordering::Release, Ordering::Relaxed);
                if swap.is_err() {
                    continue;
                }
            }
            place = self.after(place);
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::super::words::State;
    use super::*;

    #[test]
    fn a_slot_is_held_until_it_is_claimed_again_or_the_ring_is_another() {
        let slots: [AtomicU64; 4] = core::array::from_fn(|_| AtomicU64::new(0));
        let ring = Ring::new(&slots);
        let last_lap = (1 << 28) - 1;
        for (lap, pos) in [(0, 0), (1, 3), (last_lap, 0), (last_lap, 2)] {
            let head = Head::new(State::Open, true, 1, lap, pos);
            let mut now = head;
            for claimed in 0..=4 {
                assert!(ring.is_held_since(head, now), "{claimed} claimed since {head:?}");
                assert!(ring.is_held_since(head, now.with_state(State::Growing)));
                let grown = now.on_new_ring();
                assert!(!ring.is_held_since(head, grown));
                assert!(!ring.is_held_since(head, grown.on_new_ring()));
                assert!(!ring.is_held_since(head, grown.on_new_ring().on_new_ring()));
                now = now.advanced(1, ring.len());
            }
            for _ in 0..20 {
                assert!(!ring.is_held_since(head, now));
                now = now.advanced(1, ring.len());
            }
            let next_life = Head::new(State::Open, true, 2, lap, pos);
            assert!(!ring.is_held_since(head, next_life));
        }
    }
}
