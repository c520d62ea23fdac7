//! The report on the terminal: totals, the worst keys, and a timeline.

pub(crate) mod html;
pub(crate) mod json;

use std::borrow::Cow;

use tollgate::Quota;
use tollgate_policy::Action;

use crate::log::Log;
use crate::outcome::{DimensionOutcome, KeyTally, Outcome};
use crate::plan::{Dimension, Plan, quota_in_words};
use crate::reading::{lines_words, span_words};
use crate::terminal::Style;
use crate::text::{harmless, shortened};
use crate::time::{axis_label, length};
use crate::timeline::{Bucket, Timeline};
use crate::words::{count_of, human, percent, put, put_wrapped, times};

/// Everything that the report is made of.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) log: &'a Log,
    pub(crate) outcome: &'a Outcome,
    pub(crate) timeline: &'a Timeline,
    pub(crate) plan: &'a Plan,
    pub(crate) top: usize,
    pub(crate) style: Style,
}

/// A key that was turned away, in one of its tiers.
#[derive(Debug)]
struct Worst<'a> {
    tally: &'a KeyTally,
    key: &'a str,
    tier: Option<&'a str>,
}

impl Worst<'_> {
    /// The key, with its tier beside it.
    fn in_words(&self) -> Cow<'_, str> {
        self.tier.map_or(self.key.into(), |tier| format!("{} (tier {tier})", self.key).into())
    }
}

/// Of each quota of a dimension, how many denials it decided, and what it is: `premium: 100 per 1m`.
fn by_quota(outcome: &DimensionOutcome, dimension: &Dimension) -> Vec<(u64, String)> {
    let sets = dimension.sets().zip(&outcome.by_quota).enumerate();
    let of_set = |(set, (quotas, denied))| {
        let tier = dimension.tier_name(set).map(|tier| format!("{tier}: ")).unwrap_or_default();
        let rows = core::iter::zip::<&[Quota], &Vec<u64>>(quotas, denied);
        rows.map(move |(quota, denied)| (*denied, format!("{tier}{}", quota_in_words(quota))))
    };
    sets.flat_map(of_set).collect()
}

/// Columns left of the bars in a chart, for the scale.
const SCALE: usize = 9;

/// How many steps a timeline may have to fit a terminal of that width.
pub(crate) fn columns_for_chart(style: Style) -> usize {
    style.width.saturating_sub(SCALE + 2)
}

impl Report<'_> {
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.totals(&mut out);
        self.by_rules(&mut out);
        self.denied_by(&mut out);
        self.in_shadow_mode(&mut out);
        for dimension in 0..self.plan.dimensions.len() {
            self.worst_keys(&mut out, dimension);
        }
        self.chart(&mut out);
        out
    }

    fn totals(&self, out: &mut String) {
        let Self { log, outcome, style, plan, .. } = self;
        let totals = &outcome.totals;
        put_wrapped(out, "", &[style.heading(&plan.title())], style.width);
        put(out, "");
        let mut line = |name: &str, count: u64, notes: &[String]| {
            put_wrapped(out, &format!("  {name:<9} {:>12}  ", human(count)), notes, style.width);
        };
        let of_requests = |count| format!("{:>7} of requests", percent(count, totals.requests()));
        line("requests", totals.requests(), &span_words(log));
        line("admitted", totals.admitted, &[of_requests(totals.admitted)]);
        line("denied", totals.denied, &[of_requests(totals.denied)]);
        if totals.never_pass > 0 {
            let why = "cost above the limit, can never pass".to_owned();
            line("too big", totals.never_pass, &[format!("{}:", of_requests(totals.never_pass)), why]);
        }
        if outcome.delayed > 0 {
            let longest = format!("by at most {}", length(outcome.longest_delay_ns));
            line("delayed", outcome.delayed, &[format!("{},", of_requests(outcome.delayed)), longest]);
        }
        if let Some(costs) = outcome.costs {
            costs.in_words().into_iter().for_each(|(name, permits, words)| line(name, permits, &[words]));
        }
        for (dimension, of) in outcome.dimensions.iter().zip(&plan.dimensions) {
            let hit = dimension.by_key.iter().filter(|key| key.turned_away > 0).count();
            let (keys, hit) = (count_of(dimension.keys().count()), count_of(hit));
            let which = if plan.dimensions.len() > 1 { format!(" ({})", harmless(&of.name)) } else { String::new() };
            let share = percent(hit, keys);
            let denied = match hit {
                _ if of.shadow => format!("{} ({share}) would be denied at least once", human(hit)),
                0 => "none of them was denied".to_owned(),
                1 => format!("1 key ({share}) was denied at least once"),
                _ => format!("{} keys ({share}) were denied at least once", human(hit)),
            };
            line("keys", keys, &[format!("{denied}{which}")]);
        }
        line("lines", log.account.lines.read, &lines_words(log, &plan.describe_keys()));
        if let Some(clients) = plan.clients_in_words() {
            put_wrapped(out, &format!("  {:<9} {:>12}  ", "clients", ""), &[clients], style.width);
        }
    }

    /// What rules decided, and what no limit is for: counts, and what was done to whom.
    fn decided_before_limits(&self) -> Vec<(u64, &'static str, String)> {
        let Some(matching) = &self.plan.matching else { return Vec::new() };
        let done = |action| if action == Action::Admit { "admitted" } else { "denied" };
        let rules = matching.rules.iter().zip(&self.outcome.by_rule);
        let rules = rules.map(|((matches, action), count)| (*count, done(*action), matches.clone()));
        rules.chain([(self.outcome.unlimited, "admitted", "no limit is for them".to_owned())]).collect()
    }

    /// What to say of values of `tier_by` that name no tier.
    fn unknown_tiers(&self) -> Option<String> {
        let unknown = usize::try_from(self.outcome.unknown_tiers).unwrap_or(usize::MAX);
        let told = format!("a value of `tier_by` named no tier {}: its dimension's own quotas decided", times(unknown));
        (unknown > 0).then_some(told)
    }

    fn by_rules(&self, out: &mut String) {
        let rows = self.decided_before_limits();
        if !rows.is_empty() {
            put(out, &format!("\n{}\n", self.style.heading("decided before any limit")));
        }
        for (count, done, whom) in rows {
            let whom = shortened(&harmless(&whom), self.style.width.saturating_sub(24).max(20));
            put(out, &format!("  {:>9}  {done:<9}  {whom}", human(count)));
        }
        if let Some(words) = self.unknown_tiers() {
            put(out, "");
            put_wrapped(out, "  ", &[words], self.style.width);
        }
    }

    /// Whether there are denials, and several quotas that they may come from.
    fn has_several_to_tell_apart(&self) -> bool {
        let has_several = self.plan.quotas().count() > 1 || self.plan.penalties().next().is_some();
        has_several && self.outcome.totals.denied > 0
    }

    /// Which dimensions and quotas the denials come from, where there are several to tell apart.
    fn denied_by(&self, out: &mut String) {
        if !self.has_several_to_tell_apart() {
            return;
        }
        put(out, &format!("\n{}\n", self.style.heading("denied by the quota to wait longest for")));
        put(out, &format!("  {:>9}  {:>9}", "denied", "in the way"));
        let mut row = |denied: u64, in_the_way: Option<u64>, what: &str| {
            let denied = self.style.denied(&format!("{:>9}", human(denied)));
            let in_the_way = in_the_way.map(human).unwrap_or_default();
            let what = shortened(&harmless(what), self.style.width.saturating_sub(26).max(20));
            put(out, &format!("  {denied}  {in_the_way:>10}  {what}"));
        };
        for (outcome, dimension) in self.outcome.dimensions.iter().zip(&self.plan.dimensions) {
            row(outcome.decided, Some(outcome.in_the_way), &dimension.name);
            for (denied, what) in by_quota(outcome, dimension) {
                row(denied, None, &format!("  {what}"));
            }
            if dimension.penalty.is_some() {
                row(outcome.by_penalty, None, "  blocked by the penalty");
            }
            if outcome.at_key_cap > 0 {
                row(outcome.at_key_cap, None, "  no place for a new key");
            }
        }
    }

    /// Of each dimension in shadow mode, the requests that it would deny, and what it is.
    fn would_deny(&self) -> impl Iterator<Item = (u64, &Dimension)> {
        let dimensions = self.outcome.dimensions.iter().zip(&self.plan.dimensions);
        dimensions.filter(|(_, of)| of.shadow).map(|(outcome, of)| (outcome.in_the_way, of))
    }

    fn in_shadow_mode(&self, out: &mut String) {
        if self.would_deny().next().is_none() {
            return;
        }
        put(out, &format!("\n{}\n", self.style.heading("would be denied, but for shadow mode")));
        for (count, dimension) in self.would_deny() {
            let share = percent(count, self.outcome.totals.requests());
            let name = shortened(&harmless(&dimension.name), self.style.width.saturating_sub(36).max(20));
            put(out, &format!("  {:>9}  {share:>7} of requests  {name}", human(count)));
        }
    }

    /// The keys that were turned away, those with the most denials first.
    fn worst(&self, dimension: usize) -> Vec<Worst<'_>> {
        let (keys, of) = (&self.log.keys[dimension], &self.plan.dimensions[dimension]);
        let by_key = self.outcome.dimensions[dimension].keys().filter(|(_, _, tally)| tally.turned_away > 0);
        let mut worst: Vec<Worst<'_>> = by_key
            .map(|(number, set, tally)| Worst { tally, key: keys.text(number), tier: of.tier_name(set) })
            .collect();
        worst.sort_by(|a, b| {
            b.tally.turned_away.cmp(&a.tally.turned_away).then_with(|| (a.key, a.tier).cmp(&(b.key, b.tier)))
        });
        worst
    }

    fn worst_keys(&self, out: &mut String, dimension: usize) {
        let worst = self.worst(dimension);
        if worst.is_empty() || self.top == 0 {
            return;
        }
        let heading = match self.plan.dimensions.as_slice() {
            [_] => "worst keys".to_owned(),
            several if several[dimension].shadow => {
                harmless(&format!("keys that {} would deny most", several[dimension].name))
            }
            several => harmless(&format!("worst keys of {}", several[dimension].name)),
        };
        put(out, &format!("\n{}\n", self.style.heading(&heading)));
        put(out, &format!("  {:>9}  {:>18}  key", "denied", "of its requests"));
        for of in worst.iter().take(self.top) {
            let (tally, key) = (of.tally, of.in_words());
            let denied = format!("{:>9}", human(tally.turned_away));
            let requests = human(tally.requests);
            let share = percent(tally.turned_away, tally.requests);
            let key = shortened(&harmless(&key), self.style.width.saturating_sub(33).max(20));
            put(out, &format!("  {}  {requests:>9}  {share:>7}  {key}", self.style.denied(&denied)));
        }
        let left = worst.len().saturating_sub(self.top);
        if left > 0 {
            let words = format!("and {} more that were denied at least once (--top)", human(count_of(left)));
            put_wrapped(out, "  ", &[words], self.style.width);
        }
    }

    /// Draws nothing where all came at once: there is no time to draw it over.
    fn chart(&self, out: &mut String) {
        let (first, last) = self.log.span();
        if first == last {
            return;
        }
        let Timeline { start, step, buckets } = self.timeline;
        let width = self.columns_per_step() * buckets.len();
        self.panel(out, "admitted", 6, |bucket| bucket.admitted, |bars| self.style.admitted(bars));
        self.panel(out, "denied", 3, |bucket| bucket.denied, |bars| self.style.denied(bars));
        if self.outcome.totals.never_pass > 0 {
            self.panel(out, "too big", 3, |bucket| bucket.too_big, |bars| self.style.denied(bars));
        }
        let (from, to) = (axis_label(*start, *step), axis_label(self.timeline.end(), *step));
        let room = width.saturating_sub(from.chars().count() + 4).max(to.chars().count() + 1);
        put(out, &format!("{:SCALE$}  {from}{to:>room$} UTC", ""));
    }

    /// Few steps are drawn wide, so that the chart fills the line.
    fn columns_per_step(&self) -> usize {
        (columns_for_chart(self.style) / self.timeline.buckets.len().max(1)).max(1)
    }

    /// Bars for one count of each step, with the highest as the scale.
    fn panel(
        &self,
        out: &mut String,
        name: &str,
        height: usize,
        count: fn(&Bucket) -> u64,
        painted: impl Fn(&str) -> String,
    ) {
        let counts: Vec<u64> = self.timeline.buckets.iter().map(count).collect();
        let wide = self.columns_per_step();
        let every = length(self.timeline.step.unsigned_abs());
        put(out, &format!("\n{}", self.style.heading(&format!("{name} per {every}"))));
        let highest = counts.iter().copied().max().unwrap_or(0);
        let height = if highest == 0 { 1 } else { height };
        for row in (0..height).rev() {
            let is_top = row + 1 == height && highest > 0;
            let (label, edge) = if is_top { (human(highest), '┤') } else { (String::new(), '│') };
            let bars: String = counts.iter().map(|count| bar(*count, highest, row, height).repeat(wide)).collect();
            put(out, &format!("{label:>SCALE$} {edge}{}", painted(bars.trim_end())));
        }
        put(out, &format!("{:>SCALE$} ┴{}", 0, "─".repeat(wide * counts.len())));
    }
}

/// The part of a bar in one row of a chart, in eighths of a row. What is not nothing shows, however
/// little it is.
fn bar(value: u64, highest: u64, row: usize, height: usize) -> &'static str {
    const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let all = u128::from(count_of(height * 8));
    let filled = (u128::from(value) * all + u128::from(highest) / 2).checked_div(u128::from(highest)).unwrap_or(0);
    let filled = usize::try_from(filled).unwrap_or(usize::MAX).max(usize::from(value > 0));
    EIGHTHS[filled.saturating_sub(row * 8).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths_and_show_the_least() {
        let column = |value| (0..3).map(|row| bar(value, 2400, row, 3)).collect::<String>();
        assert_eq!(column(0), "   ");
        assert_eq!(column(1), "▁  ");
        assert_eq!(column(800), "█  ");
        assert_eq!(column(1200), "█▄ ");
        assert_eq!(column(2400), "███");
        assert_eq!(bar(0, 0, 0, 1), " ");
    }
}
