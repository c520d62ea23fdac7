//! What the observers of a limiter without keys see.

use super::limiter::{DirectLimiter, THE_KEY};
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::observer::{NoKeys, Request, Told};

impl<C: Clock> DirectLimiter<C> {
    /// Decides a request, and tells the observers. The cost is one, or checked.
    #[cold]
    #[inline(never)]
    pub(super) fn observed(&self, cost: u32) -> Status {
        let status = self.engine.decide_in_full(THE_KEY, cost);
        self.tell(cost, &status);
        status
    }

    /// Checks the cost of a request, decides the request, and tells the observers.
    #[cold]
    pub(super) fn observed_n(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        if let Err(error) = self.engine.checked(THE_KEY, cost) {
            let answer = Err(error);
            self.tell(cost, &answer);
            return answer;
        }
        Ok(self.observed(cost))
    }

    /// Charges permits, and tells the observers.
    pub(crate) fn charged<T: Told>(&self, cost: u32, charge: impl FnOnce() -> T) -> T {
        let answer = charge();
        if !self.observers.is_empty() {
            self.tell(cost, &answer);
        }
        answer
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, cost: u32, answer: &impl Told) {
        self.observers.tell(&Request::new(&NoKeys, &[], &[], cost), answer, |_| self.quotas());
    }
}
