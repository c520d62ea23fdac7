//! The drawing of a suggestion: what every limit would have denied.

use std::collections::BTreeSet;

use super::slots::Spread;
use super::suggestion::Suggestion;
use crate::chart::{Along, Chart, LINES, Look, Series};
use crate::time::length;
use crate::words::{count_of, human};

impl Suggestion<'_> {
    /// Requests and keys that are denied, by the limit, with a line for each window.
    pub(super) fn charts(&self) -> [Chart; 2] {
        let most = self.spreads.iter().map(Spread::most).max().unwrap_or(1);
        let suggested = self.ladders.iter().flat_map(|ladder| &ladder.candidates).map(|one| one.quota.limit());
        // Those that are suggested are among the limits that can be pointed at.
        let limits: BTreeSet<u32> = steps_up_to(most).chain(suggested.filter(|limit| *limit <= most)).collect();
        let limits: Vec<u32> = limits.into_iter().collect();
        let chart = |title: String, count: &dyn Fn(&Spread, u32) -> u64| {
            let series = self.spreads.iter().enumerate().map(|(nth, spread)| Series {
                name: format!("window of {}", length(spread.window)),
                class: LINES[nth % LINES.len()],
                // Where nothing is denied the line ends.
                values: limits.iter().map(|&limit| (limit <= spread.most()).then(|| count(spread, limit))).collect(),
            });
            Chart { title, along: Along::Limits(limits.clone()), look: Look::Lines, series: series.collect() }
        };
        let requests = format!("requests denied, of {}", human(count_of(self.log.requests())));
        let keys = format!("keys denied at least once, of {}", human(count_of(self.log.keys[0].len())));
        [chart(requests, &Spread::denied), chart(keys, &|spread, limit| count_of(spread.keys_hit(limit)))]
    }

    pub(super) fn plot_title(&self) -> String {
        format!("what each limit denies, for each {}", self.key)
    }
}

/// Limits from 1 to the last, so close that none is more than a few pixels from the next.
fn steps_up_to(last: u32) -> impl Iterator<Item = u32> {
    core::iter::successors(Some(1_u32), move |&limit| {
        (limit < last).then(|| limit.saturating_add((limit / 30).max(1)).min(last))
    })
}
