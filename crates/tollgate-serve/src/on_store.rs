//! Decisions on the store of a policy, by a [`RedisJointLimiter`].

use tollgate::Status;
use tollgate_http::DenialKind;
use tollgate_redis::{Decided, RedisJointLimiter, StoreError};

use crate::fields::OfDimension;
use crate::in_process;
use crate::verdict::{Ask, Verdict};

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

fn verdict(status: Result<Decided<Status>, StoreError>, cost: u32) -> Verdict {
    match status {
        Ok(status) => in_process::verdict(&status, cost),
        Err(StoreError::CostExceedsLimit { .. }) => Verdict::too_much(),
        // A request without any key: all of its fields are optional and none has a value.
        Err(StoreError::WrongKeys { .. }) => Verdict::refused(DenialKind::KeyNotSent),
        Err(_) => Verdict::refused(DenialKind::Undecided),
    }
}
