//! What is replayed: dimensions and their quotas, from the options or from a policy file.

use std::path::Path;
use std::time::Duration;

use tollgate::schema::{self, FieldKind};
use tollgate::{Algorithm, JointLimiter, JointLimiterBuilder, Limiter, LimiterBuilder, MAX_KEY_CAP, Penalty, Quota};
use tollgate_policy::{LoadError, Policy};

use crate::args::ReplayArgs;
use crate::clients::Clients;
use crate::errors::{RunError, Unsettled};
use crate::fields::{self, option};
use crate::key::{self, Field, describe_all};
#[cfg(feature = "redis")]
use crate::log::Log;
use crate::log_clock::Pause;
use crate::matching::Matching;
use crate::text::harmless;
use crate::time::length;
use crate::words::{human, times};

/// The keys that a limiter holds unless a policy says otherwise.
pub(crate) const USUAL_KEY_CAP: usize = 1 << 20;

/// One dimension: what its keys are, and the quotas that each of them has.
#[derive(Debug)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) key: Vec<Field>,
    pub(crate) quotas: Vec<Quota>,
    /// What keys that are denied too often are blocked by.
    pub(crate) penalty: Option<Penalty>,
    /// Whether it only tells what it would deny.
    pub(crate) shadow: bool,
    /// Where the log has its keys.
    pub(crate) column: usize,
    /// The other sets of quotas that a request may choose.
    pub(crate) tiers: Vec<Tier>,
}

/// A tier of a dimension.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) name: String,
    /// None if it is unlimited.
    pub(crate) quotas: Vec<Quota>,
}

impl Dimension {
    /// The quotas of a set: 0 are its own, and those of the tiers follow.
    pub(crate) fn set(&self, set: usize) -> &[Quota] {
        set.checked_sub(1).map_or(&self.quotas, |tier| &self.tiers[tier].quotas)
    }

    /// Every set of quotas.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &[Quota]> {
        (0..=self.tiers.len()).map(|set| self.set(set))
    }

    /// Whether a tier has quotas.
    pub(crate) fn has_limited_tier(&self) -> bool {
        self.tiers.iter().any(|tier| !tier.quotas.is_empty())
    }

    /// The name of the tier that has a set of quotas.
    pub(crate) fn tier_name(&self, set: usize) -> Option<&str> {
        set.checked_sub(1).map(|tier| self.tiers[tier].name.as_str())
    }
}

/// What is replayed.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) dimensions: Vec<Dimension>,
    /// The rules by which clients are found.
    pub(crate) clients: Clients,
    /// Rules, matches and tiers; `None` if there are none.
    pub(crate) matching: Option<Matching>,
    /// Whether the log has what requests have cost in fact.
    pub(crate) has_actual_costs: bool,
    /// The file, and its name.
    policy: Option<(Policy, String)>,
}

impl Plan {
    /// What the options ask for.
    ///
    /// # Errors
    ///
    /// They contradict each other, ask for what the library refuses, or name a policy file that
    /// can't be used.
    pub(crate) fn new(args: &ReplayArgs) -> Result<Self, RunError> {
        let plan = Self::of_options(args)?;
        if args.cost.actual_cost_column.is_some() { plan.with_actual_costs() } else { Ok(plan) }
    }

    fn of_options(args: &ReplayArgs) -> Result<Self, RunError> {
        if let Some(path) = &args.policy {
            let (policy, name) = load(path)?;
            let policy = if args.in_process { policy.without_store() } else { policy };
            return Self::of_policy(policy, name).decidable();
        }
        let quotas = quotas_of(args)?;
        let penalty = args.penalty.penalty();
        penalty.map_or(Ok(()), |penalty| penalty.validate()).map_err(|error| RunError::Limit(error.into()))?;
        let (name, clients) = (key::describe(&args.keys.key), args.clients.clients()?.unwrap_or_default());
        let dimension = Dimension {
            name,
            key: args.keys.key.clone(),
            quotas,
            penalty,
            shadow: false,
            column: 0,
            tiers: Vec::new(),
        };
        Self::of_dimension(dimension, clients).decidable()
    }

    /// One dimension, and room for every key of the log.
    pub(crate) fn of_dimension(dimension: Dimension, clients: Clients) -> Self {
        let key = dimension.key.iter().map(|field| field.by(&clients)).collect();
        let dimensions = vec![Dimension { key, ..dimension }];
        Self { dimensions, clients, matching: None, has_actual_costs: false, policy: None }
    }

    /// What a policy file says.
    ///
    /// # Errors
    ///
    /// It can't be read, or is no policy.
    pub(crate) fn of_file(path: &Path) -> Result<Self, RunError> {
        let (policy, name) = load(path)?;
        Self::of_policy(policy, name).decidable()
    }

    /// The same, if a log tells all that it needs.
    ///
    /// # Errors
    ///
    /// [`RunError::InFlight`].
    pub(crate) fn decidable(self) -> Result<Self, RunError> {
        let in_flight = |quota: &Quota| quota.algorithm() == Algorithm::Concurrency;
        let counts = |dimension: &&Dimension| dimension.sets().flatten().any(in_flight);
        match (self.dimensions.iter().find(counts), &self.policy) {
            (None, _) => Ok(self),
            (Some(dimension), Some((_, file))) => {
                Err(RunError::InFlight { what: format!("{file}: dimension {:?}", dimension.name) })
            }
            (Some(_), None) => {
                Err(RunError::InFlight { what: format!("--algorithm {}", Algorithm::Concurrency.name()) })
            }
        }
    }

    /// What a policy of that name says.
    pub(crate) fn of_policy(policy: Policy, name: String) -> Self {
        let clients = Clients::new(policy.client().clone());
        let field = |name: &str| name.parse::<Field>().unwrap_or_else(|never| match never {}).by(&clients);
        let looked = |name: &str| if name == "client" { Field::Address(clients.clone()) } else { field(name) };
        let mut matching = Matching::new(&policy, looked);
        let dimensions = policy.dimensions().iter().enumerate().map(|(column, dimension)| Dimension {
            column,
            name: dimension.name().to_owned(),
            key: dimension.key().map(field).collect(),
            quotas: dimension.quotas().to_vec(),
            penalty: dimension.penalty(),
            shadow: dimension.shadow(),
            tiers: if matching.is_some() { tiers_of(dimension) } else { Vec::new() },
        });
        let dimensions: Vec<Dimension> = dimensions.collect();
        let mut keys: Vec<Vec<Field>> = dimensions.iter().map(|dimension| dimension.key.clone()).collect();
        for looked in matching.iter_mut().flat_map(|matching| &mut matching.looked) {
            looked.column = column_of(&mut keys, core::slice::from_ref(&looked.field));
        }
        Self { dimensions, clients, matching, has_actual_costs: false, policy: Some((policy, name)) }
    }

    /// The same plan for a log that has actual costs, to which charges are settled.
    ///
    /// # Errors
    ///
    /// The policy's limiter settles no charges.
    pub(crate) fn with_actual_costs(self) -> Result<Self, RunError> {
        if let Some((policy, name)) = &self.policy {
            let has_queue = self.quotas().any(|quota| quota.algorithm() == Algorithm::LeakyQueue);
            let why = match policy.store() {
                Some(_) => Some(Unsettled::OnStore),
                None => has_queue.then_some(Unsettled::Queue),
            };
            if let Some(why) = why {
                return Err(RunError::Unsettled { path: name.clone(), why });
            }
        }
        Ok(Self { has_actual_costs: true, ..self })
    }

    /// The keys of each dimension, and then what only matches look at, in the order of their columns.
    pub(crate) fn keys(&self) -> Vec<Vec<Field>> {
        let mut keys: Vec<Vec<Field>> = self.dimensions.iter().map(|dimension| dimension.key.clone()).collect();
        for looked in self.matching.iter().flat_map(|matching| &matching.looked) {
            column_of(&mut keys, core::slice::from_ref(&looked.field));
        }
        keys
    }

    /// The limiter of quotas that options ask for: of one dimension, which the log numbers the keys
    /// of.
    pub(crate) fn single(&self) -> Option<LimiterBuilder<u32>> {
        let ([dimension], None) = (self.dimensions.as_slice(), &self.policy) else { return None };
        let (first, others) = dimension.quotas.split_first()?;
        // Every key of the log has a place, so that only the quotas decide.
        let limiter = Limiter::builder(*first).key_cap(MAX_KEY_CAP);
        let limiter = others.iter().fold(limiter, |limiter, quota| limiter.and(*quota));
        Some(match dimension.penalty {
            Some(penalty) => limiter.penalty(penalty),
            None => limiter,
        })
    }

    /// The limiter of a policy: the very one that a service makes of it, but never in shadow mode.
    ///
    /// # Errors
    ///
    /// The policy has a store.
    pub(crate) fn joint(&self) -> Result<JointLimiterBuilder<[u32]>, RunError> {
        if let Some((policy, _)) = &self.policy {
            // A shadow denies nobody, and what it would deny is what is to be told.
            let builder = policy.builder_of_requests().map_err(|error| RunError::Options(error.to_string()))?;
            return Ok(builder.shadow(false));
        }
        let limiter = JointLimiter::<[u32]>::builder().key_cap(MAX_KEY_CAP);
        Ok(self.dimensions.iter().fold(limiter, |limiter, dimension| {
            limiter.dimension(dimension.name.as_str(), dimension.quotas.iter().copied())
        }))
    }

    /// The policy and its file, if it has a store.
    pub(crate) fn on_store(&self) -> Option<(&Policy, &str)> {
        self.policy
            .as_ref()
            .filter(|(policy, _)| policy.store().is_some())
            .map(|(policy, file)| (policy, file.as_str()))
    }

    /// The texts of a request's keys, which the log has numbered.
    #[cfg(feature = "redis")]
    pub(crate) fn key_texts<'l>(&self, log: &'l Log, numbers: &[Option<u32>]) -> Vec<Option<&'l str>> {
        let keys = self.dimensions.iter().zip(numbers);
        keys.map(|(dimension, number)| Some(log.keys[dimension.column].text((*number)? as usize))).collect()
    }

    /// What the log's clock has to know of the quotas and the penalty.
    pub(crate) fn pauses(&self) -> Vec<Pause> {
        let of = if self.has_actual_costs { Pause::with_debt } else { Pause::of };
        self.quotas().map(of).chain(self.penalties().map(Pause::of_penalty)).collect()
    }

    /// Whether the cap on keys is part of what is replayed.
    pub(crate) fn has_key_cap(&self) -> bool {
        self.policy.is_some()
    }

    /// One sliding window log, asked for by options: all there is to say of a decision is whether
    /// and when.
    pub(crate) fn is_plain(&self) -> bool {
        let logs = self.quotas().filter(|quota| quota.algorithm() == Algorithm::SlidingWindowLog).count();
        self.policy.is_none() && self.penalties().next().is_none() && logs == 1
    }

    pub(crate) fn penalties(&self) -> impl Iterator<Item = &Penalty> {
        self.dimensions.iter().filter_map(|dimension| dimension.penalty.as_ref())
    }

    pub(crate) fn quotas(&self) -> impl Iterator<Item = &Quota> {
        self.dimensions.iter().flat_map(Dimension::sets).flatten()
    }

    /// What keys are made of: `client or path`.
    pub(crate) fn describe_keys(&self) -> String {
        let keys: Vec<Vec<Field>> = self.dimensions.iter().map(|dimension| dimension.key.clone()).collect();
        describe_all(&keys)
    }

    /// How clients are taken, if keys or matches have them: `IPv6 by /64`.
    pub(crate) fn clients_in_words(&self) -> Option<String> {
        let looked = self.matching.iter().flat_map(|matching| &matching.looked).map(|looked| &looked.field);
        let mut fields = self.dimensions.iter().flat_map(|dimension| &dimension.key).chain(looked);
        fields.any(|field| field.clients().is_some()).then(|| self.clients.address().to_string())
    }

    /// What to change where no record has a key.
    pub(crate) fn key_option(&self) -> &'static str {
        if self.policy.is_some() { "`key` in the policy" } else { "--key" }
    }

    /// What is replayed: `20 per 10s for each client`.
    pub(crate) fn title(&self) -> String {
        let title = match &self.policy {
            Some((_, file)) => {
                let names: Vec<&str> = self.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
                let on_store = if self.on_store().is_some() { ", on a store" } else { "" };
                format!("{file}: {}{on_store}", names.join(", "))
            }
            None => {
                let quotas: Vec<String> = self.quotas().map(quota_in_words).collect();
                let penalty = self.penalties().next().map(|penalty| format!("; {}", penalty_in_words(penalty)));
                format!("{} for each {}{}", quotas.join(" and "), self.describe_keys(), penalty.unwrap_or_default())
            }
        };
        harmless(&title)
    }
}

fn tiers_of(dimension: &tollgate_policy::Dimension) -> Vec<Tier> {
    let tiers = dimension.tiers().iter();
    tiers.map(|tier| Tier { name: tier.name().to_owned(), quotas: tier.quotas().to_vec() }).collect()
}

/// The column of a key; one more if none has it.
pub(crate) fn column_of(keys: &mut Vec<Vec<Field>>, key: &[Field]) -> usize {
    keys.iter().position(|other| other == key).unwrap_or_else(|| {
        keys.push(key.to_vec());
        keys.len() - 1
    })
}

/// The policy in a file, and the name of the file.
///
/// # Errors
///
/// It can't be read, or is no policy.
pub(crate) fn load(path: &Path) -> Result<(Policy, String), RunError> {
    let name = path.display().to_string();
    match Policy::load(path) {
        Ok(policy) => Ok((policy, name)),
        Err(LoadError::Policy { error, .. }) => Err(RunError::Policy { path: name, error: error.into() }),
        Err(error) => Err(RunError::PolicyUnread(error.into())),
    }
}

/// The quota as the report calls it.
pub(crate) fn quota_in_words(quota: &Quota) -> String {
    if quota.algorithm() != Algorithm::SlidingWindowLog {
        return quota.to_string();
    }
    let refused = if quota.is_counting_refused() { ", refused requests counted" } else { "" };
    format!("{} per {}{refused}", human(u64::from(quota.limit())), length_of(quota.window()))
}

/// The penalty as the report calls it.
pub(crate) fn penalty_in_words(penalty: &Penalty) -> String {
    let (denials, within) = (human(penalty.denials().into()), length_of(penalty.within()));
    let first = format!("blocked for {} by {denials} denials within {within}", length_of(penalty.blocked_for()));
    let Some((factor, longest, quiet)) = penalty.growth() else { return first };
    let (factor, longest, quiet) = (human(factor.into()), length_of(longest), length_of(quiet));
    format!("{first}; each block {factor} times as long as the last, up to {longest}, until not blocked for {quiet}")
}

pub(crate) fn length_of(duration: Duration) -> String {
    length(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Of each quota of a key, another one that makes it idle: what the other admits, it admits too, so
/// it never decides.
pub(crate) fn idle_quotas(quotas: &[Quota]) -> Vec<Option<usize>> {
    let implies = |tight: usize, loose: usize| {
        let (tight, loose) = (&quotas[tight], &quotas[loose]);
        let logs = [tight, loose].iter().all(|quota| quota.algorithm() == Algorithm::SlidingWindowLog);
        // Any interval of the loose quota's window is covered by so many of the tight one's.
        let windows = loose.window().as_nanos().div_ceil(tight.window().as_nanos().max(1));
        logs && windows.saturating_mul(u128::from(tight.limit())) <= u128::from(loose.limit())
    };
    let all = 0..quotas.len();
    // Of quotas that make each other idle, the first stays.
    let idle_by = |quota: usize| {
        all.clone().find(|&other| other != quota && implies(other, quota) && (other < quota || !implies(quota, other)))
    };
    all.clone().map(idle_by).collect()
}

fn quotas_of(args: &ReplayArgs) -> Result<Vec<Quota>, RunError> {
    let given = &args.fields;
    let refused = |message: String| Err(RunError::Options(message));
    if given.given().all(|field| field.kind() == FieldKind::Flag) {
        return refused(
            "nothing says what to replay: give --limit and --per, or --algorithm with its options, or --policy FILE"
                .to_owned(),
        );
    }
    let algorithm = args.algorithm.unwrap_or(Algorithm::SlidingWindowLog);
    let (name, needed) = (algorithm.name(), algorithm.needed_fields());
    let takes = needed.iter().map(|field| option(*field)).collect::<Vec<_>>().join(" and ");
    let missing = needed.iter().find(|field| given.values(**field).is_empty());
    let foreign = given.given().find(|field| !algorithm.has_field(*field));
    match (missing, foreign) {
        // An algorithm that was meant and not named comes before what is missing.
        (Some(missing), foreign) if foreign.is_none() || args.algorithm.is_some() => {
            return refused(format!("{} is missing: {name} takes {takes}", option(*missing)));
        }
        (_, Some(foreign)) => {
            let its = Algorithm::ALL.iter().filter(|algorithm| algorithm.has_field(foreign));
            let its = its.map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(" and ");
            let remedy = if args.algorithm.is_some() { "choose another" } else { "name one with" };
            return refused(format!(
                "{} is not for {name}, which takes {takes}: it belongs to {its}; {remedy} --algorithm",
                option(foreign)
            ));
        }
        _ => {}
    }
    let (limits, pers) = (given.values(schema::Field::Limit).len(), given.values(schema::Field::Per).len());
    let twice = given.given().find(|field| given.values(*field).len() > 1);
    match twice {
        _ if algorithm == Algorithm::SlidingWindowLog && limits != pers => {
            refused(format!("--limit is given {} and --per {}: they go in pairs", times(limits), times(pers)))
        }
        Some(twice) if algorithm != Algorithm::SlidingWindowLog => refused(format!(
            "{} is given more than once: only sliding-window-log has several quotas on one key; a policy file can give \
             others dimensions of their own",
            option(twice)
        )),
        // A concurrency limit has no window.
        _ => (0..pers.max(1)).map(|at| fields::quota(algorithm, &given.row(at))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Limiter, Quota, USUAL_KEY_CAP};

    #[test]
    fn the_usual_key_cap_is_that_of_the_library() {
        assert_eq!(Limiter::<u64>::new(Quota::per_second(1)).unwrap().settings().key_cap(), USUAL_KEY_CAP);
    }
}
