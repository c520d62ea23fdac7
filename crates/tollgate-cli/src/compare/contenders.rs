//! What is compared: algorithms at one limit, and policies.

use std::time::Duration;

use tollgate::Quota;

use crate::algorithm::AlgorithmName;
use crate::args::CompareArgs;
use crate::errors::RunError;
use crate::key::{self, Field};
use crate::plan::{Dimension, Plan, quota_in_words};
use crate::text::harmless;

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) plan: Plan,
}

/// The algorithms that a limit and a window are enough for.
const USUAL: [AlgorithmName; 5] = [
    AlgorithmName::SlidingWindowLog,
    AlgorithmName::TokenBucket,
    AlgorithmName::LeakyBucket,
    AlgorithmName::FixedWindow,
    AlgorithmName::SlidingCounter,
];

/// All that the options name: the algorithms first, then the policies.
pub(super) fn all(args: &CompareArgs) -> Result<Vec<Contender>, RunError> {
    let refused = |message: &str| Err(RunError::Options(message.to_owned()));
    let mut contenders = Vec::new();
    let clients = args.clients.clients()?;
    match (args.limit, args.per) {
        (Some(limit), Some(per)) => {
            for algorithm in algorithms(args) {
                let quota = quota(args, algorithm, limit, per)?;
                quota.validate().map_err(|error| RunError::Limit(error.into()))?;
                let name = format!("{}: {}", algorithm.name(), quota_in_words(&quota));
                let (title, key) = (key::describe(&args.keys.key), args.keys.key.clone());
                let dimension = Dimension { name: title, key, quotas: vec![quota], penalty: None, column: 0 };
                contenders
                    .push(Contender { name, plan: Plan::of_dimension(dimension, clients.clone().unwrap_or_default()) });
            }
        }
        (None, None) if args.policy.is_empty() => {
            return refused(
                "nothing says what to compare: give --limit and --per, or --policy FILE twice, or all of them",
            );
        }
        (None, None) if clients.is_some() => {
            return refused("--trusted-proxy and --ipv6-prefix are for --limit and --per: a policy has [client]");
        }
        (None, None) if !args.algorithm.is_empty() => {
            return refused("--algorithm needs --limit and --per: give both, or leave it out");
        }
        (None, None) => {}
        (Some(_), None) => return refused("--per is missing: --limit and --per go together"),
        (None, Some(_)) => return refused("--limit is missing: --limit and --per go together"),
    }
    for path in &args.policy {
        contenders.push(Contender { name: harmless(&path.display().to_string()), plan: Plan::of_file(path)? });
    }
    Ok(contenders)
}

/// Those that are named, or the usual ones and those that the options have numbers for.
fn algorithms(args: &CompareArgs) -> Vec<AlgorithmName> {
    if !args.algorithm.is_empty() {
        return args.algorithm.clone();
    }
    let queue = args.special.max_delay.map(|_| AlgorithmName::LeakyQueue);
    let quantised = args.special.resolution.map(|_| AlgorithmName::QuantisedLog);
    USUAL.into_iter().chain(queue).chain(quantised).collect()
}

/// The limit and the window as each algorithm knows them: a bucket holds the limit, and gets it
/// back in one window.
fn quota(args: &CompareArgs, algorithm: AlgorithmName, limit: u32, per: Duration) -> Result<Quota, RunError> {
    let needed = |option: &str, value: Option<Duration>| {
        value.ok_or_else(|| RunError::Options(format!("{option} is missing: {} takes it", algorithm.name())))
    };
    Ok(match algorithm {
        AlgorithmName::SlidingWindowLog => Quota::new(limit, per),
        AlgorithmName::TokenBucket => Quota::token_bucket(limit, limit, per),
        AlgorithmName::LeakyBucket => Quota::leaky_bucket(limit, limit, per),
        AlgorithmName::LeakyQueue => Quota::leaky_queue(limit, per, needed("--max-delay", args.special.max_delay)?),
        AlgorithmName::FixedWindow => Quota::fixed_window(limit, per),
        AlgorithmName::SlidingCounter => Quota::sliding_counter(limit, per),
        AlgorithmName::QuantisedLog => {
            Quota::quantised_log(limit, per, needed("--resolution", args.special.resolution)?)
        }
    })
}

/// Has the log read once for all of them: each kind of key has one column, which every dimension
/// with such keys looks at.
pub(super) fn share_keys(contenders: &mut [Contender]) -> Vec<Vec<Field>> {
    let mut keys: Vec<Vec<Field>> = Vec::new();
    for dimension in contenders.iter_mut().flat_map(|contender| &mut contender.plan.dimensions) {
        dimension.column = keys.iter().position(|key| *key == dimension.key).unwrap_or_else(|| {
            keys.push(dimension.key.clone());
            keys.len() - 1
        });
    }
    keys
}
