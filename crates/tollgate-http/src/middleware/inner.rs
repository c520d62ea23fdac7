//! The common part of [`Limits`](super::Limits) and the charges by it: the limiter, the options, and
//! the texts about the quotas.

use std::sync::Arc;

use bytes::Bytes;

use super::cache::Cache;
use super::gate::{Gate, Item, Tell};
use super::prepared::{Current, Prepared, check_name};
use super::told::Told;
use super::values::{FieldValue, written};
use crate::headers::{Headers, SEPARATOR};
use crate::limit::ServiceLimit;
use crate::policy::{PolicyError, QuotaUnit};

/// The options of middleware.
#[derive(Debug, Clone)]
pub struct Options {
    name: Box<str>,
    /// The unit of permits.
    pub unit: QuotaUnit,
    /// The header fields that tell clients their limits.
    pub headers: Headers,
    /// Whether `RateLimit` shows all quotas, and not the tightest alone.
    pub all_limits: bool,
    /// Whether `RateLimit-Policy` is only in answers to denied requests.
    pub policy_on_denial: bool,
    /// Whether [`Charge::admitted`](super::Charge::admitted) tells the permits left, also without header fields.
    pub left: bool,
    /// Whether permits may be refunded, or more charged.
    pub refunds: bool,
    /// Whether the permits of a request without an answer are refunded.
    pub refund_unanswered: bool,
}

impl Default for Options {
    /// Counts requests under the name `default`, and shows the tightest limit in the format of
    /// draft 11. Refunds nothing.
    fn default() -> Self {
        Self {
            name: "default".into(),
            unit: QuotaUnit::default(),
            headers: Headers::default(),
            all_limits: false,
            policy_on_denial: false,
            left: false,
            refunds: false,
            refund_unanswered: false,
        }
    }
}

impl Options {
    /// Sets the name of a limiter that has no name itself.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the name is empty, longer than 32 bytes or not printable ASCII.
    pub fn set_name(&mut self, name: &str) -> Result<(), PolicyError> {
        check_name(name)?;
        self.name = name.into();
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Inner<L, V> {
    pub(crate) limiter: Arc<L>,
    pub(super) options: Options,
    pub(super) prepared: Cache<V>,
}

impl<L, V> Inner<L, V> {
    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }
}

impl<L, V: FieldValue> Inner<L, V> {
    /// The quotas whose permits left are shown in responses to admitted requests.
    pub(crate) const fn tell(&self) -> Tell {
        match self.options.headers {
            Headers::Off if !self.options.left => Tell::Nothing,
            Headers::Off => Tell::Tightest,
            Headers::Draft11 if self.options.all_limits => Tell::All,
            Headers::Draft11 | Headers::XRateLimit => Tell::Tightest,
        }
    }

    /// The values of header fields in the response to an admitted request.
    pub(crate) fn told<K>(&self, keys: &K, items: &[Item]) -> Option<Told<V>>
    where
        L: Gate<K>,
    {
        self.prepared(keys, |prepared| match self.options.headers {
            Headers::Draft11 => {
                let limit = listed(prepared, items);
                let limit = if limit.is_empty() { None } else { V::of(limit) };
                let policies = if self.options.policy_on_denial { None } else { prepared.field().cloned() };
                Some(Told::Draft11 { policies, limit })
            }
            Headers::XRateLimit => {
                let limit = ServiceLimit::tightest(prepared.admitted(items))?;
                Some(Told::XRateLimit { limit: limit.limit(), remaining: limit.remaining(), reset: limit.reset() })
            }
            Headers::Off => None,
        })
    }

    /// The texts about the quotas of these keys. They are made anew after a change.
    pub(super) fn prepared<K, R>(&self, keys: &K, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: Gate<K>,
    {
        match self.prepared.first().filter(|first| first.is_of(&*self.limiter, keys)) {
            Some(first) => look(first),
            None => self.prepared_later(keys, look),
        }
    }

    fn prepared_later<K, R>(&self, keys: &K, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: Gate<K>,
    {
        let current = Current::of(&*self.limiter, keys);
        self.prepared.find_or_make(&current, || current.prepare(&self.options.name, self.options.unit), look)
    }
}

/// The value of `RateLimit` that lists these items.
fn listed<V>(prepared: &Prepared<V>, items: &[Item]) -> Bytes {
    written(items.len() * (ServiceLimit::MOST_BYTES + SEPARATOR.len()), |out| {
        for (place, limit) in prepared.admitted(items).enumerate() {
            if place > 0 {
                out.extend_from_slice(SEPARATOR.as_bytes());
            }
            limit.put(out);
        }
    })
}
