//! Parts of a policy that never do anything, because others are for all of their requests or their
//! keys.

use tollgate::Quota;
use tollgate_policy::{Dimension, Policy};

use super::requests::Requests;
use crate::plan::idle_quotas;

/// The earlier rule that is for all requests of the one in this place.
pub(super) fn rule_behind(policy: &Policy, at: usize) -> Option<usize> {
    rule_for(&policy.rules()[..at], &Requests::of(policy.rules()[at].matches()))
}

/// The rule that decides all requests of a dimension.
pub(super) fn dimension_behind(policy: &Policy, dimension: &Dimension) -> Option<usize> {
    rule_for(policy.rules(), &Requests::of(dimension.matches()))
}

fn rule_for(rules: &[tollgate_policy::Rule], requests: &Requests<'_>) -> Option<usize> {
    rules.iter().position(|rule| Requests::of(rule.matches()).have_all(requests))
}

/// What is for all requests of the tier in this place, before it: `rule 1`, or `tier premium`.
pub(super) fn tier_behind(policy: &Policy, dimension: &Dimension, at: usize) -> Option<String> {
    let tier = &dimension.tiers()[at];
    let requests = Requests::of_tier(dimension, tier)?.and(Requests::of(dimension.matches()));
    if let Some(rule) = rule_for(policy.rules(), &requests) {
        return Some(format!("rule {}", rule + 1));
    }
    // Tiers with a match come before those that a value names.
    let is_before = |place: usize| place < at || (tier.matches().is_any() && place != at);
    let matched = dimension.tiers().iter().enumerate().filter(|(_, other)| !other.matches().is_any());
    let mut before = matched.filter(|(place, _)| is_before(*place)).map(|(_, other)| other);
    let hides = before.find(|other| Requests::of(other.matches()).have_all(&requests))?;
    Some(format!("tier {}", hides.name()))
}

/// Of each quota of a dimension, the tighter one of another dimension that makes it idle: the other
/// has the same keys, and is asked of all its requests.
pub(super) fn quotas_behind<'p>(policy: &'p Policy, dimension: &Dimension) -> Vec<Option<(&'p str, &'p Quota)>> {
    let requests = Requests::of(dimension.matches());
    let is_beside = |other: &&Dimension| {
        let is_same = other.name() == dimension.name();
        let is_asked = other.tiers().is_empty() && Requests::of(other.matches()).have_all(&requests);
        other.key().eq(dimension.key()) && (is_same || (is_asked && !other.shadow()))
    };
    let beside = policy.dimensions().iter().filter(is_beside);
    let all: Vec<(&str, &Quota)> =
        beside.flat_map(|other| other.quotas().iter().map(|quota| (other.name(), quota))).collect();
    let quotas: Vec<Quota> = all.iter().map(|(_, quota)| **quota).collect();
    let idle = all.iter().zip(idle_quotas(&quotas)).filter(|((name, _), _)| *name == dimension.name());
    idle.map(|(_, by)| by.map(|by| all[by]).filter(|(name, _)| *name != dimension.name())).collect()
}
