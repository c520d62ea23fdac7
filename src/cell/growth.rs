//! Rings grow: a larger ring, with the claim that needs it, is prepared in private and offered by one compare-and-swap.

use super::memory::Cell;
use super::plan::Limits;
use super::ring::Ring;
use super::words::{Head, RingRef, Slot, State};
use super::{CLASSES, Cells, Rules, time_of};
use crate::clock::Clock;
use crate::slab::Slab;
use crate::sync::Ordering;

/// A claim that does not fit into its ring.
pub(super) struct Wanted {
    pub(super) needed: usize,
    /// How many permits are live at `time`. With those that are needed they are no more than the limit.
    pub(super) live: usize,
    /// The newest stamp: the ring is published up to it.
    pub(super) newest: Slot,
    /// No earlier than the newest stamp.
    pub(super) time: u64,
}

/// A ring that a claim has been prepared in.
pub(super) struct Larger {
    pub(super) offer: RingRef,
    /// The stamp of the claim, and how many permits were live before it.
    pub(super) time: u64,
    pub(super) live: usize,
}

impl Cells {
    /// How many slots a ring of this class has: a power of two or, the smallest that is long enough for the largest limit, just so
    /// many. A ring is longer only where permits are reserved.
    pub(super) fn slots_of(&self, class: usize) -> usize {
        let slots = |class| if class == 0 { 1 } else { 2_usize << class };
        let is_enough = slots(class) >= self.longest && (class == 0 || slots(class - 1) < self.longest);
        if is_enough { self.longest } else { slots(class) }
    }

    /// The smallest class with this many slots, or the largest there is.
    fn class_for(&self, slots: usize) -> usize {
        (0..CLASSES).find(|&class| self.slots_of(class) >= slots).unwrap_or(CLASSES - 1)
    }

    /// The pool for rings of this class.
    fn rings_of(&self, class: usize) -> &Slab {
        // As many rings as blocks can be numbered: what bounds them is that a cell has at most one.
        self.rings[class].get_or_init(|| Box::new(Slab::new(self.slots_of(class), u32::MAX >> 1)))
    }

    /// Makes the pools before they are needed, as the model checker wants it.
    pub(super) fn make_all_pools(&self) {
        for class in 1..=self.class_for(2 * self.longest) {
            self.rings_of(class);
        }
        if let Some(blocks) = &self.blocks {
            blocks.make_all_pools();
        }
    }

    /// A ring with room for `slots`, for the caller alone: all of its slots hold a mark that never returns, as if published in
    /// the lap before `lap`.
    pub(super) fn new_ring(&self, epoch: bool, slots: usize, lap: u64) -> (RingRef, Ring<'_>) {
        let class = self.class_for(slots);
        let rings = self.rings_of(class);
        let block = rings.take().expect("there are more blocks than there can be cells");
        let mark = self.marks.fetch_add(1, Ordering::Relaxed);
        let words = rings.block(block);
        for word in words {
            // Released here and in `write`: a reader of the block's last owner that sees it sees that its head has moved on.
            word.store(Slot::ancient(mark, lap).0, Ordering::Release);
        }
        (RingRef::new(epoch, class, mark, block), Ring::new(words))
    }

    /// Gives back a ring that the caller alone owns, whose stamps, as far as others may have seen them, are no later than
    /// `newest`.
    pub(super) fn drop_ring(&self, reference: RingRef, newest: Slot) {
        if reference.is_ring() {
            self.raise_horizon(newest.time());
            let rings = match &self.blocks {
                Some(blocks) if reference.is_block() => blocks.of(reference.class()),
                _ => self.rings_of(reference.class()),
            };
            rings.give_back(reference.block());
        }
    }

    /// Gives back a ring that no other thread has seen, or whose stamps the horizon has reached.
    pub(super) fn drop_unused_ring(&self, reference: RingRef) {
        self.drop_ring(reference, Slot::ancient(0, 0));
    }

    /// Sees to it that no stamp that is chosen for a new key or a new ring from now on is earlier than `time`.
    ///
    /// Released for the clock's sake: a thread that has seen the horizon reads no less than the clock had shown when it was raised. That
    /// the horizon itself is seen is due to the block or the cell, which is released after it.
    pub(super) fn raise_horizon(&self, time: u64) {
        if self.horizon.load(Ordering::Relaxed) < time {
            self.horizon.fetch_max(time, Ordering::AcqRel);
        }
    }

    /// Claims permits by replacing the ring with one that has room for them. Gives the time of the claim and how many permits
    /// were live before it; `None` when somebody else's ring, or some other change, came first.
    #[cold]
    pub(super) fn grow(
        &self,
        cell: &Cell,
        limits: &Limits,
        head: Head,
        old: RingRef,
        wanted: Wanted,
        clock: &impl Clock,
    ) -> Option<(u64, usize)> {
        // What is claimed now is later than all that was reserved.
        let growing = if head.state().is_open() { head.with_state(State::Growing) } else { head };
        cell.begin_resize(head, growing)?;
        let newest = wanted.newest.time();
        let Larger { offer, time, live } = self.larger_ring(cell, limits, growing, old, wanted, clock);
        // The claim's own stamp does not say the time of a cell that is ahead.
        let by = if growing.state().may_be_ahead() { time } else { newest };
        self.offer(cell, growing, old, by, offer).then_some((time, live))
    }

    /// A ring for the caller alone, with the live stamps of the old one and those of the claim.
    pub(super) fn larger_ring(
        &self,
        cell: &Cell,
        limits: &Limits,
        head: Head,
        old: RingRef,
        wanted: Wanted,
        clock: &impl Clock,
    ) -> Larger {
        let Wanted { needed, live, time, .. } = wanted;
        let stamps = self.ring(cell, old);
        let next = head.on_new_ring();
        let (offer, new) = self.new_ring(next.epoch(), (live + needed).max(stamps.len() + 1), next.lap());
        // After the ring has been taken: no earlier than what its last owner knew when it gave the ring back. And before the
        // clock is read, so that only a clock that lags reads less.
        let horizon = self.horizon.load(Ordering::Acquire);
        let reading = time.max(time_of(clock.now()));
        let time = reading.max(horizon);
        // No more than before, even if what is read here is no longer the cell's.
        let live = live.min(stamps.live_at(head, limits.live_from(reading)));
        let kept = (stamps.len() - live..stamps.len())
            .map(|position| limits.put_off(stamps.load(head.pos() + position).time(), reading, time));
        new.write_last(live + needed, kept.chain(core::iter::repeat_n(time, needed)), next.lap());
        Larger { offer, time, live }
    }

    /// Replaces a growing ring by an empty one, whether or not its stamps have expired. They must not be missed: the key is to
    /// start afresh, or the horizon has been raised to the end of the newest.
    #[cold]
    pub(super) fn empty(&self, cell: &Cell, growing: Head, old: RingRef, newest: Slot) {
        if let Rules::Steps(stepped) = self.rules_of(cell) {
            return self.empty_steps(stepped, cell, growing, old);
        }
        let by = if growing.state().may_be_ahead() { 0 } else { newest.time() };
        let stamps = self.ring(cell, old);
        let (offer, _) = self.new_ring(!growing.epoch(), stamps.len() + 1, growing.lap().wrapping_add(1));
        self.offer(cell, growing, old, by, offer);
    }

    /// Offers a ring in place of the old one, and opens the cell on it. Says whether it was taken.
    ///
    /// The offer leaves out the stamps that had expired at the time `by`. No permit was claimed in the old ring at a later time. The
    /// horizon is raised to `by` *before* the ring changes: a thread that sees the new ring also sees that the time was `by`, which
    /// the new ring's stamps need not say.
    pub(super) fn offer(&self, cell: &Cell, growing: Head, old: RingRef, by: u64, offer: RingRef) -> bool {
        // What was seen of a growing cell may be the ring that it has two growths later, of the same epoch again; the head has moved on
        // then, and never returns. The ring was acquired before, so who sees it sees that.
        if !cell.stands(growing) {
            self.drop_unused_ring(offer);
            return false;
        }
        self.raise_horizon(by);
        // A reference never returns, so success says that the old ring stood still while it was copied.
        let swap = cell.ring.compare_exchange(old.0, offer.0, Ordering::AcqRel, Ordering::Relaxed);
        match swap {
            Ok(_) => self.drop_unused_ring(old),
            Err(_) => self.drop_unused_ring(offer),
        }
        if swap.is_ok() {
            self.open(cell, growing);
        }
        swap.is_ok()
    }

    /// Opens a cell whose ring has been replaced. All of the new ring's slots are published, the newest stamp is in the last.
    pub(super) fn open(&self, cell: &Cell, growing: Head) {
        let open = match self.rules_of(cell) {
            Rules::Steps(stepped) => self.opened_on(stepped, growing, cell.reference()),
            _ => growing.on_new_ring(),
        };
        // Failing is as good: then somebody else has.
        let _ = cell.claim(growing, open);
    }
}

impl Ring<'_> {
    /// Writes stamps into the last `count` slots of a ring that the caller alone has, as published in the lap before `lap`.
    pub(super) fn write_last(self, count: usize, stamps: impl Iterator<Item = u64>, lap: u64) {
        for (index, time) in (self.len() - count..).zip(stamps) {
            self.slot(index).store(Slot::new(time, false, lap.wrapping_add(1)).0, Ordering::Release);
        }
    }
}
