//! The decisions: every event through a real limiter, on the log's own clock.

use core::ops::Deref;
use core::time::Duration;

use tollgate::{
    Decision, DenialReason, JointLimiter, Keys, Lender, Limiter, MockClock, Quota, Reservation, ReserveError, Tier,
    TierKey,
};
use tollgate_policy::Value;

use crate::errors::RunError;
use crate::events::Event;
use crate::log::Log;
use crate::log_clock::LogClock;
use crate::matching::Asked;
#[cfg(feature = "redis")]
use crate::on_store::OnStore;
use crate::outcome::{Costs, Outcome, Verdict};
use crate::plan::{Dimension, Plan};

/// Decides the requests of a log in time order, as far as they are known.
#[derive(Debug)]
pub(crate) struct Decider<'a> {
    plan: &'a Plan,
    place: Place,
    /// The largest cost that each set of quotas of each dimension can admit.
    most: Vec<Vec<u32>>,
    numbers: Vec<Option<u32>>,
    /// The set of quotas of each dimension that decides the request.
    sets: Vec<usize>,
    outcome: Outcome,
    /// So many of the log's requests are decided.
    done: usize,
}

/// Where requests are decided.
#[derive(Debug)]
enum Place {
    InProcess(InProcess),
    #[cfg(feature = "redis")]
    OnStore(OnStore),
}

impl Place {
    fn new(plan: &Plan) -> Result<Self, RunError> {
        match plan.on_store() {
            None => Ok(Self::InProcess(InProcess::new(plan)?)),
            #[cfg(feature = "redis")]
            Some((policy, file)) => Ok(Self::OnStore(OnStore::new(policy, file)?)),
            #[cfg(not(feature = "redis"))]
            Some((_, file)) => Err(RunError::no_store(file)),
        }
    }
}

/// A limiter in process, and its clock.
#[derive(Debug)]
struct InProcess {
    limiter: AnyLimiter,
    /// Of each dimension, the tier of each of its sets of quotas. Empty if there are no tiers.
    tiers: Vec<Vec<Tier>>,
    in_tiers: Vec<Option<TierKey<u32>>>,
    clock: MockClock,
    /// `None` before the first request.
    log_clock: Option<LogClock>,
}

/// Keys are asked for by their numbers: they are told apart as their texts are, and are faster to
/// look up.
#[derive(Debug)]
enum AnyLimiter {
    /// With the longest delay of an admitted request.
    One(Box<Limiter<u32, MockClock>>, Duration),
    Joint(Box<JointLimiter<[u32], MockClock>>),
}

impl AnyLimiter {
    fn new(plan: &Plan, clock: MockClock) -> Result<Self, RunError> {
        Ok(match plan.single() {
            Some(builder) => {
                let limiter = builder.clock(clock).build().map_err(RunError::Limit)?;
                let has_queue = limiter.settings().may_delay();
                // Without a queue, `try_acquire` admits no request for later, so none is reserved.
                Self::One(Box::new(limiter), if has_queue { Duration::MAX } else { Duration::ZERO })
            }
            None => Self::Joint(Box::new(plan.joint()?.clock(clock).build().map_err(RunError::Limit)?)),
        })
    }

    /// The tier of each set of quotas of each dimension.
    fn tiers(&self, plan: &Plan) -> Vec<Vec<Tier>> {
        let has_tiers = plan.dimensions.iter().any(Dimension::has_limited_tier);
        let Self::Joint(limiter) = self else { return Vec::new() };
        let of = |(at, dimension): (usize, &Dimension)| {
            let tiers = dimension.tiers.iter().map(move |tier| limiter.tier(at, &tier.name).unwrap_or_default());
            core::iter::once(Tier::default()).chain(tiers).collect()
        };
        if has_tiers { plan.dimensions.iter().enumerate().map(of).collect() } else { Vec::new() }
    }

    /// Decides by what the request asks for, and settles the charge to what it has cost. `None` where
    /// the cost is more than can ever be admitted. Permits that are charged although they are not
    /// there are added to `debt`.
    fn decide(&self, keys: &[Option<u32>], event: &Event, debt: &mut u32) -> Option<Decision> {
        match self {
            Self::One(limiter, longest_delay) => {
                let key = keys.first().copied().flatten()?;
                if event.actual == event.cost {
                    return limiter.try_acquire_n(key, event.cost).ok();
                }
                settled(|| limiter.reserve(key, event.cost, *longest_delay), event, debt)
            }
            Self::Joint(limiter) => decide_jointly(limiter, keys, event, debt),
        }
    }
}

/// There is a place for every dimension, and a key in one of them: what can be wrong is the cost.
fn decide_jointly(
    limiter: &JointLimiter<[u32], MockClock>,
    keys: impl Keys<[u32]>,
    event: &Event,
    debt: &mut u32,
) -> Option<Decision> {
    if event.actual == event.cost {
        return limiter.try_acquire_n(keys, event.cost).ok();
    }
    settled(|| limiter.reserve(keys, event.cost), event, debt)
}

/// The decision on a request whose permits are reserved, once they are settled.
#[inline(never)] // A replay without actual costs pays nothing for it.
fn settled<P: Deref<Target: Lender>>(
    reserve: impl FnOnce() -> Result<Reservation<P>, ReserveError>,
    event: &Event,
    debt: &mut u32,
) -> Option<Decision> {
    match reserve() {
        Ok(reserved) => {
            let (decision, left) = (reserved.status().decision(), reserved.status().remaining());
            let more = reserved.settle(event.actual).saturating_sub(event.cost);
            *debt += more.saturating_sub(left);
            Some(decision)
        }
        Err(ReserveError::Denied(denial)) => Some(Decision::Denied(denial)),
        Err(_) => None,
    }
}

impl InProcess {
    fn new(plan: &Plan) -> Result<Self, RunError> {
        let clock = MockClock::new();
        let limiter = AnyLimiter::new(plan, clock.clone())?;
        let tiers = limiter.tiers(plan);
        Ok(Self { limiter, tiers, in_tiers: Vec::new(), clock, log_clock: None })
    }

    fn decide(
        &mut self,
        plan: &Plan,
        event: &Event,
        keys: &[Option<u32>],
        sets: &[usize],
        costs: &mut Option<Costs>,
    ) -> Result<Verdict, RunError> {
        if self.log_clock.is_none() {
            self.log_clock = LogClock::new(&plan.pauses(), event.time);
        }
        let log_clock = self.log_clock.as_mut().ok_or(RunError::LogTooLong)?;
        self.clock.set(log_clock.reading_at(event.time).ok_or(RunError::LogTooLong)?);
        let mut debt = 0;
        let decision = match &self.limiter {
            AnyLimiter::Joint(limiter) if !self.tiers.is_empty() => {
                let keys = keys.iter().zip(sets).zip(&self.tiers);
                self.in_tiers.clear();
                self.in_tiers.extend(keys.map(|((key, set), tiers)| key.map(|key| tiers[*set].key(key))));
                decide_jointly(limiter, &self.in_tiers[..], event, &mut debt)
            }
            limiter => limiter.decide(keys, event, &mut debt),
        };
        if let (Some(costs), Some(Decision::Admitted(_))) = (costs, &decision) {
            costs.add(event, debt);
        }
        Ok(match decision {
            Some(Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap && !plan.has_key_cap() => {
                return Err(RunError::TooManyKeys);
            }
            Some(decision) => decision.into(),
            None => Verdict::NeverPasses,
        })
    }
}

impl<'a> Decider<'a> {
    /// # Errors
    ///
    /// The quotas are some that the library refuses, or there is no store where the policy has one.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self, RunError> {
        let place = Place::new(plan)?;
        let least = |quotas: &[Quota]| quotas.iter().map(Quota::limit).min().unwrap_or(0);
        let most = plan.dimensions.iter().map(|dimension| dimension.sets().map(least).collect()).collect();
        let (numbers, sets) = (Vec::new(), vec![0; plan.dimensions.len()]);
        Ok(Self { plan, place, most, numbers, sets, outcome: Outcome::of_nothing(plan), done: 0 })
    }

    /// Decides every request that is settled and not yet decided, and shows each verdict to
    /// `witness`, with the keys by which limits were asked.
    ///
    /// # Errors
    ///
    /// The log has more keys at once than a limiter can hold or covers more years than its clock
    /// can count, the store does not decide, or the witness fails.
    pub(crate) fn go_on(
        &mut self,
        log: &Log,
        mut witness: impl FnMut(&Event, Verdict, &[Option<u32>]) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        self.outcome.make_room(log, self.plan);
        let mut values: Vec<Option<Value<'_>>> = Vec::new();
        for row in self.done..log.settled() {
            let event = log.event(row);
            self.numbers.clear();
            self.numbers.extend(self.plan.dimensions.iter().map(|dimension| log.key(&event, dimension.column)));
            let asked = match &self.plan.matching {
                None => Asked::Limits,
                Some(matching) => {
                    matching.read(log, &event, &mut values);
                    matching.ask(&values, &mut self.numbers, &mut self.sets, &mut self.outcome.unknown_tiers)
                }
            };
            let verdict = match asked {
                Asked::Rule { rule, action } => Verdict::Rule { rule, action },
                Asked::Unlimited => Verdict::Unlimited,
                Asked::Limits if self.numbers.iter().all(Option::is_none) => Verdict::WithoutKey,
                Asked::Limits => match &mut self.place {
                    Place::InProcess(limiter) => {
                        limiter.decide(self.plan, &event, &self.numbers, &self.sets, &mut self.outcome.costs)?
                    }
                    #[cfg(feature = "redis")]
                    Place::OnStore(limiter) => {
                        limiter.decide(&event, &self.plan.key_texts(log, &self.numbers), &self.sets)?
                    }
                },
            };
            let verdict = verdict.by_sets(&self.sets);
            self.outcome.count(&self.numbers, &self.sets, event.cost, verdict, &self.most);
            witness(&event, verdict, &self.numbers)?;
        }
        self.done = log.settled().max(self.done);
        Ok(())
    }

    pub(crate) fn outcome(self) -> Outcome {
        self.outcome
    }
}

/// Decides a whole log.
///
/// # Errors
///
/// Those of [`Decider::new`] and of [`Decider::go_on`].
pub(crate) fn decide(
    log: &Log,
    plan: &Plan,
    witness: impl FnMut(&Event, Verdict, &[Option<u32>]) -> Result<(), RunError>,
) -> Result<Outcome, RunError> {
    let mut decider = Decider::new(plan)?;
    decider.go_on(log, witness)?;
    Ok(decider.outcome())
}
