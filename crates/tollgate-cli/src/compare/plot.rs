//! The drawing of a comparison: what each denied over time.

use super::comparison::Comparison;
use crate::chart::{Along, Chart, LINES, Look, Series};
use crate::time::length;

/// Coarse enough for lines to be told apart.
pub(super) const STEPS_AT_MOST: usize = 120;

impl Comparison<'_> {
    /// The denials of each over time, with a line for each.
    pub(super) fn charts(&self) -> Vec<Chart> {
        let Some((_, first)) = self.all.first() else { return Vec::new() };
        let (start, step) = (first.timeline.start, first.timeline.step);
        let series = self.all.iter().enumerate().map(|(nth, (contender, finish))| Series {
            name: contender.name.clone(),
            class: LINES[nth % LINES.len()],
            values: finish.timeline.buckets.iter().map(|bucket| Some(bucket.denied)).collect(),
        });
        let title = format!("denied per {}", length(step.unsigned_abs()));
        let along = Along::Time { start, step };
        vec![Chart { title, along, look: Look::Lines, series: series.collect() }]
    }
}
