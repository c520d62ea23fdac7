//! What the limiter would have answered, and what became of all requests.

use tollgate::{Decision, Denial, DenialReason};

use crate::log::Log;
use crate::plan::{Dimension, Plan};

/// What the limiter would have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted {
        /// The wait in a queue.
        delay_ns: u64,
    },
    Denied(Denial),
    /// The cost is more than the limit: denied however long one waits.
    NeverPasses,
}

/// A verdict without its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Admitted,
    Denied,
    TooBig,
}

impl Verdict {
    pub(crate) fn answer(self) -> Answer {
        match self {
            Self::Admitted { .. } => Answer::Admitted,
            Self::Denied(_) => Answer::Denied,
            Self::NeverPasses => Answer::TooBig,
        }
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Admitted(admission) => {
                Self::Admitted { delay_ns: u64::try_from(admission.delay().as_nanos()).unwrap_or(u64::MAX) }
            }
            Decision::Denied(denial) => Self::Denied(denial),
        }
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
        match verdict {
            Verdict::Admitted { .. } => self.admitted += 1,
            Verdict::Denied(_) => self.denied += 1,
            Verdict::NeverPasses => self.never_pass += 1,
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
    /// Denied requests that this very key was in the way of.
    pub(crate) turned_away: u64,
    /// Requests that cost more than this key can ever be granted. They are not denied as well.
    pub(crate) too_big: u64,
}

/// What one dimension did.
#[derive(Debug)]
pub(crate) struct DimensionOutcome {
    /// By the keys' numbers.
    pub(crate) by_key: Vec<KeyTally>,
    /// Denied requests that waited for this dimension longest.
    pub(crate) decided: u64,
    /// Denied requests that this dimension alone would have denied too.
    pub(crate) in_the_way: u64,
    /// Of those decided, how many by each quota.
    pub(crate) by_quota: Vec<u64>,
    /// And how many because a new key found no place.
    pub(crate) at_key_cap: u64,
    /// And how many because the key was blocked for its denials.
    pub(crate) by_penalty: u64,
}

/// What the limiter would have done to a log.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) totals: Tally,
    pub(crate) dimensions: Vec<DimensionOutcome>,
    /// Admitted requests that had to wait in a queue, and the longest wait.
    pub(crate) delayed: u64,
    pub(crate) longest_delay_ns: u64,
}

impl Outcome {
    pub(crate) fn of_nothing(plan: &Plan) -> Self {
        let dimension = |dimension: &Dimension| DimensionOutcome {
            by_key: Vec::new(),
            decided: 0,
            in_the_way: 0,
            by_quota: vec![0; dimension.quotas.len()],
            at_key_cap: 0,
            by_penalty: 0,
        };
        let dimensions = plan.dimensions.iter().map(dimension).collect();
        Self { totals: Tally::default(), dimensions, delayed: 0, longest_delay_ns: 0 }
    }

    /// Makes room for every key that is known.
    pub(crate) fn make_room(&mut self, log: &Log, plan: &Plan) {
        for (outcome, dimension) in self.dimensions.iter_mut().zip(&plan.dimensions) {
            outcome.by_key.resize(log.keys[dimension.column].len(), KeyTally::default());
        }
    }

    /// `keys` are those of the request, and `most` has the largest cost of each dimension.
    pub(crate) fn count(&mut self, keys: &[Option<u32>], cost: u32, verdict: Verdict, most: &[u32]) {
        self.totals.add(verdict);
        let mut in_the_way = 0_u32;
        match verdict {
            Verdict::Admitted { delay_ns } => {
                self.delayed += u64::from(delay_ns > 0);
                self.longest_delay_ns = self.longest_delay_ns.max(delay_ns);
            }
            Verdict::Denied(denial) => {
                in_the_way = denial.violated().fold(0, |bits, dimension| bits | 1 << dimension);
                let decider = &mut self.dimensions[denial.dimension()];
                decider.decided += 1;
                match denial.reason() {
                    DenialReason::KeyCap => decider.at_key_cap += 1,
                    DenialReason::Penalty => decider.by_penalty += 1,
                    _ => decider.by_quota[denial.quota()] += 1,
                }
            }
            Verdict::NeverPasses => {}
        }
        for (at, dimension) in self.dimensions.iter_mut().enumerate() {
            let Some(key) = keys[at] else { continue };
            let violated = in_the_way & (1 << at) != 0;
            dimension.in_the_way += u64::from(violated);
            let key = &mut dimension.by_key[key as usize];
            key.requests += 1;
            key.turned_away += u64::from(violated);
            key.too_big += u64::from(verdict == Verdict::NeverPasses && cost > most[at]);
        }
    }
}
