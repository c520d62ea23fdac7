//! A keyed limiter as middleware asks it.

use core::hash::Hash;
use core::time::Duration;
use std::sync::Arc;

use tollgate::{
    Algorithm, Clock, CostExceedsLimit, Decision, Fingerprinter, Limiter, Quota, Receipt, ReserveError, Status, Unasked,
};

use super::single::{self, Single};
use super::{Items, Request, Tell, Verdict, sealed};

impl<K: Hash, C: Clock, F: Fingerprinter> sealed::Ask<K> for Limiter<K, C, F> {
    fn decide(&self, key: &K, request: Request) -> Verdict {
        single::decide(&OfKey { limiter: self, key }, request)
    }

    fn left(&self, key: &K, tell: Tell) -> Option<Items> {
        single::left(&OfKey { limiter: self, key }, tell)
    }

    fn each_quotas<'a>(&'a self, key: &K, mut each: impl FnMut(Option<&'a str>, Arc<[Quota]>)) {
        each(None, if self.keys_may_have_quotas() { self.quotas_of(key) } else { self.quotas() });
    }

    fn look(&self, key: &K, cost: u32) -> Option<Decision> {
        self.peek_n(key, cost).ok().map(|status| status.decision())
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

struct OfKey<'a, K, C, F> {
    limiter: &'a Limiter<K, C, F>,
    key: &'a K,
}

impl<K: Hash, C: Clock, F: Fingerprinter> Single for OfKey<'_, K, C, F> {
    fn acquire(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.limiter.try_acquire_n_status(self.key, cost)
    }

    fn acquire_only(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.limiter.try_acquire_n(self.key, cost)
    }

    fn reserve(&self, cost: u32) -> Result<(Status, Receipt), ReserveError> {
        let reservation = self.limiter.reserve(self.key, cost, Duration::ZERO)?;
        Ok((reservation.status().clone(), reservation.commit()))
    }

    fn peek(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.limiter.peek_reserve(self.key, cost, Duration::ZERO)
    }

    fn limit(&self) -> Option<u32> {
        let limiter = self.limiter;
        let quotas = if limiter.keys_may_have_quotas() { limiter.quotas_of(self.key) } else { limiter.quotas() };
        if let [quota] = *quotas { Some(quota.limit()) } else { None }
    }

    fn has_queue(&self) -> bool {
        self.limiter.quotas()[0].algorithm() == Algorithm::LeakyQueue
    }
}
