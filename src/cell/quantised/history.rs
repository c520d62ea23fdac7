//! The decisions of a quantised log: pure arithmetic, without writes.
//!
//! # Steps
//!
//! Time is divided into *steps* of one resolution q, numbered by their ends: step k ends k * q
//! after an origin. A permit granted at a reading s belongs to the first step that ends no earlier
//! than s, and its stamp is that end: s rounded **up**. A reading at the end of a step belongs to
//! it. The window is S steps long, so a permit of step k is free again at the end of step k + S.
//! After d whole steps exactly the steps after d - S count.
//!
//! # Why it never admits more than the log
//!
//! A stamp is no earlier than its reading. So every permit that is live in the log counts here, and
//! the log admits every request that is admitted here.
//!
//! # A clock that lags
//!
//! The newest step T has begun by some clock, which has shown more than (T - 1) * q. An earlier
//! reading **counts as that moment**: T - 1 steps have passed, and a grant belongs to T. So steps
//! never decrease (INV-STEP), and the steps dropped when T begins (up to T - 1 - S) count at no
//! later decision.

use crate::decision::Left;
use crate::slab::low_half;
use crate::sync::{AtomicU64, Ordering};

/// The numbers of a quantised log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// The most permits that a request may ask for.
    pub(super) limit: u32,
    /// The length of a step, in nanoseconds.
    pub(super) resolution: u64,
    /// The length of the window, in steps.
    pub(super) window: u64,
    /// The start of step 1: a window before the clock's origin.
    pub(super) origin: u64,
}

impl Steps {
    /// The whole steps that have passed at `time`, and the step that `time` belongs to. Needs no
    /// division within the given step.
    #[inline]
    fn around(&self, step: u64, time: u64) -> (u64, u64) {
        let passed = time.saturating_sub(self.origin);
        let until_end = step.wrapping_mul(self.resolution).wrapping_sub(passed);
        if until_end < self.resolution {
            return (step.wrapping_sub(u64::from(until_end > 0)), step);
        }
        let down = passed / self.resolution;
        (down, down + u64::from(down * self.resolution < passed))
    }

    /// The step that a time belongs to.
    pub(super) fn step_of(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin).div_ceil(self.resolution)
    }

    /// The end of a step.
    pub(super) fn end_of(&self, step: u64) -> u64 {
        self.origin.saturating_add(step.saturating_mul(self.resolution))
    }

    /// The first moment of a step.
    pub(super) fn begin_of(&self, step: u64) -> u64 {
        self.end_of(step.saturating_sub(1)).saturating_add(1)
    }

    /// The time at which the permits of a step are free again.
    pub(super) fn free_at(&self, step: u64) -> u64 {
        self.end_of(step.saturating_add(self.window))
    }
}

/// A step before the newest whose permits may count.
///
/// ```text
/// { step: 32, before: 32 }
/// ```
///
/// `step` is the lower half of its number. `before` counts the permits of the key before it, from
/// any start. Both wrap; only differences matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    pub(super) fn new(step: u64, before: u32) -> Self {
        Self((step << 32) | u64::from(before))
    }

    /// The steps from this one to `step`.
    #[inline]
    pub(super) fn age(self, step: u64) -> u64 {
        u64::from(low_half(step).wrapping_sub(low_half(self.0 >> 32)))
    }

    #[inline]
    pub(super) fn before(self) -> u32 {
        low_half(self.0)
    }

    /// The same step, with fewer permits before it.
    pub(super) fn less(self, permits: u32) -> Self {
        Self((self.0 >> 32 << 32) | u64::from(self.before().wrapping_sub(permits)))
    }
}

/// A block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// A [`Newest`](super::view::Newest).
    pub(super) step: &'a AtomicU64,
    /// `{ permits before the newest step: 32, permits that it began with: 32 }`
    pub(super) counts: &'a AtomicU64,
    /// The number of entries.
    pub(super) length: &'a AtomicU64,
    pub(super) entries: &'a [AtomicU64],
}

impl<'a> Block<'a> {
    /// Words before the entries.
    pub(super) const HEADER: usize = 3;

    #[inline]
    pub(super) fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let [step, counts, length, entries @ ..] = words else { return None };
        Some(Self { step, counts, length, entries })
    }
}

/// The decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Admitted, in the newest step.
    Charge,
    /// Admitted, and this step begins with it.
    Begin(u64),
    /// Denied until this time, and admitted then.
    Deny(u64),
}

/// The steps of a key.
#[derive(Clone, Copy)]
pub(in crate::cell) struct History<'a> {
    /// The newest step, and the permits granted in it.
    pub(super) step: u64,
    pub(super) used: u32,
    /// The permits granted before it: see [`Entry`].
    pub(super) start: u32,
    /// The earlier steps with permits, oldest first: all that count, and perhaps some that do not.
    pub(super) entries: &'a [AtomicU64],
}

impl History<'_> {
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Entry {
        // Acquired: a thread that sees a word of the block's next owner sees that the head has
        // moved on.
        Entry(self.entries[at].load(Ordering::Acquire))
    }

    /// The permits granted before an entry, or before the newest step.
    #[inline]
    fn before(&self, at: usize) -> u32 {
        if at < self.entries.len() { self.entry(at).before() } else { self.start }
    }

    /// The permits of an entry's step.
    pub(super) fn permits(&self, at: usize) -> u32 {
        self.before(at + 1).wrapping_sub(self.entry(at).before())
    }

    /// The first entry that is younger than so many steps.
    #[inline]
    pub(super) fn younger(&self, than: u64) -> usize {
        // Ages differ, so it is not before this one. It is this one if each step has an entry.
        let most = usize::try_from(than.saturating_sub(1)).unwrap_or(usize::MAX);
        let (mut from, mut until) = (self.entries.len().saturating_sub(most), self.entries.len());
        let mut middle = from;
        while from < until {
            if self.entry(middle).age(self.step) < than {
                until = middle;
            } else {
                from = middle + 1;
            }
            middle = from + (until - from) / 2;
        }
        from
    }

    /// The permits that count after so many steps, and the first entry that does.
    #[inline]
    fn counting(&self, steps: &Steps, passed: u64) -> (u32, usize) {
        match self.step.saturating_add(steps.window).saturating_sub(passed) {
            0 => (0, self.entries.len()),
            younger_than => {
                let first = self.younger(younger_than);
                (self.start.wrapping_sub(self.before(first)).saturating_add(self.used), first)
            }
        }
    }

    /// The steps that have passed at `time`, at least those before the newest step; and the step
    /// that `time` belongs to.
    #[inline]
    fn passed(&self, steps: &Steps, time: u64) -> (u64, u64) {
        let (down, up) = steps.around(self.step, time);
        // A step of one nanosecond is over when it begins.
        let begun = self.step.saturating_sub(u64::from(steps.resolution > 1));
        (down.max(begun), up.max(self.step))
    }

    /// Decides a request of `cost` permits, at most the limit. A peek is always admitted: for a
    /// lagging clock more than the limit may count.
    #[inline]
    pub(super) fn verdict(&self, steps: &Steps, time: u64, cost: u32) -> Verdict {
        let (passed, step) = self.passed(steps, time);
        let (counting, first) = self.counting(steps, passed);
        let too_many = counting.saturating_add(cost).saturating_sub(steps.limit);
        match too_many {
            _ if cost == 0 => Verdict::Charge,
            0 if step == self.step => Verdict::Charge,
            0 => Verdict::Begin(step),
            _ => Verdict::Deny(steps.free_at(self.step_with(first, too_many))),
        }
    }

    /// The step with the last of the `count` oldest permits from an entry on.
    fn step_with(&self, first: usize, count: u32) -> u64 {
        let oldest = self.before(first);
        let (mut from, mut until) = (first, self.entries.len());
        while from < until {
            let middle = from + (until - from) / 2;
            if self.before(middle + 1).wrapping_sub(oldest) >= count {
                until = middle;
            } else {
                from = middle + 1;
            }
        }
        match from < self.entries.len() {
            true => self.step.saturating_sub(self.entry(from).age(self.step)),
            false => self.step,
        }
    }

    /// The newest step in which a permit was granted, if there is one.
    pub(super) fn newest(&self) -> Option<u64> {
        if self.used > 0 {
            return Some(self.step);
        }
        let last = self.entries.len().checked_sub(1)?;
        Some(self.step.saturating_sub(self.entry(last).age(self.step)))
    }

    /// The first entry that counts at `time`.
    #[cfg(feature = "snapshot")]
    pub(super) fn first_counting(&self, steps: &Steps, time: u64) -> usize {
        self.counting(steps, self.passed(steps, time).0).1
    }

    /// Whether the newest step counts at `time`.
    #[cfg(feature = "snapshot")]
    pub(super) fn counts_at(&self, steps: &Steps, time: u64) -> bool {
        self.passed(steps, time).0 < self.step.saturating_add(steps.window)
    }

    /// The nanoseconds after `time` until all permits are free.
    pub(super) fn reset_after(&self, steps: &Steps, time: u64) -> u64 {
        let (counting, _) = self.counting(steps, self.passed(steps, time).0);
        let newest = self.newest().filter(|_| counting > 0);
        newest.map_or(0, |newest| steps.free_at(newest).saturating_sub(time))
    }

    /// The permits left at `time`, and the time until there are more.
    pub(super) fn left(&self, steps: &Steps, time: u64) -> Left {
        let (counting, first) = self.counting(steps, self.passed(steps, time).0);
        let remaining = steps.limit.saturating_sub(counting);
        let next_after_ns = match counting {
            0 => 0,
            // The permits whose end leaves one less than the limit, or than now.
            _ => steps.free_at(self.step_with(first, counting.saturating_sub(steps.limit) + 1)).saturating_sub(time),
        };
        Left { limit: steps.limit, remaining, next_after_ns, reset_after_ns: self.reset_after(steps, time) }
    }

    /// The permits left at `time` after `cost` more in that step, the newest or a later one. There
    /// is room for them.
    pub(super) fn left_after(&self, steps: &Steps, time: u64, step: u64, cost: u32) -> Left {
        let before = self.left(steps, time);
        let free_after = steps.free_at(step).saturating_sub(time);
        let next_after_ns = if before.remaining == steps.limit { free_after } else { before.next_after_ns };
        let remaining = before.remaining.saturating_sub(cost);
        Left { remaining, next_after_ns, reset_after_ns: free_after, ..before }
    }

    /// The entries of the next block when `step` begins or goes on: those that count at its first
    /// moment.
    pub(super) fn kept(&self, steps: &Steps, step: u64) -> impl Iterator<Item = Entry> {
        let (grown, window) = (step.saturating_sub(self.step), steps.window);
        let first = self.younger(window.saturating_add(1).saturating_sub(grown));
        let older = (first..self.entries.len()).map(|at| self.entry(at));
        let newest = (grown > 0 && grown <= window && self.used > 0).then(|| Entry::new(self.step, self.start));
        older.chain(newest)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
