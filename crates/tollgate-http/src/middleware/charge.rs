//! The charge of an admitted request, until its response is there.

use core::cmp::Reverse;
use core::fmt;
use std::sync::Arc;

use super::admitted::Admitted;
use super::gate::{AnyReceipt, AskedWith, Item, Items, Kind, Request, Tell, Verdict};
use super::in_flight::RequestInFlight;
use super::inner::Inner;
use super::told::Told;
use super::values::FieldValue;

/// The charge of an admitted request. If it is dropped before the response, it refunds the permits
/// if the options say so.
pub struct Charge<L: AskedWith<K>, K, V> {
    pub(crate) state: State<L, K, V>,
}

/// An enum, to keep it small: it moves with the request.
pub(crate) enum State<L: AskedWith<K>, K, V> {
    /// The values of header fields. The permits stay charged.
    Told(Told<V>),
    /// Permits that may be refunded, or of which more may be charged.
    Loan(Box<Loan<L, K, V>>),
}

/// Permits that may be refunded, and their keys.
pub(crate) struct Loan<L: AskedWith<K>, K, V> {
    limits: Arc<Inner<L, V>>,
    receipt: Option<AnyReceipt>,
    /// The place of the request, if a concurrency limit counts it.
    in_flight: Option<RequestInFlight>,
    keys: K,
    /// The permits left when these were granted, if they are shown.
    left: Option<Items>,
    /// Whether permits were refunded or charged since.
    is_stale: bool,
    /// Whether they are refunded when this is dropped.
    refund: bool,
}

impl<L: AskedWith<K>, K, V: FieldValue> Charge<L, K, V> {
    /// Settles the charge when the inner service has answered. Refunds the permits if `refund`
    /// returns `true` or panics, and keeps them charged otherwise.
    pub fn settle(&mut self, refund: impl FnOnce() -> bool) {
        if let State::Loan(loan) = &mut self.state {
            loan.refund = true;
            loan.refund = refund();
            if loan.refund {
                loan.settle(0);
            } else {
                loan.receipt = None;
            }
        }
    }

    /// Charges the actual cost in place of what the request was charged. Less is refunded, and more
    /// is debt, also if fewer permits are left. On a store a task does it, and header fields tell
    /// what was left before, or nothing if more is charged.
    ///
    /// Does nothing for a charge that cannot be refunded.
    pub fn costs(&mut self, actual: u32) {
        if let State::Loan(loan) = &mut self.state {
            loan.settle(actual);
        }
    }

    /// Charges more permits to the same keys: a cost that is known only now. If fewer are left,
    /// takes those.
    ///
    /// Does nothing for a charge that cannot be refunded, or by a store.
    pub fn more(&mut self, cost: u32) {
        if let State::Loan(loan) = &mut self.state {
            loan.more(cost);
        }
    }

    /// The decision, for handlers; `None` if [`Options::left`](super::Options::left) is `false`.
    #[must_use]
    pub fn admitted(&self) -> Option<Admitted> {
        let State::Loan(loan) = &self.state else { return None };
        if !loan.limits.options().left {
            return None;
        }
        let tightest = |item: &&Item| (item.usage.remaining, Reverse(item.usage.next_after));
        loan.left.as_ref()?.iter().min_by_key(tightest).map(|item| Admitted::new(item.limit, item.usage))
    }

    /// The place of the request, if a concurrency limit counts it: it is in flight until this and its
    /// clones are dropped.
    #[must_use]
    pub fn in_flight(&self) -> Option<RequestInFlight> {
        let State::Loan(loan) = &self.state else { return None };
        loan.in_flight.clone()
    }

    /// The values of header fields; `None` if there are none. After a refund or another charge in
    /// process, the permits left are read again.
    #[must_use]
    pub fn told(self) -> Option<Told<V>> {
        match self.state {
            State::Told(told) => Some(told),
            State::Loan(loan) => loan.told(),
        }
    }

    /// The same, for a charge that is settled later.
    #[must_use]
    pub fn told_now(&self) -> Option<Told<V>> {
        match &self.state {
            State::Told(told) => Some(told.clone()),
            State::Loan(loan) => loan.told(),
        }
    }
}

impl<L: AskedWith<K>, K, V: FieldValue> Loan<L, K, V> {
    pub(crate) fn new(
        limits: Arc<Inner<L, V>>,
        (receipt, in_flight): (AnyReceipt, Option<RequestInFlight>),
        left: Option<Items>,
        keys: K,
        refund: bool,
    ) -> Self {
        Self { limits, receipt: Some(receipt), in_flight, keys, left, is_stale: false, refund }
    }

    fn more(&mut self, cost: u32) {
        if self.receipt.as_ref().is_some_and(AnyReceipt::is_on_store) {
            return;
        }
        let limiter = &self.limits.limiter;
        let mut most = cost;
        // Each round asks for less, so it ends.
        while most > 0 {
            let left = limiter.left(&self.keys, Tell::Tightest);
            // The request is in flight already. So the places left are no bound.
            let left = left.as_deref().unwrap_or_default().iter().filter(|item| !item.counts_requests);
            let cost = left.map(|item| item.usage.remaining).fold(most, u32::min);
            let request = Request { cost, refundable: false, kind: Kind::More, tell: Tell::Nothing };
            if cost == 0 || !matches!(limiter.decide(&self.keys, request), Verdict::Refused(_)) {
                break;
            }
            // Another request was faster.
            most = cost - 1;
        }
        self.is_stale = true;
    }

    fn told(&self) -> Option<Told<V>> {
        if self.is_stale {
            let left = self.limits.limiter.left(&self.keys, self.limits.tell());
            self.limits.told(&self.keys, &left?)
        } else {
            self.limits.told(&self.keys, self.left.as_ref()?)
        }
    }
}

impl<L: AskedWith<K>, K, V> Loan<L, K, V> {
    fn settle(&mut self, actual: u32) {
        let Some(receipt) = self.receipt.take() else { return };
        if !receipt.is_on_store() {
            self.is_stale = true;
        } else if actual > receipt.cost() {
            // What a store has left is not known before the next call. After a refund it is no less
            // than it was.
            self.left = None;
        }
        self.limits.limiter.settle(receipt, actual);
    }
}

impl<L: AskedWith<K>, K, V> Drop for Loan<L, K, V> {
    fn drop(&mut self) {
        if self.refund {
            self.settle(0);
        }
    }
}

impl<L: AskedWith<K>, K, V> fmt::Debug for Charge<L, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge")
            .field("may_be_given_back", &matches!(self.state, State::Loan(_)))
            .finish_non_exhaustive()
    }
}
