//! Settling on the store: what a request costs is known once it is answered. A refund is a
//! settlement of no permits.
//!
//! A receipt is settled by one call of the script, over all its keys at once. It is spent by that,
//! whatever becomes of the call. So nothing is charged twice, and a charge whose settlement did not
//! reach the store stays as it is.

use std::sync::Arc;

use crate::asked::{Asked, Request};
use crate::engine::{Engine, protocol};
use crate::error::StoreError;
use crate::receipt::{Charge, Receipt};
use crate::reply::Reply;
use crate::script::Argument;
use crate::task::in_task;

impl Engine {
    /// Settles a receipt: the fewest permits that are charged to one of its keys then.
    pub(crate) async fn settle(self: &Arc<Self>, receipt: Receipt, actual: u32) -> Result<u32, StoreError> {
        if self.is_settled(&receipt, actual)? {
            return Ok(receipt.cost);
        }
        let engine = Arc::clone(self);
        in_task(async move { engine.settle_here(receipt, actual).await }).await
    }

    /// The same by a task, without its answer. Outside of a runtime it is not settled.
    pub(crate) fn spawn_settle(self: &Arc<Self>, receipt: Receipt, actual: u32) -> Result<(), StoreError> {
        if self.is_settled(&receipt, actual)? {
            return Ok(());
        }
        let engine = Arc::clone(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { engine.settle_here(receipt, actual).await })),
            Err(_) => self.counters.unsettled.add(),
        }
        Ok(())
    }

    /// Gives permits back: the most that were given back to a key.
    pub(crate) async fn refund(self: &Arc<Self>, receipt: Receipt) -> Result<u32, StoreError> {
        let cost = receipt.cost;
        Ok(cost - self.settle(receipt, 0).await?)
    }

    /// Whether there is nothing to settle. An error if it is for another limiter to settle.
    fn is_settled(&self, receipt: &Receipt, actual: u32) -> Result<bool, StoreError> {
        let charges = receipt.charges.as_slice();
        if receipt.limiter != self.id && !charges.is_empty() {
            return Err(StoreError::OtherLimiter);
        }
        Ok(receipt.cost == actual || !charges.iter().any(|charge| self.is_of_permits(charge)))
    }

    /// A request leaves a concurrency limit, and is not settled there.
    fn is_of_permits(&self, &(dimension, ..): &Charge) -> bool {
        !self.dimensions[dimension].counts_requests
    }

    /// Settles a receipt of this limiter, in the task of the caller.
    pub(crate) async fn settle_here(&self, receipt: Receipt, actual: u32) -> Result<u32, StoreError> {
        let settled = self.settle_by_call(&receipt, actual).await;
        match settled {
            Ok(_) => self.counters.settled.add(),
            Err(_) => self.counters.unsettled.add(),
        }
        settled
    }

    async fn settle_by_call(&self, receipt: &Receipt, actual: u32) -> Result<u32, StoreError> {
        let charges = receipt.charges.as_slice();
        let asked_of = |&(dimension, key, _): &Charge| (dimension, key);
        let of_permits = charges.iter().filter(|charge| self.is_of_permits(charge));
        let asked: Vec<Asked> = of_permits.clone().map(asked_of).collect();
        let mut arguments = self.arguments(&asked, "s", Request::acquire(receipt.cost), actual.into());
        arguments.extend(of_permits.map(|&(.., at)| Argument::Number(at)));
        let value = self.call(&asked, &arguments, true).await?;
        self.cache.remove(&charges.iter().map(asked_of).collect::<Vec<_>>());
        let most = receipt.cost.max(actual);
        Reply::read_settled(&value).filter(|charged| *charged <= most).ok_or_else(|| protocol(true))
    }
}
