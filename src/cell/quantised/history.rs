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
use crate::sync::{AtomicU64, Ordering};

/// The numbers of a quantised log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
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

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
pub(super) fn low_half(word: u64) -> u32 {
    word as u32
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
pub(super) struct History<'a> {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Grants as they were made: step and permits. Asked the naive way.
    #[derive(Debug, Default)]
    struct Naive(Vec<(u64, u32)>);

    impl Naive {
        fn counting(&self, steps: &Steps, time: u64) -> u32 {
            let newest = self.0.last().map_or(0, |&(step, _)| step);
            // A lagging time counts as the first moment of the newest step.
            let begun = if newest > 0 { steps.origin + (newest - 1) * steps.resolution + 1 } else { steps.origin };
            let time = time.max(begun);
            let counts = |&&(step, _): &&(u64, u32)| time < steps.origin + (step + steps.window) * steps.resolution;
            self.0.iter().filter(counts).map(|(_, permits)| permits).sum()
        }

        fn words(&self) -> (u64, u32, u32, Vec<AtomicU64>) {
            let mut before = 0_u32.wrapping_sub(5);
            let mut words = vec![];
            let Some((&(step, used), older)) = self.0.split_last() else { return (0, 0, before, words) };
            for &(step, permits) in older {
                words.push(AtomicU64::new(Entry::new(step, before).0));
                before = before.wrapping_add(permits);
            }
            (step, used, before, words)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn it_is_what_a_list_of_grants_says(
            resolution in 1_u64..6, window in 1_u64..9, limit in 1_u32..12, origin in 0_u64..20,
            // Around a number at which the lower halves of steps begin again.
            first in prop_oneof![0_u64..3, (1_u64 << 32) - 4..(1 << 32) + 2],
            asks in prop::collection::vec((0_u64..30, 0_u64..10, 1_u32..5), 1..40),
        ) {
            let steps = Steps { limit, resolution, window, origin };
            let (mut naive, mut latest) = (Naive::default(), origin + first * resolution);
            for (pass, lag, cost) in asks {
                let cost = cost.min(limit);
                latest += pass;
                let time = latest.saturating_sub(lag).max(origin);
                let (step, used, start, words) = naive.words();
                let history = History { step, used, start, entries: &words };
                let fits = |time| naive.counting(&steps, time) + cost <= limit;
                let left = history.left(&steps, time);
                let remaining = |time| limit.saturating_sub(naive.counting(&steps, time));
                prop_assert_eq!((left.limit, left.remaining), (limit, remaining(time)));
                prop_assert_eq!(left.reset_after_ns, history.reset_after(&steps, time));
                let next = time + left.next_after_ns;
                prop_assert!(match left.remaining == limit {
                    true => next == time,
                    false => remaining(next) > left.remaining && remaining(next - 1) == left.remaining,
                }, "{:?}", left);
                let reset = time + history.reset_after(&steps, time);
                prop_assert!(naive.counting(&steps, reset) == 0 && (reset == time || naive.counting(&steps, reset - 1) > 0));
                // The first step that ends no earlier, found one by one from near it.
                let near = (time - origin) / resolution;
                let belongs = (near..).find(|step| origin + step * resolution >= time).unwrap();
                match history.verdict(&steps, time, cost) {
                    Verdict::Deny(until) => {
                        prop_assert!(!fits(time) && until > time && fits(until) && !fits(until - 1));
                    }
                    Verdict::Charge => {
                        prop_assert!(fits(time) && belongs <= step);
                        match naive.0.last_mut() {
                            Some((_, used)) => *used += cost,
                            None => naive.0.push((step, cost)),
                        }
                    }
                    Verdict::Begin(begun) => {
                        prop_assert!(fits(time) && begun == belongs && begun > step);
                        let kept: Vec<_> = history.kept(&steps, begun).map(|entry| entry.age(begun)).collect();
                        prop_assert!(kept.iter().all(|&age| (1..=window).contains(&age)) && kept.is_sorted_by(|a, b| a > b));
                        // A dropped step counts no more, even at the first moment of the new one.
                        let before = naive.0.len();
                        naive.0.retain(|&(step, _)| kept.contains(&(begun - step)));
                        prop_assert_eq!(kept.len(), naive.0.len());
                        prop_assert!(before >= naive.0.len());
                        naive.0.push((begun, cost));
                    }
                }
            }
        }

        #[test]
        fn around_takes_a_short_way_to_the_same(resolution in 1_u64..1 << 40, passed in 0_u64..1 << 61, off in -3_i64..4) {
            let steps = Steps { limit: 1, resolution, window: 1, origin: 7 };
            let (down, up) = (passed / resolution, passed.div_ceil(resolution));
            prop_assert_eq!(steps.around(up.saturating_add_signed(off), passed + 7), (down, up));
            prop_assert_eq!(steps.step_of(passed + 7), up);
        }
    }

    #[test]
    fn nothing_that_may_be_read_makes_it_panic() {
        let words = [AtomicU64::new(u64::MAX), AtomicU64::new(0), AtomicU64::new(7 << 32)];
        for step in [0, 1, u64::MAX, u64::MAX / 2] {
            for time in [0, 1, u64::MAX] {
                for (resolution, window) in [(1, 1), (1 << 59, 2), (7, 1 << 14)] {
                    let steps = Steps { limit: 1 << 30, resolution, window, origin: 1 << 60 };
                    let history = History { step, used: u32::MAX, start: 3, entries: &words };
                    let _ = history.verdict(&steps, time, 1);
                    let _ = (history.left(&steps, time), history.left_after(&steps, time, step, 1));
                    let _ = history.kept(&steps, step.saturating_add(1)).count();
                }
            }
        }
    }
}
