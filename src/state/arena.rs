//! An arena: the cells of a shard's keys, and their rings.
//!
//! # A rebuild
//!
//! Growth, shrinking and collection are one mechanism. A *successor* is linked behind the arena,
//! and threads sweep the cells page by page. Each word is *frozen*: it never changes again
//! (INV-FROZEN). If it is live, it is copied to the successor. An empty cell is *sealed*, so that no
//! key is inserted behind the sweep. A request that meets a frozen word or a sealed cell moves its
//! key first, and goes on in the successor. When every page is swept, the root of the shard is
//! swapped.
//!
//! A key is copied at most once (INV-COPIED-ONCE): its copy is the first word of its new cell,
//! swapped in for `Word::NEW`, and no word becomes new again, except that a joint claim puts it back
//! if it is not granted. A thread that stops in the middle of a copy and goes on later finds another
//! word there.
//!
//! A page whose thread stops is swept again by others. So a thread that stops delays no other
//! (INV-SWEPT).
//!
//! # Orderings
//!
//! - The link to the successor comes before every frozen word and sealed cell: freezing and sealing
//!   release, and loads of words and tags acquire. A thread that did not see the link would only
//!   look again, so no model turns red without these.
//! - The bits of swept pages release and acquire, so that a thread that sees the new root sees all
//!   that was moved.

use core::ops::Deref;
use std::sync::Arc;

use super::cell::{Cell, CellTable, Key, Word, sized};
use super::plan::{Plans, Version, share};
use super::request::CellRef;
use super::ring::Rings;
use super::root::{ARC, Root};
use super::sync::{AtomicU64, Ordering};

/// The cells and slots of the smallest arena.
pub(super) const LEAST_CELLS: usize = sized(64, 4, 2);
pub(super) const LEAST_SLOTS: usize = sized(256, 16, 16);

/// What follows an arena.
#[derive(Clone, Debug)]
pub(super) enum Next {
    None,
    Arena(Arc<Arena>),
    /// The arena is not the root. Its successor is.
    Gone,
}

#[derive(Debug)]
pub(super) struct Arena {
    /// Its number in the shard.
    pub(super) number: u64,
    /// The quotas of its keys. Keys are copied to another arena to change them.
    pub(super) plans: Arc<Plans>,
    /// The version of all keys, if they have the same.
    pub(super) common: Option<Arc<Version>>,
    pub(super) cells: CellTable,
    pub(super) rings: Rings,
    next: Root<Next>,
    /// The first value of `next`.
    unlinked: Arc<Next>,
    /// The pages that threads have begun to sweep.
    handed: AtomicU64,
    /// A bit for each page that is swept.
    swept: Box<[AtomicU64]>,
}

impl Arena {
    /// An empty arena with so many cells and slots, or a few more.
    pub(super) fn new(number: u64, plans: Arc<Plans>, cells: usize, slots: usize) -> Arc<Self> {
        let cells = CellTable::with_room(cells);
        let pages = cells.pages().len();
        let unlinked = Arc::new(Next::None);
        Arc::new(Self {
            number,
            common: plans.common().cloned(),
            plans,
            cells,
            rings: Rings::with_room(slots),
            next: Root::new(Arc::clone(&unlinked)),
            unlinked,
            handed: AtomicU64::new(0),
            swept: core::iter::repeat_with(|| AtomicU64::new(0)).take(pages.div_ceil(64)).collect(),
        })
    }

    #[inline]
    pub(super) fn cell_ref<'a>(&'a self, cell: &'a Cell) -> CellRef<'a> {
        CellRef { word: &cell.word, hint: &cell.hint, rings: &self.rings }
    }

    /// The version for a key.
    #[inline]
    pub(super) fn version(&self, key: Key) -> &Arc<Version> {
        self.common.as_ref().unwrap_or_else(|| self.plans.of(key))
    }

    /// The cell and the word of a key that is here, if the word is open. Otherwise the key is new, or
    /// moves to another arena, or a joint claim is to be finished first.
    #[inline(always)]
    pub(super) fn open(&self, key: Key) -> Option<(&Cell, Word)> {
        let cell = self.cells.known(key)?;
        let word = cell.word.load();
        word.is_open().then_some((cell, word))
    }

    /// What follows this arena.
    pub(super) fn next(&self) -> Next {
        Next::clone(&self.next.load())
    }

    /// Whether nothing follows this arena yet.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.next.is(&self.unlinked)
    }

    /// Links a successor, unless there is one or the arena is gone. Returns whether it did.
    pub(super) fn link(&self, successor: impl FnOnce() -> Arc<Self>) -> bool {
        // Only to save an arena: the swap would fail.
        if !self.is_last() {
            return false;
        }
        let successor = Arc::new(Next::Arena(successor()));
        // First: if the thread stops behind the swap, others know that there are pages to sweep.
        self.rings.fall_due();
        self.next.swap(&self.unlinked, successor)
    }

    /// Lets the successor go, which is the root.
    pub(super) fn unlink(&self) {
        let next = self.next.load();
        if let Next::Arena(_) = Next::clone(&next) {
            let _ = self.next.swap(&next, Arc::new(Next::Gone));
        }
    }

    /// Passes the cells of a page that is not swept to `each`. If there is none, returns that all
    /// pages are swept.
    pub(super) fn sweep_page(&self, each: impl FnMut(&Cell)) -> bool {
        // Relaxed: it spreads the threads. The bits tell which pages are done.
        let (pages, handed) = (self.cells.pages().len(), self.handed.fetch_add(1, Ordering::Relaxed));
        #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of pages")]
        let first = (handed % pages as u64) as usize;
        // Once all are handed out, those of threads that stopped are swept again.
        let Some(page) = (first..pages).chain(0..first).find(|&page| !self.is_swept(page)) else { return true };
        self.cells.page(page).iter().for_each(each);
        self.swept[page / 64].fetch_or(1 << (page % 64), Ordering::Release);
        false
    }

    fn is_swept(&self, page: usize) -> bool {
        self.swept[page / 64].load(Ordering::Acquire) & 1 << (page % 64) != 0
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        2 * ARC
            + size_of::<Self>()
            + if self.is_last() { size_of::<Next>() } else { ARC + 2 * size_of::<Next>() }
            + self.cells.bytes()
            + size_of_val(&*self.swept)
            + self.plans.bytes() / Arc::strong_count(&self.plans)
            // Rounded up, as shares of plans are rounded down: there are as many of both.
            + self.common.as_ref().map_or(0, share).div_ceil(1 << 10)
            + self.rings.bytes()
    }
}

impl Deref for Arena {
    type Target = CellTable;

    #[inline(always)]
    fn deref(&self) -> &CellTable {
        &self.cells
    }
}

/// The cells and slots of an arena for so many keys.
pub(super) fn room_for(keys: usize) -> (usize, usize) {
    ((keys * 17 / 10).max(LEAST_CELLS), (2 * keys).max(LEAST_SLOTS))
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
