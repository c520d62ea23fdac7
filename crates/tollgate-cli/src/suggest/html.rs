//! The suggestion as a page, to be sent to others.

use super::policy;
use super::suggestion::{QUANTILES, Suggestion};
use crate::page::{Cell, Page};
use crate::plan::quota_in_words;
use crate::reading::span_words;
use crate::report::html::worst_keys;
use crate::time::length;
use crate::words::{count_of, human, percent};

impl Suggestion<'_> {
    pub(super) fn page(&self) -> Page {
        let chosen = &self.chosen;
        let (requests, keys) = (count_of(self.log.requests()), count_of(self.log.keys[0].len()));
        let (denied, hit) = (chosen.outcome.totals.denied, count_of(chosen.keys_hit()));
        let mut page = Page::new(&format!("limits for each {}", self.key));
        page.lead(&format!(
            "{} would have denied {} of {} requests ({}), of {} of {} keys ({}).",
            policy::in_words(&chosen.quotas),
            human(denied),
            human(requests),
            percent(denied, requests),
            human(hit),
            human(keys),
            percent(hit, keys),
        ));
        page.note(&format!("requests {}", span_words(self.log).join(" ")));
        if let Some(left_out) = policy::left_out(&self.longer) {
            page.note(&left_out);
        }
        page.charts(&self.charts());
        for ladder in &self.ladders {
            page.heading(&format!("The least limit, alone, that denies at most {} of {}", ladder.share, self.of));
            let rows: Vec<Vec<Cell>> = ladder
                .candidates
                .iter()
                .map(|candidate| {
                    let hit = count_of(candidate.hit.len());
                    let limit = Cell::Text(quota_in_words(&candidate.quota));
                    let (denied, share) = (Cell::Count(candidate.denied), Cell::Share(candidate.denied, requests));
                    vec![limit, denied, share, Cell::Count(hit), Cell::Share(hit, keys)]
                })
                .collect();
            page.table("limits", &[":limit", "requests denied", "", "keys denied", ""], &rows);
        }
        page.heading("The most that any window of a key held, by share of keys");
        let columns: Vec<&str> = core::iter::once(":window").chain(QUANTILES.iter().map(|(name, _)| *name)).collect();
        let rows: Vec<Vec<Cell>> = self
            .spreads
            .iter()
            .map(|spread| {
                let most = QUANTILES.iter().map(|&(_, per_mille)| Cell::Count(spread.quantile(per_mille).into()));
                core::iter::once(Cell::Text(length(spread.window))).chain(most).collect()
            })
            .collect();
        page.table("windows", &columns, &rows);
        let worst = self.worst();
        worst_keys(&mut page, None, worst.iter().take(self.top).copied(), worst.len());
        page.heading(&format!("Policy: at most {} of {} denied", chosen.share, self.of));
        page.code(&chosen.text);
        page
    }
}
