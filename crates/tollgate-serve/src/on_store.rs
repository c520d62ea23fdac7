//! Decisions on the store of a policy, by a [`RedisJointLimiter`].

use tollgate_http::{DenialKind, Usage};
use tollgate_redis::{Decision, RedisJointLimiter, Status, StoreError};

use crate::fields::OfDimension;
use crate::verdict::{Ask, Left, Refusal, Verdict};

/// Decides a request with these keys.
pub(crate) async fn decide(limiter: &RedisJointLimiter, keys: &[Option<OfDimension<'_>>], ask: Ask) -> Verdict {
    let cost = ask.cost;
    let texts: Vec<Option<Vec<u8>>> = keys.iter().map(|key| key.map(|key| key.bytes())).collect();
    let keys: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
    if ask.is_peek {
        return verdict(limiter.peek(&keys, cost).await, cost);
    }
    verdict(limiter.try_acquire_known(&keys, cost).await, cost)
}

fn verdict(status: Result<Status, StoreError>, cost: u32) -> Verdict {
    let status = match status {
        Ok(status) => status,
        Err(StoreError::CostExceedsLimit { .. }) => return Verdict::too_much(),
        // A request without any key: all of its fields are optional and none has a value.
        Err(StoreError::WrongKeys { .. }) => return Verdict::refused(DenialKind::KeyNotSent),
        Err(_) => return Verdict::refused(DenialKind::Undecided),
    };
    let left = |left: &tollgate_redis::QuotaStatus| Left {
        dimension: left.dimension(),
        quota: left.quota(),
        usage: Usage { remaining: left.remaining(), next_after: left.next_after() },
    };
    let all: Vec<Left> = status.quotas().iter().map(left).collect();
    match status.into_decision() {
        Decision::Admitted(admission) if admission.is_counted() => Verdict::Admitted(all),
        Decision::Admitted(_) => Verdict::Uncounted,
        Decision::Denied(denial) => {
            let decides = (denial.dimension(), denial.quota());
            Verdict::Denied(Refusal::by_quotas(&all, cost, denial.retry_after(), decides))
        }
    }
}
