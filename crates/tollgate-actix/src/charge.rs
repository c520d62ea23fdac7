//! What an admitted request was charged, until its response has come.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use tollgate::{Receipt, Status};
use tollgate_http::Headers;

use crate::answer;
use crate::gate::Gate;
use crate::key::KeyExtractor;
use crate::prepared::Prepared;
use crate::shared::Shared;

/// What an admitted request was charged. Dropped without an answer, it gives the permits back if
/// the limit was told so.
pub(crate) struct Charge<L: Gate<X>, X: KeyExtractor> {
    shared: Arc<Shared<L, X>>,
    fields: Option<Fields>,
    /// Permits that may be given back, and their keys.
    lent: Option<Lent<L::Keys>>,
}

/// What header fields tell.
pub(crate) struct Fields {
    pub(crate) prepared: Arc<Prepared>,
    /// What is left, if it was told with the decision.
    pub(crate) status: Option<Status>,
}

pub(crate) struct Lent<K> {
    pub(crate) receipt: Option<Receipt>,
    pub(crate) keys: K,
    /// Whether they are given back when this is dropped.
    pub(crate) refund: bool,
}

impl<L: Gate<X>, X: KeyExtractor> Charge<L, X> {
    pub(crate) const fn new(shared: Arc<Shared<L, X>>, fields: Option<Fields>, lent: Option<Lent<L::Keys>>) -> Self {
        Self { shared, fields, lent }
    }

    /// The inner service has answered.
    pub(crate) fn answered(mut self, status: StatusCode, fields: &mut HeaderMap) {
        self.settle(status);
        let headers = self.shared.settings.headers;
        if let Some(Fields { prepared, status }) = &self.fields
            && headers != Headers::Off
        {
            // Of permits that may be given back, what is left is known only now.
            let now = || self.shared.limiter.status(&self.lent.as_ref()?.keys);
            let limit = status.or_else(now).and_then(|status| prepared.tightest(&status));
            answer::write_limit(fields, prepared, limit, headers);
        }
    }

    /// The inner service has failed with an error that becomes an answer of this status.
    pub(crate) fn failed(mut self, status: StatusCode) {
        self.settle(status);
    }

    /// Keeps the permits, or gives them back.
    fn settle(&mut self, status: StatusCode) {
        let (Some(refund_when), Some(lent)) = (&self.shared.settings.refund_when, &mut self.lent) else {
            self.keep();
            return;
        };
        // If the callback panics, they are given back.
        lent.refund = true;
        if refund_when(status) {
            self.give_back();
        } else {
            self.keep();
        }
    }

    fn keep(&mut self) {
        if let Some(lent) = &mut self.lent {
            lent.receipt = None;
        }
    }

    fn give_back(&mut self) {
        if let Some(receipt) = self.lent.as_mut().and_then(|lent| lent.receipt.take()) {
            self.shared.limiter.give_back(receipt);
        }
    }
}

impl<L: Gate<X>, X: KeyExtractor> Drop for Charge<L, X> {
    fn drop(&mut self) {
        if self.lent.as_ref().is_some_and(|lent| lent.refund) {
            self.give_back();
        }
    }
}
