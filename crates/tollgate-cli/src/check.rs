//! `tollgate check`: what policy files say, or what is wrong with them, without a log.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tollgate::{Algorithm, AtKeyCap, Quota};
use tollgate_policy::{Dimension, LoadError, OnFailure, Policy, PolicyError, PolicyProblem, StoreTable};

use crate::args::{CheckArgs, ReportFormat};
use crate::errors::{RunError, policy_problem, unread};
use crate::plan::{USUAL_KEY_CAP, idle_quotas, penalty_in_words, quota_in_words};
use crate::terminal;
use crate::text::harmless;
use crate::words::{count_of, human, put};

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
    for dimension in policy.dimensions() {
        let key = dimension.key().collect::<Vec<_>>().join(" + ");
        let clients = if dimension.key().any(&is_address) { format!(" ({})", policy.client()) } else { String::new() };
        put(&mut out, &format!("  {}: for each {}{}", harmless(dimension.name()), harmless(&key), harmless(&clients)));
        for (quota, idle) in quotas(dimension) {
            put(&mut out, &format!("    {}", allowance(quota)));
            match idle {
                // Only sliding window logs make each other idle.
                Some(same) if (same.limit(), same.window()) == (quota.limit(), quota.window()) => {
                    put(&mut out, "      the same as the one above: leave it out");
                }
                Some(tighter) => {
                    put(
                        &mut out,
                        &format!("      never decides: {} is tighter; leave it out", quota_in_words(tighter)),
                    );
                }
                None => {}
            }
        }
        if let Some(penalty) = dimension.penalty() {
            put(&mut out, &format!("    {}", penalty_in_words(&penalty)));
        }
    }
    put_networks(&mut out, policy, is_address);
    out
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
fn quotas(dimension: &Dimension) -> impl Iterator<Item = (&Quota, Option<&Quota>)> {
    let quotas = dimension.quotas();
    quotas.iter().zip(idle_quotas(quotas)).map(|(quota, idle)| (quota, idle.map(|tighter| &quotas[tighter])))
}

fn allowance(quota: &Quota) -> String {
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
            let dimension = |dimension: &Dimension| {
                json!({
                    "name": dimension.name(),
                    "key": dimension.key().collect::<Vec<_>>(),
                    "quotas": quotas(dimension).map(quota).collect::<Vec<_>>(),
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
                "dimensions": policy.dimensions().iter().map(dimension).collect::<Vec<_>>(),
                "added_by_serve": networks(policy, is_client).iter().map(dimension).collect::<Vec<_>>(),
            })
        }
    }
}
