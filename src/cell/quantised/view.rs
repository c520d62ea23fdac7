//! A quantised log as of one head.

use super::history::{Block, Entry, History};
use super::plan::QuantisedPlan;
use crate::cell::driver::Driver;
use crate::cell::memory::At;
use crate::cell::store::Store;
use crate::cell::words::{BLOCK_CLASSES, Head, RingRef, time_of};
use crate::clock::Clock;
use crate::slab::low_half;
use crate::sync::{AtomicU64, Ordering};

/// The quantised log of one key.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Quantised<'a> {
    pub(in crate::cell) store: &'a Store,
    pub(in crate::cell) plan: &'a QuantisedPlan,
}

/// The first word of a block.
///
/// ```text
/// { step: 63, is_known: 1 }
/// ```
///
/// An unknown step has a sentinel in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest(pub(super) u64);

impl Newest {
    pub(super) fn known(step: u64) -> Self {
        Self((step << 1) | 1)
    }

    pub(super) fn unknown(sentinel: u64) -> Self {
        Self(sentinel << 1)
    }

    #[inline]
    pub(super) fn step(self) -> Option<u64> {
        (self.0 & 1 == 1).then_some(self.0 >> 1)
    }
}

/// A block, as of a head.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) at: At<'a>,
    pub(super) reference: RingRef,
    pub(super) history: History<'a>,
    /// The clock reading.
    pub(super) time: u64,
}

/// The contents of a block.
pub(super) struct Contents<E> {
    pub(super) newest: Newest,
    /// Permits granted before the newest step.
    pub(super) start: u32,
    /// Permits granted in it.
    pub(super) used: u32,
    /// The most entries.
    pub(super) most: usize,
    pub(super) entries: E,
}

impl<'a> Quantised<'a> {
    /// A block that the caller owns, with room for `most` entries at least. Its tag comes from the
    /// head that it will belong to.
    pub(super) fn new_block(self, head: Head, contents: Contents<impl Iterator<Item = Entry>>) -> RingRef {
        let Contents { newest, start, used, most, entries } = contents;
        let (class, number, words) = self.store.alloc(BLOCK_CLASSES, Block::HEADER + most);
        let block = Block::of(words).expect("a block is longer than its header");
        // Released: see "Orderings".
        let write = |word: &AtomicU64, value: u64| word.store(value, Ordering::Release);
        let mut length = 0;
        for (word, entry) in block.entries.iter().zip(entries) {
            write(word, entry.0);
            length += 1;
        }
        write(block.step, newest.0);
        write(block.counts, (u64::from(start) << 32) | u64::from(used));
        write(block.length, length);
        RingRef::new(head.ring_parity(), class, self.plan.era(head), number)
    }

    /// A block without permits for this head. Its step is not known.
    pub(super) fn new_empty_block(self, head: Head) -> RingRef {
        let newest = Newest::unknown(self.store.next_sentinel());
        let used = self.plan.used(head);
        self.new_block(head, Contents { newest, start: 0, used, most: 0, entries: core::iter::empty() })
    }

    /// The block of a reference, which may be out of date.
    #[inline]
    pub(super) fn block_of(self, reference: RingRef) -> Option<Block<'a>> {
        block_of(self.store, reference)
    }

    /// The steps of a key. `None` if the newest is not known yet.
    #[inline]
    pub(super) fn history(self, head: Head, reference: RingRef) -> Option<History<'a>> {
        Some(History { used: self.plan.used(head), ..history(self.store, reference)? })
    }

    /// The view of a cell. `None` if the cell had to be helped, or has changed.
    pub(super) fn view(self, at: At<'a>, clock: &impl Clock) -> Option<View<'a>> {
        let reference = self.ring_of(at)?;
        let history = self.history(at.head, reference);
        // Read after the newest step was seen (INV-CLOCK-LAST), at each attempt.
        let time = time_of(clock.now());
        let Some(history) = history else {
            self.help(at, reference, time);
            return None;
        };
        Some(View { at, reference, history, time })
    }
}

fn block_of(store: &Store, reference: RingRef) -> Option<Block<'_>> {
    if reference.is_block() { Block::of(store.words_at(reference)?) } else { None }
}

/// The steps of a block, with nothing used in the newest: the head has that number. `None` if the
/// newest is not known yet.
#[inline]
pub(super) fn history(store: &Store, reference: RingRef) -> Option<History<'_>> {
    let block = block_of(store, reference)?;
    let step = Newest(block.step.load(Ordering::Acquire)).step()?;
    let length = block.length.load(Ordering::Acquire);
    let length = usize::try_from(length).map_or(0, |length| length.min(block.entries.len()));
    let start = low_half(block.counts.load(Ordering::Acquire) >> 32);
    Some(History { step, used: 0, start, entries: &block.entries[..length] })
}

impl View<'_> {
    /// Whether head and block are unchanged (INV-VALIDATE).
    pub(super) fn validate(&self) -> bool {
        self.at.validate() && self.at.cell.refers_to(self.reference)
    }
}
