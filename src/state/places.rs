//! Places: how many keys a table may hold.
//!
//! A key takes a place with its first permit. It gives the place back when it is forgotten, or when
//! its permits have expired and a rebuild or a request at the cap comes across it: by the same
//! compare-and-swap that writes so into its word. So each place is given back once
//! (INV-PLACE-ONCE).

use super::sync::{AtomicU64, Ordering};
use crate::sync::CachePadded;

#[derive(Debug)]
pub(super) struct Places {
    pub(super) cap: u64,
    /// ```text
    /// { takes: 24, taken: 40 }
    /// ```
    ///
    /// The places that are taken, and how often one was, modulo 2^24.
    state: CachePadded<AtomicU64>,
}

const TAKEN_BITS: u32 = 40;

/// One more place is taken.
const TAKE: u64 = 1 << TAKEN_BITS | 1;

const fn taken_in(state: u64) -> u64 {
    state & ((1 << TAKEN_BITS) - 1)
}

/// A place that has been taken for a key. It is given back unless it is kept.
#[derive(Debug)]
pub(super) struct Taken<'a>(&'a Places);

impl Places {
    pub(super) fn new(cap: usize) -> Self {
        Self { cap: cap as u64, state: CachePadded(AtomicU64::new(0)) }
    }

    /// Takes a place, if there is one.
    pub(super) fn take(&self) -> Option<Taken<'_>> {
        let another = |state: u64| (taken_in(state) < self.cap).then_some(state.wrapping_add(TAKE));
        // Relaxed: it is a count alone, and publishes nothing.
        let taken = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, another);
        taken.ok().map(|_| Taken(self))
    }

    /// The places that are free.
    pub(super) fn free(&self) -> u64 {
        self.cap.saturating_sub(taken_in(self.state.load(Ordering::Relaxed)))
    }

    /// A number that changes whenever a place is taken.
    pub(super) fn takes(&self) -> u64 {
        self.state.load(Ordering::Relaxed) >> TAKEN_BITS
    }

    /// A key has given its place back.
    pub(super) fn give_back(&self) {
        self.state.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Taken<'_> {
    /// The key has the place from now on.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}
