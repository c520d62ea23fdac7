//! The traits that each driver implements, and the types of their results.

use super::descriptor::Part;
#[cfg(feature = "snapshot")]
use super::export::{Export, Import};
use super::memory::{At, Cell};
use super::store::Store;
use super::words::{Head, RingRef, Slot, State};
use crate::clock::Clock;
use crate::decision::{Admission, FastDecision, PerQuota, Status};

/// The kinds of requests to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Grant if possible.
    Acquire,
    /// Answer, and charge nothing.
    Peek,
    /// Grant, now or at most so many nanoseconds ahead.
    Reserve { within: u64 },
    /// Answer as to a reservation, and charge nothing.
    PeekReserve { within: u64 },
}

impl Ask {
    /// Whether the request takes permits, if they are granted.
    pub(super) fn charges(self) -> bool {
        matches!(self, Self::Acquire | Self::Reserve { .. })
    }
}

/// A charge, as a refund needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The head after the charge, or a later head of the same incarnation.
    pub(super) head: Head,
    /// A log: a lower bound of the charge's stamps. An account: the time at which it opened or to
    /// which it advanced. Zero if unknown, or if nothing was charged.
    pub(super) mark: u64,
}

/// One cell's part of a joint claim: the next head, and the rings and the mark as in [`Part`].
pub(super) struct Draft {
    pub(super) next: Head,
    pub(super) rings: Option<(RingRef, RingRef)>,
    pub(super) mark: u64,
    /// The answer if it is claimed.
    pub(super) admission: Admission,
}

/// Until when a cell matters.
pub(super) enum Known {
    /// Until this time. With the newest stamp, or the anchor.
    Until(u64, Slot),
    /// The last claim is unpublished.
    Unpublished,
    /// The head and the ring do not belong together.
    OfAnotherRing,
}

/// Quotas of one kind, for keys that have no cell.
pub(super) trait NewKeys {
    /// The longest time that a key matters after its last permit.
    fn longest_window(&self) -> u64;

    /// The earliest time at which a key is no different from a new one, if its first request of
    /// `cost` permits comes at `time`. Of two keys the later one may reach it first, depending on
    /// their costs. A key without permits is there at once, unless its account earns permits.
    fn first_end(&self, cost: u32, time: u64) -> u64;

    /// The answer to a key's first request of `cost` permits, at `time` by a clock that lags by
    /// `lead`, with the permits left once `charged` are charged: all or, for a peek, none.
    fn first_status(&self, cost: u32, charged: u32, time: u64, lead: u64) -> Status;

    /// Whether these quotas can have produced this export.
    #[cfg(feature = "snapshot")]
    fn can_have(&self, export: &Export) -> bool;

    /// The most slots of a key's ring.
    fn longest_ring(&self) -> usize {
        1
    }

    /// The most words of a key's block of steps.
    fn largest_block(&self) -> usize {
        0
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        0
    }
}

/// An open cell whose last claim is published, and the time.
#[derive(Clone, Copy)]
pub(super) struct Fast<'a, N> {
    pub(super) at: At<'a>,
    pub(super) newest: N,
    /// The clock, as it was read after the newest claim was seen (INV-CLOCK-LAST).
    pub(super) reading: u64,
}

/// The decisions of a driver.
pub(super) trait Decide<'a>: Copy {
    /// The newest claim of a cell, once it is published.
    type Newest: Copy;

    /// The newest claim of an open cell. `None` if it is unpublished, or the fast path can't
    /// decide.
    fn newest(store: &'a Store, at: At<'a>) -> Option<Self::Newest>;

    /// The fast path: decides on an open cell, if no other thread's claim or resize is in the way,
    /// and writes the permits left to `left`. `cost` is at least 1.
    fn fast_decide(self, at: Fast<'a, Self::Newest>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision>;

    /// The fast path of a peek, like [`fast_decide`](Self::fast_decide); `cost` may be zero.
    fn fast_peek(self, at: Fast<'a, Self::Newest>, cost: u32) -> Option<Status>;

    /// The slow path: one attempt at a decision; `None` if the cell had to be helped, or has
    /// changed.
    fn decide(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Option<(Status, Charge)>;

    /// Prepares this cell's part of a joint claim of `cost` permits, at least 1, and writes the
    /// permits left after it to `left`. `None` if they are denied, or the cell had to be helped, or
    /// has changed.
    fn prepare(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft>;
}

/// The refunds of a driver.
pub(super) trait Refund<'a>: Copy {
    /// The charge of one part of a joint claim that is published.
    fn charge_of(self, cell: &'a Cell, part: &Part) -> Charge;

    /// One attempt at a refund; `None` if the cell changed.
    fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32>;
}

/// The exports and imports of a driver.
#[cfg(feature = "snapshot")]
pub(super) trait Portable<'a>: Copy {
    /// Exports the permits that matter now. `None` if the cell had to be helped, or has changed.
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>>;

    /// Imports: the ring and the head of a cell with the exported permits that still matter.
    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head);
}

/// The driver of the key of one cell, with the memory of the cells and the quotas of the key.
pub(super) trait Driver<'a>: Copy {
    fn store(self) -> &'a Store;

    /// Helps: publishes the last claim if it is unpublished (INV-PUBLISH). Proposes `time`, or the
    /// earliest later time that the algorithm allows. It may be a key's first claim, so its time is
    /// no earlier than the timestamp floor.
    fn help(self, at: At<'a>, reference: RingRef, time: u64);

    /// Whether these are still the quotas of the cell's key, as far as permits expire by them. It
    /// is checked after the clock was read (INV-VERSION).
    fn is_current(self, cell: &Cell) -> bool;

    /// Until when the cell matters.
    fn known(self, at: At<'a>, reference: RingRef) -> Known;

    /// The ring and the head of a cell for a new key, with `cost` permits claimed and unpublished.
    /// `opened.sentinel_number()` is a new number for a sentinel. If `elsewhere`, a log's ring must
    /// not be in the cell.
    fn first(self, opened: Head, cost: u32, elsewhere: bool) -> (RingRef, Head);

    /// Replaces the ring of a resizing cell by an empty one, even if it has live stamps. The caller
    /// must not need them: the key is forgotten, or the timestamp floor has been raised to their
    /// end.
    fn empty(self, resizing: At<'a>, old: RingRef, newest: Slot);

    /// The open head of a resizing cell, on the ring that it has by now.
    fn opened(self, resizing: Head, _reference: RingRef) -> Head {
        resizing.on_new_ring()
    }

    /// The reference to the ring of a cell. `None` if the cell had to be helped, or has changed.
    fn ring_of(self, at: At<'a>) -> Option<RingRef> {
        if at.head.state() == State::Held {
            self.store().help_joint(at.head);
            return None;
        }
        let reference = at.cell.reference();
        if reference.ring_parity() != at.head.ring_parity() {
            if at.head.state().is_resizing() {
                self.open(at);
            }
            return None;
        }
        Some(reference)
    }

    /// Offers a ring in place of the old one, and opens the cell on it. Returns whether it was
    /// taken.
    ///
    /// The offered ring lacks the stamps that had expired at the time `by`, or at that of the claim
    /// in it. No permit was claimed in the old ring later than `by`. The timestamp floor is raised
    /// to `by` *before* the ring changes, so a thread that sees the new ring sees the floor, too
    /// (INV-FLOOR).
    fn offer(self, resizing: At<'a>, old: RingRef, by: u64, offer: RingRef) -> bool {
        let store = self.store();
        // The reference that was read may be that of the ring two resizes later, which has the same
        // ring parity. Then the head has moved on (INV-REFERENCE). Or the old ring was given away
        // before it was read, and `by` may be anything. Then the cell has another (INV-VALIDATE).
        if !resizing.validate() || !resizing.cell.refers_to(old) {
            store.drop_unused_ring(offer);
            return false;
        }
        store.raise_timestamp_floor(by);
        // References do not return, so success shows that the old ring was unchanged while it was
        // copied.
        let is_taken = resizing.cell.replace_ring(old, offer);
        store.drop_unused_ring(if is_taken { old } else { offer });
        if is_taken {
            self.open(resizing);
        }
        is_taken
    }

    /// Opens a cell whose ring has been replaced. All slots of the new ring are published; the
    /// newest stamp is in the last.
    fn open(self, resizing: At<'a>) {
        let open = self.opened(resizing.head, resizing.cell.reference());
        // If this fails, another thread has opened it.
        let _ = resizing.claim(open);
    }
}

impl Charge {
    pub(super) fn nothing(head: Head) -> Self {
        Self { head, mark: 0 }
    }
}
