//! A quantised log written down apart from any clock, and put back under another.

use super::{Contents, Entry, Newest, Stepped};
use crate::cell::memory::Cell;
use crate::cell::words::{Head, RingRef};
use crate::cell::{Cells, Kept};
use crate::clock::Clock;

/// The ends of steps, by their age, and the permits granted in them.
type KeptSteps = [(i64, u32)];

impl Stepped {
    /// Whether this can have been kept: each step before the next, and no more permits than the limit.
    pub(in crate::cell) fn can_have(&self, steps: &KeptSteps) -> bool {
        let permits: u64 = steps.iter().map(|&(_, permits)| u64::from(permits)).sum();
        let is_in_order = steps.is_sorted_by(|(older, _), (newer, _)| older > newer);
        is_in_order && permits <= self.steps.limit.into() && steps.iter().all(|&(_, permits)| permits > 0)
    }
}

impl Cells {
    /// What still counts of a key; `None` if something had to be done first, or has changed.
    pub(in crate::cell) fn keep_steps(
        &self,
        stepped: &Stepped,
        cell: &Cell,
        head: Head,
        clock: &impl Clock,
    ) -> Option<Option<Kept>> {
        let (view, time) = self.steps_view(stepped, cell, head, clock)?;
        let history = view.history;
        let age = |step: u64| {
            let age = i128::from(time) - i128::from(stepped.steps.end_of(step));
            i64::try_from(age).unwrap_or(i64::MAX)
        };
        let older = (history.first_counting(&stepped.steps, time)..history.entries.len())
            .map(|at| (age(history.step - history.entry(at).age(history.step)), history.permits(at)));
        let newest =
            (history.used > 0 && history.counts_at(&stepped.steps, time)).then(|| (age(history.step), history.used));
        let mut kept: Vec<(i64, u32)> = older.chain(newest).collect();
        // By a clock that lags more may count than the limit, and so it may after the limit has become less. The oldest are free first.
        let mut room = stepped.steps.limit;
        for (_, permits) in kept.iter_mut().rev() {
            *permits = (*permits).min(room);
            room -= *permits;
        }
        kept.retain(|&(_, permits)| permits > 0);
        view.stands(cell, head).then(|| (!kept.is_empty()).then_some(Kept::Steps(kept)))
    }

    /// The head and the block of a cell that holds what was kept. `at` says when, by this clock, something of an age was; `now` is
    /// what it shows.
    ///
    /// What was rounded by another clock is rounded up again, by no more than a step, but not past the step of now: nothing that was
    /// granted is later than that.
    pub(in crate::cell) fn put_steps_back(
        &self,
        stepped: &Stepped,
        free: Head,
        kept: &KeptSteps,
        now: u64,
        at: impl Fn(i64) -> u64,
    ) -> (RingRef, Head) {
        let latest = stepped.steps.step_of(now);
        let mut steps: Vec<(u64, u32)> = Vec::with_capacity(kept.len());
        for &(age, permits) in kept {
            let step = stepped.steps.step_of(at(age)).min(latest);
            match steps.last_mut() {
                Some((last, sum)) if *last >= step => *sum = sum.saturating_add(permits),
                _ => steps.push((step, permits)),
            }
        }
        let Some((step, used)) = steps.pop() else { return self.first_steps(stepped, free, 0) };
        // No more than can count beside the newest.
        let first = steps.partition_point(|&(older, _)| step - older > stepped.steps.window);
        let older = &steps[first..];
        let mut before = 0;
        let entries = older.iter().map(|&(older, permits)| {
            let entry = Entry::new(older, before);
            before += permits;
            entry
        });
        let start = older.iter().map(|&(_, permits)| permits).sum();
        let opened = stepped.opened(free, false, used);
        let contents = Contents { newest: Newest::known(step), start, used, most: older.len(), entries };
        (self.new_block(stepped, opened, contents), opened)
    }
}
