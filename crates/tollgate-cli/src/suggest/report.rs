//! The suggestion for people.

use super::policy;
use super::suggestion::{Candidate, Ladder, QUANTILES, Suggestion};
use crate::plan::quota_in_words;
use crate::reading::{lines_words, span_words};
use crate::text::{harmless, shortened};
use crate::time::length;
use crate::words::{count_of, human, percent, put, put_wrapped};

impl Suggestion<'_> {
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.totals(&mut out);
        self.distribution(&mut out);
        self.ladders.iter().for_each(|ladder| self.ladder(&mut out, ladder));
        self.policy(&mut out);
        out
    }

    fn requests(&self) -> u64 {
        count_of(self.log.requests())
    }

    fn keys(&self) -> u64 {
        count_of(self.log.keys[0].len())
    }

    fn totals(&self, out: &mut String) {
        put(out, &self.style.heading(&harmless(&format!("limits for each {}", self.key))));
        put(out, "");
        let mut line = |name: &str, count: u64, notes: &[String]| {
            put_wrapped(out, &format!("  {name:<9} {:>12}  ", human(count)), notes, self.style.width);
        };
        line("requests", self.requests(), &span_words(self.log));
        line("keys", self.keys(), &[]);
        line("lines", self.log.account.lines.read, &lines_words(self.log, &self.key));
        if let Some(left_out) = policy::left_out(&self.longer) {
            put(out, "");
            put_wrapped(out, "  ", &[left_out], self.style.width);
        }
    }

    fn distribution(&self, out: &mut String) {
        self.heading(out, "the most that any window of a key held, by share of keys");
        let header: String = QUANTILES.iter().map(|(name, _)| format!("  {name:>9}")).collect();
        put(out, &format!("  {:>8}{header}", "window"));
        for spread in &self.spreads {
            let row: String = QUANTILES
                .iter()
                .map(|&(_, per_mille)| format!("  {:>9}", human(spread.quantile(per_mille).into())))
                .collect();
            put(out, &format!("  {:>8}{row}", length(spread.window)));
        }
    }

    fn ladder(&self, out: &mut String, ladder: &Ladder) {
        self.heading(out, &format!("the least limit, alone, that denies at most {} of {}", ladder.share, self.of));
        put(out, &format!("  {:<14}  {:>9} {:>8}  {:>8} {:>8}  hit hardest", "limit", "denied", "", "keys hit", ""));
        for Candidate { quota, denied, hit } in &ladder.candidates {
            let keys = count_of(hit.len());
            let hardest = hit.first().map_or("", |hit| self.log.keys[0].text(hit.key));
            let hardest = shortened(&harmless(hardest), self.style.width.saturating_sub(56).max(12));
            put(
                out,
                &format!(
                    "  {:<14}  {} {:>8}  {:>8} {:>8}  {hardest}",
                    quota_in_words(quota),
                    self.style.denied(&format!("{:>9}", human(*denied))),
                    percent(*denied, self.requests()),
                    human(keys),
                    percent(keys, self.keys()),
                ),
            );
        }
    }

    fn policy(&self, out: &mut String) {
        let chosen = &self.chosen;
        let heading = format!("all windows together, at most {} of {}", chosen.share, self.of);
        self.heading(out, &format!("{heading} (--policy-out writes it)"));
        let (denied, hit) = (chosen.outcome.totals.denied, count_of(chosen.keys_hit()));
        put_wrapped(out, "  ", &[policy::in_words(&chosen.quotas)], self.style.width);
        let sentence = [
            format!(
                "denies {} of {} requests ({}),",
                human(denied),
                human(self.requests()),
                percent(denied, self.requests())
            ),
            format!("of {} of {} keys ({})", human(hit), human(self.keys()), percent(hit, self.keys())),
        ];
        put_wrapped(out, "  ", &sentence, self.style.width);
        let worst = self.worst();
        if worst.is_empty() || self.top == 0 {
            return;
        }
        put(out, &format!("\n  {:>9}  {:>18}  key", "denied", "of its requests"));
        for (key, tally) in worst.iter().take(self.top) {
            let (denied, requests) = (format!("{:>9}", human(tally.turned_away)), human(tally.requests));
            let share = percent(tally.turned_away, tally.requests);
            let key = shortened(&harmless(key), self.style.width.saturating_sub(33).max(20));
            put(out, &format!("  {}  {requests:>9}  {share:>7}  {key}", self.style.denied(&denied)));
        }
        let left = worst.len().saturating_sub(self.top);
        if left > 0 {
            let words = format!("and {} more that are denied at least once (--top)", human(count_of(left)));
            put_wrapped(out, "  ", &[words], self.style.width);
        }
    }

    fn heading(&self, out: &mut String, text: &str) {
        put(out, "");
        put_wrapped(out, "", &[self.style.heading(text)], self.style.width);
        put(out, "");
    }
}
