//! [`Guard`]: the limiter of a policy, and what it decides on the values of a request.

use core::time::Duration;
use std::borrow::Cow;
use std::cmp::Reverse;

use tollgate::{
    Algorithm, AnyClock, Decision, Denial, JointError, JointLimiter, JointQuotaStatus, JointStatus, MAX_DIMENSIONS,
    ReserveError,
};
use tollgate_http::{DenialKind, Policies, ServiceLimit, Usage};

use crate::counts::Counts;
use crate::fields::{Fields, Key, OfDimension, Value};
use crate::verdict::{Ask, Asked, Decided, Refusal, Verdict, Violated};

/// The limiter of a policy.
pub(crate) type PolicyLimiter = JointLimiter<[Key], AnyClock>;

/// Decides requests by a policy.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) limiter: PolicyLimiter,
    pub(crate) fields: Fields,
    /// A policy for each quota, dimension by dimension.
    pub(crate) policies: Policies,
    /// The policies of the dimensions before each.
    before: Vec<usize>,
    /// Whether there is a queue, whose permits come with a wait.
    has_queue: bool,
    pub(crate) counts: Counts,
}

impl Guard {
    pub(crate) fn new(limiter: PolicyLimiter, fields: Fields, policies: Policies) -> Self {
        let (mut before, mut has_queue, mut names, mut sum) = (Vec::new(), false, Vec::new(), 0);
        for (name, quotas) in limiter.dimensions() {
            before.push(sum);
            sum += quotas.len();
            has_queue |= quotas.iter().any(|quota| quota.algorithm() == Algorithm::LeakyQueue);
            names.extend(quotas.iter().map(|_| name));
        }
        let counts = Counts::new(limiter.dimensions().map(|(name, _)| name), names.into_iter().zip(&*policies));
        Self { limiter, fields, policies, before, has_queue, counts }
    }

    /// Decides a request with these values: charges all dimensions that have a key, or none.
    pub(crate) fn decide(&self, values: &[Option<Value<'_>>], ask: Ask) -> Decided {
        let mut keys: [Option<OfDimension<'_>>; MAX_DIMENSIONS] = [None; MAX_DIMENSIONS];
        let mut count = 0;
        for ((place, key), asks) in keys.iter_mut().zip(self.fields.keys(values)).zip(ask.asks) {
            *place = key.filter(|_| asks);
            count += 1;
        }
        let verdict = match self.ask(&keys[..count], ask) {
            Ok(status) => self.verdict(status, ask.cost),
            Err(verdict) => verdict,
        };
        let decided = Decided { verdict, asked: keys.map(|key| key.is_some()) };
        if !ask.is_peek {
            self.count(&decided);
        }
        decided
    }

    /// The value of `RateLimit-Policy`: the policies of the dimensions that were asked.
    pub(crate) fn policies_of(&self, asked: &Asked) -> Cow<'_, str> {
        let dimensions = self.before.iter().zip(asked);
        if dimensions.clone().all(|(_, asked)| *asked) {
            return self.policies.value().into();
        }
        let ends = self.before.iter().skip(1).copied().chain([self.policies.len()]);
        let chosen = dimensions.zip(ends).filter(|((_, asked), _)| **asked);
        let policies = chosen.flat_map(|((&before, _), end)| &self.policies[before..end]);
        policies.map(ToString::to_string).collect::<Vec<_>>().join(", ").into()
    }

    fn ask(&self, keys: &[Option<OfDimension<'_>>], ask: Ask) -> Result<Box<JointStatus>, Verdict> {
        let cost = ask.cost;
        if ask.is_peek {
            return self.limiter.peek_reserve(keys, cost).map(Box::new).map_err(|error| refused(&error));
        }
        if !self.has_queue {
            return self.limiter.try_acquire_n_status(keys, cost).map(Box::new).map_err(|error| refused(&error));
        }
        // Nobody waits here, so a request that a queue would make wait is denied.
        match self.limiter.reserve(keys, cost) {
            Ok(reserved) => {
                let status = Box::new(reserved.status().clone());
                reserved.commit();
                Ok(status)
            }
            Err(ReserveError::Denied(denial)) => {
                let now = self.limiter.peek_reserve(keys, cost).ok();
                Err(Verdict::Denied(self.refusal(denial, now.as_ref(), cost)))
            }
            Err(ReserveError::Joint(error)) => Err(refused(&error)),
            Err(_) => Err(too_much()),
        }
    }

    fn verdict(&self, status: Box<JointStatus>, cost: u32) -> Verdict {
        match status.decision() {
            Decision::Admitted(admission) => match admission.overruled() {
                Some(denial) => Verdict::Overruled(self.refusal(denial, Some(&status), cost)),
                None if admission.is_counted() => Verdict::Admitted(status),
                None => Verdict::Uncounted,
            },
            Decision::Denied(denial) => Verdict::Denied(self.refusal(denial, Some(&status), cost)),
        }
    }

    /// The refusal of a request by a denial, with the violated quotas. The one that decides the wait
    /// is always among them.
    fn refusal(&self, denial: Denial, status: Option<&JointStatus>, cost: u32) -> Refusal {
        let (kind, wait) = (denial.reason().into(), denial.retry_after());
        let decides =
            |item: &JointQuotaStatus| (item.dimension(), item.quota()) == (denial.dimension(), denial.quota());
        let violated = status.into_iter().flat_map(JointStatus::items).filter_map(|item| {
            if kind != DenialKind::Quota || !(item.is_violated() || decides(&item)) {
                return None;
            }
            let usage = match left(item) {
                usage if usage.remaining < cost => usage,
                // A refund since.
                _ => Usage { remaining: cost - 1, next_after: wait },
            };
            Some(Violated { dimension: item.dimension(), policy: self.place(item)?, usage })
        });
        let before = self.before.get(denial.dimension()).filter(|_| kind == DenialKind::Quota);
        let decides = before.map(|before| before + denial.quota());
        Refusal { kind, wait, violated: violated.collect(), decides }
    }

    /// The tightest limit of an admitted request in the dimensions that are `wanted`.
    pub(crate) fn tightest(&self, status: &JointStatus, wanted: impl Fn(usize) -> bool) -> Option<ServiceLimit<'_>> {
        let items = status.items().filter(|item| wanted(item.dimension()));
        let left = items.map(|item| (item, left(item)));
        let (item, usage) = left.min_by_key(|(_, usage)| (usage.remaining, Reverse(usage.next_after)))?;
        Some(self.policies.get(self.place(item)?)?.admitted(usage))
    }

    /// The violated limits of a denied request in the dimensions that are `wanted`.
    pub(crate) fn violated<'a>(
        &'a self,
        refusal: &'a Refusal,
        wanted: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = ServiceLimit<'a>> {
        let violated = refusal.violated.iter().filter(move |it| wanted(it.dimension));
        violated.filter_map(|it| Some(self.policies.get(it.policy)?.violated(it.usage, refusal.wait)))
    }

    /// The place of a quota's policy.
    fn place(&self, item: JointQuotaStatus) -> Option<usize> {
        Some(self.before.get(item.dimension())? + item.quota())
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        self.counts.text(&self.limiter.counts())
    }

    fn count(&self, decided: &Decided) {
        self.counts.request(&decided.verdict);
        match &decided.verdict {
            Verdict::Uncounted => {}
            Verdict::Admitted(_) => {
                let asked = decided.asked.iter().enumerate().filter(|(_, asked)| **asked);
                asked.for_each(|(dimension, _)| self.counts.admitted(dimension));
            }
            Verdict::Denied(refusal) | Verdict::Overruled(refusal) => {
                if let Some(policy) = refusal.decides {
                    self.counts.denied(policy);
                }
            }
        }
    }
}

/// The permits left of a quota.
fn left(item: JointQuotaStatus) -> Usage {
    Usage { remaining: item.remaining(), next_after: item.next_after() }
}

/// The verdict in place of which the limiter has an error.
fn refused(error: &JointError) -> Verdict {
    match error {
        JointError::Cost(_) => too_much(),
        // A request without any key: all of its fields are optional and none has a value.
        _ => refusal_of(DenialKind::KeyNotSent),
    }
}

fn too_much() -> Verdict {
    refusal_of(DenialKind::CostExceedsLimit)
}

fn refusal_of(kind: DenialKind) -> Verdict {
    Verdict::Denied(Refusal { kind, wait: Duration::MAX, violated: Vec::new(), decides: None })
}
