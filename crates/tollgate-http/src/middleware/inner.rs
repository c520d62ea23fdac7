//! The common part of [`Limits`](super::Limits) and the charges by it: the limiter, the options, and
//! the texts about the quotas.

use core::sync::atomic::AtomicBool;
use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::around::Outer;
use super::cache::Cache;
use super::gate::{AskedWith, Item, Tell};
use super::prepared::{Current, Prepared, check_name};
use super::shadow::ShadowSwitch;
use super::told::Told;
use super::values::{FieldValue, written};
use crate::headers::{Headers, SEPARATOR};
use crate::limit::ServiceLimit;
use crate::policy::{PolicyError, QuotaUnit};

/// The options of middleware.
#[derive(Debug, Clone)]
pub struct Options {
    /// `default`, if there is none.
    pub(super) name: Option<Box<str>>,
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
    /// Lets denied requests pass while it is on.
    pub shadow: Option<ShadowSwitch>,
}

impl Default for Options {
    /// Counts requests under the name `default`, and shows the tightest limit in the format of
    /// draft 11. Refunds nothing.
    fn default() -> Self {
        Self {
            name: None,
            unit: QuotaUnit::default(),
            headers: Headers::default(),
            all_limits: false,
            policy_on_denial: false,
            left: false,
            refunds: false,
            refund_unanswered: false,
            shadow: None,
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
        self.name = Some(name.into());
        Ok(())
    }

    /// The name inside of so many limits without a name.
    fn name_inside(&self, unnamed: usize) -> Cow<'_, str> {
        match (&self.name, unnamed) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, 0) => Cow::Borrowed("default"),
            (None, unnamed) => Cow::Owned(format!("default-{}", unnamed + 1)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Inner<L, V> {
    pub(crate) limiter: Arc<L>,
    pub(super) options: Options,
    /// By the number of limits without a name around this one, if that is without a name.
    pub(super) prepared: [Cache<V>; MOST_UNNAMED + 1],
    /// Whether it has been told that the limiter is asked twice.
    pub(super) is_noticed: AtomicBool,
}

/// The most limits without a name around a limit that are told apart.
const MOST_UNNAMED: usize = 3;

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
        L: AskedWith<K>,
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
        L: AskedWith<K>,
    {
        let unnamed = if self.options.name.is_some() { 0 } else { Outer::here().unnamed().min(MOST_UNNAMED) };
        match self.prepared[unnamed].first().filter(|first| first.is_of(&*self.limiter, keys)) {
            Some(first) => look(first),
            None => self.prepared_later(keys, unnamed, look),
        }
    }

    fn prepared_later<K, R>(&self, keys: &K, unnamed: usize, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: AskedWith<K>,
    {
        let current = Current::of(&*self.limiter, keys);
        let make = || current.prepare(&self.options.name_inside(unnamed), self.options.unit);
        self.prepared[unnamed].find_or_make(&current, make, look)
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
