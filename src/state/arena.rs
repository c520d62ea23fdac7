//! An arena: the cells of a shard's keys, and their rings.
//!
//! # Cells
//!
//! A cell has a key's *tag*, its hint and its word. Cells lie in one table with
//! open addressing and linear probing. A tag is written once, by compare-and-swap of the first
//! empty cell of the key's probe sequence. So two threads that insert one key meet at the same
//! cell (INV-ONE-CELL).
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

use std::sync::Arc;

use once_cell::race::OnceBox;

use super::cell::{Cell, EMPTY, Key, SEALED};
use super::plan::Plans;
use super::request::CellRef;
use super::ring::Rings;
use super::root::{ARC, Root};
use super::sync::{AtomicU64, Ordering};

/// Cells of a page, which is allocated when first needed: 2 KiB. Tests want many small ones.
pub(super) const PAGE: usize = sized(64, 4, 2);

/// The cells and slots of the smallest arena.
pub(super) const LEAST_CELLS: usize = sized(64, 4, 2);
pub(super) const LEAST_SLOTS: usize = sized(256, 16, 16);

/// A size, that in tests, and that in models.
const fn sized(size: usize, in_tests: usize, in_models: usize) -> usize {
    if cfg!(tollgate_loom) {
        in_models
    } else if cfg!(test) {
        in_tests
    } else {
        size
    }
}

/// The cells of a sample.
const SAMPLE: usize = 256;

/// The result of a search.
pub(super) enum Found<'a> {
    /// The key's cell, and its index.
    Cell(usize, &'a Cell),
    /// The key is not here. This is the index at which its probe sequence ends.
    End(usize),
    /// The key is not here, nor will it be: its probe sequence ends at a sealed cell, or not at all.
    Closed,
}

#[cfg(all(test, not(tollgate_loom)))]
thread_local! {
    /// The cells that searches of this thread have looked at.
    pub(super) static PROBES: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

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
    pages: Box<[OnceBox<[Cell; PAGE]>]>,
    pub(super) rings: Rings,
    next: Root<Next>,
    /// The cells with a tag.
    pub(super) used: AtomicU64,
    /// The pages that threads have begun to sweep.
    handed: AtomicU64,
    /// A bit for each page that is swept.
    swept: Box<[AtomicU64]>,
}

impl Arena {
    /// An empty arena with so many cells and slots, or a few more.
    pub(super) fn new(number: u64, plans: Arc<Plans>, cells: usize, slots: usize) -> Arc<Self> {
        let pages = cells.div_ceil(PAGE).max(1);
        let page = || {
            let page = OnceBox::new();
            if cfg!(tollgate_loom) {
                let _ = page.get_or_init(new_page);
            }
            page
        };
        Arc::new(Self {
            number,
            plans,
            pages: core::iter::repeat_with(page).take(pages).collect(),
            rings: Rings::with_room(slots),
            next: Root::new(Arc::new(Next::None)),
            used: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            swept: core::iter::repeat_with(|| AtomicU64::new(0)).take(pages.div_ceil(64)).collect(),
        })
    }

    /// The number of cells.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pages.len() * PAGE
    }

    /// The cell at an index.
    #[inline]
    pub(super) fn cell(&self, index: usize) -> &Cell {
        &self.pages[index / PAGE].get_or_init(new_page)[index % PAGE]
    }

    /// The cell at an index, unless no cell near it was ever used.
    #[inline]
    pub(super) fn allocated(&self, index: usize) -> Option<&Cell> {
        // Each index has a page. A look that can't panic needs no code to unwind.
        Some(&self.pages.get(index / PAGE)?.get()?[index % PAGE])
    }

    /// Reads the tag of the cell that the key probably has.
    #[inline]
    pub(super) fn likely(&self, key: Key) -> u64 {
        self.allocated(key.home(self.len())).map_or(0, |cell| cell.tag.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn cell_ref<'a>(&'a self, cell: &'a Cell) -> CellRef<'a> {
        CellRef { word: &cell.word, hint: &cell.hint, rings: &self.rings }
    }

    /// Looks for the key.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Found<'_> {
        let mut index = key.home(self.len());
        for _ in 0..self.len() {
            #[cfg(all(test, not(tollgate_loom)))]
            PROBES.set(PROBES.get() + 1);
            // No key was ever inserted in a page that is not allocated.
            let Some(cell) = self.allocated(index) else { return Found::End(index) };
            match cell.tag.load(Ordering::Acquire) {
                tag if tag == key.tag => return Found::Cell(index, cell),
                EMPTY => return Found::End(index),
                SEALED => return Found::Closed,
                _ => index = if index + 1 < self.len() { index + 1 } else { 0 },
            }
        }
        Found::Closed
    }

    /// The cell of a key that is here.
    #[inline(always)]
    pub(super) fn known(&self, key: Key) -> Option<&Cell> {
        if let Found::Cell(_, cell) = self.find(key) { Some(cell) } else { None }
    }

    /// The first cell, if it is that of the key.
    #[inline(always)]
    pub(super) fn first(&self, key: Key) -> Option<&Cell> {
        self.allocated(0).filter(|cell| cell.tag.load(Ordering::Acquire) == key.tag)
    }

    /// Takes the end of a probe sequence for the key. Returns whether it was still empty.
    pub(super) fn insert(&self, end: usize, key: Key) -> bool {
        let is_inserted =
            self.cell(end).tag.compare_exchange(EMPTY, key.tag, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_inserted {
            // A count that comes late does no harm: a rebuild begins long before the last cell.
            self.used.fetch_add(1, Ordering::Relaxed);
        }
        is_inserted
    }

    /// Whether a rebuild is due before another key comes: nearly all cells are taken. Whether it is
    /// due for the rings is asked by those who take one.
    pub(super) fn is_full(&self) -> bool {
        let used = usize::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        used >= self.len() / 16 * 13 + self.len() % 16 / 2
    }

    /// What follows this arena.
    pub(super) fn next(&self) -> Next {
        Next::clone(&self.next.load())
    }

    /// Links a successor, unless there is one or the arena is gone. Returns whether it did.
    pub(super) fn link(&self, successor: impl FnOnce() -> Arc<Self>) -> bool {
        let next = self.next.load();
        // Only to save an arena: the swap would fail.
        if !matches!(Next::clone(&next), Next::None) {
            return false;
        }
        let successor = Arc::new(Next::Arena(successor()));
        // First: if the thread stops behind the swap, others know that there are pages to sweep.
        self.rings.fall_due();
        self.next.swap(&next, successor)
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
        let (pages, handed) = (self.pages.len(), self.handed.fetch_add(1, Ordering::Relaxed));
        #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of pages")]
        let first = (handed % pages as u64) as usize;
        // Once all are handed out, those of threads that stopped are swept again.
        let Some(page) = (first..pages).chain(0..first).find(|&page| !self.is_swept(page)) else { return true };
        self.pages[page].get_or_init(new_page).iter().for_each(each);
        self.swept[page / 64].fetch_or(1 << (page % 64), Ordering::Release);
        false
    }

    fn is_swept(&self, page: usize) -> bool {
        self.swept[page / 64].load(Ordering::Acquire) & 1 << (page % 64) != 0
    }

    /// All cells that have been allocated.
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.pages.iter().filter_map(OnceBox::get).flatten()
    }

    /// The cells of a sample, and how many they are: neighbours, which are those of any keys,
    /// because fingerprints are random.
    pub(super) fn sample(&self, start: u64) -> (usize, impl Iterator<Item = &Cell>) {
        let pages = SAMPLE.div_ceil(PAGE).min(self.pages.len());
        let start = usize::try_from(start % self.pages.len() as u64).unwrap_or(0);
        let sample = (0..pages).map(move |page| &self.pages[(start + page) % self.pages.len()]);
        (pages * PAGE, sample.filter_map(OnceBox::get).flatten())
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let pages = self.pages.iter().filter(|page| page.get().is_some()).count();
        2 * ARC
            + size_of::<Self>()
            + size_of::<Next>()
            + size_of_val(&*self.pages)
            + size_of_val(&*self.swept)
            + pages * size_of::<[Cell; PAGE]>()
            + self.plans.bytes() / Arc::strong_count(&self.plans)
            + self.rings.bytes()
    }
}

/// The cells and slots of an arena for so many keys.
pub(super) fn room_for(keys: usize) -> (usize, usize) {
    ((keys * 17 / 10).max(LEAST_CELLS), (2 * keys).max(LEAST_SLOTS))
}

fn new_page() -> Box<[Cell; PAGE]> {
    Box::new(core::array::from_fn(|_| Cell::new()))
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
