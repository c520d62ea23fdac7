//! A limiter with one key, or the key of a request.

use tollgate::{CostExceedsLimit, Decision, Denial, Receipt, ReserveError, Status};

use super::{Granted, Left, Refusal, Request, Verdict, Violated};
use crate::limit::Usage;

/// What a keyed limiter, for one key, and a direct one have in common.
pub(super) trait Single {
    fn acquire(&self, cost: u32) -> Result<Decision, CostExceedsLimit>;
    fn acquire_status(&self, cost: u32) -> Result<Status, CostExceedsLimit>;
    fn reserve(&self, cost: u32) -> Result<Receipt, ReserveError>;
    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit>;
    /// Whether an admission may have a delay. Middleware does not wait: it reserves for now.
    fn has_queue(&self) -> bool;
}

pub(super) fn decide(limiter: &impl Single, request: Request) -> Verdict {
    let decided = if request.refundable || limiter.has_queue() {
        reserve(limiter, request.cost)
    } else if request.with_status {
        limiter.acquire_status(request.cost).map(|status| match status.decision() {
            Decision::Admitted(admission) if admission.is_counted() => {
                Verdict::Admitted(Granted { status: Some(status), receipt: None })
            }
            Decision::Admitted(_) => Verdict::Uncounted,
            Decision::Denied(denial) => refused(&denial, (&status).into()),
        })
    } else {
        limiter.acquire(request.cost).map(|decision| match decision {
            Decision::Admitted(_) => Verdict::Admitted(Granted { status: None, receipt: None }),
            Decision::Denied(denial) => refused(&denial, none_left(&denial)),
        })
    };
    decided.unwrap_or_else(|_| Verdict::Refused(Refusal::cost()))
}

fn reserve(limiter: &impl Single, cost: u32) -> Result<Verdict, CostExceedsLimit> {
    match limiter.reserve(cost) {
        Ok(receipt) => Ok(Verdict::Admitted(Granted { status: None, receipt: Some(receipt) })),
        Err(ReserveError::Denied(denial)) => {
            // A denied reservation does not tell what is left, and by now more may be.
            let left = limiter.peek(cost)?.remaining().min(cost - 1);
            Ok(refused(&denial, Usage { remaining: left, ..none_left(&denial) }))
        }
        Err(_) => Ok(Verdict::Refused(Refusal::cost())),
    }
}

/// What is left after a request was admitted. A limiter in shadow mode may have overruled it, and
/// does not tell.
pub(super) fn left(limiter: &impl Single) -> Left {
    let Ok(status) = limiter.peek(1) else { return Left::Unknown };
    match status.decision() {
        Decision::Admitted(admission) if !admission.is_counted() && admission.overruled().is_none() => Left::Uncounted,
        _ => Left::Known(status),
    }
}

fn refused(denial: &Denial, usage: Usage) -> Verdict {
    let violated = || vec![Violated { dimension: 0, quota: denial.quota(), usage }];
    Verdict::Refused(Refusal::of(denial, violated))
}

pub(super) fn none_left(denial: &Denial) -> Usage {
    Usage { remaining: 0, next_after: denial.retry_after() }
}
