//! Joint claims: the words of up to eight cells are swapped together, or none of them is.
//!
//! # The protocol
//!
//! A claim is written to a *descriptor*, and then published. Its owner *installs* it in the word of
//! each part, in the order of the cells' names: it swaps the old word for a *held* word, which names
//! the descriptor. When every part has an installation the claim is *granted*, by one swap of the
//! descriptor's state. A part whose word is neither the old one nor held *aborts* the claim. At last
//! each held word is *released*: it is swapped for the new word, or for the old one.
//!
//! A thread that meets a held word helps: it joins the workers of the claim, does what the owner
//! does, and leaves. If it meets a word that another claim holds, it finishes that claim first. So
//! a thread that stops anywhere delays no other. Help ends, because a claim that is undecided
//! installs in one order: the claim that holds this cell lacks later ones only.
//!
//! # Late installations
//!
//! Words may return to earlier values: a refund does that, and an aborted claim. So a helper that
//! stops before an installation may find the old word again after the decision, and install. Each
//! installation therefore has a number of its own, and the first of each part is recorded as its
//! *winner* (INV-WINNER).
//!
//! - Until the decision no installation is taken away. So a part has one at most, and it becomes the
//!   winner before the claim is granted.
//! - Whatever another installation holds came after the decision. It held the old word, and is
//!   released to the old word.
//!
//! Each worker releases what it installed before it leaves. So when the last worker leaves, no cell
//! has a word of this claim. Then the descriptor is free: no thread can install for its former
//! claim. A thread that stops at work on a claim keeps one descriptor, and others are made.
//!
//! A thread may stop between its look at a held word and its joining. It joins only the claim of
//! that serial number. Were 2^32 other claims made meanwhile, it would help another claim, which
//! does no harm.
//!
//! # Why all or none
//!
//! When the state is swapped to granted, each part has a winner, and its word is held by it: the
//! words are the old ones, at one instant. From then on a thread that meets one of them sees the
//! new word, because it finishes the claim first. An aborted claim swaps back what it had swapped.
//! An abort is right at any time before the decision; a thread aborts only if it saw a word that
//! was neither the old one nor held, or another life. So if a claim is not granted, another thread
//! has changed one of its words since they were loaded, or begun a life, and has made progress.
//!
//! # Lives
//!
//! A key may be forgotten and asked again at the same reading, so that it has the same word in
//! another life. A part may name a life: then the claim is granted only if the key's life is that one
//! after the word is held (INV-LIFE). A refund is such a claim, of one part. The life of a later word
//! was begun before that word was swapped in, so the thread that holds the word sees it.
//!
//! # A rebuild
//!
//! A frozen word is never held: freezing finishes the claim first. When an arena is gone, all its
//! words are frozen. So each claim that had a word of it is decided and released there, and a claim
//! that finds no arena of that name is aborted, if it is not decided. Descriptors name cells by
//! number, and keep no arena. A thread that helps keeps those of the claim's cells.
//!
//! # Orderings
//!
//! - The owner's store of the state releases the descriptor's fields, and joining acquires them.
//!   Leaving releases, and taking a free descriptor acquires: all reads of the fields come before
//!   they are written again (`loom_claims_a_descriptor_is_used_again`).
//! - Recording a winner releases its installation, and loads of winners acquire it: the thread that
//!   grants the claim sees each word held or newer, so its caller sees no word of before the claim.
//!   No model turns red without these, because a compare-and-swap of loom reads the newest value
//!   even if it fails.
//! - The decision releases the winners, and who learns of it acquires them: otherwise it would take
//!   a winner for a late installation (`loom_claims_beside_a_plain_request`). Of a thread that aborts
//!   too late there is no model; `a_late_abort_changes_nothing` gives that order of events.
//! - Leaving releases the swaps of words, and a thread that comes too late to join acquires them: it
//!   finds another word when it looks again (`loom_claims_beside_a_plain_request`).
//!
//! Source: T. Harris, K. Fraser and I. Pratt, "A practical multi-word compare-and-swap operation",
//! DISC 2002. There an installation is conditional on the state, by a descriptor of its own.

use core::ops::Deref;

use super::cell::{Cell, Word};
use super::ring::Directory;
use crate::sync::CachePadded;

mod descriptor;

pub(crate) use descriptor::{CellName, Part};
use descriptor::{ClaimName, Descriptor, Held, Phase};

/// The cells of a table, by their names.
pub(crate) trait Cells {
    /// Keeps the cell's arena.
    type Cell: Deref<Target = Cell>;

    /// The cell of this name. `None` if its arena is gone: then its word is frozen.
    fn cell(&self, name: CellName) -> Option<Self::Cell>;
}

/// The joint claims of a table.
#[derive(Debug)]
pub(crate) struct Claims {
    descriptors: Directory<CachePadded<Descriptor>>,
}

/// The installation of the thread that makes the claim. Those of helpers have greater numbers.
const OWN: u64 = 1;

/// Descriptors that threads try first.
const FIRST: usize = if cfg!(test) { 2 } else { 16 };

impl Claims {
    pub(crate) fn new() -> Self {
        Self { descriptors: Directory::new(FIRST, new_descriptor) }
    }

    /// Swaps the words of all parts, or none. Returns whether it did. If not, another thread has
    /// changed one of the words since it was loaded.
    ///
    /// There are one to eight parts, each of another cell. They are sorted.
    #[inline(always)]
    pub(crate) fn claim(&self, cells: &impl Cells, parts: &mut [Part<'_>]) -> bool {
        parts.sort_unstable_by_key(|part| part.name);
        debug_assert!(parts.is_sorted_by(|one, next| one.name < next.name), "two parts with one cell");
        let (name, descriptor) = self.take();
        descriptor.publish(name.serial, parts);
        let worker = Worker { claims: self, cells, name, descriptor, parts };
        worker.end(worker.install(OWN)) == Phase::Granted
    }

    /// Finishes the claim that has the key of this word, if it still has. Then the cell has another
    /// word.
    #[cold]
    pub(crate) fn finish(&self, cells: &impl Cells, word: Word) {
        let Some(Held { claim: name, .. }) = Held::of(word) else { return };
        let descriptor = self.descriptor(name.descriptor as usize);
        let Some((phase, len)) = descriptor.join(name.serial) else { return };
        let mut parts: Vec<_> = (0..len).map(|index| descriptor.part(index)).collect();
        let found: Vec<_> = parts.iter().map(|part| cells.cell(part.name)).collect();
        parts.iter_mut().zip(&found).for_each(|(part, cell)| part.cell = cell.as_deref());
        let worker = Worker { claims: self, cells, name, descriptor, parts: &parts };
        worker.end(match phase {
            Phase::Undecided => worker.install(OWN + descriptor.number_of_helper()),
            decided => decided,
        });
    }

    /// Takes a descriptor that is free.
    fn take(&self) -> (ClaimName, &Descriptor) {
        let mut number = first_descriptor();
        loop {
            let descriptor = self.descriptor(number);
            if let Some(serial) = descriptor.take() {
                #[expect(clippy::cast_possible_truncation, reason = "a directory is smaller")]
                return (ClaimName { descriptor: number as u32, serial }, descriptor);
            }
            // Not waited for: its owner may be stalled.
            number += 1;
        }
    }

    fn descriptor(&self, number: usize) -> &Descriptor {
        self.descriptors.get(number, new_descriptor)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.descriptors.bytes()
    }
}

/// A thread at work on a claim.
struct Worker<'a, C> {
    claims: &'a Claims,
    cells: &'a C,
    name: ClaimName,
    descriptor: &'a Descriptor,
    parts: &'a [Part<'a>],
}

impl<C: Cells> Worker<'_, C> {
    /// Installs the claim in the words that have none of its installations, and decides it.
    fn install(&self, installation: u64) -> Phase {
        for (index, &Part { cell, old, life, .. }) in self.parts.iter().enumerate() {
            while self.descriptor.winner(index) == 0 {
                // Without an arena the word was frozen, so it is not `old`.
                let Some(Cell { word, .. }) = cell else { return self.descriptor.decide(Phase::Aborted) };
                if word.swap(old, self.held(installation)) {
                    self.descriptor.record(index, installation);
                    break;
                }
                let found = word.load();
                match Held::of(found) {
                    // Its worker may be stalled before it records it.
                    Some(held) if held.claim == self.name => self.descriptor.record(index, held.installation),
                    // Claims hold cells in one order, so threads that help go round in no circle.
                    Some(_) => self.claims.finish(self.cells, found),
                    // A claim had it at the swap, and put it back.
                    None if found == old => {}
                    // The new word of the claim follows from another one.
                    None => return self.descriptor.decide(Phase::Aborted),
                }
            }
            // The word that is held here is of no later life than this. If a `forget` has begun the
            // next life and is yet to swap the word, the claim may as well come after it.
            if cell.zip(life).is_some_and(|(cell, life)| cell.hint.life() != life) {
                return self.descriptor.decide(Phase::Aborted);
            }
        }
        self.descriptor.decide(Phase::Granted)
    }

    /// Releases the held words, and leaves.
    fn end(&self, decided: Phase) -> Phase {
        for (index, &Part { cell, old, new, .. }) in self.parts.iter().enumerate() {
            let Some(Cell { word, .. }) = cell else { continue };
            let winner = self.held(self.descriptor.winner(index));
            if word.swap(winner, if decided == Phase::Granted { new } else { old }) {
                continue;
            }
            let found = word.load();
            if Held::of(found).is_some_and(|held| held.claim == self.name) {
                // It was installed after the decision.
                let _ = word.swap(found, old);
            }
        }
        self.descriptor.leave();
        decided
    }

    fn held(&self, installation: u64) -> Word {
        Held { claim: self.name, installation }.pack()
    }
}

fn new_descriptor() -> Box<CachePadded<Descriptor>> {
    Box::new(CachePadded(Descriptor::new()))
}

/// The descriptor that a thread tries first: its own, as long as there are few threads. In tests the
/// same for all.
fn first_descriptor() -> usize {
    use crate::sync::plain::{AtomicU64, Ordering};

    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        #[expect(clippy::cast_possible_truncation, reason = "a remainder")]
        static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed) as usize % FIRST;
    }
    if cfg!(test) { 0 } else { OWN.with(|&own| own) }
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
