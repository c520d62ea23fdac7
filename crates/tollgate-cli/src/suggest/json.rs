//! The suggestion for programs.

use serde_json::{Map, Value, json};
use tollgate::Quota;

use super::suggestion::{Candidate, Ladder, QUANTILES, Suggestion};
use crate::outcome::KeyTally;
use crate::plan::quota_in_words;
use crate::report::json::log;
use crate::time::length;

fn quota_json(quota: &Quota) -> Value {
    json!({
        "quota": quota_in_words(quota),
        "limit": quota.limit(),
        "window_ns": u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX),
    })
}

impl Suggestion<'_> {
    pub(super) fn json(&self) -> Value {
        let windows = self.spreads.iter().map(|spread| {
            let most: Map<String, Value> = QUANTILES
                .iter()
                .map(|&(name, per_mille)| (name.to_owned(), spread.quantile(per_mille).into()))
                .collect();
            json!({ "window": length(spread.window), "window_ns": spread.window, "most_of_a_key": most })
        });
        let chosen = &self.chosen;
        let key = |(key, tally): &(&str, KeyTally)| json!({ "key": key, "requests": tally.requests, "denied": tally.turned_away });
        json!({
            "key": self.key,
            "log": log(self.log),
            "requests": self.log.requests(),
            "keys": self.log.keys[0].len(),
            "windows": windows.collect::<Vec<_>>(),
            "windows_left_out": self.longer.iter().map(|&window| json!({ "window": length(window), "window_ns": window })).collect::<Vec<_>>(),
            "limits": self.ladders.iter().flat_map(|ladder| self.limits(ladder)).collect::<Vec<_>>(),
            "policy": {
                "at_most": chosen.share.to_string(),
                "of": self.of.to_string(),
                "quotas": chosen.quotas.iter().map(quota_json).collect::<Vec<_>>(),
                "denied": chosen.outcome.totals.denied,
                "keys_denied": chosen.keys_hit(),
                "worst_keys": self.worst().iter().take(self.top).map(key).collect::<Vec<_>>(),
                "toml": chosen.text,
            },
        })
    }

    fn limits(&self, ladder: &Ladder) -> impl Iterator<Item = Value> {
        ladder.candidates.iter().map(|Candidate { quota, denied, hit }| {
            let worst = hit.iter().take(self.top).map(
                |hit| json!({ "key": self.log.keys[0].text(hit.key), "requests": hit.requests, "denied": hit.denied }),
            );
            let mut limit = quota_json(quota);
            limit["at_most"] = ladder.share.to_string().into();
            limit["of"] = self.of.to_string().into();
            limit["denied"] = (*denied).into();
            limit["keys_denied"] = hit.len().into();
            limit["worst_keys"] = worst.collect();
            limit
        })
    }

    /// The keys that the policy hits, those with the most denials first.
    pub(super) fn worst(&self) -> Vec<(&str, KeyTally)> {
        let tallies = self.chosen.by_key().iter().enumerate().filter(|(_, tally)| tally.turned_away > 0);
        let mut worst: Vec<_> = tallies.map(|(key, tally)| (self.log.keys[0].text(key), *tally)).collect();
        worst.sort_by(|(a, of_a), (b, of_b)| of_b.turned_away.cmp(&of_a.turned_away).then_with(|| a.cmp(b)));
        worst
    }
}
