//! What the limiter does with leases: it spends, takes and gives them back.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate::{Decision, Status};

use crate::asked::{Asked, Request};
use crate::decision::Decided;
use crate::digest::KeyDigest;
use crate::engine::Engine;
use crate::error::StoreError;
use crate::lease::{Spent, Taken, Taking, Unspent};
use crate::receipt::{Charges, Receipt};
use crate::reply::Reply;
use crate::task::in_task;

impl Engine {
    /// Admits a request by a lease, without a call.
    pub(crate) fn spend(&self, key: &[u8], cost: u32) -> Option<Decided<Decision>> {
        if self.leases.are_off() || cost == 0 {
            return None;
        }
        let key = self.digest(0, key);
        Some(self.by_lease(key, cost, Instant::now())?.0)
    }

    /// The same, with what is left as far as it is known here.
    pub(crate) fn spend_status(&self, asked: &[Asked], cost: u32) -> Option<Decided<Status>> {
        let &[(_, key)] = asked else { return None };
        let now = Instant::now();
        let (admitted, spent) = self.by_lease(key, cost, now)?;
        Some(admitted.map(|decision| Status::new(decision, cost, self.quotas(asked, &[spent.left(now)]))))
    }

    fn by_lease(&self, key: KeyDigest, cost: u32, now: Instant) -> Option<(Decided<Decision>, Spent)> {
        let spent = self.leases.spend(key, cost, now)?;
        self.counters.admitted_by_lease.add();
        let receipt = Receipt { limiter: self.id, cost, charges: Charges::One((0, key, spent.ends)) };
        Some((Decided::by_lease(receipt), spent))
    }

    /// Leave for a request to take a lease; `None` if it goes without.
    pub(crate) fn begin_taking(&self, asked: &[Asked], cost: u32) -> Option<Taking> {
        let &[(_, key)] = asked else { return None };
        self.leases.begin(key, cost, Instant::now())
    }

    /// Decides a request, and takes a lease with it. Gives back what the last one has left. What is
    /// left after an admission includes the lease.
    pub(crate) async fn take(
        self: &Arc<Self>,
        asked: &[Asked],
        cost: u32,
        taking: Taking,
    ) -> Result<Decided<Status>, StoreError> {
        let request = Request::acquire(cost).telling();
        let (engine, its) = (Arc::clone(self), asked.to_vec());
        let work = async move {
            let times = u64::from(taking.more) + 1;
            let (_, answer) = tokio::join!(engine.give_back(taking.unspent), engine.ask(&its, request, times));
            let (sent_at, mut reply) = answer.map_err(|error| engine.not_taken(&taking, request, error))?;
            if let Some(taken) = taken(&reply, cost) {
                engine.counters.leased.add_many(taken.permits.unwrap_or(0));
                let of_lease = taking.keep(sent_at, taken);
                reply.left.iter_mut().for_each(|left| left.remaining = left.remaining.saturating_add(of_lease));
            }
            Ok(engine.status(&its, request, sent_at, &reply))
        };
        self.decide_by_task(asked, request, work).await
    }

    /// Counts a request that was not decided, and the permits that it would have leased.
    fn not_taken(&self, taking: &Taking, request: Request, error: StoreError) -> StoreError {
        if matches!(&error, StoreError::Unavailable(error) if error.is_perhaps_charged()) {
            self.counters.perhaps_leased.add_many(taking.more * request.cost);
        }
        self.undecided(request, 1, error)
    }

    /// If the store does not answer, they count until their window is over.
    async fn give_back(&self, unspent: Option<Unspent>) -> Result<u32, StoreError> {
        let Some(Unspent { key, ends, permits }) = unspent else { return Ok(0) };
        let receipt = Receipt { limiter: self.id, cost: permits, charges: Charges::One((0, key, ends)) };
        let given_back = permits - self.settle_here(receipt, 0).await?;
        self.counters.given_back.add_many(given_back);
        Ok(given_back)
    }

    /// Gives back what all leases have left, until the store does not answer.
    pub(crate) async fn give_back_all(self: &Arc<Self>) -> Result<u32, StoreError> {
        let engine = Arc::clone(self);
        in_task(async move {
            let mut given_back = 0;
            for unspent in engine.leases.end_all() {
                given_back += engine.give_back(Some(unspent)).await?;
            }
            Ok(given_back)
        })
        .await
    }
}

fn taken(reply: &Reply, cost: u32) -> Option<Taken> {
    let (&[ends], &[left]) = (&*reply.at, &*reply.left) else { return None };
    let more = reply.granted.checked_sub(1).map(u32::try_from).transpose().ok()?;
    Some(Taken { permits: more.map(|more| more * cost), ends, left })
}
