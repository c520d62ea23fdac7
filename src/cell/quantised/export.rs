//! Exports a quantised log, and imports it under another clock.

use super::history::Entry;
use super::plan::QuantisedPlan;
use super::view::{Contents, Newest, Quantised, View};
use crate::cell::driver::{Driver, Portable};
use crate::cell::export::{Export, Import, age};
use crate::cell::memory::At;
use crate::cell::words::{Head, RingRef};
use crate::clock::Clock;
use crate::quota::Quota;

/// The ages of the ends of steps, and their permits.
type ExportedSteps = [(i64, u32)];

impl QuantisedPlan {
    /// Whether this is a possible export: steps in order, and at most twice the largest limit. The
    /// limit may have become less, and for a lagging clock permits of two windows count.
    pub(super) fn can_have_steps(&self, steps: &ExportedSteps) -> bool {
        let permits: u64 = steps.iter().map(|&(_, permits)| u64::from(permits)).sum();
        let is_in_order = steps.is_sorted_by(|(older, _), (newer, _)| older > newer);
        is_in_order && permits <= 2 * u64::from(Quota::MAX_CAPACITY) && steps.iter().all(|&(_, permits)| permits > 0)
    }
}

impl<'a> Portable<'a> for Quantised<'a> {
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>> {
        let view = self.view(at, clock)?;
        let (View { history, time, .. }, plan) = (view, self.plan);
        let age = |step: u64| age(time, plan.steps.end_of(step));
        let older = (history.first_counting(&plan.steps, time)..history.entries.len())
            .map(|at| (age(history.step - history.entry(at).age(history.step)), history.permits(at)));
        let newest =
            (history.used > 0 && history.counts_at(&plan.steps, time)).then(|| (age(history.step), history.used));
        let export: Vec<(i64, u32)> = older.chain(newest).collect();
        view.validate().then(|| (!export.is_empty()).then_some(Export::Steps(export)))
    }

    /// Stamps rounded by another clock are rounded up again, by less than a step, but not past the
    /// present step: no permit is later than that.
    fn import(self, free: Head, export: &Export, import: Import) -> (RingRef, Head) {
        let Export::Steps(export) = export else { return self.first(free, 0, false) };
        let plan = self.plan;
        let latest = plan.steps.step_of(import.now);
        let mut steps: Vec<(u64, u32)> = Vec::with_capacity(export.len());
        for &(age, permits) in export {
            let step = plan.steps.step_of(import.at(age)).min(latest);
            match steps.last_mut() {
                Some((last, sum)) if *last >= step => *sum = sum.saturating_add(permits),
                _ => steps.push((step, permits)),
            }
        }
        let Some((step, used)) = steps.pop() else { return self.first(free, 0, false) };
        let used = used.min(plan.most_used());
        // Only those that can count beside the newest.
        let first = steps.partition_point(|&(older, _)| step - older > plan.steps.window);
        let older = &steps[first..];
        let mut before = 0;
        let entries = older.iter().map(|&(older, permits)| {
            let entry = Entry::new(older, before);
            before += permits;
            entry
        });
        let start = older.iter().map(|&(_, permits)| permits).sum();
        let opened = plan.opened(free, false, used);
        let contents = Contents { newest: Newest::known(step), start, used, most: older.len(), entries };
        (self.new_block(opened, contents), opened)
    }
}
