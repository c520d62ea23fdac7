//! What is compared: algorithms at one limit, and policies.

use std::time::Duration;

use tollgate::schema::{self, FieldKind, FieldValue};
use tollgate::{Algorithm, Quota};

use crate::args::CompareArgs;
use crate::errors::RunError;
use crate::fields::{self, is_special, option};
use crate::key::{self, Field};
use crate::plan::{Dimension, Plan, column_of, quota_in_words};
use crate::text::harmless;

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) plan: Plan,
}

impl Contender {
    /// See [`Plan::with_actual_costs`].
    pub(super) fn with_actual_costs(self) -> Result<Self, RunError> {
        Ok(Self { plan: self.plan.with_actual_costs()?, ..self })
    }
}

/// All that the options name: the algorithms first, then the policies.
pub(super) fn all(args: &CompareArgs) -> Result<Vec<Contender>, RunError> {
    let refused = |message: &str| Err(RunError::Options(message.to_owned()));
    let mut contenders = Vec::new();
    let clients = args.clients.clients()?;
    match (args.limit, args.per) {
        (Some(limit), Some(per)) => {
            for algorithm in algorithms(args) {
                let quota = quota(args, algorithm, limit, per)?;
                let name = format!("{}: {}", algorithm.name(), quota_in_words(&quota));
                let (title, key) = (key::describe(&args.keys.key), args.keys.key.clone());
                let dimension = Dimension {
                    name: title,
                    key,
                    quotas: vec![quota],
                    penalty: None,
                    shadow: false,
                    column: 0,
                    tiers: Vec::new(),
                };
                let plan = Plan::of_dimension(dimension, clients.clone().unwrap_or_default()).decidable()?;
                contenders.push(Contender { name, plan });
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

/// Those that are named; or those that a limit and a window are enough for, and then those that the
/// options have the rest for.
fn algorithms(args: &CompareArgs) -> Vec<Algorithm> {
    if !args.algorithm.is_empty() {
        return args.algorithm.clone();
    }
    let special = |algorithm: &Algorithm| algorithm.needed_fields().iter().copied().find(|field| is_special(*field));
    // Others have no window: no log tells what they count.
    let all = Algorithm::ALL.iter().filter(|algorithm| algorithm.has_field(schema::Field::Per));
    let (usual, others): (Vec<_>, Vec<_>) = all.partition(|algorithm| special(algorithm).is_none());
    let is_given =
        |algorithm: &Algorithm| special(algorithm).is_some_and(|field| !args.special.values(field).is_empty());
    usual.into_iter().chain(others.into_iter().filter(is_given)).collect()
}

/// The limit and the window as each algorithm knows them: each of its numbers is the limit. So a
/// bucket holds the limit, and gets it back in one window.
fn quota(args: &CompareArgs, algorithm: Algorithm, limit: u32, per: Duration) -> Result<Quota, RunError> {
    let value = |&field: &schema::Field| {
        let value = match field.kind() {
            FieldKind::Number => Some(FieldValue::Number(limit)),
            _ if field == schema::Field::Per => Some(FieldValue::Duration(per)),
            _ => args.special.values(field).last().copied(),
        };
        let missing = || RunError::Options(format!("{} is missing: {} takes it", option(field), algorithm.name()));
        Ok((field, value.ok_or_else(missing)?))
    };
    fields::quota(algorithm, &algorithm.needed_fields().iter().map(value).collect::<Result<Vec<_>, RunError>>()?)
}

/// Has the log read once for all of them: each kind of key has one column, which every dimension
/// with such keys looks at. The columns at which only matches look come after those of keys, which are
/// so many.
pub(super) fn share_keys(contenders: &mut [Contender]) -> (Vec<Vec<Field>>, usize) {
    let mut keys: Vec<Vec<Field>> = Vec::new();
    for dimension in contenders.iter_mut().flat_map(|contender| &mut contender.plan.dimensions) {
        dimension.column = column_of(&mut keys, &dimension.key);
    }
    let needed = keys.len();
    let matching = contenders.iter_mut().filter_map(|contender| contender.plan.matching.as_mut());
    for looked in matching.flat_map(|matching| &mut matching.looked) {
        looked.column = column_of(&mut keys, core::slice::from_ref(&looked.field));
    }
    (keys, needed)
}
