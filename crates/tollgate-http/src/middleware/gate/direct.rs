//! A direct limiter as middleware asks it.

use core::time::Duration;
use std::sync::Arc;

use tollgate::{
    Algorithm, Clock, CostExceedsLimit, Decision, DirectLimiter, Quota, Receipt, ReserveError, Status, Unasked,
};

use super::single::{self, Single};
use super::{Items, Request, Tell, Verdict, sealed};

impl<C: Clock> sealed::Ask<()> for DirectLimiter<C> {
    fn decide(&self, (): &(), request: Request) -> Verdict {
        single::decide(self, request)
    }

    fn left(&self, (): &(), tell: Tell) -> Option<Items> {
        single::left(self, tell)
    }

    fn each_quotas<'a>(&'a self, (): &(), mut each: impl FnMut(Option<&'a str>, Arc<[Quota]>)) {
        each(None, self.quotas());
    }

    fn look(&self, (): &(), cost: u32) -> Option<Decision> {
        self.peek_n(cost).ok().map(|status| status.decision())
    }

    fn reading(&self) -> u64 {
        self.clock().now()
    }

    fn give_back(&self, receipt: Receipt) {
        // The receipt is of this limiter.
        let _ = self.refund(receipt);
    }

    fn unasked(&self, request: Unasked) {
        self.observe_unasked(request);
    }
}

impl<C: Clock> Single for DirectLimiter<C> {
    fn acquire(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(cost)
    }

    fn acquire_only(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(cost)
    }

    fn reserve(&self, cost: u32) -> Result<(Status, Receipt), ReserveError> {
        let reservation = Self::reserve(self, cost, Duration::ZERO)?;
        Ok((reservation.status().clone(), reservation.commit()))
    }

    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_reserve(cost, Duration::ZERO)
    }

    fn limit(&self) -> Option<u32> {
        if let [quota] = *self.quotas() { Some(quota.limit()) } else { None }
    }

    fn has_queue(&self) -> bool {
        self.quotas()[0].algorithm() == Algorithm::LeakyQueue
    }
}
