//! The decisions: every event through a real limiter, on the log's own clock.

use tollgate::{BuildError, Decision, DenialReason, JointLimiter, Limiter, MockClock, Quota};

use crate::errors::RunError;
use crate::events::Event;
use crate::log::Log;
use crate::log_clock::LogClock;
use crate::outcome::{Outcome, Verdict};
use crate::plan::Plan;

/// Decides the requests of a log in time order, as far as they are known.
#[derive(Debug)]
pub(crate) struct Decider<'a> {
    plan: &'a Plan,
    clock: MockClock,
    limiter: AnyLimiter,
    /// `None` before the first request.
    log_clock: Option<LogClock>,
    /// The largest cost that each dimension can admit.
    most: Vec<u32>,
    numbers: Vec<Option<u32>>,
    outcome: Outcome,
    /// So many of the log's requests are decided.
    done: usize,
}

/// Keys are asked for by their numbers: they are told apart as their texts are, and are faster to
/// look up.
#[derive(Debug)]
enum AnyLimiter {
    One(Box<Limiter<u32, MockClock>>),
    Joint(Box<JointLimiter<[u32], MockClock>>),
}

impl AnyLimiter {
    fn new(plan: &Plan, clock: MockClock) -> Result<Self, BuildError> {
        Ok(match plan.single() {
            Some(builder) => Self::One(Box::new(builder.clock(clock).build()?)),
            None => Self::Joint(Box::new(plan.joint().clock(clock).build()?)),
        })
    }

    /// `None` where the cost is more than can ever be admitted.
    fn decide(&self, keys: &[Option<u32>], cost: u32) -> Option<Decision> {
        match self {
            Self::One(limiter) => limiter.try_acquire_n(keys.first().copied().flatten()?, cost).ok(),
            Self::Joint(limiter) => {
                // There is a place for every dimension, and a key in one of them: what can be wrong
                // is the cost.
                limiter.try_acquire_n(keys, cost).ok()
            }
        }
    }
}

impl<'a> Decider<'a> {
    /// # Errors
    ///
    /// The quotas are some that the library refuses.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self, RunError> {
        let clock = MockClock::new();
        let limiter = AnyLimiter::new(plan, clock.clone()).map_err(RunError::Limit)?;
        let least = |quotas: &[Quota]| quotas.iter().map(Quota::limit).min().unwrap_or(0);
        let most: Vec<u32> = plan.dimensions.iter().map(|dimension| least(&dimension.quotas)).collect();
        let outcome = Outcome::of_nothing(plan);
        Ok(Self { plan, clock, limiter, log_clock: None, most, numbers: Vec::new(), outcome, done: 0 })
    }

    /// Decides every request that is settled and not yet decided, and shows each verdict to
    /// `witness`. Requests without a key of the plan are not asked.
    ///
    /// # Errors
    ///
    /// The log has more keys at once than a limiter can hold or covers more years than its clock
    /// can count, or the witness fails.
    pub(crate) fn go_on(
        &mut self,
        log: &Log,
        mut witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        self.outcome.make_room(log, self.plan);
        for row in self.done..log.settled() {
            let event = log.event(row);
            self.numbers.clear();
            self.numbers.extend(self.plan.dimensions.iter().map(|dimension| log.key(&event, dimension.column)));
            if self.numbers.iter().all(Option::is_none) {
                continue;
            }
            let verdict = self.decide(&event)?;
            self.outcome.count(&self.numbers, event.cost, verdict, &self.most);
            witness(&event, verdict)?;
        }
        self.done = log.settled().max(self.done);
        Ok(())
    }

    fn decide(&mut self, event: &Event) -> Result<Verdict, RunError> {
        if self.log_clock.is_none() {
            self.log_clock = LogClock::new(&self.plan.pauses(), event.time);
        }
        let log_clock = self.log_clock.as_mut().ok_or(RunError::LogTooLong)?;
        self.clock.set(log_clock.reading_at(event.time).ok_or(RunError::LogTooLong)?);
        Ok(match self.limiter.decide(&self.numbers, event.cost) {
            Some(Decision::Admitted(admission)) => {
                Verdict::Admitted { delay_ns: u64::try_from(admission.delay().as_nanos()).unwrap_or(u64::MAX) }
            }
            Some(Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap && !self.plan.has_key_cap() => {
                return Err(RunError::TooManyKeys);
            }
            Some(Decision::Denied(denial)) => Verdict::Denied(denial),
            None => Verdict::NeverPasses,
        })
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
    witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>,
) -> Result<Outcome, RunError> {
    let mut decider = Decider::new(plan)?;
    decider.go_on(log, witness)?;
    Ok(decider.outcome())
}
