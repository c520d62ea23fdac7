//! A limiter, and what clients are told about it.

use std::sync::Arc;

use tollgate::Status;

use super::cache::Cache;
use super::charge::{Charge, Loan, Told};
use super::gate::{Gate, Granted, Refusal, Request, Verdict};
use super::prepared::{Collect, Prepared, check_name};
use super::values::{FieldValue, digits, written};
use crate::headers::Headers;
use crate::limit::ServiceLimit;
use crate::policy::{PolicyError, QuotaUnit};
use crate::problem::{DenialKind, Problem};

/// How middleware goes by its limiter.
#[derive(Debug, Clone)]
pub struct Options {
    name: Box<str>,
    /// What permits count.
    pub unit: QuotaUnit,
    /// Which header fields tell clients about their limits.
    pub headers: Headers,
    /// Whether permits may be given back.
    pub refunds: bool,
    /// Whether they are given back of a request that gets no answer.
    pub refund_unanswered: bool,
}

impl Default for Options {
    /// Requests under the name `default`, told in the format of draft 11, without refunds.
    fn default() -> Self {
        Self {
            name: "default".into(),
            unit: QuotaUnit::default(),
            headers: Headers::default(),
            refunds: false,
            refund_unanswered: false,
        }
    }
}

impl Options {
    /// Sets the name of a limiter that has none itself.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when it is empty, longer than 32 bytes or not printable ASCII.
    pub fn set_name(&mut self, name: &str) -> Result<(), PolicyError> {
        check_name(name)?;
        self.name = name.into();
        Ok(())
    }
}

/// A limiter, and what clients are told about it. `V` is the value of a header field.
#[derive(Debug)]
pub struct Limits<L, V> {
    inner: Arc<Inner<L, V>>,
}

#[derive(Debug)]
pub(crate) struct Inner<L, V> {
    pub(crate) limiter: Arc<L>,
    options: Options,
    prepared: Cache<V>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome<'a, L: Gate<K>, K, V> {
    /// It goes on. What it was charged is to be settled, if there is anything to settle or to tell.
    Admitted(Option<Charge<L, K, V>>),
    /// It is denied.
    Denied(Denied<'a, V>),
}

/// Why a request is denied.
#[derive(Debug)]
pub struct Denied<'a, V> {
    refusal: Refusal,
    prepared: Arc<Prepared<V>>,
    options: &'a Options,
}

impl<L, V> Limits<L, V> {
    /// The limits of this limiter.
    #[must_use]
    pub fn new(limiter: Arc<L>, options: Options) -> Self {
        Self { inner: Arc::new(Inner { limiter, options, prepared: Cache::default() }) }
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Arc<L> {
        &self.inner.limiter
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The same limiter by other options.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.inner.options.clone();
        change(&mut options);
        Self::new(Arc::clone(&self.inner.limiter), options)
    }
}

impl<L, V: FieldValue> Limits<L, V> {
    /// Decides a request of these keys, of cost 1 at least.
    pub fn decide<K>(&self, keys: K, cost: u32) -> Outcome<'_, L, K, V>
    where
        L: Gate<K>,
    {
        let inner = &self.inner;
        let request = Request { cost, refundable: inner.options.refunds, with_status: inner.tells() };
        match inner.limiter.decide(&keys, request) {
            Verdict::Uncounted => Outcome::Admitted(None),
            Verdict::Admitted(Granted { receipt: Some(receipt), .. }) => {
                let loan = Loan::new(Arc::clone(inner), receipt, keys, inner.options.refund_unanswered);
                Outcome::Admitted(Some(Charge { told: None, loan: Some(loan) }))
            }
            Verdict::Admitted(Granted { status, receipt: None }) => {
                let told = if inner.tells() { inner.told(&keys, status.as_ref()) } else { None };
                Outcome::Admitted(told.map(|told| Charge { told: Some(told), loan: None }))
            }
            Verdict::Refused(refusal) => {
                let prepared = inner.prepared(&keys, Arc::clone);
                Outcome::Denied(Denied { refusal, prepared, options: &inner.options })
            }
        }
    }
}

impl<L, V> Clone for Limits<L, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<L, V: FieldValue> Inner<L, V> {
    /// Whether responses tell clients about their limits.
    pub(crate) fn tells(&self) -> bool {
        self.options.headers != Headers::Off
    }

    /// What the response to an admitted request tells.
    pub(crate) fn told<K>(&self, keys: &K, status: Option<&Status>) -> Option<Told<V>>
    where
        L: Gate<K>,
    {
        self.prepared(keys, |prepared| {
            let limit = status.and_then(|status| prepared.tightest(status));
            match self.options.headers {
                Headers::Draft11 => {
                    let text = |limit: ServiceLimit<'_>| written(ServiceLimit::MOST_BYTES, |out| limit.put(out));
                    let policies = prepared.field().cloned();
                    Some(Told::Draft11 { policies, limit: limit.and_then(|limit| V::of(text(limit))) })
                }
                Headers::XRateLimit => {
                    let limit = limit?;
                    let numbers = [limit.limit().into(), limit.remaining().into(), limit.reset()];
                    let [Some(most), Some(left), Some(reset)] = numbers.map(|number| V::of(digits(number))) else {
                        return None;
                    };
                    Some(Told::XRateLimit { remaining: limit.remaining(), values: [most, left, reset] })
                }
                Headers::Off => None,
            }
        })
    }

    /// What clients are told about the quotas of these keys. It is made anew when they have changed.
    fn prepared<K, R>(&self, keys: &K, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: Gate<K>,
    {
        let is_current = |prepared: &Prepared<V>| prepared.is_of(&*self.limiter, keys);
        self.prepared.find_or_make(is_current, || self.prepare(keys), look)
    }

    #[cold]
    fn prepare<K>(&self, keys: &K) -> Prepared<V>
    where
        L: Gate<K>,
    {
        let mut collect = Collect::new(&self.options.name, self.options.unit);
        self.limiter.each_quotas(keys, |name, quotas| collect.push(name, quotas));
        collect.finish()
    }
}

impl<V> Denied<'_, V> {
    /// Answers, by what the answer is made of: the problem, and the value of `RateLimit-Policy`.
    pub fn answer<R>(&self, answer: impl FnOnce(&Problem<'_>, Option<&V>) -> R) -> R {
        let counts_bytes = self.options.unit == QuotaUnit::ContentBytes;
        let kind = match self.refusal.kind {
            DenialKind::CostExceedsLimit if counts_bytes => DenialKind::ContentExceedsLimit,
            kind => kind,
        };
        let violated = self.prepared.violated(&self.refusal.violated, self.refusal.wait);
        let problem = Problem::new(kind, self.refusal.wait).violated(&violated);
        let has_field = self.options.headers == Headers::Draft11;
        answer(&problem, if has_field { self.prepared.field() } else { None })
    }
}
