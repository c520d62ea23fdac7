//! The report as one JSON object, for programs.

use serde_json::{Value, json};
use tollgate_policy::Action;

use super::{Report, Worst};
use crate::key::Field;
use crate::log::Log;
use crate::outcome::{Costs, Outcome};
use crate::plan::{Plan, quota_in_words};
use crate::time::rfc3339;

impl Report<'_> {
    pub(crate) fn json(&self) -> Value {
        let Self { outcome, timeline, plan, .. } = self;
        let totals = &outcome.totals;
        let dimensions = plan.dimensions.iter().zip(&outcome.dimensions).enumerate().map(|(at, (dimension, of))| {
            let worst = self.worst(at);
            let quotas = |set: usize| {
                let quotas = dimension.set(set).iter().zip(&of.by_quota[set]);
                let quota = |(quota, denied)| json!({ "quota": quota_in_words(quota), "denied": denied });
                quotas.map(quota).collect::<Vec<_>>()
            };
            let tiers = dimension.tiers.iter().enumerate();
            json!({
                "name": dimension.name,
                "key": dimension.key.iter().map(Field::to_string).collect::<Vec<_>>(),
                "keys": of.keys().count(),
                "keys_denied": worst.len(),
                "keys_too_big": of.by_key.iter().filter(|key| key.too_big > 0).count(),
                "denied": of.decided,
                "too_big": of.by_key.iter().map(|key| key.too_big).sum::<u64>(),
                "in_the_way": of.in_the_way,
                "shadow": dimension.shadow,
                "denied_at_key_cap": of.at_key_cap,
                "denied_by_penalty": of.by_penalty,
                "quotas": quotas(0),
                "tiers": tiers.map(|(at, tier)| json!({
                    "name": tier.name, "unlimited": tier.quotas.is_empty(), "quotas": quotas(at + 1),
                })).collect::<Vec<_>>(),
                "worst_keys": worst.iter().take(self.top).map(worst_key).collect::<Vec<_>>(),
            })
        });
        json!({
            "replayed": plan.title(),
            "log": log(self.log),
            "clients": plan.clients_in_words(),
            "requests": totals.requests(),
            "admitted": totals.admitted,
            "denied": totals.denied,
            "too_big": totals.never_pass,
            "delayed": outcome.delayed,
            "longest_delay_ns": outcome.longest_delay_ns,
            "costs": costs(outcome),
            "rules": rules(plan, outcome),
            "without_a_limit": outcome.unlimited,
            "unknown_tiers": outcome.unknown_tiers,
            "dimensions": dimensions.collect::<Vec<_>>(),
            "timeline": {
                "start": rfc3339(timeline.start),
                "step_ns": timeline.step,
                "admitted": timeline.buckets.iter().map(|bucket| bucket.admitted).collect::<Vec<_>>(),
                "denied": timeline.buckets.iter().map(|bucket| bucket.denied).collect::<Vec<_>>(),
                "too_big": timeline.buckets.iter().map(|bucket| bucket.too_big).collect::<Vec<_>>(),
            },
        })
    }
}

fn worst_key(of: &Worst<'_>) -> Value {
    let mut row = json!({ "key": of.key, "requests": of.tally.requests, "denied": of.tally.turned_away });
    if let Some(tier) = of.tier {
        row["tier"] = tier.into();
    }
    row
}

/// What admitted requests have cost; null where the log does not have it.
pub(crate) fn costs(outcome: &Outcome) -> Value {
    outcome.costs.map_or(Value::Null, |Costs { estimated, actual, debt, in_debt }| {
        json!({ "estimated": estimated, "actual": actual, "debt": debt, "requests_in_debt": in_debt })
    })
}

/// The rules of a policy, and how many requests each decided.
pub(crate) fn rules(plan: &Plan, outcome: &Outcome) -> Vec<Value> {
    let rules = plan.matching.iter().flat_map(|matching| &matching.rules).zip(&outcome.by_rule);
    let rule = |((matches, action), count): (&(String, Action), &u64)| {
        json!({
            "match": matches, "action": action.to_string(), "requests": count,
        })
    };
    rules.map(rule).collect()
}

/// What was read.
pub(crate) fn log(log: &Log) -> Value {
    let (first, last) = log.span();
    let unread = log.account.unread.iter().map(|(file, error)| json!({ "file": file, "error": error.to_string() }));
    json!({
        "first": rfc3339(first),
        "last": rfc3339(last),
        "lines": log.account.lines.read,
        "lines_not_used": log.account.lines.unusable,
        "lines_left_out": log.account.lines.left_out,
        "lines_without_key": log.account.lines.without_key,
        "lines_blank_or_header": log.account.lines.not_records,
        "unread_files": unread.collect::<Vec<_>>(),
    })
}
