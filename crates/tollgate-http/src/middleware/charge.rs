//! What an admitted request was charged, until its response has come.

use core::fmt;
use std::sync::Arc;

use tollgate::Receipt;

use super::gate::{Gate, Items};
use super::limits::Inner;
use super::values::FieldValue;

/// What an admitted request was charged. Dropped without an answer, it gives the permits back if
/// the middleware was told so.
pub struct Charge<L: Gate<K>, K, V> {
    pub(crate) state: State<L, K, V>,
}

/// One or the other, because it is moved about with the request.
pub(crate) enum State<L: Gate<K>, K, V> {
    /// What header fields tell. The permits are kept.
    Told(Told<V>),
    Loan(Loan<L, K, V>),
}

/// Permits that may be given back, and their keys.
pub(crate) struct Loan<L: Gate<K>, K, V> {
    limits: Arc<Inner<L, V>>,
    receipt: Option<Receipt>,
    keys: K,
    /// What was left when they were granted, where that is told.
    left: Option<Items>,
    /// Whether they are given back when this is dropped.
    refund: bool,
}

/// What the header fields of the response to an admitted request tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told<V> {
    /// The values of fields that are appended to what inner services have set.
    Draft11 {
        /// The value of `RateLimit-Policy`.
        policies: Option<V>,
        /// The value of `RateLimit`, if the limiter tells what is left.
        limit: Option<V>,
    },
    /// The numbers of fields that take the place of what inner services have set, unless those have
    /// as few permits left.
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
    /// The inner service has answered: gives the permits back if `refund` says so, and keeps them
    /// else. If `refund` panics, they are given back.
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

    /// What the response tells; `None` if it tells nothing. After permits were given back, what is
    /// left is asked again.
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
