//! A direct limiter as the middleware asks it.

use core::time::Duration;

use tollgate::{Algorithm, Clock, CostExceedsLimit, Decision, DirectLimiter, Quota, Receipt, ReserveError, Status};

use super::single::{self, Single};
use super::{Request, Verdict, sealed};
use crate::key::{Head, KeyError, Missing, NoKey};

impl<C: Clock> sealed::Ask<NoKey> for DirectLimiter<C> {
    type Keys = ();

    fn find(&self, _: &NoKey, _: &Missing<()>, _: &Head<'_>) -> Result<Option<()>, KeyError> {
        Ok(Some(()))
    }

    fn decide(&self, (): &(), request: Request) -> Verdict {
        single::decide(self, request)
    }

    fn status(&self, (): &()) -> Option<Status> {
        single::status(self)
    }

    fn each_quotas(&self, (): &(), each: &mut dyn FnMut(Option<&str>, &[Quota])) {
        each(None, self.quotas());
    }

    fn give_back(&self, receipt: Receipt) {
        // It is this limiter's.
        let _ = self.refund(receipt);
    }
}

impl<C: Clock> Single for DirectLimiter<C> {
    fn acquire(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(cost)
    }

    fn acquire_status(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(cost)
    }

    fn reserve(&self, cost: u32) -> Result<Receipt, ReserveError> {
        Ok(Self::reserve(self, cost, Duration::ZERO)?.commit())
    }

    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(cost)
    }

    fn has_queue(&self) -> bool {
        self.quotas()[0].algorithm() == Algorithm::LeakyQueue
    }
}
