//! Requests enter and leave: the short ways of a concurrency limit, and the end of a request.
//!
//! A request leaves by one swap, not by a claim as a refund does: the word names the life. If the word
//! is equal to the one that was loaded, the request counts in it, whatever came between.

use super::cell::Key;
use super::code::Numbers;
use super::concurrency::{Count, Entry};
use super::shard::Context;
use super::table::Table;
use crate::clock::Clock;
use crate::decision::{Denial, FastDecision};
use crate::fingerprint::Fingerprint;

impl Context<'_> {
    /// The short way: a request of a known key enters, by one attempt. `None` if it takes the general
    /// way.
    #[inline(always)]
    fn enter(self, key: Key) -> Option<Result<Entry, FastDecision>> {
        let root = self.shard.root();
        let (cell, word) = root.open(key)?;
        let Numbers::Concurrency(plan) = &root.version(key).plan.numbers else { return None };
        let count = Count::of(word);
        let Some(entered) = count.entered(plan.limit) else {
            return Some(Err(FastDecision::denied(Denial::NEVER, Denial::IN_FLIGHT)));
        };
        // If another thread was faster, the count may be another.
        cell.word.swap(word, entered.word()).then_some(Ok(Entry { key, life: count.life }))
    }

    /// The short way. Returns whether there is no more to do.
    #[inline(always)]
    fn leaves_shortly(self, entry: &Entry) -> bool {
        let root = self.shard.root();
        let Some((cell, word)) = root.open(entry.key) else { return false };
        if !matches!(root.version(entry.key).plan.numbers, Numbers::Concurrency(_)) {
            return false;
        }
        // A lost swap takes the general way, which tries again.
        Count::of(word).left(entry.life).is_none_or(|left| cell.word.swap(word, left.word()))
    }

    #[inline(never)]
    fn leave_generally(self, &Entry { key, life }: &Entry) {
        // If the key was forgotten, its requests were, too.
        self.change_open(key, |seat| {
            let counts = matches!(seat.version(key).plan.numbers, Numbers::Concurrency(_));
            Count::of(seat.word).left(life).filter(|_| counts).map(Count::word)
        });
    }
}

impl Table {
    /// A request of one known key with a concurrency limit enters. `None` if it takes
    /// [`acquire`](Self::acquire).
    #[inline(always)]
    pub(crate) fn enter(&self, fingerprint: Fingerprint, clock: &dyn Clock) -> Option<Result<Entry, FastDecision>> {
        let key = Key::of(fingerprint);
        self.with(key, clock).enter(key)
    }

    /// A request in flight is over.
    #[inline]
    pub(crate) fn leave(&self, entry: &Entry, clock: &dyn Clock) {
        let with = self.with(entry.key, clock);
        if !with.leaves_shortly(entry) {
            with.leave_generally(entry);
        }
    }
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
