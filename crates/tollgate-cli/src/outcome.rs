//! What the limiter would have answered, and what became of all requests.

use tollgate::{Decision, Denial, DenialReason};
use tollgate_policy::Action;

use crate::events::Event;
use crate::log::Log;
use crate::matching::Matching;
use crate::plan::{Dimension, Plan};
use crate::words::human;

/// What the limiter would have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted {
        /// The wait in a queue.
        delay_ns: u64,
        /// What dimensions in shadow mode would have denied it by.
        overruled: Option<Denial>,
    },
    Denied {
        denial: Denial,
        /// The set of quotas of the dimension that decided.
        set: usize,
    },
    /// The cost is more than the limit: denied however long one waits.
    NeverPasses,
    /// A rule decided, before any limit.
    Rule {
        /// Its place in the policy.
        rule: usize,
        action: Action,
    },
    /// Admitted: no limit is for it.
    Unlimited,
    /// Not decided: it has no key of the dimensions that are for it.
    WithoutKey,
}

/// A verdict without its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Admitted,
    Denied,
    TooBig,
    /// The request has no key.
    WithoutKey,
}

impl Verdict {
    /// The verdict, where each dimension decided by this set of its quotas.
    pub(crate) fn by_sets(self, sets: &[usize]) -> Self {
        match self {
            Self::Denied { denial, .. } => Self::Denied { denial, set: sets[denial.dimension()] },
            other => other,
        }
    }

    pub(crate) fn answer(self) -> Answer {
        match self {
            Self::Admitted { .. } | Self::Unlimited | Self::Rule { action: Action::Admit, .. } => Answer::Admitted,
            Self::Denied { .. } | Self::Rule { action: Action::Deny, .. } => Answer::Denied,
            Self::NeverPasses => Answer::TooBig,
            Self::WithoutKey => Answer::WithoutKey,
        }
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Admitted(admission) => Self::Admitted {
                delay_ns: u64::try_from(admission.delay().as_nanos()).unwrap_or(u64::MAX),
                overruled: admission.overruled(),
            },
            Decision::Denied(denial) => Self::Denied { denial, set: 0 },
        }
    }
}

/// A bit for each dimension that denies.
fn bits_of(denial: Denial) -> u32 {
    denial.violated().fold(0, |bits, dimension| bits | 1 << dimension)
}

/// What the requests have cost that limits admitted, in permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// By what they asked for.
    pub(crate) estimated: u64,
    /// In fact.
    pub(crate) actual: u64,
    /// Permits that were charged although they were not there.
    pub(crate) debt: u64,
    /// The requests that made debt.
    pub(crate) in_debt: u64,
}

impl Costs {
    /// Each number of permits with its name, and what it is.
    pub(crate) fn in_words(&self) -> [(&'static str, u64, String); 3] {
        let debt = match self.in_debt {
            1 => "permits that were not there when they were charged, by 1 request".to_owned(),
            requests => format!("permits that were not there when they were charged, by {} requests", human(requests)),
        };
        [
            ("estimated", self.estimated, "permits that admitted requests asked for".to_owned()),
            ("actual", self.actual, "permits that they have cost".to_owned()),
            ("debt", self.debt, debt),
        ]
    }

    /// Adds an admitted request, which made so much debt.
    pub(crate) fn add(&mut self, event: &Event, debt: u32) {
        self.estimated += u64::from(event.cost);
        self.actual += u64::from(event.actual);
        self.debt += u64::from(debt);
        self.in_debt += u64::from(debt > 0);
    }
}

/// How many requests were answered in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) never_pass: u64,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        match verdict.answer() {
            Answer::Admitted => self.admitted += 1,
            Answer::Denied => self.denied += 1,
            Answer::TooBig => self.never_pass += 1,
            Answer::WithoutKey => {}
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.admitted + self.denied + self.never_pass
    }

    pub(crate) fn is_all_too_big(&self) -> bool {
        self.never_pass > 0 && self.never_pass == self.requests()
    }
}

/// What became of the requests with one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeyTally {
    pub(crate) requests: u64,
    /// Requests that this very key was in the way of. In a dimension in shadow mode, they may have been
    /// admitted.
    pub(crate) turned_away: u64,
    /// Requests that cost more than this key can ever be granted. They are not denied as well.
    pub(crate) too_big: u64,
}

/// What one dimension did.
#[derive(Debug)]
pub(crate) struct DimensionOutcome {
    /// By the keys' numbers; each key has a tally for each set of quotas.
    pub(crate) by_key: Vec<KeyTally>,
    /// Denied requests that waited for this dimension longest.
    pub(crate) decided: u64,
    /// Denied requests that this dimension alone would have denied too; of a dimension in shadow mode,
    /// admitted ones as well.
    pub(crate) in_the_way: u64,
    /// Of those decided, how many by each quota of each set.
    pub(crate) by_quota: Vec<Vec<u64>>,
    /// And how many because a new key found no place.
    pub(crate) at_key_cap: u64,
    /// And how many because the key was blocked for its denials.
    pub(crate) by_penalty: u64,
}

impl DimensionOutcome {
    /// The keys with requests, by their numbers and sets of quotas. A key in several tiers is several.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, usize, &KeyTally)> {
        let sets = self.by_quota.len();
        let asked = self.by_key.iter().enumerate().filter(|(_, tally)| tally.requests > 0);
        asked.map(move |(at, tally)| (at / sets, at % sets, tally))
    }
}

/// What the limiter would have done to a log.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) totals: Tally,
    /// `None` where the log has no actual costs.
    pub(crate) costs: Option<Costs>,
    pub(crate) dimensions: Vec<DimensionOutcome>,
    /// Admitted requests that had to wait in a queue, and the longest wait.
    pub(crate) delayed: u64,
    pub(crate) longest_delay_ns: u64,
    /// The requests that each rule decided.
    pub(crate) by_rule: Vec<u64>,
    /// Admitted requests that no limit is for.
    pub(crate) unlimited: u64,
    /// The values of `tier_by` that name no tier.
    pub(crate) unknown_tiers: u64,
    /// Requests without a key of the dimensions that are for them. They are not decided.
    pub(crate) without_key: u64,
}

impl Outcome {
    pub(crate) fn of_nothing(plan: &Plan) -> Self {
        let dimension = |dimension: &Dimension| DimensionOutcome {
            by_key: Vec::new(),
            decided: 0,
            in_the_way: 0,
            by_quota: dimension.sets().map(|quotas| vec![0; quotas.len()]).collect(),
            at_key_cap: 0,
            by_penalty: 0,
        };
        let dimensions = plan.dimensions.iter().map(dimension).collect();
        Self {
            totals: Tally::default(),
            costs: plan.has_actual_costs.then(Costs::default),
            dimensions,
            delayed: 0,
            longest_delay_ns: 0,
            by_rule: vec![0; plan.matching.as_ref().map_or(0, |matching| matching.rules.len())],
            unlimited: 0,
            unknown_tiers: 0,
            without_key: 0,
        }
    }

    /// How many requests rules admitted, and how many they denied.
    pub(crate) fn by_rules(&self, matching: &Matching) -> (u64, u64) {
        let count = |wanted: Action| {
            let rules = matching.rules.iter().zip(&self.by_rule).filter(|((_, action), _)| *action == wanted);
            rules.map(|(_, count)| count).sum()
        };
        (count(Action::Admit), count(Action::Deny))
    }

    /// Makes room for every key that is known.
    pub(crate) fn make_room(&mut self, log: &Log, plan: &Plan) {
        for (outcome, dimension) in self.dimensions.iter_mut().zip(&plan.dimensions) {
            let tallies = log.keys[dimension.column].len() * outcome.by_quota.len();
            outcome.by_key.resize(tallies, KeyTally::default());
        }
    }

    /// `keys` are those of the request, `sets` the sets of quotas that it is asked by, and `most` has the
    /// largest cost of each of them.
    pub(crate) fn count(
        &mut self,
        keys: &[Option<u32>],
        sets: &[usize],
        cost: u32,
        verdict: Verdict,
        most: &[Vec<u32>],
    ) {
        self.totals.add(verdict);
        let mut in_the_way = 0_u32;
        match verdict {
            Verdict::Admitted { delay_ns, overruled } => {
                in_the_way = overruled.map_or(0, bits_of);
                self.delayed += u64::from(delay_ns > 0);
                self.longest_delay_ns = self.longest_delay_ns.max(delay_ns);
            }
            Verdict::Denied { denial, set } => {
                in_the_way = bits_of(denial);
                let decider = &mut self.dimensions[denial.dimension()];
                decider.decided += 1;
                match denial.reason() {
                    DenialReason::KeyCap => decider.at_key_cap += 1,
                    DenialReason::Penalty => decider.by_penalty += 1,
                    _ => decider.by_quota[set][denial.quota()] += 1,
                }
            }
            Verdict::NeverPasses => {}
            Verdict::Rule { rule, .. } => self.by_rule[rule] += 1,
            Verdict::Unlimited => self.unlimited += 1,
            Verdict::WithoutKey => self.without_key += 1,
        }
        for (at, dimension) in self.dimensions.iter_mut().enumerate() {
            let Some(key) = keys[at] else { continue };
            let violated = in_the_way & (1 << at) != 0;
            dimension.in_the_way += u64::from(violated);
            let set = sets[at];
            let key = &mut dimension.by_key[key as usize * dimension.by_quota.len() + set];
            key.requests += 1;
            key.turned_away += u64::from(violated);
            key.too_big += u64::from(verdict == Verdict::NeverPasses && cost > most[at][set]);
        }
    }
}
