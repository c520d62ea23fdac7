//! [`Guard`]: the limiter of a policy, and what it decides on the values of a request.

use std::sync::Arc;

use bytes::Bytes;
use tollgate_http::middleware::{Limits, Options};

use crate::ask::{Ask, Decided};
use crate::counts::Counts;
use crate::fields::{Fields, Key, Values};
use crate::limiter::{Limiter, in_process};

/// Decides requests by a policy.
#[derive(Debug)]
pub(crate) struct Guard {
    limits: Limits<Limiter, Bytes>,
    pub(crate) fields: Fields,
    pub(crate) counts: Counts,
}

impl Guard {
    pub(crate) fn new(limiter: Limiter, fields: Fields, counts: Counts) -> Self {
        Self { limits: Limits::new(Arc::new(limiter), Options::default()), fields, counts }
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        self.limits.limiter()
    }

    /// Decides a request with these values: charges all dimensions that have a key, or none.
    pub(crate) async fn decide(&self, values: Values<'static>, ask: Ask) -> Decided {
        let keys = self.fields.keys(values).zip(ask.asks).map(|(key, asks)| key.filter(|_| asks));
        let keys: Vec<Option<Key>> = keys.collect();
        let decided = self.limits.by_dimension(&keys, ask.cost, ask.is_peek).await;
        if !ask.is_peek {
            self.counts.decided(&decided, keys.iter().map(Option::is_some));
        }
        decided
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        #[cfg(feature = "redis")]
        if let Some(limiter) = self.limiter().on_store() {
            return self.counts.text_on_store(&limiter.counts());
        }
        in_process(self.limiter()).map_or_else(String::new, |limiter| self.counts.text_in_process(&limiter.counts()))
    }
}
