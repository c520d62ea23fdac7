//! Claims on several cells at once: all of them, or none.
//!
//! # How it works
//! A claim on one cell is a compare-and-swap on its head. A claim on several is a compare-and-swap of all their heads at
//! once, after T. Harris, K. Fraser and I. Pratt, "A practical multi-word compare-and-swap operation", DISC 2002, made
//! simpler by heads that never have the same value twice.
//!
//! The claim is *written down* first: for each cell, the head that was decided on and the head that follows. Then each cell
//! is *held*, in the order of the dimensions, by swapping a head that names the claim for the one that was decided on. If all are
//! held the claim is committed, if one has another head by then it is aborted: one swap of the claim's own state decides, whoever
//! makes it. Last, each held cell is let go: with the head that follows, or the one that it had.
//!
//! **Whoever meets a held cell works on the claim that holds it until it is decided**, and then goes on with its own. So nobody
//! waits, and nobody ever decides by what a claim may yet take back: a request is denied only for permits that were granted.
//!
//! Claims hold cells in one order (the dimensions of a request, each of which has cells of its own), so work on one claim leads
//! to work on another only further along, and ends.
//!
//! # Why a helper that slept does no harm
//! It may hold a cell for a claim that has been decided since. If that was committed, the cell's head has moved, and never returns:
//! the swap fails. (Nor does the reference to a ring that a larger one takes the place of: a cell whose key was forgotten starts its
//! next life with a ring, see `life.rs`.) If it was aborted, the cell is let go again with the head that it had: by the helper, or by whoever meets it.
//! What is written down stays until then, because helpers are counted: each one lets everything go before it leaves, and who
//! leaves last frees the place for the next claim, under the next serial number.
//!
//! # Orderings
//! - `status`: written after what is written down (released), joined before that is read (acquired). The swap that decides acquires
//!   and releases, so who lets go sees all cells held.
//! - heads: as for a claim on one cell.
//!
//! Exercised by `table/joint_loom_tests.rs`.

#[cfg(all(test, not(tollgate_loom)))]
use super::descriptor::MAX_CELLS;
use super::descriptor::{Joint, Outcome, Part};
use super::memory::Cell;
use super::store::Store;
use super::words::{Head, RingRef, Slot, State, Ticket};

impl Store {
    /// Claims all the parts, or none: says which. The cells have to be in the same order in every claim.
    pub(crate) fn claim_together<'a>(&self, parts: impl Iterator<Item = &'a Part> + Clone) -> bool {
        let joint = self.joint.as_ref().expect("a claim on several cells needs several plans");
        let committed = joint.write_down(parts.clone()).is_some_and(|ticket| {
            self.work_on(joint, ticket);
            let committed = joint.status(ticket).outcome() == Outcome::Committed;
            joint.leave(ticket);
            committed
        });
        if !committed {
            parts.for_each(|part| self.forgo(part));
        }
        committed
    }

    /// Gives back what was prepared for a part that is not to be claimed.
    pub(crate) fn forgo(&self, part: &Part) {
        if let Some((_, offer)) = part.rings {
            self.drop_unused_ring(offer);
        }
    }

    /// Works on the claim that holds a cell, until the cell is let go.
    pub(super) fn help(&self, held: Head) {
        let (Some(joint), ticket) = (&self.joint, held.ticket()) else { return };
        if joint.join(ticket) {
            self.work_on(joint, ticket);
            joint.leave(ticket);
        }
    }

    /// The head of a cell, once no claim on several holds it.
    pub(super) fn head_once_let_go(&self, cell: &Cell) -> Head {
        loop {
            let head = cell.head();
            if head.state() != State::Held {
                return head;
            }
            self.help(head);
        }
    }

    fn work_on(&self, joint: &Joint, ticket: Ticket) {
        if joint.parts(ticket).all(|part| self.hold(joint, ticket, part)) {
            joint.decide(ticket, Outcome::Committed);
        }
        let committed = joint.status(ticket).outcome() == Outcome::Committed;
        for part in joint.parts(ticket) {
            self.let_go(ticket, part, committed);
        }
    }

    /// Holds a cell for the claim. `false` if the claim has been decided, which it is if the cell has another head by now.
    fn hold(&self, joint: &Joint, ticket: Ticket, part: Part) -> bool {
        let cell = self.cells.element(part.id);
        let held = part.seen.held(ticket);
        while joint.status(ticket).outcome() == Outcome::Undecided {
            let now = cell.head();
            if now == held {
                return true;
            }
            if now == part.seen {
                if cell.claim(now, held).is_some() {
                    return true;
                }
            } else if now.state() == State::Held {
                self.help(now);
            } else {
                joint.decide(ticket, Outcome::Aborted);
            }
        }
        false
    }

    /// Lets a cell go that the claim holds.
    fn let_go(&self, ticket: Ticket, part: Part, committed: bool) {
        let cell = self.cells.element(part.id);
        let held = part.seen.held(ticket);
        if cell.head() != held {
            return;
        }
        if let (true, Some((old, new))) = (committed, part.rings) {
            self.put_larger_ring(cell, part.seen, old, new);
        }
        let after = if committed { part.next } else { part.seen };
        // Failing is as good: then somebody else has.
        let _ = cell.claim(held, after);
    }

    /// Puts a larger ring in the place of the one that a held cell has, unless somebody else has.
    fn put_larger_ring(&self, cell: &Cell, seen: Head, old: RingRef, new: RingRef) {
        let newest = if new.is_block() { Some(Slot::ancient(0, 0)) } else { self.ring(cell, old).newest(seen) };
        let Some(newest) = newest else { return };
        if cell.replace_ring(old, new) {
            self.drop_ring(old, newest);
        }
    }
}

/// How far a thread gets with a claim before it stops for ever.
#[cfg(all(test, not(tollgate_loom)))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stalled {
    WrittenDown,
    /// So many cells are held.
    Held(usize),
    /// The claim is committed, and so many cells are let go again.
    LetGo(usize),
}

#[cfg(all(test, not(tollgate_loom)))]
impl Store {
    /// Begins to claim all the parts, and stops.
    pub(crate) fn claim_and_stall<'a>(&self, parts: impl Iterator<Item = &'a Part>, stalled: Stalled) {
        let joint = self.joint.as_ref().unwrap();
        let ticket = joint.write_down(parts).unwrap();
        let (held, let_go) = match stalled {
            Stalled::WrittenDown => return,
            Stalled::Held(held) => (held, None),
            Stalled::LetGo(let_go) => (MAX_CELLS, Some(let_go)),
        };
        assert!(joint.parts(ticket).take(held).all(|part| self.hold(joint, ticket, part)));
        if let Some(let_go) = let_go {
            joint.decide(ticket, Outcome::Committed);
            joint.parts(ticket).take(let_go).for_each(|part| self.let_go(ticket, part, true));
        }
    }

    /// Puts the larger ring of a part in its place, as a helper may that saw the cell held. Says whether that changed anything.
    pub(crate) fn replaces_late(&self, part: &Part) -> bool {
        let cell = self.cells.element(part.id);
        let (old, new) = part.rings.unwrap();
        let before = cell.reference();
        self.put_larger_ring(cell, part.seen, old, new);
        cell.reference() != before
    }
}
