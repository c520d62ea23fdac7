//! The charge of an admitted request, until its response is there.

use core::fmt;
use std::sync::Arc;

use tollgate::Receipt;

use super::gate::{Gate, Items};
use super::limits::Inner;
use super::values::FieldValue;

/// The charge of an admitted request. If it is dropped before the response, it refunds the permits
/// if the options say so.
pub struct Charge<L: Gate<K>, K, V> {
    pub(crate) state: State<L, K, V>,
}

/// An enum, to keep it small: it moves with the request.
pub(crate) enum State<L: Gate<K>, K, V> {
    /// The values of header fields. The permits stay charged.
    Told(Told<V>),
    Loan(Loan<L, K, V>),
}

/// Permits that may be refunded, and their keys.
pub(crate) struct Loan<L: Gate<K>, K, V> {
    limits: Arc<Inner<L, V>>,
    receipt: Option<Receipt>,
    keys: K,
    /// The permits left when these were granted, if header fields show them.
    left: Option<Items>,
    /// Whether they are refunded when this is dropped.
    refund: bool,
}

/// The values of header fields in the response to an admitted request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told<V> {
    /// Values to append to the fields that inner services have set.
    Draft11 {
        /// The value of `RateLimit-Policy`.
        policies: Option<V>,
        /// The value of `RateLimit`, if permits left are shown.
        limit: Option<V>,
    },
    /// Numbers that replace the fields that inner services have set, unless those have as few
    /// permits left.
    XRateLimit {
        /// The value of `X-RateLimit-Limit`.
        limit: u32,
        /// The value of `X-RateLimit-Remaining`.
        remaining: u32,
        /// The value of `X-RateLimit-Reset`.
        reset: u64,
    },
}

impl<L: Gate<K>, K, V: FieldValue> Charge<L, K, V> {
    /// Settles the charge when the inner service has answered. Refunds the permits if `refund`
    /// returns `true` or panics, and keeps them charged otherwise.
    pub fn settle(&mut self, refund: impl FnOnce() -> bool) {
        if let State::Loan(loan) = &mut self.state {
            loan.refund = true;
            loan.refund = refund();
            if loan.refund {
                loan.give_back();
            } else {
                loan.receipt = None;
            }
        }
    }

    /// The values of header fields; `None` if there are none. After a refund, the permits left are
    /// read again.
    #[must_use]
    pub fn told(self) -> Option<Told<V>> {
        match self.state {
            State::Told(told) => Some(told),
            State::Loan(loan) => loan.told(),
        }
    }
}

impl<L: Gate<K>, K, V: FieldValue> Loan<L, K, V> {
    pub(crate) const fn new(
        limits: Arc<Inner<L, V>>,
        receipt: Receipt,
        left: Option<Items>,
        keys: K,
        refund: bool,
    ) -> Self {
        Self { limits, receipt: Some(receipt), keys, left, refund }
    }

    fn told(&self) -> Option<Told<V>> {
        let is_given_back = self.refund && self.receipt.is_none();
        if is_given_back {
            let left = self.limits.limiter.left(&self.keys, self.limits.tell());
            self.limits.told(&self.keys, &left?)
        } else {
            self.limits.told(&self.keys, self.left.as_ref()?)
        }
    }
}

impl<L: Gate<K>, K, V> Loan<L, K, V> {
    fn give_back(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            self.limits.limiter.give_back(receipt);
        }
    }
}

impl<L: Gate<K>, K, V> Drop for Loan<L, K, V> {
    fn drop(&mut self) {
        if self.refund {
            self.give_back();
        }
    }
}

impl<L: Gate<K>, K, V> fmt::Debug for Charge<L, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge")
            .field("may_be_given_back", &matches!(self.state, State::Loan(_)))
            .finish_non_exhaustive()
    }
}
