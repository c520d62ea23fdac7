//! Rings of slots, and the part of an arena that they lie in.
//!
//! A ring is taken for one key, and no other key gets it as long as its arena lasts. It is
//! never freed alone: a rebuild copies the rings in use to another arena.
//!
//! The slots of an arena are numbered, and the first one names a ring. Short rings lie in pages, each
//! in one. Each longer ring is an allocation of its own. Pages and long rings are allocated when first
//! needed.

use core::ops::Deref;

use super::sync::{AtomicU64, Ordering};
use crate::sync::plain;
use once_cell::race::OnceBox;

/// Slots of a page: 4 KiB. Tests want many small ones.
const PAGE: usize = if cfg!(test) { 8 } else { 1 << 9 };

type Page = [AtomicU64; PAGE];

/// The most slots of a ring: it holds the reserved permits of the largest limit beside its live ones.
pub(super) const MAX_LEN: u32 = 1 << 21;

/// The slots of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'a>(&'a [AtomicU64]);

impl Ring<'_> {
    /// The number of slots: at most [`MAX_LEN`].
    #[expect(clippy::cast_possible_truncation, reason = "it is at most that")]
    pub(super) fn slots(self) -> u32 {
        self.len() as u32
    }

    /// The slot that is so far back from a position, which is at most the ring's length. The one before
    /// it is 1 back; the one before the first slot is the last.
    #[inline(always)]
    fn slot(&self, position: u32, back: u32) -> &AtomicU64 {
        let around = if position < back { self.len() } else { 0 };
        &self[(around + position as usize).wrapping_sub(back as usize)]
    }

    /// The value of the slot so far back from a position.
    #[inline(always)]
    pub(super) fn load(self, position: u32, back: u32) -> u64 {
        self.slot(position, back).load(Ordering::Acquire)
    }

    /// Raises the last `count` slots before a position to a value. A slot that has as much is left as
    /// it is.
    #[inline(always)]
    pub(super) fn raise_last(self, position: u32, count: u32, to: u64) {
        // Most grants are of one permit, and need no walk.
        if count == 1 {
            return raise(self.slot(position, 1), to);
        }
        let (before, around) = self.split_at(position as usize);
        before.iter().rev().chain(around.iter().rev()).take(count as usize).for_each(|slot| raise(slot, to));
    }
}

/// Writes a value that is greater than that of a slot. A slot that has as much is left as it is.
#[inline(always)]
fn raise(slot: &AtomicU64, to: u64) {
    // INV-SPILL-BELOW, never lower: another thread may have spilled a later grant here meanwhile.
    let mut value = slot.load(Ordering::Acquire);
    while value < to {
        match slot.compare_exchange(value, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => break,
            Err(other) => value = other,
        }
    }
}

impl Deref for Ring<'_> {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        self.0
    }
}

/// The rings of an arena.
#[derive(Debug)]
pub(super) struct Rings {
    /// The slots that are planned.
    planned: u64,
    /// With so many slots a rebuild is due, which collects the rings that are not in use. There is no
    /// such number while the arena is being filled. It is zero once a rebuild has begun.
    room: plain::AtomicU64,
    /// The slots handed out.
    slots: plain::AtomicU64,
    /// Where the next ring may begin.
    next: AtomicU64,
    pages: Directory<Page>,
    long: Directory<Box<[AtomicU64]>>,
}

impl Rings {
    /// Room for about so many slots.
    pub(super) fn with_room(slots: usize) -> Self {
        Self {
            planned: slots as u64,
            room: plain::AtomicU64::new(u64::MAX),
            slots: plain::AtomicU64::new(0),
            next: AtomicU64::new(0),
            pages: Directory::new(slots.div_ceil(PAGE), new_page),
            long: Directory::new(1, || Box::new(Box::default())),
        }
    }

    /// Whether the arena is due for a rebuild, or in one, as far as this thread knows.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.slots() >= self.room.load(Ordering::Relaxed)
    }

    /// From now on they are due.
    pub(super) fn fall_due(&self) {
        self.room.store(0, Ordering::Relaxed);
    }

    /// Makes room for so many slots, but at most for twice those handed out. Makes none if a rebuild has
    /// begun, or for less than an eighth more. Returns whether they are no longer due.
    pub(super) fn extend(&self, slots: impl FnOnce() -> u64) -> bool {
        let (room, handed) = (self.room.load(Ordering::Relaxed), self.slots());
        let more = if room > 0 { slots().min(2 * handed) } else { 0 };
        // So `slots` is seldom asked.
        if more > handed + handed / 8 {
            // If it fails, another thread made room, or a rebuild has begun: the last line tells.
            let _ = self.room.compare_exchange(room, more, Ordering::Relaxed, Ordering::Relaxed);
        }
        !self.are_due()
    }

    /// The arena has been filled. From now on it may be full: with the planned slots, or twice
    /// those in use, if that is more.
    pub(super) fn settle(&self) {
        let room = self.planned.max(2 * self.slots());
        // Once: a stalled thread must not undo a later bound, nor a rebuild that has begun.
        let _ = self.room.compare_exchange(u64::MAX, room, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The first slot of a ring of so many zeros that no word names: an even number, and a multiple of
    /// the length, if that is a power of two. The ring lasts as long as the arena.
    ///
    /// # Panics
    ///
    /// If the names have run out: the rings of the arena take 16 GiB.
    pub(super) fn take(&self, len: u32) -> u32 {
        debug_assert!((2..=MAX_LEN).contains(&len));
        let (len, page, mut next) = (u64::from(len), PAGE as u64, self.next.load(Ordering::Relaxed));
        // No part of a page has the number of a long ring.
        let numbers = if len > page { len.next_multiple_of(page) } else { len };
        let start = loop {
            let mut start = next.next_multiple_of(if len.is_power_of_two() { len } else { 2 });
            if start % page + numbers > page {
                start = start.next_multiple_of(page);
            }
            // Relaxed: the swap of the word that names the ring publishes its slots.
            match self.next.compare_exchange(next, start + numbers, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break start,
                Err(other) => next = other,
            }
        };
        self.slots.fetch_add(len, Ordering::Relaxed);
        let start = u32::try_from(start).ok().filter(|start| start >> 31 == 0);
        start.expect("the rings of one part of a table take less than 16 GiB")
    }

    /// The ring with this first slot and so many slots.
    #[inline]
    pub(super) fn get(&self, start: u32, len: u32) -> Ring<'_> {
        let (len, start) = (len as usize, start as usize);
        Ring(match len {
            0 => &[],
            1..=PAGE => &self.pages.get(start / PAGE, new_page)[start % PAGE..][..len],
            _ => self.long.get(start / PAGE, || Box::new((0..len).map(|_| AtomicU64::new(0)).collect())),
        })
    }

    /// The slots handed out.
    pub(super) fn slots(&self) -> u64 {
        self.slots.load(Ordering::Relaxed)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let long: usize = self.long.iter().map(|slots| size_of_val(&**slots)).sum();
        self.pages.bytes() + self.long.bytes() + long
    }
}

/// Values that are made when they are first looked for. Most are found by one load of a pointer.
#[derive(Debug)]
pub(super) struct Directory<T> {
    /// A power of two.
    first: Box<[OnceBox<T>]>,
    /// As many as all before, each.
    more: [OnceBox<Box<[OnceBox<T>]>>; 24],
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
            first: core::iter::repeat_with(first).take(count.next_power_of_two()).collect(),
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
        let level = (number >> first.ilog2()).ilog2();
        let places = self.more[level as usize]
            .get_or_init(|| Box::new(core::iter::repeat_with(OnceBox::new).take(first << level).collect()));
        places[number - (first << level)].get_or_init(make)
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.more.iter().filter_map(OnceBox::get).flat_map(|places| places.iter());
        self.first.iter().chain(more).filter_map(OnceBox::get)
    }

    pub(super) fn bytes(&self) -> usize {
        let more = self.more.iter().filter_map(OnceBox::get);
        let more: usize = more.map(|places| size_of_val(places) + size_of_val(&**places)).sum();
        size_of_val(&*self.first) + more + self.iter().count() * size_of::<T>()
    }
}

fn new_page() -> Box<Page> {
    Box::new(core::array::from_fn(|_| AtomicU64::new(0)))
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
