//! A limiter with one key, or the key of a request.

use tollgate::{CostExceedsLimit, Decision, Denial, Receipt, ReserveError, Status};

use super::{Granted, Item, Items, Refusal, Request, Tell, Verdict};

/// The common part of a keyed limiter, for one key, and a direct limiter.
pub(super) trait Single {
    fn acquire(&self, cost: u32) -> Result<Status, CostExceedsLimit>;
    /// As `acquire`, without the permits left.
    fn acquire_only(&self, cost: u32) -> Result<Decision, CostExceedsLimit>;
    fn reserve(&self, cost: u32) -> Result<(Status, Receipt), ReserveError>;
    /// As `reserve`, without a charge.
    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit>;
    /// The limit, if there is one quota.
    fn limit(&self) -> Option<u32>;
    /// Whether an admission may have a delay. Middleware does not wait: it reserves for now.
    fn has_queue(&self) -> bool;
}

pub(super) fn decide(limiter: &impl Single, request: Request) -> Verdict {
    if request.refundable || limiter.has_queue() {
        return reserve(limiter, request);
    }
    if request.tell == Tell::Nothing {
        return decide_only(limiter, request);
    }
    // By reference: a status is large.
    let Ok(status) = &limiter.acquire(request.cost) else { return Refusal::cost() };
    Verdict::of(status, request.tell)
}

/// Decides where no permits left are shown.
fn decide_only(limiter: &impl Single, request: Request) -> Verdict {
    match limiter.acquire_only(request.cost) {
        Ok(Decision::Admitted(admission)) if admission.is_counted() => {
            Verdict::Admitted(Granted { left: None, receipt: None })
        }
        Ok(Decision::Admitted(_)) => Verdict::Uncounted,
        Ok(Decision::Denied(denial)) => Refusal::of(&denial, || one_violated(limiter, &denial, request.cost)),
        Err(_) => Refusal::cost(),
    }
}

/// The violated quotas of a request of which only the denial is known.
fn one_violated(limiter: &impl Single, denial: &Denial, cost: u32) -> Items {
    match limiter.limit() {
        // No permit is left of the only quota, and the next one is what the request waits for.
        Some(limit) if cost == 1 => Items::One(Item::exhausted(limit, denial.retry_after())),
        _ => violated_now(limiter, denial, cost),
    }
}

fn violated_now(limiter: &impl Single, denial: &Denial, cost: u32) -> Items {
    limiter.peek(cost).map_or(Items::NONE, |now| Items::violated(&now, denial, cost))
}

fn reserve(limiter: &impl Single, request: Request) -> Verdict {
    match limiter.reserve(request.cost) {
        Ok((status, receipt)) => match status.decision() {
            Decision::Admitted(admission) if admission.is_counted() => {
                let receipt = request.refundable.then(|| Box::new(receipt));
                Verdict::Admitted(Granted { left: Items::left(&status, request.tell), receipt })
            }
            _ => Verdict::Uncounted,
        },
        Err(ReserveError::Denied(denial)) => Refusal::of(&denial, || violated_now(limiter, &denial, request.cost)),
        Err(_) => Refusal::cost(),
    }
}

/// The permits left now.
pub(super) fn left(limiter: &impl Single, tell: Tell) -> Option<Items> {
    limiter.peek(1).ok().and_then(|status| Items::left(&status, tell))
}
