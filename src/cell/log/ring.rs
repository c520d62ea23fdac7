//! Reads a ring of stamps.

use once_cell::race::OnceBox;

use crate::cell::memory::Cell;
use crate::cell::store::Store;
use crate::cell::words::{Head, MAX_SLOTS, RING_CLASSES, RingRef, Slot};
use crate::sync::{AtomicU64, Ordering};

/// The slots of one ring. Through an outdated reference a ring may hold anything; the reader finds
/// that out by the head (INV-VALIDATE).
#[derive(Clone, Copy)]
pub(in crate::cell) struct Ring<'a> {
    slots: &'a [AtomicU64],
}

/// A slot and the lap in which it was, or will be, claimed.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) lap: u64,
}

impl Store {
    /// The ring of the cell. An outdated reference may name anything, even the anchor of an
    /// account. Then any slot will do: the head will have changed.
    #[inline]
    pub(in crate::cell) fn ring<'a>(&'a self, cell: &'a Cell, reference: RingRef) -> Ring<'a> {
        if reference.is_ring() {
            let rings = self.slabs[RING_CLASSES].get(reference.class()).and_then(OnceBox::get);
            if let Some(slots) = rings.and_then(|rings| rings.block_if_there(reference.block())) {
                return Ring { slots };
            }
        }
        Ring { slots: core::slice::from_ref(&cell.ring) }
    }

    /// A ring of at least `slots` slots that the caller owns. All slots hold a sentinel, as if
    /// published in the lap before `lap`.
    pub(in crate::cell) fn new_ring(&self, ring_parity: bool, slots: usize, lap: u64) -> (RingRef, Ring<'_>) {
        debug_assert!(slots <= MAX_SLOTS, "a ring of {slots} slots");
        let (class, block, words) = self.alloc(RING_CLASSES, slots);
        let number = self.next_sentinel();
        for word in words {
            // Released, as in `write_last`: a reader of the block's last owner that sees it also
            // sees that the head has moved.
            word.store(Slot::sentinel(number, lap).0, Ordering::Release);
        }
        (RingRef::new(ring_parity, class, number, block), Ring::new(words))
    }
}

impl<'a> Ring<'a> {
    #[inline]
    pub(in crate::cell) fn new(slots: &'a [AtomicU64]) -> Self {
        Self { slots }
    }

    #[inline]
    pub(in crate::cell) fn len(self) -> usize {
        self.slots.len()
    }

    /// The slot at a `position` from the ring's start, at most one round too far.
    #[inline]
    pub(in crate::cell) fn load(self, position: usize) -> Slot {
        self.at(if position >= self.len() { position - self.len() } else { position })
    }

    /// The slot at this index.
    #[inline]
    pub(super) fn at(self, index: usize) -> Slot {
        // A stale head may point past a shorter ring; any slot will do then.
        let slot = self.slots.get(index).unwrap_or(&self.slots[0]);
        Slot(slot.load(Ordering::Acquire))
    }

    /// The word of the slot.
    pub(in crate::cell) fn slot(self, index: usize) -> &'a AtomicU64 {
        &self.slots[index]
    }

    #[inline]
    pub(super) fn before(self, place: Place) -> Place {
        match place.index {
            0 => Place { index: self.len() - 1, lap: place.lap.wrapping_sub(1) },
            index => Place { index: index - 1, ..place },
        }
    }

    pub(super) fn after(self, place: Place) -> Place {
        if place.index + 1 == self.len() {
            Place { index: 0, lap: place.lap.wrapping_add(1) }
        } else {
            Place { index: place.index + 1, ..place }
        }
    }

    /// The last slot that was claimed before `head`.
    #[inline]
    pub(super) fn last(self, head: Head) -> Place {
        self.before(Place { index: head.pos(), lap: head.lap() })
    }

    /// The newest stamp; `None` if its claim is unpublished.
    #[inline]
    pub(in crate::cell) fn newest(self, head: Head) -> Option<Slot> {
        let place = self.last(head);
        let slot = self.at(place.index);
        slot.is_of_lap(place.lap).then_some(slot)
    }

    /// Whether `cost` slots can be claimed whose stamps are before the first that is live.
    #[inline]
    pub(super) fn has_room(self, head: Head, cost: usize, live_from: u64) -> bool {
        cost <= self.len() && self.load(head.pos() + cost - 1).time() < live_from
    }

    /// How many stamps are no earlier than `live_from`. They are the newest ones (INV-ORDER), so
    /// this is a binary search.
    pub(super) fn live_at(self, head: Head, live_from: u64) -> usize {
        self.live_among(head, live_from, self.len())
    }

    /// How many of the newest `most` stamps are no earlier than `live_from`: a binary search
    /// (INV-ORDER). The first load is of the oldest of these, which decides it for a key without
    /// permits left.
    #[inline]
    pub(super) fn live_among(self, head: Head, live_from: u64, most: usize) -> usize {
        let skipped = self.len().saturating_sub(most);
        if self.load(head.pos() + skipped).time() >= live_from {
            return self.len() - skipped;
        }
        // Under steady load, with one stamp in for each that expires, the second load decides it.
        if skipped + 1 < self.len() && self.load(head.pos() + skipped + 1).time() >= live_from {
            return self.len() - skipped - 1;
        }
        self.live_after(head, live_from, skipped + 1)
    }

    /// How many are live if this many are known to have expired.
    fn live_after(self, head: Head, live_from: u64, known: usize) -> usize {
        let (mut expired, mut unknown) = (known, self.len() - known);
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

    /// Whether the slot that was claimed at `head` has not been claimed again by `now`, and the
    /// ring is the same.
    pub(super) fn is_held_since(self, head: Head, now: Head) -> bool {
        // The next ring starts a lap later, with the other ring parity; the one after, two laps
        // later.
        let end = match head.laps_until(now) {
            0 => now.pos(),
            1 => now.pos() + self.len(),
            _ => return false,
        };
        now.incarnation() == head.incarnation()
            && now.ring_parity() == head.ring_parity()
            && end <= head.pos() + self.len()
    }

    /// Writes stamps into the last `count` slots of a ring that the caller owns, as if published in
    /// the lap before `lap`.
    pub(super) fn write_last(self, count: usize, stamps: impl Iterator<Item = u64>, lap: u64) {
        for (index, time) in (self.len() - count..).zip(stamps) {
            self.slot(index).store(Slot::new(time, false, lap.wrapping_add(1)).0, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use crate::cell::words::State;

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
                assert!(ring.is_held_since(head, now.with_state(State::Resizing)));
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
            let next_incarnation = Head::new(State::Open, true, 2, lap, pos);
            assert!(!ring.is_held_since(head, next_incarnation));
        }
    }
}
