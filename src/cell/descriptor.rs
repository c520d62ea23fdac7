//! Descriptors of joint claims: a slab of records, each with a count of its workers.

use super::words::{Head, RingRef, Ticket};
use crate::slab::{Element, Slab, low_half};
use crate::sync::{AtomicU64, Ordering};

/// The most cells of one joint claim.
pub(crate) const MAX_CELLS: usize = 8;

/// The record of one joint claim.
struct Descriptor {
    /// A [`JointState`].
    state: AtomicU64,
    /// The link to the next free descriptor.
    link: AtomicU64,
    /// The number of cells.
    count: AtomicU64,
    /// The words of each [`Part`].
    parts: [[AtomicU64; Part::WORDS]; MAX_CELLS],
}

impl Element for Descriptor {
    const BYTES: usize = 8 * (3 + Part::WORDS * MAX_CELLS);

    fn new() -> Self {
        let word = |_| AtomicU64::new(0);
        let [state, link, count] = core::array::from_fn(word);
        Self { state, link, count, parts: core::array::from_fn(|_| core::array::from_fn(word)) }
    }

    fn link(&self) -> &AtomicU64 {
        &self.link
    }
}

/// A part of a joint claim: one cell.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) id: u32,
    /// The head that was decided on.
    pub(super) seen: Head,
    /// The head after the claim.
    pub(super) next: Head,
    /// The cell's second word and the ring that replaces it, if one does.
    pub(super) rings: Option<(RingRef, RingRef)>,
    /// As in [`Charge`](super::driver::Charge); zero if it is known later. For a log that
    /// keeps its ring: a lower bound of the stamp. Not in the descriptor.
    pub(super) mark: u64,
}

impl Part {
    const WORDS: usize = 5;

    fn words(&self) -> [u64; Self::WORDS] {
        let (old, new) = self.rings.map_or((0, 0), |(old, new)| (old.0, new.0));
        [self.id.into(), self.seen.0, self.next.0, old, new]
    }

    fn of([id, seen, next, old, new]: [u64; Self::WORDS]) -> Self {
        let rings = RingRef(new).is_ring().then_some((RingRef(old), RingRef(new)));
        Self { id: low_half(id), seen: Head(seen), next: Head(next), rings, mark: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The descriptor is free.
    None = 0,
    Undecided = 1,
    Committed = 2,
    Aborted = 3,
}

/// The state of a joint claim.
///
/// ```text
/// { serial: 32, workers: 30, outcome: 2 }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JointState(u64);

impl JointState {
    fn new(serial: u32, workers: u64, outcome: Outcome) -> Self {
        Self((u64::from(serial) << 32) | (workers << 2) | outcome as u64)
    }

    fn serial(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn workers(self) -> u64 {
        (self.0 & 0xffff_ffff) >> 2
    }

    pub(super) fn outcome(self) -> Outcome {
        match self.0 & 3 {
            0 => Outcome::None,
            1 => Outcome::Undecided,
            2 => Outcome::Committed,
            _ => Outcome::Aborted,
        }
    }
}

/// All descriptors.
pub(super) struct Descriptors {
    pool: Slab<Descriptor>,
}

impl Descriptors {
    pub(super) fn new() -> Self {
        Self { pool: Slab::new(1, Ticket::NUMBERS) }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.pool.bytes()
    }

    /// The descriptor of a claim.
    fn descriptor(&self, ticket: Ticket) -> &Descriptor {
        self.pool.element(self.pool.nth(ticket.number))
    }

    pub(super) fn state(&self, ticket: Ticket) -> JointState {
        JointState(self.descriptor(ticket).state.load(Ordering::Acquire))
    }

    /// Writes a descriptor, with the caller as its first worker. `None` if a million claims are in
    /// progress.
    pub(super) fn write_descriptor<'a>(&self, parts: impl Iterator<Item = &'a Part>) -> Option<Ticket> {
        let block = self.pool.alloc()?;
        let (number, descriptor) = (self.pool.number_of(block), self.pool.element(block));
        let mut count = 0;
        for (part, atomic) in parts.zip(&descriptor.parts) {
            for (atomic, word) in atomic.iter().zip(part.words()) {
                atomic.store(word, Ordering::Relaxed);
            }
            count += 1;
        }
        descriptor.count.store(count, Ordering::Relaxed);
        let serial = JointState(descriptor.state.load(Ordering::Relaxed)).serial();
        descriptor.state.store(JointState::new(serial, 1, Outcome::Undecided).0, Ordering::Release);
        Some(Ticket { number, serial })
    }

    pub(super) fn parts(&self, ticket: Ticket) -> impl Iterator<Item = Part> {
        let descriptor = self.descriptor(ticket);
        let count = usize::try_from(descriptor.count.load(Ordering::Relaxed)).unwrap_or(0);
        let read = |part: &[AtomicU64; Part::WORDS]| Part::of(part.each_ref().map(|word| word.load(Ordering::Relaxed)));
        descriptor.parts.iter().take(count).map(read)
    }

    /// Makes the caller a worker. `false` if the claim is over.
    pub(super) fn join(&self, ticket: Ticket) -> bool {
        self.change(ticket, |state| {
            (state.outcome() != Outcome::None)
                .then(|| JointState::new(ticket.serial, state.workers() + 1, state.outcome()))
        })
    }

    /// Ends the caller's work. The last worker frees the descriptor (INV-WORKERS).
    ///
    /// The next claim has another serial number, so a late helper does not join it. If it did, no
    /// decision would be wrong, because workers are counted. But the next claim may hold cells that
    /// come earlier, and help might not end (INV-HOLD-ORDER).
    pub(super) fn leave(&self, ticket: Ticket) {
        let mut last = false;
        self.change(ticket, |state| {
            last = state.workers() == 1;
            Some(match last {
                true => JointState::new(ticket.serial.wrapping_add(1), 0, Outcome::None),
                false => JointState::new(ticket.serial, state.workers() - 1, state.outcome()),
            })
        });
        if last {
            self.pool.free(self.pool.nth(ticket.number));
        }
    }

    /// Decides the claim, unless another worker has (INV-ALL-OR-NONE).
    pub(super) fn decide(&self, ticket: Ticket, outcome: Outcome) {
        self.change(ticket, |state| {
            let undecided = state.outcome() == Outcome::Undecided;
            undecided.then(|| JointState::new(ticket.serial, state.workers(), outcome))
        });
    }

    fn change(&self, ticket: Ticket, mut to: impl FnMut(JointState) -> Option<JointState>) -> bool {
        let to = |word| {
            let state = JointState(word);
            if state.serial() == ticket.serial { to(state).map(|state| state.0) } else { None }
        };
        self.descriptor(ticket).state.fetch_update(Ordering::AcqRel, Ordering::Acquire, to).is_ok()
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_helper_that_comes_late_joins_no_later_claim() {
        let descriptors = Descriptors::new();
        let first = descriptors.write_descriptor([].iter()).unwrap();
        descriptors.leave(first);
        let next = descriptors.write_descriptor([].iter()).unwrap();
        assert_eq!(next.number, first.number, "the same place");
        assert!(!descriptors.join(first) && descriptors.join(next));
    }
}
