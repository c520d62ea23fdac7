//! Decisions in process, by a [`JointLimiter`].

use tollgate::{
    Algorithm, AnyClock, Decision, Denial, JointError, JointLimiter, Quota, QuotaStatus, ReserveError, Status,
};
use tollgate_http::{DenialKind, Usage};

use crate::fields::{Key, OfDimension};
use crate::verdict::{Ask, Left, Refusal, Verdict};

/// The limiter of a policy.
pub(crate) type PolicyLimiter = JointLimiter<[Key], AnyClock>;

/// A limiter in process.
#[derive(Debug)]
pub(crate) struct InProcess {
    pub(crate) limiter: PolicyLimiter,
    /// Whether there is a queue, whose permits come with a wait.
    has_queue: bool,
}

impl InProcess {
    pub(crate) fn new(limiter: PolicyLimiter) -> Self {
        let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyQueue;
        let has_queue = limiter.dimensions().any(|(_, quotas)| quotas.iter().any(is_queue));
        Self { limiter, has_queue }
    }

    /// Decides a request with these keys.
    pub(crate) fn decide(&self, keys: &[Option<OfDimension<'_>>], ask: Ask) -> Verdict {
        match self.ask(keys, ask) {
            Ok(status) => verdict(&status, ask.cost),
            Err(verdict) => verdict,
        }
    }

    fn ask(&self, keys: &[Option<OfDimension<'_>>], ask: Ask) -> Result<Status, Verdict> {
        let cost = ask.cost;
        if ask.is_peek {
            return self.limiter.peek_reserve(keys, cost).map_err(|error| refused(&error));
        }
        if !self.has_queue {
            return self.limiter.try_acquire_n_status(keys, cost).map_err(|error| refused(&error));
        }
        // Nobody waits here, so a request that a queue would make wait is denied.
        match self.limiter.reserve(keys, cost) {
            Ok(reserved) => {
                let status = reserved.status().clone();
                reserved.commit();
                Ok(status)
            }
            Err(ReserveError::Denied(denial)) => {
                let now = self.limiter.peek_reserve(keys, cost).ok();
                Err(Verdict::Denied(refusal(denial, now.as_ref(), cost)))
            }
            Err(ReserveError::Joint(error)) => Err(refused(&error)),
            Err(_) => Err(Verdict::too_much()),
        }
    }
}

/// What a decision means.
pub(crate) fn verdict(status: &Status, cost: u32) -> Verdict {
    match status.decision() {
        Decision::Admitted(admission) => match admission.overruled() {
            Some(denial) => Verdict::Overruled(refusal(denial, Some(status), cost)),
            None if admission.is_counted() => Verdict::Admitted(status.quotas().map(left).collect()),
            None => Verdict::Uncounted,
        },
        Decision::Denied(denial) => Verdict::Denied(refusal(denial, Some(status), cost)),
    }
}

/// The refusal of a request by a denial, with the violated quotas. The one that decides the wait is
/// always among them.
fn refusal(denial: Denial, status: Option<&Status>, cost: u32) -> Refusal {
    let (kind, wait) = (denial.reason().into(), denial.retry_after());
    if kind != DenialKind::Quota {
        return Refusal { kind, wait, violated: Vec::new(), decides: None };
    }
    let all: Vec<Left> = status.into_iter().flat_map(Status::quotas).map(left).collect();
    Refusal::by_quotas(&all, cost, wait, (denial.dimension(), denial.quota()))
}

fn left(item: QuotaStatus) -> Left {
    let usage = Usage { remaining: item.remaining(), next_after: item.next_after() };
    Left { dimension: item.dimension(), quota: item.quota(), usage }
}

/// The verdict in place of which the limiter has an error.
fn refused(error: &JointError) -> Verdict {
    match error {
        JointError::Cost(_) => Verdict::too_much(),
        // A request without any key: all of its fields are optional and none has a value.
        _ => Verdict::refused(DenialKind::KeyNotSent),
    }
}
