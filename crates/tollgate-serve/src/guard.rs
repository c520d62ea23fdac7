//! [`Guard`]: the limiter of a policy, and what it decides on the values of a request.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use tollgate::{MAX_DIMENSIONS, Quota};
use tollgate_http::{Policies, ServiceLimit};

use crate::counts::Counts;
use crate::fields::{Fields, OfDimension, Value};
use crate::in_process::InProcess;
#[cfg(feature = "redis")]
use crate::on_store;
use crate::verdict::{Ask, Asked, Decided, Left, Refusal, Verdict};

/// Where requests are decided.
#[derive(Debug)]
pub(crate) enum Place {
    InProcess(Box<InProcess>),
    #[cfg(feature = "redis")]
    OnStore(tollgate_redis::RedisJointLimiter),
}

impl Place {
    /// The names and the quotas of the dimensions.
    pub(crate) fn dimensions(&self) -> Vec<(&str, Arc<[Quota]>)> {
        match self {
            Self::InProcess(it) => it.limiter.dimensions().collect(),
            #[cfg(feature = "redis")]
            Self::OnStore(limiter) => limiter.dimensions().collect(),
        }
    }

    async fn decide(&self, keys: &[Option<OfDimension<'_>>], ask: Ask) -> Verdict {
        match self {
            Self::InProcess(it) => it.decide(keys, ask),
            #[cfg(feature = "redis")]
            // Its future is large, and would take its place while a body comes.
            Self::OnStore(limiter) => Box::pin(on_store::decide(limiter, keys, ask)).await,
        }
    }
}

/// Decides requests by a policy.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) place: Place,
    pub(crate) fields: Fields,
    /// A policy for each quota, dimension by dimension.
    pub(crate) policies: Policies,
    /// The policies of the dimensions before each.
    before: Vec<usize>,
    pub(crate) counts: Counts,
}

impl Guard {
    pub(crate) fn new(place: Place, fields: Fields, policies: Policies) -> Self {
        let (mut before, mut names, mut sum) = (Vec::new(), Vec::new(), 0);
        let dimensions = place.dimensions();
        for (name, quotas) in &dimensions {
            before.push(sum);
            sum += quotas.len();
            names.extend(quotas.iter().map(|_| *name));
        }
        let counts = Counts::new(dimensions.iter().map(|&(name, _)| name), names.into_iter().zip(&*policies));
        Self { place, fields, policies, before, counts }
    }

    /// Decides a request with these values: charges all dimensions that have a key, or none.
    pub(crate) async fn decide(&self, values: &[Option<Value<'_>>], ask: Ask) -> Decided {
        let mut keys: [Option<OfDimension<'_>>; MAX_DIMENSIONS] = [None; MAX_DIMENSIONS];
        let mut count = 0;
        for ((place, key), asks) in keys.iter_mut().zip(self.fields.keys(values)).zip(ask.asks) {
            *place = key.filter(|_| asks);
            count += 1;
        }
        let verdict = self.place.decide(&keys[..count], ask).await;
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

    /// The tightest limit of an admitted request in the dimensions that are `wanted`.
    pub(crate) fn tightest(&self, all: &[Left], wanted: impl Fn(usize) -> bool) -> Option<ServiceLimit<'_>> {
        let wanted = all.iter().filter(|left| wanted(left.dimension));
        let tightest = wanted.min_by_key(|left| (left.usage.remaining, Reverse(left.usage.next_after)))?;
        Some(self.policies.get(self.policy(tightest.dimension, tightest.quota)?)?.admitted(tightest.usage))
    }

    /// The violated limits of a denied request in the dimensions that are `wanted`.
    pub(crate) fn violated<'a>(
        &'a self,
        refusal: &'a Refusal,
        wanted: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = ServiceLimit<'a>> {
        let violated = refusal.violated.iter().filter(move |it| wanted(it.dimension));
        violated.filter_map(|it| {
            Some(self.policies.get(self.policy(it.dimension, it.quota)?)?.violated(it.usage, refusal.wait))
        })
    }

    /// The place of a quota's policy.
    fn policy(&self, dimension: usize, quota: usize) -> Option<usize> {
        Some(self.before.get(dimension)? + quota)
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        match &self.place {
            Place::InProcess(it) => self.counts.text_in_process(&it.limiter.counts()),
            #[cfg(feature = "redis")]
            Place::OnStore(limiter) => self.counts.text_on_store(&limiter.counts()),
        }
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
                if let Some(policy) = refusal.decides.and_then(|(dimension, quota)| self.policy(dimension, quota)) {
                    self.counts.denied(policy);
                }
            }
        }
    }
}
