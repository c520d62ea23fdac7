//! The trait by which cells and tables know an algorithm, and what its methods give.

use super::descriptor::Part;
#[cfg(feature = "serde")]
use super::kept::{Kept, Restored};
use super::memory::{At, Cell};
use super::store::Store;
use super::words::{Head, RingRef, Slot};
use crate::clock::Clock;
use crate::decision::{Admission, AtOnce, PerQuota, Status};

/// What a request asks of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Grant if possible.
    Acquire,
    /// Only say what would be.
    Peek,
    /// Grant if possible after at most so many nanoseconds.
    Reserve { within: u64 },
}

/// How one attempt at a decision ended.
#[expect(clippy::large_enum_variant, reason = "it is handed on at once, and a box would be an allocation")]
pub(super) enum Attempt {
    Decided(Status, Charged),
    /// Something changed meanwhile; this is the head now.
    Lost(Head),
}

/// What has to be known of a charge to give it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charged {
    /// The head as the charge left it, or a later one of the same life.
    pub(super) head: Head,
    /// A log: no later than the charge's stamps. An account: when it opened, or to where it has advanced. Zero if that is not known,
    /// or if nothing was charged.
    pub(super) mark: u64,
}

/// What a claim on several cells asks of one of them: the head that follows, the larger ring and the mark as in [`Part`].
pub(super) struct Draft {
    pub(super) next: Head,
    pub(super) rings: Option<(RingRef, RingRef)>,
    pub(super) mark: u64,
    /// What to say if it can be claimed.
    pub(super) admission: Admission,
}

/// What a cell says about how long it matters.
pub(super) enum Known {
    /// Until this time; and the newest stamp, or the anchor.
    Until(u64, Slot),
    /// The last claim is not published yet.
    Unpublished,
    /// What was read of the head and of the ring does not belong together.
    OfAnotherRing,
}

/// One kind of quotas: what they say about keys that have no cell.
pub(super) trait NewKeys {
    /// How long a key matters at most after its last permit.
    fn longest_window(&self) -> u64;

    /// The earliest time at which a key is as new again whose first request of `cost` permits comes at `time`. Of two keys the one
    /// that came later may be as new sooner: it depends on what they took. A key without permits is
    /// as new at once, unless its account has begun to earn them.
    fn first_end(&self, cost: u32, time: u64) -> u64;

    /// What a key without permits is told at `time` that asks for `cost` of them, and only looks.
    fn status_of_nothing(&self, cost: u32, time: u64) -> Status;

    /// What a key is told that has just asked for its first `cost` permits, at `time` by a clock that lags by `lead`.
    fn first_status(&self, cost: u32, time: u64, lead: u64) -> Status;

    /// Whether what was kept of a key can have been kept by these quotas.
    #[cfg(feature = "serde")]
    fn can_have(&self, kept: &Kept) -> bool;

    /// How many slots a key's ring may need.
    fn longest_ring(&self) -> usize {
        1
    }

    /// How many words a key's block of steps may need.
    fn largest_block(&self) -> usize {
        0
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        0
    }
}

/// An algorithm, for the key of one cell: with the memory that the cell lies in, and the quotas of the key.
pub(super) trait Algorithm<'a>: Copy {
    fn store(self) -> &'a Store;

    /// Decides on an open cell, if that takes nothing out of the ordinary. `cost` is at least 1. The clock was read after the head.
    fn at_once(self, at: At<'a>, cost: u32, reading: u64) -> Option<AtOnce>;

    /// As [`at_once`](Self::at_once), with what is left.
    /// That is written to `left`, where it was decided.
    fn status_at_once(self, at: At<'a>, cost: u32, reading: u64, left: &mut PerQuota) -> Option<AtOnce>;

    /// What a request would be told, if that takes nothing out of the ordinary. As for [`at_once`](Self::at_once); `cost` may be zero.
    fn peek_at_once(self, at: At<'a>, cost: u32, reading: u64) -> Option<Status>;

    /// One attempt at a decision.
    fn attempt(self, ask: Ask, at: At<'a>, cost: u32, clock: &impl Clock) -> Attempt;

    /// Prepares to claim `cost` permits, at least 1, together with those of other cells. `None` if they are denied by now, or something
    /// had to be done first, or has changed. What is left then is written to `left`.
    fn prepare(self, at: At<'a>, cost: u32, clock: &impl Clock, left: Option<&mut PerQuota>) -> Option<Draft>;

    /// What has to be known to give back a part of a claim that was claimed together with others, and is published.
    fn charged_to(self, cell: &'a Cell, part: &Part) -> Charged;

    /// Publishes the last claim if it is not published yet; proposes `time`, or as little later as it takes. It may be the first of a
    /// new key, so its time is no earlier than the horizon.
    fn settle(self, at: At<'a>, reference: RingRef, time: u64);

    /// How long the cell matters.
    fn known(self, at: At<'a>, reference: RingRef) -> Known;

    /// One attempt to give back permits that were charged; `None` if it came to nothing.
    fn give_back(self, at: At<'a>, charged: Charged, cost: u32, clock: &impl Clock) -> Option<u32>;

    /// The ring and the head of a cell for a new key, with `cost` permits claimed and not yet published. The cell was `opened`, and its
    /// memory has not been marked with `opened.ancient_mark()` before. Of a log, the ring must not be in the cell if `elsewhere`.
    fn first(self, opened: Head, cost: u32, elsewhere: bool) -> (RingRef, Head);

    /// Replaces the ring of a growing cell by an empty one, whether or not its stamps have expired. They must not be missed: the key is to
    /// start afresh, or the horizon has been raised to the end of the newest.
    fn empty(self, growing: At<'a>, old: RingRef, newest: Slot);

    /// The head of a growing cell once it is open on the ring that it has by now.
    fn opened(self, growing: Head, _reference: RingRef) -> Head {
        growing.on_new_ring()
    }

    /// The permits that matter now, apart from any clock. `None` if something had to be done first, or has changed.
    #[cfg(feature = "serde")]
    fn keep(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Kept>>;

    /// The ring and the head of a cell that holds what was kept, as far as that still matters.
    #[cfg(feature = "serde")]
    fn restore(self, opened: Head, kept: &Kept, restored: Restored) -> (RingRef, Head);

    /// Offers a ring in place of the old one, and opens the cell on it. Says whether it was taken.
    ///
    /// The offer leaves out the stamps that had expired at the time `by`. No permit was claimed in the old ring at a later time. The
    /// horizon is raised to `by` *before* the ring changes: a thread that sees the new ring also sees that the time was `by`, which
    /// the new ring's stamps need not say.
    fn offer(self, growing: At<'a>, old: RingRef, by: u64, offer: RingRef) -> bool {
        let store = self.store();
        // What was seen of a growing cell may be the ring that it has two growths later, of the same epoch again; the head has moved on
        // then, and never returns. The ring was acquired before, so who sees it sees that.
        if !growing.stands() {
            store.drop_unused_ring(offer);
            return false;
        }
        store.raise_horizon(by);
        // A reference never returns, so success says that the old ring stood still while it was copied.
        let is_taken = growing.cell.replace_ring(old, offer);
        store.drop_unused_ring(if is_taken { old } else { offer });
        if is_taken {
            self.open(growing);
        }
        is_taken
    }

    /// Opens a cell whose ring has been replaced. All of the new ring's slots are published, the newest stamp is in the last.
    fn open(self, growing: At<'a>) {
        let open = self.opened(growing.head, growing.cell.reference());
        // Failing is as good: then somebody else has.
        let _ = growing.claim(open);
    }
}

impl Charged {
    pub(super) fn nothing(head: Head) -> Self {
        Self { head, mark: 0 }
    }
}

impl At<'_> {
    /// An attempt that came to nothing.
    pub(super) fn lost(self) -> Attempt {
        Attempt::Lost(self.cell.head())
    }
}
