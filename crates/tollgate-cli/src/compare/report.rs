//! The comparison for people and for programs.

use serde_json::{Value, json};

use super::comparison::{Comparison, Finish};
use super::contenders::Contender;
use crate::key::describe_all;
use crate::outcome::Costs;
use crate::plan::quota_in_words;
use crate::reading::{lines_words, span_words};
use crate::report::json::{costs, log, rules};
use crate::text::harmless;
use crate::time::length;
use crate::words::{count_of, human, percent, put, put_wrapped};

impl Comparison<'_> {
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let (key, width) = (describe_all(self.keys), self.style.width);
        put_wrapped(&mut out, "", &[self.style.heading(&harmless(&self.title()))], width);
        put(&mut out, "");
        let mut line = |name: &str, count: u64, notes: &[String]| {
            put_wrapped(&mut out, &format!("  {name:<9} {:>12}  ", human(count)), notes, width);
        };
        line("requests", count_of(self.log.requests()), &span_words(self.log));
        line("lines", self.log.account.lines.read, &lines_words(self.log, &key));
        put(&mut out, "");
        let windows: String = self.windows.iter().map(|window| format!(" {:>8}", length(*window))).collect();
        let over = format!("{:>1$}", "most in any", 40 + 9 * self.windows.len());
        put(&mut out, &format!("{over}  {:>18}", "wait when denied"));
        put(
            &mut out,
            &format!("  {:>9} {:>8}  {:>8} {:>8} {windows}  {:>8} {:>9}", "denied", "", "keys", "", "half", "longest"),
        );
        for (contender, finish) in &self.all {
            self.rows(&mut out, contender, finish);
        }
        out
    }

    fn rows(&self, out: &mut String, contender: &Contender, finish: &Finish) {
        let totals = &finish.outcome.totals;
        put(out, "");
        put_wrapped(out, "", &[self.style.heading(&contender.name)], self.style.width);
        let bursts: String = finish.bursts.iter().map(|burst| format!(" {:>8}", human(burst.permits))).collect();
        let (denied, keys) = (totals.denied, count_of(finish.keys_denied()));
        let row = format!(
            " {:>8}  {:>8} {:>8} {bursts}  {:>8} {:>9}",
            percent(denied, totals.requests()),
            human(keys),
            percent(keys, count_of(finish.keys())),
            rounded(finish.median_wait()),
            rounded(finish.longest_wait()),
        );
        put(out, &format!("  {}{row}", self.style.denied(&format!("{:>9}", human(denied)))));
        if totals.never_pass > 0 {
            put(out, &format!("  and {} too big, can never pass", human(totals.never_pass)));
        }
        if finish.outcome.delayed > 0 {
            let (delayed, longest) = (finish.outcome.delayed, rounded(finish.outcome.longest_delay_ns));
            put(out, &format!("  and {} delayed, by at most {longest}", human(delayed)));
        }
        if let Some(Costs { estimated, actual, debt, .. }) = finish.outcome.costs {
            let [estimated, actual, debt] = [estimated, actual, debt].map(human);
            put(out, &format!("  {estimated} permits estimated, {actual} in fact, {debt} of them debt"));
        }
        for (count, what) in before_limits(contender, finish).iter().filter(|(count, _)| *count > 0) {
            put(out, &format!("  of all, {} {what}", human(*count)));
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "log": log(self.log),
            "requests": self.log.requests(),
            "compared": self.all.iter().map(|(contender, finish)| self.one(contender, finish)).collect::<Vec<_>>(),
        })
    }

    fn one(&self, contender: &Contender, finish: &Finish) -> Value {
        let totals = &finish.outcome.totals;
        let bursts = self.windows.iter().zip(&finish.bursts).map(|(window, burst)| {
            let key = burst.key.map(|(column, key)| self.log.keys[column].text(key));
            json!({ "window_ns": window, "most": burst.permits, "key": key })
        });
        json!({
            "name": contender.name,
            "quotas": contender.plan.quotas().map(quota_in_words).collect::<Vec<_>>(),
            "requests": totals.requests(),
            "admitted": totals.admitted,
            "denied": totals.denied,
            "too_big": totals.never_pass,
            "rules": rules(&contender.plan, &finish.outcome),
            "without_a_limit": finish.outcome.unlimited,
            "keys": finish.keys(),
            "keys_denied": finish.keys_denied(),
            "bursts": bursts.collect::<Vec<_>>(),
            "median_wait_ns": finish.median_wait(),
            "longest_wait_ns": finish.longest_wait(),
            "delayed": finish.outcome.delayed,
            "longest_delay_ns": finish.outcome.longest_delay_ns,
            "costs": costs(&finish.outcome),
        })
    }
}

/// What rules decided, and the requests that no limit is for.
pub(super) fn before_limits(contender: &Contender, finish: &Finish) -> [(u64, &'static str); 3] {
    let by_rules = contender.plan.matching.as_ref().map(|matching| finish.outcome.by_rules(matching));
    let (admitted, denied) = by_rules.unwrap_or_default();
    [(admitted, "admitted by rules"), (denied, "denied by rules"), (finish.outcome.unlimited, "without a limit")]
}

/// A wait in a column: to the millisecond, upwards.
pub(super) fn rounded(nanos: u64) -> String {
    const MILLISECOND: u64 = 1_000_000;
    length(if nanos < MILLISECOND { nanos } else { nanos.div_ceil(MILLISECOND).saturating_mul(MILLISECOND) })
}
