//! What is tested.

use tollgate::{CostExceedsLimit, Counts, Decision, DirectLimiter, Limiter, Status};

use crate::counted_clock::CountedClock;

/// A keyed limiter, or one without keys, which takes all of them for the same.
pub trait Subject {
    fn acquire_one(&self, key: u32) -> Decision;
    fn acquire(&self, key: u32, cost: u32) -> Result<Decision, CostExceedsLimit>;
    fn status(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit>;
    fn peek(&self, key: u32) -> Status;
    fn peek_n(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit>;
    /// `None` where it is not said whether anything was held.
    fn forget(&self, key: u32) -> Option<bool>;
    fn clear(&self);
    fn counts(&self) -> Option<Counts>;
}

impl Subject for Limiter<u32, CountedClock> {
    fn acquire_one(&self, key: u32) -> Decision {
        self.try_acquire(key)
    }
    fn acquire(&self, key: u32, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(key, cost)
    }
    fn status(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(key, cost)
    }
    fn peek(&self, key: u32) -> Status {
        self.peek(key)
    }
    fn peek_n(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(key, cost)
    }
    fn forget(&self, key: u32) -> Option<bool> {
        Some(self.forget(key))
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Option<Counts> {
        Some(self.counts())
    }
}

impl Subject for DirectLimiter<CountedClock> {
    fn acquire_one(&self, _: u32) -> Decision {
        self.try_acquire()
    }
    fn acquire(&self, _: u32, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(cost)
    }
    fn status(&self, _: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(cost)
    }
    fn peek(&self, _: u32) -> Status {
        self.peek()
    }
    fn peek_n(&self, _: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(cost)
    }
    fn forget(&self, _: u32) -> Option<bool> {
        self.clear();
        None
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Option<Counts> {
        None
    }
}
