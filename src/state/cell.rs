//! The cells of keys: the tag, the hint and the word of each, and the search for one.
//!
//! A tag is written once, by compare-and-swap of the first empty cell of the key's probe sequence. So
//! two threads that insert one key meet at the same cell (INV-ONE-CELL).

use once_cell::race::OnceBox;

use super::sync::{AtomicU64, AtomicU128, Ordering};
use crate::fingerprint::Fingerprint;

/// The tags of cells without a key.
pub(super) const EMPTY: u64 = 0;
pub(super) const SEALED: u64 = 1;

/// The state of a key in the table: 32 bytes, half a cache line.
#[derive(Debug)]
#[cfg_attr(not(tollgate_loom), repr(align(32)))]
pub(super) struct Cell {
    pub(super) tag: AtomicU64,
    pub(super) hint: Hint,
    pub(super) word: AtomicWord,
}

#[cfg(not(tollgate_loom))]
const _: () = assert!(size_of::<Cell>() == 32);

impl Cell {
    pub(super) fn new() -> Self {
        Self { tag: AtomicU64::new(EMPTY), hint: Hint::new(), word: AtomicWord::new() }
    }

    /// The key, if there is one.
    pub(super) fn key(&self) -> Option<Key> {
        Some(self.tag.load(Ordering::Acquire)).filter(|&tag| tag > SEALED).map(|tag| Key { tag })
    }

    /// Lets no key be inserted here. Returns whether it is so.
    pub(super) fn seal(&self) -> bool {
        match self.tag.compare_exchange(EMPTY, SEALED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(tag) => tag == SEALED,
        }
    }
}

/// A *tag*: 59 bits that stand for the key, one that is always set, and the number of its quotas in
/// the lowest four. No tag is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(super) tag: u64,
}

/// The bits of a tag that have the number of the key's quotas.
const GROUP: u64 = 0xf;
const SET: u64 = GROUP + 1;

/// The most shards, as a power of two.
pub(super) const MOST_SHARD_BITS: u32 = if cfg!(tollgate_loom) { 0 } else { 4 };

impl Key {
    /// The key with this fingerprint.
    #[inline]
    pub(crate) fn of(fingerprint: Fingerprint) -> Self {
        Self { tag: fingerprint.spread() & !GROUP | fingerprint.group() as u64 | SET }
    }

    /// The key with this tag, if it is one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn with_tag(tag: u64) -> Option<Self> {
        (tag & SET != 0).then_some(Self { tag })
    }

    /// The tag.
    #[cfg(feature = "snapshot")]
    pub(crate) fn tag(self) -> u64 {
        self.tag
    }

    /// The number of its quotas: its dimension, or its tier.
    #[inline]
    pub(crate) fn group(self) -> usize {
        (self.tag & GROUP) as usize
    }

    /// Where the search for it begins: a page, of so many, and a cell of that.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the product are a page and a part of one")]
    fn home(self, pages: usize) -> (usize, usize) {
        // The keys of a shard have the highest bits in common.
        let product = u128::from(self.tag << MOST_SHARD_BITS) * pages as u128;
        ((product >> 64) as usize, (product as u64 >> (u64::BITS - PAGE.ilog2())) as usize)
    }

    /// The number of its shard, of `1 << bits`.
    #[inline]
    pub(super) fn shard(self, bits: u32) -> usize {
        // Two steps, because a shift by 64 bits is none.
        (self.tag >> 1 >> (63 - bits)) as usize
    }
}

/// Cells of a page, which is allocated when first needed: 2 KiB. Tests want many small ones.
pub(super) const PAGE: usize = sized(64, 4, 2);

/// A size, that in tests, and that in models.
pub(super) const fn sized(size: usize, in_tests: usize, in_models: usize) -> usize {
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

/// The cells of an arena, in one table with open addressing and linear probing.
#[derive(Debug)]
pub(super) struct CellTable {
    pages: Box<[OnceBox<[Cell; PAGE]>]>,
    /// The cells with a tag.
    pub(super) used: AtomicU64,
}

impl CellTable {
    /// So many cells, or a few more.
    pub(super) fn with_room(cells: usize) -> Self {
        let page = || {
            let page = OnceBox::new();
            if cfg!(tollgate_loom) {
                let _ = page.get_or_init(new_page);
            }
            page
        };
        let pages = core::iter::repeat_with(page).take(cells.div_ceil(PAGE).max(1)).collect();
        Self { pages, used: AtomicU64::new(0) }
    }

    /// The number of cells.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pages.len() * PAGE
    }

    /// The cell at an index.
    #[inline]
    pub(super) fn cell(&self, index: usize) -> &Cell {
        &self.page(index / PAGE)[index % PAGE]
    }

    /// The cell at an index, unless no cell near it was ever used.
    #[inline]
    pub(super) fn allocated(&self, index: usize) -> Option<&Cell> {
        self.allocated_in(index / PAGE, index % PAGE)
    }

    #[inline]
    fn allocated_in(&self, page: usize, within: usize) -> Option<&Cell> {
        // There is such a cell. A look that can't panic needs no code to unwind.
        self.pages.get(page)?.get()?.get(within)
    }

    /// The index at which the search for a key begins.
    pub(super) fn home(&self, key: Key) -> usize {
        let (page, within) = key.home(self.pages.len());
        page * PAGE + within
    }

    /// The cell at which the search for a key begins.
    #[inline]
    fn likely_cell(&self, key: Key) -> Option<&Cell> {
        let (page, within) = key.home(self.pages.len());
        self.allocated_in(page, within)
    }

    /// Reads the tag of the cell that the key probably has.
    #[inline]
    pub(super) fn likely(&self, key: Key) -> u64 {
        self.likely_cell(key).map_or(0, |cell| cell.tag.load(Ordering::Relaxed))
    }

    /// Looks for the key.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Found<'_> {
        let mut index = self.home(key);
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
        // Most keys are where their search begins.
        let cell = self.likely_cell(key)?;
        match cell.tag.load(Ordering::Acquire) {
            tag if tag == key.tag => Some(cell),
            EMPTY => None,
            _ => self.known_further(key),
        }
    }

    #[inline(never)]
    fn known_further(&self, key: Key) -> Option<&Cell> {
        if let Found::Cell(_, cell) = self.find(key) { Some(cell) } else { None }
    }

    /// The cell of the key of a table that has no other. If the key is not here yet, the word is new.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Cell> {
        self.allocated(0)
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

    /// Whether a rebuild is due before another key comes: 13 of 16 cells are taken. `Rings::are_due` tells
    /// whether it is due for the rings.
    pub(super) fn is_full(&self) -> bool {
        let used = usize::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        used >= self.len() / 16 * 13 + self.len() % 16 / 2
    }

    /// The pages, with those that are not allocated.
    pub(super) fn pages(&self) -> &[OnceBox<[Cell; PAGE]>] {
        &self.pages
    }

    #[inline]
    pub(super) fn page(&self, number: usize) -> &[Cell; PAGE] {
        self.pages[number].get_or_init(new_page)
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
        size_of_val(&*self.pages) + pages * size_of::<[Cell; PAGE]>()
    }
}

fn new_page() -> Box<[Cell; PAGE]> {
    Box::new(core::array::from_fn(|_| Cell::new()))
}

/// The time of a clock that reads zero: past the longest window.
pub(crate) const TIME_ZERO: u64 = 1 << 60;

/// The last time: after about 109 years of a clock. From then on no permit is granted for a shorter
/// time than it should be.
pub(super) const MAX_TIME: u64 = (1 << 62) - (1 << 34) - 1;

/// The time of a clock's reading.
#[inline]
pub(crate) fn time_of(reading: u64) -> u64 {
    TIME_ZERO + reading.min(MAX_TIME - TIME_ZERO)
}

/// The whole state of a key, as it was loaded.
///
/// ```text
/// { state: 126, held: 1, frozen: 1 }
/// ```
///
/// A word is one of these:
///
/// - *new* (zero): the key has no state in this arena. It was never asked, was left behind by a rebuild,
///   or is still to be copied;
/// - *open*, not zero: `state` is that of the key's algorithm;
/// - *forgotten*: held, and the highest bit of the state. The rest of the state is a time, before
///   which the key gets no permit. The key has no permits and takes no place at the key cap;
/// - *held* otherwise: a joint claim has the key. `state` names the claim;
/// - *frozen*, with any of these: the word never changes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(u128);

const HELD: u128 = 1 << 126;
const FROZEN: u128 = 1 << 127;
const FORGOTTEN: u128 = HELD | 1 << 125;

impl Word {
    pub(crate) const NEW: Self = Self(0);

    pub(super) const fn of(state: u128) -> Self {
        debug_assert!(state < HELD);
        Self(state)
    }

    /// A key without permits, which gets none before this time.
    pub(super) const fn forgotten(not_before: u64) -> Self {
        Self(FORGOTTEN | not_before as u128)
    }

    /// Of a key without permits, the time before which it gets none; `None` if it may have some.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a time was put in")]
    pub(super) const fn vacant_until(self) -> Option<u64> {
        if self.0 & FORGOTTEN == FORGOTTEN {
            return Some((self.0 & !(FORGOTTEN | FROZEN)) as u64);
        }
        if self.0 & !FROZEN == 0 { Some(0) } else { None }
    }

    /// Whether a joint claim has the key.
    pub(super) const fn is_held(self) -> bool {
        self.0 & (FORGOTTEN | FROZEN) == HELD
    }

    /// The state, without the flags.
    #[inline]
    pub(super) const fn state(self) -> u128 {
        self.0 & (HELD - 1)
    }

    /// Whether the state is that of the key's algorithm, and a request may change the word.
    #[inline]
    pub(super) const fn is_open(self) -> bool {
        // In halves, because comparisons of 128 bits take twice the instructions.
        let [low, high] = self.halves();
        low | high != 0 && high >> 62 == 0
    }

    /// Whether the key has moved, or is about to: the word never changes again.
    pub(super) const fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    pub(super) const fn frozen(self) -> Self {
        Self(self.0 | FROZEN)
    }

    /// The word of a key that a joint claim has. The state names the claim, in 125 bits.
    pub(super) const fn held(state: u128) -> Self {
        debug_assert!(state < 1 << 125);
        Self(HELD | state)
    }

    /// The low and the high half.
    #[expect(clippy::cast_possible_truncation, reason = "halves")]
    pub(super) const fn halves(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    pub(super) const fn of_halves([low, high]: [u64; 2]) -> Self {
        Self((high as u128) << 64 | low as u128)
    }
}

/// The word in its cell.
///
/// A request reads the ring after it has loaded the word, and swaps the word last. So the load
/// acquires, and the swap releases, the slots that the word's state names.
#[derive(Debug)]
pub(crate) struct AtomicWord(AtomicU128);

impl AtomicWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU128::new(Word::NEW.0))
    }

    #[inline]
    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Writes `new` if the word is still `old`. Returns whether it did.
    #[inline]
    #[must_use]
    pub(super) fn swap(&self, old: Word, new: Word) -> bool {
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The number of the bound that denies is in the two low bits, if it is less than three. The time
/// is above.
const BOUND_BITS: u32 = 2;
const OFF: u64 = (1 << BOUND_BITS) - 1;

/// The hint of a log: until when a request of one permit is denied. It saves the look at the ring.
///
/// A denial leaves it, and later denials read it. It needs no check against the word (INV-HINT):
///
/// - It was right for some word of this cell, because the denial checked that the word still stood
///   after it had read the slot.
/// - A grant makes no request fit earlier, and its stamp is no earlier than the hint's time. A hint
///   counts only while its time is later than the newest stamp.
/// - A refund would make it wrong, and so would a charge that does not fit. So they turn the hint
///   *off* before they swap the word, and the hint stays off as long as the cell lasts. `forget`
///   does the same, and counts the key's *lives* there, so that receipts of an earlier life are
///   told apart. A denial publishes by compare-and-swap, which fails if the hint is off.
///
/// A request loads the word before the hint. So if it sees a word that a refund has changed, it
/// sees that the hint is off. A hint is released by the thread that saw its word, and acquired: a
/// request that sees a hint of a later word sees that its own word stands no more.
#[derive(Debug)]
pub(crate) struct Hint(AtomicU64);

impl Hint {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Until when a request of one permit is denied, and by which bound, if that is later than a time.
    /// If the hint is off, its time is a number of lives, which is over.
    #[inline]
    pub(super) fn later_than(&self, time: u64) -> Option<(u64, usize)> {
        let hint = self.0.load(Ordering::Acquire);
        let (until, bound) = (hint >> BOUND_BITS, hint & OFF);
        #[expect(clippy::cast_possible_truncation, reason = "two bits")]
        (until > time).then_some((until, bound as usize))
    }

    /// Leaves a hint, unless it is off: requests of one permit are denied by this bound until that
    /// time, as of a word of this cell.
    pub(super) fn publish(&self, until: u64, bound: usize) {
        let (old, bound) = (self.0.load(Ordering::Relaxed), bound as u64);
        if old & OFF != OFF && until < 1 << (u64::BITS - BOUND_BITS) && bound < OFF {
            let new = until << BOUND_BITS | bound;
            // If it fails, the hint is off or another stands. Without it the ring answers.
            let _ = self.0.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// The key's *life*: how often its permits were ended, by `forget` or by a change of quotas, as far
    /// as its cell remembers. It is where the time is in a hint that is not off.
    #[inline]
    pub(super) fn life(&self) -> u64 {
        life_in(self.0.load(Ordering::Relaxed))
    }

    /// Turns the hint off, before a word that it may be wrong for.
    pub(super) fn turn_off(&self) {
        self.change(|life| life);
    }

    /// Turns the hint off, and begins another life, before the word of a key is forgotten.
    pub(super) fn end_life(&self) {
        self.change(|life| life + 1);
    }

    /// Goes on from this life, unless it is in a later one, before the word of a key is copied.
    pub(super) fn go_on_from(&self, life: u64) {
        if life > 0 {
            self.change(|own| own.max(life));
        }
    }

    fn change(&self, life: impl Fn(u64) -> u64) {
        let changed = |hint| Some(life(life_in(hint)) << BOUND_BITS | OFF);
        // The swap of the word, which comes after, releases it.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

#[inline]
fn life_in(hint: u64) -> u64 {
    if hint & OFF == OFF { hint >> BOUND_BITS } else { 0 }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
