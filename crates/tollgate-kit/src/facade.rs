//! A limiter of any kind: one bank of tests for all three.

use std::time::Duration;

use tollgate::{
    Clock, CostExceedsLimit, Counts, Decision, DirectLimiter, JointError, JointLimiter, Limiter, Quota, Receipt,
    ReserveError, Status,
};

/// Keys are given by dimension. A limiter for keys of one kind has one dimension; one without keys
/// takes all of them for the same.
pub trait Facade {
    fn acquire_one(&self, keys: &[Option<u32>]) -> Decision;
    fn acquire(&self, keys: &[Option<u32>], cost: u32) -> Result<Decision, CostExceedsLimit>;
    fn status(&self, keys: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit>;
    fn peek(&self, keys: &[Option<u32>]) -> Status;
    fn peek_n(&self, keys: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit>;
    /// For now, and to be kept.
    fn reserve(&self, keys: &[Option<u32>], cost: u32) -> Result<(Status, Receipt), ReserveError>;
    fn refund(&self, receipt: Receipt) -> u32;
    /// `None` where it is not said whether anything was held.
    fn forget(&self, keys: &[Option<u32>]) -> Option<bool>;
    fn clear(&self);
    fn counts(&self) -> Counts;
}

/// A limiter of each kind by the same quotas: for keys of one kind, in one dimension, without keys.
pub fn each<C: Clock + 'static>(quotas: &[Quota], clock: impl Fn() -> C) -> [Box<dyn Facade>; 3] {
    let keyed = Limiter::<u32>::builder(quotas[0]).clock(clock()).count_decisions(true);
    let direct = DirectLimiter::builder(quotas[0]).clock(clock()).count_decisions(true);
    let joint = JointLimiter::<[u32]>::builder().dimension("key", quotas.to_vec());
    let (mut keyed, mut direct, joint) = (keyed, direct, joint.clock(clock()).count_decisions(true));
    for &quota in &quotas[1..] {
        (keyed, direct) = (keyed.and(quota), direct.and(quota));
    }
    let (keyed, joint, direct) = (keyed.build(), joint.build(), direct.build());
    [Box::new(keyed.expect("good quotas")), Box::new(joint.expect("good")), Box::new(direct.expect("good"))]
}

fn one(keys: &[Option<u32>]) -> u32 {
    let &[Some(key)] = keys else { panic!("one key, not {keys:?}") };
    key
}

impl<C: Clock> Facade for Limiter<u32, C> {
    fn acquire_one(&self, keys: &[Option<u32>]) -> Decision {
        self.try_acquire(one(keys))
    }
    fn acquire(&self, keys: &[Option<u32>], cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(one(keys), cost)
    }
    fn status(&self, keys: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(one(keys), cost)
    }
    fn peek(&self, keys: &[Option<u32>]) -> Status {
        self.peek(one(keys))
    }
    fn peek_n(&self, keys: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(one(keys), cost)
    }
    fn reserve(&self, keys: &[Option<u32>], cost: u32) -> Result<(Status, Receipt), ReserveError> {
        let reserved = self.reserve(one(keys), cost, Duration::ZERO)?;
        Ok((reserved.status().clone(), reserved.commit()))
    }
    fn refund(&self, receipt: Receipt) -> u32 {
        self.refund(receipt).expect("of this limiter")
    }
    fn forget(&self, keys: &[Option<u32>]) -> Option<bool> {
        Some(self.forget(one(keys)))
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Counts {
        self.counts()
    }
}

fn cost(error: JointError) -> CostExceedsLimit {
    let JointError::Cost(error) = error else { panic!("{error}") };
    error
}

impl<C: Clock> Facade for JointLimiter<[u32], C> {
    fn acquire_one(&self, keys: &[Option<u32>]) -> Decision {
        self.try_acquire(keys).expect("a good request")
    }
    fn acquire(&self, keys: &[Option<u32>], permits: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(keys, permits).map_err(cost)
    }
    fn status(&self, keys: &[Option<u32>], permits: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(keys, permits).map_err(cost)
    }
    fn peek(&self, keys: &[Option<u32>]) -> Status {
        self.peek(keys).expect("a good request")
    }
    fn peek_n(&self, keys: &[Option<u32>], permits: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(keys, permits).map_err(cost)
    }
    fn reserve(&self, keys: &[Option<u32>], permits: u32) -> Result<(Status, Receipt), ReserveError> {
        let reserved = self.reserve(keys, permits)?;
        Ok((reserved.status().clone(), reserved.commit()))
    }
    fn refund(&self, receipt: Receipt) -> u32 {
        self.refund(receipt).expect("of this limiter")
    }
    fn forget(&self, keys: &[Option<u32>]) -> Option<bool> {
        Some(self.forget(keys).expect("as many keys as dimensions"))
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Counts {
        self.counts()
    }
}

impl<C: Clock> Facade for DirectLimiter<C> {
    fn acquire_one(&self, _: &[Option<u32>]) -> Decision {
        self.try_acquire()
    }
    fn acquire(&self, _: &[Option<u32>], cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(cost)
    }
    fn status(&self, _: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_n_status(cost)
    }
    fn peek(&self, _: &[Option<u32>]) -> Status {
        self.peek()
    }
    fn peek_n(&self, _: &[Option<u32>], cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(cost)
    }
    fn reserve(&self, _: &[Option<u32>], cost: u32) -> Result<(Status, Receipt), ReserveError> {
        let reserved = self.reserve(cost, Duration::ZERO)?;
        Ok((reserved.status().clone(), reserved.commit()))
    }
    fn refund(&self, receipt: Receipt) -> u32 {
        self.refund(receipt).expect("of this limiter")
    }
    fn forget(&self, _: &[Option<u32>]) -> Option<bool> {
        self.clear();
        None
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Counts {
        self.counts()
    }
}
