//! A slab: equal blocks, named by number, that are allocated and freed without locks. Its memory is
//! type-stable (INV-TYPE-STABLE): any module may read a block that has another owner by now, and
//! find that out afterwards.
//!
//! Blocks lie in pages that are allocated when first needed. Sixteen pages have the first size, the
//! next eight twice that, the next eight four times, and so on: at most an eighth of the memory,
//! and the first page, is unused. A block's number is its page and its place in the page, so no
//! arithmetic is needed to find it.
//!
//! Free blocks form a Treiber stack (R. K. Treiber, "Systems Programming: Coping with Parallelism",
//! 1986). Its top has a count of changes, so a thread that stalls between the load of a link and
//! the swap of the top fails (INV-POOL).
//!
//! # Orderings
//! - `top`: a push releases the block's last use, and a pop acquires it. So writes of the last
//!   owner come before those of the next.
//! - Links are released, because a reader of the block's last owner may still look: a thread that
//!   sees a link sees that the owner is gone.
//! - `handed` is a counter only: the block that it names was never used.
//!
//! The models are `loom_pool` and, for links,
//! `loom_a_clock_that_lags_behind_the_sweep_gains_nothing`.

use once_cell::race::OnceBox;

use crate::sync::{AtomicU64, CachePadded, Ordering};

/// Set in every link and in no stamp: a late write that expects a stamp misses a link (INV-LATE).
pub(crate) const LINK: u64 = !0 << 36;

/// Bytes in a page of the first size, unless one block is larger than that.
const FIRST_PAGE_BYTES: usize = if cfg!(tollgate_loom) { 128 } else { 2048 };

/// Elements of half a cache line in a page of the first size: a length that the compiler knows.
const FIRST_PAGE_ELEMENTS: usize = FIRST_PAGE_BYTES / 32;

/// The page sizes double every `1 << STEP_BITS` pages.
const STEP_BITS: u32 = 3;

/// Pages of the first size.
pub(crate) const FIRST_PAGES: usize = 2 << STEP_BITS;

/// Names a block.
///
/// ```text
/// { page: 8, place: 24 }
/// ```
type Block = u32;

const PLACE_BITS: u32 = 24;

/// The most blocks of one slab, of any size. With a first page of 2^f blocks the largest pages are
/// the eight of 2^24, and all pages together have 2^28.
pub(crate) const MOST_BLOCKS: u32 = 1 << (PLACE_BITS + 1 + STEP_BITS);

const IS_THERE: &str = "a block's number is known only once its page is there";

type FirstPage<T> = [T; FIRST_PAGE_ELEMENTS];
type Page<T> = Box<[T]>;

/// An element of a block.
pub(crate) trait Element {
    /// Its size in bytes outside of models: atomics of the model checker are larger.
    const BYTES: usize;

    /// A new element.
    fn new() -> Self;

    /// The word that holds the link to the next free block, in a block's first element.
    fn link(&self) -> &AtomicU64;
}

impl Element for AtomicU64 {
    const BYTES: usize = 8;

    fn new() -> Self {
        Self::new(0)
    }

    fn link(&self) -> &AtomicU64 {
        self
    }
}

fn first_page_bits<T: Element>(length: usize) -> u32 {
    (FIRST_PAGE_BYTES / (T::BYTES * length)).max(1).ilog2()
}

/// Blocks of elements. `NEAR` of its pages (none or [`FIRST_PAGES`]) are one load nearer than the
/// others, because the compiler knows their length.
pub(crate) struct Slab<T = AtomicU64, const NEAR: usize = 0> {
    /// Elements in a block.
    length: usize,
    /// log2 of the blocks in a page of the first size.
    first_page_bits: u32,
    max_blocks: u32,
    near: [OnceBox<FirstPage<T>>; NEAR],
    /// The other pages.
    pages: Box<[OnceBox<Page<T>>]>,
    free: CachePadded<Free>,
}

/// The words that allocation writes. Every decision reads the others.
struct Free {
    /// The number of blocks ever used.
    handed: AtomicU64,
    /// The top of the free stack: changes in the upper half, number + 1 of the block in the lower.
    top: AtomicU64,
}

impl<T: Element, const NEAR: usize> Slab<T, NEAR> {
    /// A slab of up to `max_blocks` blocks of `length` elements.
    pub(crate) fn new(length: usize, max_blocks: u32) -> Self {
        const { assert!(NEAR == 0 || NEAR == FIRST_PAGES && T::BYTES * FIRST_PAGE_ELEMENTS == FIRST_PAGE_BYTES) };
        assert!(NEAR == 0 || length == 1, "near pages are for blocks of one element, not of {length}");
        let first_page_bits = first_page_bits::<T>(length);
        let mut slab = Self {
            length,
            first_page_bits,
            max_blocks: max_blocks.min(MOST_BLOCKS),
            near: [const { OnceBox::new() }; NEAR],
            pages: Box::default(),
            free: CachePadded(Free { handed: AtomicU64::new(0), top: AtomicU64::new(0) }),
        };
        let (last_page, _) = slab.locate(slab.max_blocks.saturating_sub(1));
        let others = (last_page + 1).saturating_sub(NEAR);
        slab.pages = core::iter::repeat_with(OnceBox::new).take(others).collect();
        if cfg!(tollgate_loom) {
            // The model checker needs its atomics before threads start.
            let (last_page, _) = slab.locate(max_blocks.min(8) - 1);
            (0..=last_page).for_each(|page| slab.make_page(page));
        }
        slab
    }

    /// The page and the place of the `number`-th block, counted from zero.
    fn locate(&self, number: u32) -> (usize, u32) {
        let unit = number >> self.first_page_bits;
        let doublings = (unit | (1 << STEP_BITS)).ilog2() - STEP_BITS;
        let page = (doublings << STEP_BITS) + (unit >> doublings);
        let place = number & ((1 << (self.first_page_bits + doublings)) - 1);
        (page as usize, place)
    }

    /// The `number`-th block, counted from zero.
    pub(crate) fn nth(&self, number: u32) -> Block {
        let (page, place) = self.locate(number);
        (low_half(page as u64) << PLACE_BITS) | place
    }

    /// The count of blocks before this one: the inverse of [`nth`](Self::nth).
    pub(crate) fn number_of(&self, block: Block) -> u32 {
        let (page, place) = (block >> PLACE_BITS, block & ((1 << PLACE_BITS) - 1));
        let doublings = (page >> STEP_BITS).saturating_sub(1);
        (((page - (doublings << STEP_BITS)) << doublings) << self.first_page_bits) + place
    }

    #[inline]
    fn page_and_place(block: Block) -> (usize, usize) {
        ((block >> PLACE_BITS) as usize, (block & ((1 << PLACE_BITS) - 1)) as usize)
    }

    fn page_length(&self, page: usize) -> usize {
        let doublings = (page >> STEP_BITS).saturating_sub(1);
        self.length << (self.first_page_bits as usize + doublings)
    }

    /// The elements of a page, if it is allocated.
    #[inline]
    fn page(&self, page: usize) -> Option<&[T]> {
        match page.checked_sub(NEAR) {
            None => self.near.get(page)?.get().map(|elements| elements.as_slice()),
            Some(other) => self.pages.get(other)?.get().map(|elements| &**elements),
        }
    }

    /// The elements of a block that was ever used.
    #[inline]
    pub(crate) fn block(&self, block: Block) -> &[T] {
        self.block_if_there(block).expect(IS_THERE)
    }

    /// The only element of a block.
    #[inline]
    pub(crate) fn element(&self, block: Block) -> &T {
        self.element_if_there(block).expect(IS_THERE)
    }

    /// The only element of a block, if its page is allocated.
    #[inline]
    pub(crate) fn element_if_there(&self, block: Block) -> Option<&T> {
        let (page, place) = Self::page_and_place(block);
        self.page(page)?.get(place)
    }

    /// The elements of a block, if its page is allocated.
    #[inline]
    pub(crate) fn block_if_there(&self, block: Block) -> Option<&[T]> {
        let (page, place) = Self::page_and_place(block);
        // A number that never was a block's may lead past the page.
        let start = place.wrapping_mul(self.length);
        self.page(page)?.get(start..)?.get(..self.length)
    }

    fn link(&self, block: Block) -> &AtomicU64 {
        self.block(block)[0].link()
    }

    /// Allocates a block, with the contents that its last owner left; `None` if all are taken.
    pub(crate) fn alloc(&self) -> Option<Block> {
        self.pop().or_else(|| self.alloc_unused())
    }

    fn pop(&self) -> Option<Block> {
        let mut top = self.free.top.load(Ordering::Acquire);
        loop {
            let block = low_half(top).checked_sub(1)?;
            // If another thread takes the block and writes over the link, the swap below fails.
            let next = self.link(block).load(Ordering::Relaxed) & !LINK;
            let new = with_changes(top, low_half(next));
            match self.free.top.compare_exchange(top, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(block),
                Err(now) => top = now,
            }
        }
    }

    fn alloc_unused(&self) -> Option<Block> {
        let limit = u64::from(self.max_blocks);
        let more = |handed| if handed < limit { Some(handed + 1) } else { None };
        let number = low_half(self.free.handed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?);
        let (page, _) = self.locate(number);
        self.make_page(page);
        Some(self.nth(number))
    }

    fn make_page(&self, page: usize) {
        let elements = || core::iter::repeat_with(T::new).take(self.page_length(page)).collect::<Page<T>>();
        match page.checked_sub(NEAR) {
            // Without an array on the stack.
            None => {
                let first = || elements().try_into().map_err(drop).expect("a page of the first size");
                self.near[page].get_or_init(first);
            }
            Some(other) => {
                self.pages[other].get_or_init(|| Box::new(elements()));
            }
        }
    }

    /// Frees a block. The caller must own it.
    pub(crate) fn free(&self, block: Block) {
        let link = self.link(block);
        let mut top = self.free.top.load(Ordering::Relaxed);
        loop {
            link.store(u64::from(low_half(top)) | LINK, Ordering::Release);
            let new = with_changes(top, block + 1);
            match self.free.top.compare_exchange(top, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// The number of blocks ever used.
    pub(crate) fn handed_out(&self) -> u32 {
        low_half(self.free.handed.load(Ordering::Relaxed))
    }

    /// The most blocks in use at once.
    #[cfg(feature = "policy")]
    pub(crate) fn max_blocks(&self) -> usize {
        usize::try_from(self.max_blocks).unwrap_or(usize::MAX)
    }

    /// Whether a block can be allocated; an estimate.
    pub(crate) fn has_room(&self) -> bool {
        low_half(self.free.top.load(Ordering::Relaxed)) != 0 || self.handed_out() < self.max_blocks
    }

    /// The number of blocks that can be allocated, up to `most`; an estimate.
    pub(crate) fn room_up_to(&self, most: usize) -> usize {
        loop {
            let unused = self.max_blocks.saturating_sub(self.handed_out());
            let mut room = most.min(usize::try_from(unused).unwrap_or(usize::MAX));
            let top = self.free.top.load(Ordering::Acquire);
            let mut block = low_half(top);
            while room < most {
                let Some(number) = block.checked_sub(1) else { break };
                let Some([first, ..]) = self.block_if_there(number) else { break };
                room += 1;
                block = low_half(first.link().load(Ordering::Acquire) & !LINK);
            }
            // The link of a block that was allocated meanwhile may name any block, or none.
            if room == most || self.free.top.load(Ordering::Relaxed) == top {
                return room;
            }
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let near = self.near.iter().filter_map(OnceBox::get).map(size_of_val);
        let others = self.pages.iter().filter_map(OnceBox::get).map(|page| size_of_val(&**page) + size_of::<Page<T>>());
        near.chain(others).sum::<usize>() + size_of_val(&*self.pages)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
pub(crate) fn low_half(word: u64) -> u32 {
    word as u32
}

/// The next value of `top`: one more change, and another block.
fn with_changes(top: u64, block_plus_one: u32) -> u64 {
    ((top >> 32).wrapping_add(1) << 32) | u64::from(block_plus_one)
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
