//! The hint of a log: until when a request of one permit is denied. It saves the look at the ring.
//!
//! A denial leaves it, and later denials read it. It needs no check against the word (INV-HINT):
//!
//! - It was right for some word of this cell, because the denial checked that the word still stood
//!   after it had read the slot.
//! - A claim makes no request fit earlier, and its stamp is no earlier than the hint's time. A hint
//!   counts only while its time is later than the newest stamp.
//! - A refund would make it wrong. So it turns the hint *off* before it swaps the word, and the
//!   hint stays off as long as the cell lasts. `forget` does the same, and counts the key's *lives*
//!   there, so that receipts of an earlier life are told apart. A denial publishes by
//!   compare-and-swap, which fails if the hint is off.
//!
//! A request loads the word before the hint. So if it sees a word that a refund has changed, it
//! sees that the hint is off. A hint is released by the thread that saw its word, and acquired: a
//! request that sees a hint of a later word sees that its own word stands no more.

use super::sync::{AtomicU64, Ordering};

/// The number of the bound that denies is in the two low bits, if it is less than three. The time
/// is above.
const BOUND_BITS: u32 = 2;
const OFF: u64 = (1 << BOUND_BITS) - 1;

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
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

#[inline]
fn life_in(hint: u64) -> u64 {
    if hint & OFF == OFF { hint >> BOUND_BITS } else { 0 }
}
