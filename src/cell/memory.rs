//! The cell and its four words.

use super::words::{Head, RingRef, Slot, State};
use crate::fingerprint::Fingerprint;
use crate::slab::Element;
use crate::sync::{AtomicU64, Ordering};

/// A cell: four words, half a cache line.
pub(crate) struct Cell {
    /// A [`Head`].
    pub(super) head: AtomicU64,
    /// A [`RingRef`], or the one [`Slot`] of a ring of one.
    pub(super) ring: AtomicU64,
    /// The fingerprint of the cell's key. The first half of a free cell is the link to the next.
    pub(super) low: AtomicU64,
    pub(super) high: AtomicU64,
}

const _: () = assert!(cfg!(tollgate_loom) || size_of::<Cell>() == Cell::BYTES);

impl Element for Cell {
    const BYTES: usize = 32;

    fn new() -> Self {
        let [head, ring, low, high] = core::array::from_fn(|_| AtomicU64::new(0));
        Self { head, ring, low, high }
    }

    fn link(&self) -> &AtomicU64 {
        &self.low
    }
}

impl Cell {
    /// Assigns a cell that the caller owns to a key. The stores release: a reader of the last key's
    /// cell that sees any of them also sees that the head has changed.
    pub(super) fn give_to(&self, key: Fingerprint, reference: RingRef, head: Head) {
        self.ring.store(reference.0, Ordering::Release);
        self.low.store(key.low, Ordering::Release);
        self.high.store(key.high, Ordering::Release);
        self.head.store(head.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn head(&self) -> Head {
        Head(self.head.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn reference(&self) -> RingRef {
        RingRef(self.ring.load(Ordering::Acquire))
    }

    /// The one slot of a ring of one.
    #[inline]
    pub(super) fn slot(&self) -> Slot {
        Slot(self.ring.load(Ordering::Acquire))
    }

    /// Whether the ring is still this one.
    #[inline]
    pub(super) fn refers_to(&self, reference: RingRef) -> bool {
        self.ring.load(Ordering::Relaxed) == reference.0
    }

    /// Replaces the ring. Returns whether it was still the old one.
    pub(super) fn replace_ring(&self, old: RingRef, new: RingRef) -> bool {
        self.ring.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether the cell has this fingerprint. The loads acquire: a thread that sees the next key's
    /// fingerprint also sees that the head has changed.
    #[inline(always)]
    pub(super) fn is_for(&self, fingerprint: Fingerprint) -> bool {
        self.low.load(Ordering::Acquire) == fingerprint.low && self.high.load(Ordering::Acquire) == fingerprint.high
    }

    /// The fingerprint of the cell. While the cell changes owner it may be that of no key.
    #[inline]
    pub(super) fn key(&self) -> Fingerprint {
        Fingerprint::new(self.low.load(Ordering::Acquire), self.high.load(Ordering::Acquire))
    }
}

/// A cell, as of a head that was loaded.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) cell: &'a Cell,
    pub(super) head: Head,
}

impl<'a> At<'a> {
    /// The cell as of now.
    pub(super) fn now(cell: &'a Cell) -> Self {
        Self { cell, head: cell.head() }
    }

    pub(super) fn with(self, head: Head) -> Self {
        Self { head, ..self }
    }

    /// Whether the head is still the one that was loaded; then earlier loads that acquired belong
    /// to it (INV-VALIDATE).
    #[inline]
    pub(super) fn validate(self) -> bool {
        self.cell.head.load(Ordering::Relaxed) == self.head.0
    }

    /// Replaces the head by the next. `None` if it is another by now.
    #[inline]
    pub(super) fn claim(self, next: Head) -> Option<()> {
        self.cell.head.compare_exchange(self.head.0, next.0, Ordering::AcqRel, Ordering::Relaxed).ok().map(drop)
    }

    /// Begins a resize: no permit is claimed from here on. `None` if the head has changed.
    pub(super) fn begin_resize(self, resizing: State) -> Option<Self> {
        let resizing = self.with(self.head.with_state(resizing));
        if resizing.head != self.head {
            self.claim(resizing.head)?;
        }
        Some(resizing)
    }
}
