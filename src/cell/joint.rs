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
//! Exercised by `joint_loom_tests.rs`.

use super::Cells;
use super::memory::Cell;
use super::words::{Head, RingRef, Slot, State, Ticket};
use crate::slab::{Element, Slab};
use crate::sync::{AtomicU64, Ordering};

/// The most cells that one claim may be on.
pub(crate) const MAX_CELLS: usize = 8;

/// Where a claim is written down.
struct Descriptor {
    /// A [`Status`].
    status: AtomicU64,
    /// The link to the next, while it is free.
    link: AtomicU64,
    /// How many cells the claim is on.
    count: AtomicU64,
    entries: [Entry; MAX_CELLS],
}

/// A [`Part`], written down.
struct Entry {
    id: AtomicU64,
    seen: AtomicU64,
    next: AtomicU64,
    old_ring: AtomicU64,
    new_ring: AtomicU64,
}

impl Element for Descriptor {
    const BYTES: usize = 8 * (3 + 5 * MAX_CELLS);

    fn new() -> Self {
        let [status, link, count] = core::array::from_fn(|_| AtomicU64::new(0));
        Self { status, link, count, entries: core::array::from_fn(|_| Entry::new()) }
    }

    fn link(&self) -> &AtomicU64 {
        &self.link
    }
}

impl Entry {
    fn new() -> Self {
        let [id, seen, next, old_ring, new_ring] = core::array::from_fn(|_| AtomicU64::new(0));
        Self { id, seen, next, old_ring, new_ring }
    }

    fn write(&self, part: &Part) {
        let (old, new) = part.rings.map_or((0, 0), |(old, new)| (old.0, new.0));
        self.id.store(part.id.into(), Ordering::Relaxed);
        self.seen.store(part.seen.0, Ordering::Relaxed);
        self.next.store(part.next.0, Ordering::Relaxed);
        self.old_ring.store(old, Ordering::Relaxed);
        self.new_ring.store(new, Ordering::Relaxed);
    }

    fn read(&self) -> Part {
        let ring = |word: &AtomicU64| RingRef(word.load(Ordering::Relaxed));
        let new = ring(&self.new_ring);
        Part {
            #[expect(clippy::cast_possible_truncation, reason = "it was 32 bits")]
            id: self.id.load(Ordering::Relaxed) as u32,
            seen: Head(self.seen.load(Ordering::Relaxed)),
            next: Head(self.next.load(Ordering::Relaxed)),
            rings: new.is_ring().then(|| (ring(&self.old_ring), new)),
            mark: 0,
        }
    }
}

/// A part of a claim: one cell.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) id: u32,
    /// The head that was decided on.
    pub(super) seen: Head,
    /// The head after the claim.
    pub(super) next: Head,
    /// The cell's second word and the larger ring that takes its place, if it takes one.
    pub(super) rings: Option<(RingRef, RingRef)>,
    /// As that of what is charged, or zero where it comes to be known only later; of a log that keeps its ring, its
    /// stamp is no earlier. Not written down.
    pub(super) mark: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Nothing is written down.
    None = 0,
    Undecided = 1,
    Committed = 2,
    Aborted = 3,
}

/// The state of a claim.
///
/// ```text
/// { serial: 32, workers: 30, outcome: 2 }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status(u64);

impl Status {
    fn new(serial: u32, workers: u64, outcome: Outcome) -> Self {
        Self((u64::from(serial) << 32) | (workers << 2) | outcome as u64)
    }

    fn serial(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn workers(self) -> u64 {
        (self.0 & 0xffff_ffff) >> 2
    }

    fn outcome(self) -> Outcome {
        match self.0 & 3 {
            0 => Outcome::None,
            1 => Outcome::Undecided,
            2 => Outcome::Committed,
            _ => Outcome::Aborted,
        }
    }
}

/// Where claims are written down.
pub(super) struct Joint {
    pool: Slab<Descriptor>,
}

impl Joint {
    pub(super) fn new() -> Self {
        Self { pool: Slab::new(1, Ticket::NUMBERS) }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.pool.bytes()
    }

    /// Where the claim is written down.
    fn descriptor(&self, ticket: Ticket) -> &Descriptor {
        self.pool.element(self.pool.nth(ticket.number))
    }

    fn status(&self, ticket: Ticket) -> Status {
        Status(self.descriptor(ticket).status.load(Ordering::Acquire))
    }

    /// Writes a claim down, with the caller as its first worker. `None` if a million of them are going on.
    fn write_down<'a>(&self, parts: impl Iterator<Item = &'a Part>) -> Option<Ticket> {
        let block = self.pool.take()?;
        let (number, descriptor) = (self.pool.number_of(block), self.pool.element(block));
        let mut count = 0;
        for (part, entry) in parts.zip(&descriptor.entries) {
            entry.write(part);
            count += 1;
        }
        descriptor.count.store(count, Ordering::Relaxed);
        let serial = Status(descriptor.status.load(Ordering::Relaxed)).serial();
        descriptor.status.store(Status::new(serial, 1, Outcome::Undecided).0, Ordering::Release);
        Some(Ticket { number, serial })
    }

    fn parts(&self, ticket: Ticket) -> impl Iterator<Item = Part> {
        let descriptor = self.descriptor(ticket);
        let count = usize::try_from(descriptor.count.load(Ordering::Relaxed)).unwrap_or(0);
        descriptor.entries.iter().take(count).map(Entry::read)
    }

    /// Makes the caller one of the workers on a claim. `false` if it is over.
    fn join(&self, ticket: Ticket) -> bool {
        self.change(ticket, |status| {
            (status.outcome() != Outcome::None)
                .then(|| Status::new(ticket.serial, status.workers() + 1, status.outcome()))
        })
    }

    /// Ends the caller's work. The last to leave frees the place.
    ///
    /// The next claim there has another serial number, so a helper that comes late does not join it. Without that no decision would be
    /// wrong, because whoever joins is counted: but the next claim may hold cells that come before the helper's own, and then work on one
    /// claim would lead to work on another without end (see "How it works").
    fn leave(&self, ticket: Ticket) {
        let mut last = false;
        self.change(ticket, |status| {
            last = status.workers() == 1;
            Some(match last {
                true => Status::new(ticket.serial.wrapping_add(1), 0, Outcome::None),
                false => Status::new(ticket.serial, status.workers() - 1, status.outcome()),
            })
        });
        if last {
            self.pool.give_back(self.pool.nth(ticket.number));
        }
    }

    /// Decides the claim, unless somebody else has.
    fn decide(&self, ticket: Ticket, outcome: Outcome) {
        self.change(ticket, |status| {
            let undecided = status.outcome() == Outcome::Undecided;
            undecided.then(|| Status::new(ticket.serial, status.workers(), outcome))
        });
    }

    fn change(&self, ticket: Ticket, mut to: impl FnMut(Status) -> Option<Status>) -> bool {
        let to = |word| {
            let status = Status(word);
            if status.serial() == ticket.serial { to(status).map(|status| status.0) } else { None }
        };
        self.descriptor(ticket).status.fetch_update(Ordering::AcqRel, Ordering::Acquire, to).is_ok()
    }
}

impl Cells {
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
            self.replace_ring(cell, part.seen, old, new);
        }
        let after = if committed { part.next } else { part.seen };
        // Failing is as good: then somebody else has.
        let _ = cell.claim(held, after);
    }

    /// Puts a larger ring in the place of the one that a held cell has, unless somebody else has.
    fn replace_ring(&self, cell: &Cell, seen: Head, old: RingRef, new: RingRef) {
        let newest = if new.is_block() { Some(Slot::ancient(0, 0)) } else { self.ring(cell, old).newest(seen) };
        let Some(newest) = newest else { return };
        if cell.ring.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
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
impl Cells {
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
        let before = cell.ring.load(Ordering::Acquire);
        self.replace_ring(cell, part.seen, old, new);
        cell.ring.load(Ordering::Acquire) != before
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_helper_that_comes_late_joins_no_later_claim() {
        let joint = Joint::new();
        let first = joint.write_down([].iter()).unwrap();
        joint.leave(first);
        let next = joint.write_down([].iter()).unwrap();
        assert_eq!(next.number, first.number, "the same place");
        assert!(!joint.join(first) && joint.join(next));
    }
}
