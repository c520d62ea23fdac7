//! Joint claims: a multi-word compare-and-swap of the heads of several cells, after T. Harris, K.
//! Fraser and I. Pratt, "A practical multi-word compare-and-swap operation", DISC 2002, made
//! simpler by heads that never return (INV-HEAD).
//!
//! # How it works
//!
//! 1. A descriptor is written: for each cell, the head that was decided on and the next head.
//! 2. Each cell is *held*, in the order of the dimensions: a compare-and-swap replaces the head by
//!    one that names the descriptor.
//! 3. One compare-and-swap of the descriptor's state decides. If all cells are held, the claim is
//!    committed. If one has another head, it is aborted (INV-ALL-OR-NONE).
//! 4. Each held cell is released: with the next head, or with the head that it had.
//!
//! Any thread that finds a held cell works on the claim until it is decided, then goes on with its
//! own (INV-HELD). So no thread waits, and a request is denied only for permits that were granted.
//! Help ends because all claims hold their cells in one order (INV-HOLD-ORDER).
//!
//! # Why a late helper does no harm
//!
//! A late helper may hold a cell for a claim that was decided. If the claim was committed, the
//! cell's head has moved on and the swap fails. The ring reference does not return either
//! (INV-REFERENCE). If the claim was aborted, the cell is released again with the head that it had.
//! The descriptor stays until then, because workers are counted (INV-WORKERS).
//!
//! # Orderings
//!
//! - `state`: the write after the descriptor releases, the join before a read acquires. The swap
//!   that decides acquires and releases, so a thread that releases a cell sees all cells held.
//! - Heads: as for a claim on one cell.
//!
//! The models are in `table/joint_loom_tests.rs`.

use super::cells::Cells;
#[cfg(all(test, not(tollgate_loom)))]
use super::descriptor::MAX_CELLS;
use super::descriptor::{Descriptors, Outcome, Part};
use super::memory::{At, Cell};
use super::store::Store;
use super::words::{Head, RingRef, Slot, State, Ticket};

impl Cells {
    /// Claims all the parts or none, and returns which. Every claim has its cells in the same order
    /// (INV-HOLD-ORDER).
    pub(crate) fn claim_together<'a>(&self, parts: impl Iterator<Item = &'a Part> + Clone) -> bool {
        let store = &self.store;
        let descriptors = store.descriptors.as_ref().expect("a claim on several cells needs several plans");
        let committed = descriptors.write_descriptor(parts.clone()).is_some_and(|ticket| {
            store.work_on(descriptors, ticket);
            let committed = descriptors.state(ticket).outcome() == Outcome::Committed;
            descriptors.leave(ticket);
            committed
        });
        if !committed {
            parts.for_each(|part| self.forgo(part));
        }
        committed
    }

    /// Frees the ring of a part that is not claimed.
    pub(crate) fn forgo(&self, part: &Part) {
        if let Some((_, offer)) = part.rings {
            self.store.drop_unused_ring(offer);
        }
    }
}

impl Store {
    /// Helps the claim that holds a cell, until the cell is released.
    pub(super) fn help_joint(&self, held: Head) {
        let (Some(descriptors), ticket) = (&self.descriptors, held.ticket()) else { return };
        if descriptors.join(ticket) {
            self.work_on(descriptors, ticket);
            descriptors.leave(ticket);
        }
    }

    /// The head of a cell, once no joint claim holds it.
    pub(super) fn head_once_released(&self, cell: &Cell) -> Head {
        loop {
            let head = cell.head();
            if head.state() != State::Held {
                return head;
            }
            self.help_joint(head);
        }
    }

    fn work_on(&self, descriptors: &Descriptors, ticket: Ticket) {
        if descriptors.parts(ticket).all(|part| self.hold(descriptors, ticket, part)) {
            descriptors.decide(ticket, Outcome::Committed);
        }
        let committed = descriptors.state(ticket).outcome() == Outcome::Committed;
        for part in descriptors.parts(ticket) {
            self.release(ticket, part, committed);
        }
    }

    /// Holds a cell for the claim. `false` if the claim is decided; it is if the cell has another
    /// head by now.
    fn hold(&self, descriptors: &Descriptors, ticket: Ticket, part: Part) -> bool {
        let cell = self.cells.element(part.id);
        let held = part.seen.held(ticket);
        while descriptors.state(ticket).outcome() == Outcome::Undecided {
            let now = cell.head();
            if now == held {
                return true;
            }
            if now == part.seen {
                if (At { cell, head: now }).claim(held).is_some() {
                    return true;
                }
            } else if now.state() == State::Held {
                self.help_joint(now);
            } else {
                descriptors.decide(ticket, Outcome::Aborted);
            }
        }
        false
    }

    /// Releases a cell that the claim holds.
    fn release(&self, ticket: Ticket, part: Part, committed: bool) {
        let cell = self.cells.element(part.id);
        let held = part.seen.held(ticket);
        if cell.head() != held {
            return;
        }
        if let (true, Some((old, new))) = (committed, part.rings) {
            self.put_larger_ring(cell, part.seen, old, new);
        }
        let after = if committed { part.next } else { part.seen };
        // If this fails, another worker has released it.
        let _ = At { cell, head: held }.claim(after);
    }

    /// Replaces the ring of a held cell, unless another worker has.
    fn put_larger_ring(&self, cell: &Cell, seen: Head, old: RingRef, new: RingRef) {
        let newest = if new.is_block() { Some(Slot::sentinel(0, 0)) } else { self.ring(cell, old).newest(seen) };
        let Some(newest) = newest else { return };
        if cell.replace_ring(old, new) {
            self.drop_ring(old, newest);
        }
    }
}

/// Where a thread stalls in a joint claim.
#[cfg(all(test, not(tollgate_loom)))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stalled {
    DescriptorWritten,
    /// After it has held so many cells.
    Held(usize),
    /// After it has committed the claim and released so many cells.
    Released(usize),
}

#[cfg(all(test, not(tollgate_loom)))]
impl Store {
    /// Begins to claim all the parts, and stalls.
    pub(crate) fn claim_and_stall<'a>(&self, parts: impl Iterator<Item = &'a Part>, stalled: Stalled) {
        let descriptors = self.descriptors.as_ref().unwrap();
        let ticket = descriptors.write_descriptor(parts).unwrap();
        let (held, released) = match stalled {
            Stalled::DescriptorWritten => return,
            Stalled::Held(held) => (held, None),
            Stalled::Released(released) => (MAX_CELLS, Some(released)),
        };
        assert!(descriptors.parts(ticket).take(held).all(|part| self.hold(descriptors, ticket, part)));
        if let Some(released) = released {
            descriptors.decide(ticket, Outcome::Committed);
            descriptors.parts(ticket).take(released).for_each(|part| self.release(ticket, part, true));
        }
    }

    /// Replaces the ring of a part, as a helper may that saw the cell held. Returns whether that
    /// changed anything.
    pub(crate) fn replaces_late(&self, part: &Part) -> bool {
        let cell = self.cells.element(part.id);
        let (old, new) = part.rings.unwrap();
        let before = cell.reference();
        self.put_larger_ring(cell, part.seen, old, new);
        cell.reference() != before
    }
}
