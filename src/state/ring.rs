//! Rings of stamps, and the part of an arena that they lie in.
//!
//! A ring belongs to one word from its allocation to the end of its arena. It is never freed alone:
//! a rebuild copies the rings in use to another arena.
//!
//! Short rings lie in pages. Each longer ring is an allocation of its own. Pages and long rings are
//! allocated when first needed, so no request waits for more than one of them.

use core::ops::Deref;

use once_cell::race::OnceBox;

use super::sync::{AtomicU64, Ordering};
use super::word::{MAX_CLASS, RingRef};
use crate::sync::plain;

/// Slots of a page: 4 KiB. Tests want many small ones.
const PAGE: usize = if cfg!(test) { 8 } else { 1 << 9 };

/// The class of the longest ring that lies in a page.
pub(super) const MAX_SHORT: u32 = PAGE.ilog2() - 1;

type Page = [AtomicU64; PAGE];

/// The slots of a key, oldest stamp first from its position on. The length is a power of two, or
/// zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'a>(&'a [AtomicU64]);

impl Ring<'_> {
    pub(super) const NONE: Self = Self(&[]);

    /// Writes a value that is greater than that of a slot. A slot that has as much is left as it is.
    #[inline]
    pub(super) fn raise(self, slot: usize, to: u64) {
        let slot = &self[slot];
        let mut value = slot.load(Ordering::Acquire);
        while value < to {
            match slot.compare_exchange(value, to, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => value = other,
            }
        }
    }
}

impl Deref for Ring<'_> {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        self.0
    }
}

/// The rings of an arena.
#[derive(Debug)]
pub(super) struct Rings {
    /// The slots that are planned.
    planned: u64,
    /// The slots above which a rebuild is due, which collects the rings that are not in use. While the
    /// arena is being filled there is no such number.
    room: plain::AtomicU64,
    /// Whether the arena is due for a rebuild, as far as this thread knows.
    due: plain::AtomicBool,
    /// The slots handed out.
    slots: plain::AtomicU64,
    /// Where the next short ring may begin, in all pages.
    short: AtomicU64,
    /// The number of long rings handed out.
    long_rings_handed: AtomicU64,
    pages: Directory<Page>,
    long_rings: Directory<Box<[AtomicU64]>>,
}

impl Rings {
    /// Room for about so many slots.
    pub(super) fn with_room(slots: usize) -> Self {
        Self {
            planned: slots as u64,
            room: plain::AtomicU64::new(u64::MAX),
            due: plain::AtomicBool::new(false),
            slots: plain::AtomicU64::new(0),
            short: AtomicU64::new(0),
            long_rings_handed: AtomicU64::new(0),
            pages: Directory::new(slots.div_ceil(PAGE), new_page),
            long_rings: Directory::new(slots.div_ceil(2 * PAGE), || Box::new(Box::default())),
        }
    }

    /// Whether the arena is due for a rebuild, or in one, as far as this thread knows.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// From now on they are due.
    pub(super) fn fall_due(&self) {
        self.due.store(true, Ordering::Relaxed);
    }

    /// The arena has been filled. From now on it may be full: with the planned slots, or twice
    /// those in use, if that is more.
    pub(super) fn settle(&self) {
        let room = self.planned.max(2 * self.slots());
        let _ = self.room.compare_exchange(u64::MAX, room, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A ring of zeros that no word names. It lasts as long as the arena. `None` once the numbers
    /// have run out, after 16 GiB of slots.
    pub(super) fn take(&self, class: u32) -> Option<RingRef> {
        debug_assert!((1..=MAX_CLASS).contains(&class));
        let len = 1_u64 << class;
        let number = if class <= MAX_SHORT {
            // Aligned to its length, so that it lies in one page.
            let start = |next: u64| next.next_multiple_of(len);
            let mut next = self.short.load(Ordering::Relaxed);
            loop {
                match self.short.compare_exchange(next, start(next) + len, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => break start(next) / 2,
                    Err(other) => next = other,
                }
            }
        } else {
            self.long_rings_handed.fetch_add(1, Ordering::Relaxed)
        };
        if self.slots.fetch_add(len, Ordering::Relaxed) + len > self.room.load(Ordering::Relaxed) {
            self.fall_due();
        }
        let number = u32::try_from(number).ok().filter(|&number| number < 1 << 30)?;
        Some(RingRef { class, number })
    }

    /// The ring of that name.
    #[inline]
    pub(super) fn get(&self, ring: RingRef) -> Ring<'_> {
        if ring.class == 0 {
            return Ring::NONE;
        }
        let number = ring.number as usize;
        if ring.class <= MAX_SHORT {
            let start = number * 2 % PAGE;
            let page = self.pages.get(number * 2 / PAGE, new_page);
            return Ring(&page[start..start + ring.len()]);
        }
        Ring(self.long_rings.get(number, || Box::new((0..ring.len()).map(|_| slot()).collect())))
    }

    /// Hands out all names that there are.
    #[cfg(all(test, not(tollgate_loom)))]
    pub(super) fn run_out(&self) {
        self.short.store(1 << 31, Ordering::Relaxed);
        self.long_rings_handed.store(1 << 30, Ordering::Relaxed);
    }

    /// The slots handed out.
    #[inline]
    pub(super) fn slots(&self) -> u64 {
        self.slots.load(Ordering::Relaxed)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let long: usize = self.long_rings.iter().map(|slots| size_of_val(&**slots)).sum();
        self.pages.bytes() + self.long_rings.bytes() + long
    }
}

/// Values that are made when they are first looked for. Most are found by one load of a pointer.
#[derive(Debug)]
pub(super) struct Directory<T> {
    first: Box<[OnceBox<T>]>,
    /// Twice as many as all before, each.
    more: [OnceBox<Box<[OnceBox<T>]>>; 20],
}

impl<T> Directory<T> {
    pub(super) fn new(count: usize, make: impl Fn() -> Box<T>) -> Self {
        let first = || {
            let place = OnceBox::new();
            if cfg!(tollgate_loom) {
                // Models take allocations as given: loom does not see how a `OnceBox` synchronises.
                let _ = place.get_or_init(&make);
            }
            place
        };
        Self {
            first: core::iter::repeat_with(first).take(count.max(1)).collect(),
            more: core::array::from_fn(|_| OnceBox::new()),
        }
    }

    #[inline]
    pub(super) fn get(&self, number: usize, make: impl Fn() -> Box<T>) -> &T {
        match self.first.get(number) {
            Some(place) => place.get_or_init(make),
            None => self.get_more(number, make),
        }
    }

    #[cold]
    fn get_more(&self, number: usize, make: impl Fn() -> Box<T>) -> &T {
        let first = self.first.len();
        let level = (number / first).ilog2();
        let places = self.more[level as usize]
            .get_or_init(|| Box::new(core::iter::repeat_with(OnceBox::new).take(first << level).collect()));
        places[number - (first << level)].get_or_init(make)
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.more.iter().filter_map(OnceBox::get).flat_map(|places| places.iter());
        self.first.iter().chain(more).filter_map(OnceBox::get)
    }

    pub(super) fn bytes(&self) -> usize {
        let more: usize = self.more.iter().filter_map(OnceBox::get).map(|places| size_of_val(&**places)).sum();
        size_of_val(&*self.first) + more + self.iter().count() * size_of::<T>()
    }
}

fn new_page() -> Box<Page> {
    Box::new(core::array::from_fn(|_| slot()))
}

fn slot() -> AtomicU64 {
    AtomicU64::new(0)
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
