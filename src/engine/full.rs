//! Requests of one key, or of one key of each dimension, of a limiter that has more than quotas:
//! modes, counts and observers.

use super::Engine;
use crate::caps::AtKeyCap;
use crate::clock::Clock;
use crate::decision::{Decision, Denial, Shadowed, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::lists::{List, ListError, Lists};
use crate::modes::Asked;
use crate::observer::{Feed, ObservedRequest, overrules};
use crate::state::joint::KeyedRequest;
use crate::state::request::Request;
use crate::state::table::{Charges, Refundable};

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request, and tells the observers. Charges that can be refunded are added to
    /// `charges`. `shown` are the keys as observers see them, if there are any.
    #[inline(never)]
    pub(crate) fn decide_observed(
        &self,
        keys: &[Option<Fingerprint>],
        request: Request,
        charges: Option<&mut Charges>,
        shown: Option<&dyn Feed>,
    ) -> Status {
        let status = match keys {
            [Some(key)] if charges.is_none() => self.decide_status(*key, request.cost),
            _ => self.decide_fully(keys, request, charges),
        };
        if self.is_observed() && request.cost > 0 {
            // The observers see what the caller makes of a denial.
            let overruled = (status.is_denied() && overrules()).then(|| {
                let mut overruled = status.clone();
                overruled.decision = status.decision.overrule();
                overruled
            });
            let shown_status = overruled.as_ref().unwrap_or(&status);
            let result = self.fits(keys, request.cost, shown_status.decision).map(|()| shown_status);
            let quota = |denial: Denial| {
                let key = (*keys.get(denial.dimension())?)?;
                self.table.version_for(key, |version| version.quotas.get(denial.quota()).copied())
            };
            self.observers.tell(
                &ObservedRequest { shown, keys, names: &self.names, cost: request.cost },
                result,
                quota,
            );
        }
        status
    }

    /// Whether the cost is within all limits.
    ///
    /// # Errors
    /// If that is why the quotas deny the request, and neither a list nor shadow mode answers it.
    #[inline]
    pub(crate) fn fits(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        decision: Decision,
    ) -> Result<(), CostExceedsLimit> {
        match decision {
            Decision::Denied(denial) if denial.never_fits() => self.limit_below(keys, cost, denial),
            _ => Ok(()),
        }
    }

    #[cold]
    fn limit_below(&self, keys: &[Option<Fingerprint>], cost: u32, denial: Denial) -> Result<(), CostExceedsLimit> {
        let limit = keys[denial.dimension()].map(|key| self.table.version_for(key, |version| version.most));
        match limit {
            Some(limit) if limit < cost => Err(CostExceedsLimit::new(cost, limit)),
            // It has been raised meanwhile.
            _ => Ok(()),
        }
    }

    /// Decides a request, with the permits left.
    pub(super) fn decide_fully(
        &self,
        keys: &[Option<Fingerprint>],
        request: Request,
        charges: Option<&mut Charges>,
    ) -> Status {
        // It charges nothing, so it goes past counts and penalties.
        if request.cost == 0 {
            return self.peek(keys, request);
        }
        let keyed = self.keyed(keys, request);
        // Without lists, penalties and shadow mode the quotas alone decide.
        let Some(modes) = self.modes.get() else {
            let status = self.table.acquire_status(keyed, &self.clock, charges);
            self.count(status.decision);
            return status;
        };
        let asked = Asked { table: &self.table, tiers: &self.tiers, clock: &self.clock };
        let (status, shown) = (modes.decide)(modes, asked, keyed, charges);
        if !request.peeks {
            self.count(status.decision);
        }
        Status { decision: shown, ..status }
    }

    /// The answer that such a request would get.
    pub(crate) fn peek(&self, keys: &[Option<Fingerprint>], request: Request) -> Status {
        // A request of cost zero is always admitted.
        match self.modes.get().filter(|_| request.cost > 0) {
            Some(_) => self.decide_fully(keys, request.peek(), None),
            None => self.table.preview(self.keyed(keys, request), &self.clock),
        }
    }

    /// Counts a decision. A cost above a limit is none.
    #[inline]
    pub(super) fn count(&self, decision: Decision) {
        if let Some(tally) = &self.tally {
            if !matches!(decision, Decision::Denied(denial) if denial.never_fits()) {
                tally.count(decision.is_admitted());
            }
        }
    }

    pub(super) fn keyed<'a>(&self, keys: &'a [Option<Fingerprint>], request: Request) -> KeyedRequest<'a> {
        let admits_without_place = self.at_key_cap() == AtKeyCap::Admit;
        KeyedRequest { keys, request, admits_without_place, shadowed: Shadowed::default() }
    }

    /// The charges of a request of no permits, which can be settled. Keys on the allow list have
    /// none.
    pub(crate) fn charges_of_none(&self, keys: &[Option<Fingerprint>]) -> impl Iterator<Item = Refundable> {
        let is_allowed = |key: Fingerprint| self.lists().is_some_and(|lists| lists.of(key) == Some(List::Allow));
        keys.iter().flatten().filter(move |&&key| !is_allowed(key)).map(|&key| Refundable::of_none(key))
    }

    fn lists(&self) -> Option<&Lists> {
        self.modes.get()?.lists.as_ref()
    }

    pub(crate) fn put_on(&self, list: List, key: Fingerprint) -> Result<bool, ListError> {
        self.lists().ok_or(ListError::NoLists)?.put(list, key)
    }

    pub(crate) fn take_off_lists(&self, key: Fingerprint) -> bool {
        self.lists().is_some_and(|lists| lists.take_off(key))
    }
}
