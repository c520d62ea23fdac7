//! The suggested policy: the limits of all windows together, and what they would have denied.

use std::path::Path;
use std::time::Duration;

use tollgate::Quota;
use tollgate_address::ClientAddress;
use tollgate_policy::Policy;

use super::share::{Of, Share};
use super::slots::{Spread, least_limit};
use crate::clients::Clients;
use crate::decide::decide;
use crate::errors::RunError;
use crate::key::Field;
use crate::log::Log;
use crate::outcome::{KeyTally, Outcome};
use crate::plan::{Plan, USUAL_KEY_CAP, idle_quotas, quota_in_words};
use crate::terminal;
use crate::time::{lengths, rfc3339};
use crate::words::{count_of, human, percent};

/// A policy, and what it would have done to the log: decided by the limiter that a service would
/// make of it.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) text: String,
    pub(super) share: Share,
    pub(super) quotas: Vec<Quota>,
    pub(super) outcome: Outcome,
}

impl Chosen {
    pub(super) fn by_key(&self) -> &[KeyTally] {
        &self.outcome.dimensions[0].by_key
    }

    pub(super) fn keys_hit(&self) -> usize {
        self.by_key().iter().filter(|key| key.turned_away > 0).count()
    }
}

/// Chooses a limit for each window so that all of them together deny no more than the share.
///
/// Each is the least limit that alone denies no more than that. If together they deny more, half
/// the share is tried, and half of that. It ends: of a share that is less than one request, no
/// limit denies any, and neither do all together.
pub(super) fn choose(
    log: &Log,
    key: (&[Field], &Clients),
    spreads: &[Spread],
    longer: &[u64],
    share: Share,
    of: Of,
) -> Result<Chosen, RunError> {
    let (requests, keys) = (count_of(log.requests()), count_of(log.keys[0].len()));
    let mut part = share;
    loop {
        let quota =
            |spread: &Spread| Quota::new(least_limit(spread, log, part, of), Duration::from_nanos(spread.window));
        let all: Vec<Quota> = spreads.iter().map(quota).collect();
        let idle = idle_quotas(&all);
        let quotas: Vec<Quota> =
            all.iter().zip(&idle).filter(|(_, idle)| idle.is_none()).map(|(quota, _)| *quota).collect();
        let policy = policy_of(key, &quotas, log.keys[0].len())?;
        let body = policy.to_string();
        let plan = Plan::of_policy(policy, "the suggested policy".to_owned());
        let outcome = decide(log, &plan, |_, _, _| Ok(()))?;
        let mut chosen = Chosen { text: String::new(), share, quotas, outcome };
        let enough = match of {
            Of::Requests => share.allows(chosen.outcome.totals.denied, requests),
            Of::Keys => share.allows(count_of(chosen.keys_hit()), keys),
        };
        if enough {
            chosen.text = format!("{}\n{}", heading(log, &chosen, longer), body.trim_start());
            return Ok(chosen);
        }
        part = part.halved();
    }
}

/// A policy of one dimension, made by way of its text: what can't be loaded is not suggested.
fn policy_of((key, clients): (&[Field], &Clients), quotas: &[Quota], keys: usize) -> Result<Policy, RunError> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let fields: Vec<String> = key.iter().map(|field| quoted(&field.option_name())).collect();
    let mut text = String::new();
    if keys > USUAL_KEY_CAP {
        text += &format!("key_cap = {keys}\n");
    }
    if *clients != Clients::default() {
        text += &client_table(clients.address());
    }
    text += &format!("[[dimension]]\nname = {}\nkey = [{}]\n", quoted(&crate::key::describe(key)), fields.join(", "));
    for quota in quotas {
        let (limit, window) = (quota.limit(), quota.window().as_nanos());
        text += &format!("[[dimension.quota]]\nlimit = {limit}\nper = \"{window}ns\"\n");
    }
    let refused = |error| RunError::Policy { path: "the suggested policy".to_owned(), error: Box::new(error) };
    Policy::from_toml(&text).map_err(refused)
}

/// What the options say of clients, as a policy says it.
fn client_table(clients: &ClientAddress) -> String {
    let networks = clients.proxies().map(|proxies| format!("trusted_proxies = {:?}\n", proxies.to_texts()));
    format!("[client]\n{}ipv6_prefix = {}\n", networks.unwrap_or_default(), clients.prefix())
}

/// What the policy is from and what it does, as comments.
fn heading(log: &Log, chosen: &Chosen, longer: &[u64]) -> String {
    let (first, last) = log.span();
    let (denied, requests) = (chosen.outcome.totals.denied, count_of(log.requests()));
    let (hit, keys) = (count_of(chosen.keys_hit()), count_of(log.keys[0].len()));
    let left_out = left_out(longer).map(|words| format!("# T{}.\n", &words[1..])).unwrap_or_default();
    format!(
        "# Suggested by tollgate from {} requests of {} keys,\n# {} to {}.\n\
         # It would have denied {} of them ({}), of {} keys ({}).\n{left_out}",
        human(requests),
        human(keys),
        rfc3339(first),
        rfc3339(last),
        human(denied),
        percent(denied, requests),
        human(hit),
        percent(hit, keys),
    )
}

/// Which windows are longer than the log, if there are some.
pub(super) fn left_out(longer: &[u64]) -> Option<String> {
    let windows = if longer.len() == 1 { "a window" } else { "windows" };
    let are = if longer.len() == 1 { "it is" } else { "they are" };
    (!longer.is_empty()).then(|| format!("the log is shorter than {windows} of {}: {are} left out", lengths(longer)))
}

/// Writes the policy; `-` is standard output.
pub(super) fn write(path: &Path, chosen: &Chosen) -> Result<(), RunError> {
    if path == Path::new("-") {
        return terminal::print(&chosen.text);
    }
    std::fs::write(path, &chosen.text).map_err(|error| RunError::Write { what: path.display().to_string(), error })
}

/// The quotas in words: `8 per 1s and 40 per 1m`.
pub(super) fn in_words(quotas: &[Quota]) -> String {
    quotas.iter().map(quota_in_words).collect::<Vec<_>>().join(" and ")
}
