//! What the observers of a limiter for many keys see.

use core::hash::Hash;

use super::keyed::Limiter;
use crate::clock::Clock;
use crate::decision::Status;
use crate::error::CostExceedsLimit;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::keys::{AsKey, ByRef};
use crate::observer::{OneKey, Request, Told};

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Decides a request, and tells the observers. The cost is one, or checked.
    #[cold]
    #[inline(never)]
    pub(super) fn observed(&self, key: impl AsKey<K>, fingerprint: Fingerprint, cost: u32) -> Status {
        let status = self.engine.decide_in_full(fingerprint, cost);
        self.tell(key, fingerprint, cost, &status);
        status
    }

    /// Checks the cost of a request, decides the request, and tells the observers.
    #[cold]
    pub(super) fn observed_n(
        &self,
        key: impl AsKey<K>,
        fingerprint: Fingerprint,
        cost: u32,
    ) -> Result<Status, CostExceedsLimit> {
        if let Err(error) = self.engine.checked(fingerprint, cost) {
            let answer = Err(error);
            self.tell(key, fingerprint, cost, &answer);
            return answer;
        }
        Ok(self.observed(key, fingerprint, cost))
    }

    /// Charges permits, and tells the observers.
    pub(crate) fn charged<T: Told>(&self, key: impl AsKey<K>, cost: u32, charge: impl FnOnce(Fingerprint) -> T) -> T {
        let fingerprint = self.fingerprint(ByRef(&key));
        let answer = charge(fingerprint);
        if !self.observers.is_empty() {
            self.tell(key, fingerprint, cost, &answer);
        }
        answer
    }

    #[cold]
    #[inline(never)]
    fn tell<A: AsKey<K>>(&self, key: A, fingerprint: Fingerprint, cost: u32, answer: &impl Told) {
        let (key, fingerprints) = (OneKey::<K, A>::new(&key), [Some(fingerprint)]);
        let request = Request::new(&key, &fingerprints, &[], cost);
        self.observers.tell(&request, answer, |_| self.engine.table.quotas_for(fingerprint));
    }
}
