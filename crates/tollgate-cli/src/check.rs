//! `tollgate check`: what policy files say, or what is wrong with them, without a log.

mod hidden;
mod requests;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tollgate::{Algorithm, AtKeyCap, Quota};
use tollgate_policy::{
    Action, Dimension, LoadError, OnFailure, Policy, PolicyError, PolicyProblem, PolicyTier, Rule, StoreTable,
};

use crate::args::{CheckArgs, ReportFormat};
use crate::errors::{RunError, policy_problem, unread};
use crate::plan::{USUAL_KEY_CAP, idle_quotas, length_of, penalty_in_words, quota_in_words};
use crate::terminal;
use crate::text::harmless;
use crate::words::{count_of, human, put};
use requests::{Requests, field_in_words};

/// What became of one file.
enum Checked {
    Good(Policy),
    Wrong {
        error: Box<PolicyError>,
        text: String,
    },
    /// It can't be read.
    Unread(String),
    /// No limiter on its store can be made of it.
    #[cfg(feature = "redis")]
    Refused(String),
}

/// Checks all the files and tells of each.
///
/// # Errors
///
/// [`RunError::Write`] when the report can't be written.
pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, RunError> {
    let checked: Vec<(String, Checked)> = args.files.iter().map(|path| (name_of(path), read(path))).collect();
    match args.format {
        ReportFormat::Json => {
            let files = checked.iter().map(|(name, checked)| file_json(name, checked)).collect::<Vec<_>>();
            terminal::print(&terminal::json_text(&json!({ "policies": files })))?;
        }
        ReportFormat::Text => {
            for (at, (name, checked)) in checked.iter().enumerate() {
                match checked {
                    Checked::Good(policy) => {
                        let gap = if at > 0 { "\n" } else { "" };
                        terminal::print(&format!("{gap}{}", in_words(name, policy, is_client)))?;
                    }
                    Checked::Wrong { error, text } => terminal::complain(&complaint(name, error, text)),
                    Checked::Unread(reason) => terminal::complain(&harmless(&format!("{name}: {reason}"))),
                    #[cfg(feature = "redis")]
                    Checked::Refused(reason) => terminal::complain(&harmless(&format!("{name}: {reason}"))),
                }
            }
        }
    }
    let worst = checked.iter().map(|(_, checked)| match checked {
        Checked::Good(_) => 0,
        Checked::Unread(_) => 1,
        _ => 2,
    });
    Ok(ExitCode::from(worst.max().unwrap_or_default()))
}

fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn read(path: &Path) -> Checked {
    if path == Path::new("-") {
        return match io::read_to_string(io::stdin().lock()) {
            Ok(text) => match Policy::from_toml(&text) {
                Ok(policy) => judge(policy),
                Err(error) => Checked::Wrong { error: Box::new(error), text },
            },
            Err(error) => Checked::Unread(unread(&LoadError::Read { path: path.to_owned(), error })),
        };
    }
    match Policy::load(path) {
        Ok(policy) => judge(policy),
        Err(LoadError::Policy { error, .. }) => {
            // Again, for the line that is wrong.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            Checked::Wrong { error: Box::new(error), text }
        }
        Err(error) => Checked::Unread(unread(&error)),
    }
}

/// A policy on a store may be one that `serve` and `replay` refuse.
fn judge(policy: Policy) -> Checked {
    #[cfg(feature = "redis")]
    if let Some(reason) = crate::on_store::refusal(&policy) {
        return Checked::Refused(reason);
    }
    Checked::Good(policy)
}

/// The place as editors and compilers write it, the reason, and the line with a mark under the
/// place.
fn complaint(name: &str, error: &PolicyError, text: &str) -> String {
    let (line, column) = (error.line(), error.column());
    let shown = text.lines().nth(line - 1).unwrap_or_default();
    // A tab is shown as one space, so that the mark is under its place.
    let shown: String = shown.chars().map(|char| if char == '\t' { ' ' } else { char }).collect();
    let indent = shown.chars().take(column - 1).map(|char| harmless(&char.to_string()).chars().count()).sum::<usize>();
    let place = format!("{}:{line}:{column}: {}", harmless(name), harmless(&policy_problem(error)));
    // A line with a secret is not shown.
    if shown.trim().is_empty() || matches!(error.problem(), PolicyProblem::InTheFile { .. }) {
        return place;
    }
    format!("{place}\n    {}\n    {}^", harmless(&shown), " ".repeat(indent))
}

/// Whether a field is an address wherever a policy names it.
pub(crate) fn is_client(field: &str) -> bool {
    field == "client"
}

/// What a policy allows, in words, where these fields are addresses.
pub(crate) fn in_words(name: &str, policy: &Policy, is_address: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let several = if policy.dimensions().len() == 1 { "dimension" } else { "dimensions" };
    put(&mut out, &format!("{}: good, {} {several}", harmless(name), policy.dimensions().len()));
    if let Some(store) = policy.store() {
        put(
            &mut out,
            &format!("  on the store {}; while it is away, {}", harmless(&store.url().to_string()), away(store)),
        );
    }
    for what in not_on_a_store(policy) {
        put(&mut out, &format!("    a store keeps no {what}: leave it out, or the store"));
    }
    // Only a limiter in process holds keys.
    let is_held = policy.store().is_none_or(|store| matches!(store.on_failure(), OnFailure::Local { .. }));
    if let Some(key_cap) = policy.key_cap().filter(|_| is_held) {
        put(&mut out, &format!("  holds at most {} keys", human(count_of(key_cap))));
    }
    let has_cap = policy.at_key_cap().is_some() || policy.key_cap().is_some();
    if has_cap && !is_held {
        put(&mut out, "  the cap on keys has no effect on a store");
    }
    if has_cap && is_held {
        put(&mut out, &format!("  when it is full, requests with a new key are {}", at_key_cap(policy)));
    }
    if policy.shadow() == Some(true) {
        put(&mut out, "  shadow mode: what would be denied is admitted");
    }
    if let Some(percent) = policy.enforced_percent() {
        put(&mut out, &format!("  enforced for {percent} % of the keys, and in shadow mode for the others"));
    }
    for (at, rule) in policy.rules().iter().enumerate() {
        put(&mut out, &format!("  {}", harmless(&rule_in_words(rule))));
        if let Some(earlier) = hidden::rule_behind(policy, at) {
            put(
                &mut out,
                &format!("    never decides: rule {} is for all of them; leave it out, or put it first", earlier + 1),
            );
        }
    }
    for dimension in policy.dimensions() {
        let key = dimension.key().collect::<Vec<_>>().join(" + ");
        let clients = if dimension.key().any(&is_address) { format!(" ({})", policy.client()) } else { String::new() };
        let matches = dimension.matches();
        let of = if matches.is_any() { String::new() } else { format!(" of {}", Requests::of(matches)) };
        let what = format!("{}: for each {key}{clients}{of}", dimension.name());
        put(&mut out, &format!("  {}", harmless(&what)));
        if dimension.shadow() {
            put(&mut out, "    in shadow mode: what it would deny is admitted");
        }
        if let Some(rule) = hidden::dimension_behind(policy, dimension) {
            put(&mut out, &format!("    is never asked: rule {} is for all of them; leave it out", rule + 1));
        }
        put_quotas(&mut out, "    ", dimension.quotas(), &hidden::quotas_behind(policy, dimension));
        put_tiers(&mut out, policy, dimension);
        if let Some(penalty) = dimension.penalty() {
            put(&mut out, &format!("    {}", penalty_in_words(&penalty)));
        }
    }
    if policy.dimensions().iter().flat_map(Dimension::all_quotas).any(|quota| quota.max_hold().is_some()) {
        put(&mut out, "  in flight: `/acquire` holds a request until `/release`");
        put(&mut out, "    asked by nginx or Envoy, which tell no end, a request is over at once and holds no place");
    }
    put_networks(&mut out, policy, is_address);
    out
}

/// What a rule does, in words.
fn rule_in_words(rule: &Rule) -> String {
    let requests = Requests::of(rule.matches());
    match rule.action() {
        Action::Admit => format!("{requests} are admitted without a limit"),
        Action::Deny => format!("{requests} are denied"),
    }
}

/// The parts of a policy with a store that no store keeps.
fn not_on_a_store(policy: &Policy) -> impl Iterator<Item = &'static str> {
    let has_penalty = policy.dimensions().iter().any(|dimension| dimension.penalty().is_some());
    let has_shadow = policy.shadow() == Some(true) || policy.enforced_percent().is_some_and(|percent| percent < 100);
    let parts = [("penalty", has_penalty), ("shadow mode", has_shadow)];
    let is_on_a_store = policy.store().is_some();
    parts.into_iter().filter(move |(_, is_there)| is_on_a_store && *is_there).map(|(what, _)| what)
}

/// Quotas of one key, and which of them never decide: beside each other, or behind another dimension's.
fn put_quotas(out: &mut String, indent: &str, quotas: &[Quota], behind: &[Option<(&str, &Quota)>]) {
    for (at, (quota, idle)) in beside(quotas).enumerate() {
        put(out, &format!("{indent}{}", allowance(quota)));
        match (idle, behind.get(at).copied().flatten()) {
            // Only sliding window logs make each other idle.
            (Some(same), _) if (same.limit(), same.window()) == (quota.limit(), quota.window()) => {
                put(out, &format!("{indent}  the same as the one above: leave it out"));
            }
            (Some(tighter), _) => {
                put(out, &format!("{indent}  never decides: {} is tighter; leave it out", quota_in_words(tighter)));
            }
            (None, Some((dimension, tighter))) => {
                let (dimension, tighter) = (harmless(dimension), quota_in_words(tighter));
                put(out, &format!("{indent}  never decides: {tighter} of {dimension} denies as much; leave it out"));
            }
            (None, None) => {}
        }
    }
}

fn put_tiers(out: &mut String, policy: &Policy, dimension: &Dimension) {
    for (at, tier) in dimension.tiers().iter().enumerate() {
        let requests = Requests::of_tier(dimension, tier).map(|requests| requests.to_string());
        let requests = requests.unwrap_or_else(|| "requests for which the program chooses it".to_owned());
        let unlimited = if tier.is_unlimited() { " are not limited" } else { "" };
        put(out, &format!("    {}", harmless(&format!("tier {}: {requests}{unlimited}", tier.name()))));
        if let Some(behind) = hidden::tier_behind(policy, dimension, at) {
            put(out, &format!("      is never chosen: {} is for all of them; leave it out", harmless(&behind)));
        }
        put_quotas(out, "      ", tier.quotas(), &[]);
    }
    if let Some(field) = dimension.tier_by() {
        let field = harmless(&field_in_words(field));
        put(out, &format!("    requests whose {field} names no tier have the quotas of the dimension"));
    }
}

/// The limits of whole networks that `serve` adds to a policy.
fn networks(policy: &Policy, is_address: impl Fn(&str) -> bool) -> Vec<Dimension> {
    let with = policy.with_network_limits(is_address);
    with.dimensions()[policy.dimensions().len()..].to_vec()
}

fn put_networks(out: &mut String, policy: &Policy, is_address: impl Fn(&str) -> bool) {
    let added = networks(policy, is_address);
    if added.is_empty() {
        return;
    }
    put(out, "  for IPv6 networks, added by `tollgate serve` without `network_limits = false`:");
    let key_cap = count_of(policy.key_cap().unwrap_or(USUAL_KEY_CAP));
    for dimension in added {
        for quota in dimension.quotas() {
            put(out, &format!("    {}: {quota}", harmless(dimension.name())));
            // A full bucket, and what flows in while the keys of its permits are held.
            if 2 * u64::from(quota.limit()) >= key_cap {
                put(out, "      one such network can fill the cap on keys: give networks limits of their own");
            }
        }
    }
}

fn away(store: &StoreTable) -> String {
    match store.on_failure() {
        OnFailure::Open => "requests are admitted, uncounted".to_owned(),
        OnFailure::Local { nodes } => format!("each of {nodes} nodes decides by its share in process"),
        _ => "requests are refused".to_owned(),
    }
}

fn at_key_cap(policy: &Policy) -> &'static str {
    match policy.at_key_cap() {
        Some(AtKeyCap::Admit) => "admitted, uncounted",
        _ => "denied",
    }
}

/// Each quota, and the one that makes it idle: a tighter one, or an equal one above it.
fn beside(quotas: &[Quota]) -> impl Iterator<Item = (&Quota, Option<&Quota>)> {
    quotas.iter().zip(idle_quotas(quotas)).map(|(quota, idle)| (quota, idle.map(|tighter| &quotas[tighter])))
}

fn allowance(quota: &Quota) -> String {
    if let Some(max_hold) = quota.max_hold() {
        let (limit, most) = (human(quota.limit().into()), length_of(max_hold));
        return format!(
            "at most {limit} in flight at once, each held by a store or `tollgate serve` for at most {most}"
        );
    }
    if quota.algorithm() != Algorithm::SlidingWindowLog {
        return quota.to_string();
    }
    format!("at most {}", quota_in_words(quota).replacen(" per ", " in any ", 1))
}

fn file_json(name: &str, checked: &Checked) -> Value {
    match checked {
        Checked::Unread(reason) => json!({ "file": name, "good": false, "error": reason }),
        #[cfg(feature = "redis")]
        Checked::Refused(reason) => json!({ "file": name, "good": false, "error": reason }),
        Checked::Wrong { error, .. } => json!({
            "file": name,
            "good": false,
            "line": error.line(),
            "column": error.column(),
            "error": policy_problem(error),
        }),
        Checked::Good(policy) => {
            let quota = |(quota, idle): (&Quota, Option<&Quota>)| json!({ "quota": quota.to_string(), "never_decides_beside": idle.map(Quota::to_string) });
            let quotas = |quotas: &[Quota]| beside(quotas).map(quota).collect::<Vec<_>>();
            let behind = |rule: Option<usize>| rule.map(|rule| format!("rule {}", rule + 1));
            let rule = |(at, rule): (usize, &Rule)| {
                json!({
                    "match": rule.matches().to_string(),
                    "action": rule.action().to_string(),
                    "never_decides_behind": behind(hidden::rule_behind(policy, at)),
                })
            };
            let dimension = |dimension: &Dimension| {
                let of_others = hidden::quotas_behind(policy, dimension).into_iter();
                let tier = |(at, tier): (usize, &PolicyTier)| {
                    json!({
                        "name": tier.name(),
                        "match": tier.matches().to_string(),
                        "unlimited": tier.is_unlimited(),
                        "quotas": quotas(tier.quotas()),
                        "never_chosen_behind": hidden::tier_behind(policy, dimension, at),
                    })
                };
                json!({
                    "name": dimension.name(),
                    "key": dimension.key().collect::<Vec<_>>(),
                    "match": dimension.matches().to_string(),
                    "shadow": dimension.shadow(),
                    "never_asked_behind": behind(hidden::dimension_behind(policy, dimension)),
                    "quotas": quotas(dimension.quotas()),
                    "never_decide_behind": of_others.flatten().map(|(name, _)| name).collect::<Vec<_>>(),
                    "tier_by": dimension.tier_by(),
                    "tiers": dimension.tiers().iter().enumerate().map(tier).collect::<Vec<_>>(),
                    "penalty": dimension.penalty().map(|penalty| penalty_in_words(&penalty)),
                })
            };
            json!({
                "file": name,
                "good": true,
                "client": policy.client().to_string(),
                "store": policy.store().map(|store| store.url().to_string()),
                "while_the_store_is_away": policy.store().map(away),
                "key_cap": policy.key_cap(),
                "new_keys_at_key_cap": at_key_cap(policy),
                "shadow": policy.shadow().unwrap_or(false),
                "enforced_percent": policy.enforced_percent(),
                "not_kept_by_the_store": not_on_a_store(policy).collect::<Vec<_>>(),
                "rules": policy.rules().iter().enumerate().map(rule).collect::<Vec<_>>(),
                "dimensions": policy.dimensions().iter().map(dimension).collect::<Vec<_>>(),
                "added_by_serve": networks(policy, is_client).iter().map(dimension).collect::<Vec<_>>(),
            })
        }
    }
}
