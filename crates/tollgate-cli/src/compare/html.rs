//! The comparison as a page, to be sent to others.

use super::comparison::Comparison;
use super::report::{before_limits, rounded};
use crate::page::{Cell, Page};
use crate::reading::span_words;
use crate::time::length;
use crate::words::{count_of, human};

impl Comparison<'_> {
    pub(super) fn page(&self) -> Page {
        let mut page = Page::new(&self.title());
        page.lead(&format!("{} requests {}.", human(count_of(self.log.requests())), span_words(self.log).join(" ")));
        let bursts: Vec<String> =
            self.windows.iter().map(|window| format!("most in any {}", length(*window))).collect();
        let mut columns = vec![":", "requests denied", "", "keys denied", ""];
        columns.extend(bursts.iter().map(String::as_str));
        columns.extend(["median wait when denied", "longest wait"]);
        let totals = || self.all.iter().map(|(_, finish)| &finish.outcome);
        let has_too_big = totals().any(|outcome| outcome.totals.never_pass > 0);
        let has_delayed = totals().any(|outcome| outcome.delayed > 0);
        columns.extend(has_too_big.then_some("too big"));
        columns.extend(has_delayed.then_some("delayed"));
        let before: Vec<_> = self.all.iter().map(|(contender, finish)| before_limits(contender, finish)).collect();
        let is_shown = |place: &usize| before.iter().any(|counts| counts[*place].0 > 0);
        let shown: Vec<usize> = (0..3).filter(is_shown).collect();
        columns.extend(shown.iter().map(|place| before[0][*place].1));
        let has_costs = totals().any(|outcome| outcome.costs.is_some());
        columns.extend(has_costs.then_some(["permits estimated", "in fact", "debt"]).into_iter().flatten());
        let rows: Vec<Vec<Cell>> = self
            .all
            .iter()
            .zip(&before)
            .map(|((contender, finish), before)| {
                let totals = &finish.outcome.totals;
                let (denied, keys) = (totals.denied, count_of(finish.keys_denied()));
                let mut row = vec![
                    Cell::Text(contender.name.clone()),
                    Cell::Count(denied),
                    Cell::Share(denied, totals.requests()),
                    Cell::Count(keys),
                    Cell::Share(keys, count_of(finish.keys())),
                ];
                row.extend(finish.bursts.iter().map(|burst| Cell::Count(burst.permits)));
                row.extend([finish.median_wait(), finish.longest_wait()].map(|wait| Cell::Text(rounded(wait))));
                row.extend(has_too_big.then_some(Cell::Count(totals.never_pass)));
                row.extend(has_delayed.then_some(Cell::Count(finish.outcome.delayed)));
                row.extend(shown.iter().map(|place| Cell::Count(before[*place].0)));
                let costs =
                    finish.outcome.costs.map(|costs| [costs.estimated, costs.actual, costs.debt].map(Cell::Count));
                row.extend(costs.into_iter().flatten());
                row
            })
            .collect();
        page.table("compared", &columns, &rows);
        page.charts(&self.charts());
        page
    }
}
