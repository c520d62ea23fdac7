//! The report as a page, to be sent to others.

use super::{Report, by_quota};
use crate::chart::Chart;
use crate::outcome::{Costs, KeyTally};
use crate::page::{Cell, Page};
use crate::plan::Dimension;
use crate::reading::{lines_words, span_words};
use crate::text::{harmless, shortened};
use crate::time::length;
use crate::words::{count_of, human, percent};

impl Report<'_> {
    pub(crate) fn page(&self, charts: &[Chart]) -> Page {
        let mut page = Page::new(&self.plan.title());
        page.lead(&self.in_a_sentence());
        self.totals_table(&mut page);
        page.charts(charts);
        self.rules_table(&mut page);
        self.denied_by_table(&mut page);
        self.shadow_table(&mut page);
        for dimension in 0..self.plan.dimensions.len() {
            self.worst_table(&mut page, dimension);
        }
        page
    }

    fn in_a_sentence(&self) -> String {
        let totals = &self.outcome.totals;
        let share = percent(totals.denied, totals.requests());
        let (denied, requests) = (human(totals.denied), human(totals.requests()));
        let clients = self.plan.clients_in_words().map(|words| format!(" Clients: {}.", harmless(&words)));
        format!("{denied} of {requests} requests would have been denied ({share}).{}", clients.unwrap_or_default())
    }

    fn totals_table(&self, page: &mut Page) {
        let (totals, requests) = (&self.outcome.totals, self.outcome.totals.requests());
        let row = |name: &str, count, share: Option<u64>, words: String| {
            let share = share.map_or_else(|| Cell::Text(String::new()), |whole| Cell::Share(count, whole));
            vec![Cell::Text(name.to_owned()), Cell::Count(count), share, Cell::Text(words)]
        };
        let mut rows = vec![
            row("requests", requests, None, span_words(self.log).join(" ")),
            row("admitted", totals.admitted, Some(requests), String::new()),
            row("denied", totals.denied, Some(requests), String::new()),
        ];
        if totals.never_pass > 0 {
            rows.push(row(
                "too big",
                totals.never_pass,
                Some(requests),
                "cost above the limit, can never pass".to_owned(),
            ));
        }
        if self.outcome.delayed > 0 {
            let longest = format!("by at most {}", length(self.outcome.longest_delay_ns));
            rows.push(row("delayed", self.outcome.delayed, Some(requests), longest));
        }
        let costs = self.outcome.costs.iter().flat_map(Costs::in_words);
        rows.extend(costs.map(|(name, permits, words)| row(name, permits, None, words)));
        for (at, (outcome, dimension)) in self.outcome.dimensions.iter().zip(&self.plan.dimensions).enumerate() {
            let of = if self.plan.dimensions.len() > 1 { format!(" of {}", dimension.name) } else { String::new() };
            let keys = count_of(outcome.keys().count());
            rows.push(row(&format!("keys{of}"), keys, None, String::new()));
            rows.push(row(
                &format!("keys{of}{} denied at least once", if dimension.shadow { " that would be" } else { "" }),
                count_of(self.worst(at).len()),
                Some(keys),
                String::new(),
            ));
        }
        let lines = lines_words(self.log, &self.plan.describe_keys()).join(" ");
        rows.push(row("lines", self.log.account.lines.read, None, lines));
        page.table("totals", &[":", "count", "share", ":"], &rows);
    }

    fn shadow_table(&self, page: &mut Page) {
        let requests = self.outcome.totals.requests();
        let row = |(count, dimension): (u64, &Dimension)| {
            vec![Cell::Text(dimension.name.clone()), Cell::Count(count), Cell::Share(count, requests)]
        };
        let rows: Vec<_> = self.would_deny().map(row).collect();
        if !rows.is_empty() {
            page.heading("Would be denied, but for shadow mode");
            page.table("shadow", &[":dimension", "requests", "share"], &rows);
        }
    }

    fn rules_table(&self, page: &mut Page) {
        let requests = self.outcome.totals.requests();
        let row = |(count, done, whom): (u64, &str, String)| {
            vec![Cell::Text(whom), Cell::Text(done.to_owned()), Cell::Count(count), Cell::Share(count, requests)]
        };
        let rows: Vec<Vec<Cell>> = self.decided_before_limits().into_iter().map(row).collect();
        if !rows.is_empty() {
            page.heading("Decided before any limit");
            page.table("rules", &[":match", ":done", "requests", "share"], &rows);
        }
        if let Some(words) = self.unknown_tiers() {
            page.note(&words);
        }
    }

    fn denied_by_table(&self, page: &mut Page) {
        if !self.has_several_to_tell_apart() {
            return;
        }
        page.heading("Denied by the quota to wait longest for");
        let mut rows = Vec::new();
        for (outcome, dimension) in self.outcome.dimensions.iter().zip(&self.plan.dimensions) {
            let mut row = |what: String, count| {
                rows.push(vec![Cell::Text(dimension.name.clone()), Cell::Text(what), Cell::Count(count)]);
            };
            for (denied, what) in by_quota(outcome, dimension) {
                row(what, denied);
            }
            if dimension.penalty.is_some() {
                row("blocked by the penalty".to_owned(), outcome.by_penalty);
            }
            if outcome.at_key_cap > 0 {
                row("no place for a new key".to_owned(), outcome.at_key_cap);
            }
        }
        page.table("denied-by", &[":dimension", ":quota", "denied"], &rows);
    }

    fn worst_table(&self, page: &mut Page, dimension: usize) {
        let worst = self.worst(dimension);
        let several = self.plan.dimensions.len() > 1;
        let name = several.then(|| self.plan.dimensions[dimension].name.as_str());
        let rows = worst.iter().map(|of| (of.in_words(), *of.tally));
        worst_keys(page, name, rows.take(self.top), worst.len());
    }
}

/// Columns of a key that are shown.
const LONGEST_KEY: usize = 200;

/// The keys with the most denials.
pub(crate) fn worst_keys(
    page: &mut Page,
    of: Option<&str>,
    keys: impl Iterator<Item = (impl AsRef<str>, KeyTally)>,
    all: usize,
) {
    let rows: Vec<Vec<Cell>> = keys
        .map(|(key, tally)| {
            let (denied, requests) = (tally.turned_away, tally.requests);
            let key = shortened(&harmless(key.as_ref()), LONGEST_KEY);
            vec![Cell::Text(key), Cell::Count(denied), Cell::Count(requests), Cell::Share(denied, requests)]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
    page.heading(&format!("Keys{of} that are denied most"));
    page.table("worst", &[":key", "denied", "requests", "share"], &rows);
    if all > rows.len() {
        page.note(&format!("and {} more that are denied at least once", human(count_of(all - rows.len()))));
    }
}
