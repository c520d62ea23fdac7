//! A limiter, and the texts about it that clients see.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tollgate::{Unasked, observe_overruled};

use super::around::{Around, Outer};
use super::cache::Cache;
use super::charge::{Charge, Loan, State, Told};
use super::gate::{AtOnce, Gate, Granted, Item, Refusal, Request, Tell, Verdict};
use super::notice::Notice;
use super::prepared::{Current, Prepared, check_name};
use super::shadow::ShadowSwitch;
use super::values::{FieldValue, written};
use crate::headers::{Headers, SEPARATOR};
use crate::limit::ServiceLimit;
use crate::policy::{PolicyError, QuotaUnit};
use crate::problem::{DenialKind, Problem};

/// The options of middleware.
#[derive(Debug, Clone)]
pub struct Options {
    /// `default`, if there is none.
    name: Option<Box<str>>,
    /// The unit of permits.
    pub unit: QuotaUnit,
    /// The header fields that tell clients their limits.
    pub headers: Headers,
    /// Whether `RateLimit` shows all quotas, and not the tightest alone.
    pub all_limits: bool,
    /// Whether `RateLimit-Policy` is only in answers to denied requests.
    pub policy_on_denial: bool,
    /// Whether [`Charge::admitted`] tells the permits left, also without header fields.
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

/// A limiter, and the texts about it that clients see. `V` is the value of a header field.
#[derive(Debug)]
pub struct Limits<L, V> {
    inner: Arc<Inner<L, V>>,
}

#[derive(Debug)]
pub(crate) struct Inner<L, V> {
    pub(crate) limiter: Arc<L>,
    options: Options,
    /// By the number of limits without a name around this one, if that is without a name.
    prepared: [Cache<V>; MOST_UNNAMED + 1],
    /// Whether it has been told that the limiter is asked twice.
    is_noticed: AtomicBool,
}

/// The most limits without a name around a limit that are told apart.
const MOST_UNNAMED: usize = 3;

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome<L: Gate<K>, K, V> {
    /// The request is admitted. Settle its charge, if there is one.
    Admitted(Option<Charge<L, K, V>>),
    /// The request is denied.
    Denied(Denied<V>),
}

/// The outcome of a request, by a limiter that does not decide at once.
///
/// ```
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use tollgate::{DirectLimiter, Quota};
/// use tollgate_http::middleware::{Limits, Options, OutcomeLater};
///
/// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
/// let limits = Limits::<_, Bytes>::new(limiter, Options::default());
/// let later: Result<OutcomeLater<_, (), _>, ()> = limits.later((), 1);
/// assert!(later.is_err(), "it decides at once");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub type OutcomeLater<L, K, V> = Pin<Box<dyn Future<Output = Outcome<L, K, V>> + Send + Sync>>;

/// Why a request is denied.
#[derive(Debug)]
pub struct Denied<V> {
    pub(super) refusal: Box<Refusal>,
    prepared: Arc<Prepared<V>>,
    counts_bytes: bool,
    has_field: bool,
}

impl<L, V> Limits<L, V> {
    /// The limiter with these options.
    #[must_use]
    pub fn new(limiter: Arc<L>, options: Options) -> Self {
        Self { inner: Arc::new(Inner { limiter, options, prepared: Default::default(), is_noticed: false.into() }) }
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

    /// The same limiter with other options.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.inner.options.clone();
        change(&mut options);
        Self::new(Arc::clone(&self.inner.limiter), options)
    }
}

impl<L, V> Limits<L, V> {
    /// This limit, as the limits inside see it. `is_asked` tells whether the limiter has decided the
    /// request.
    #[must_use]
    pub fn around<K>(&self, is_asked: bool) -> Around
    where
        L: Gate<K>,
    {
        let Inner { options, prepared, .. } = &*self.inner;
        let may_have_none = options.name.is_none() && options.headers == Headers::Draft11 && !L::HAS_DIMENSIONS;
        let is_unnamed = may_have_none && prepared[0].first().is_none_or(|first| first.is_unnamed());
        Around::new(if is_asked { self.address() } else { 0 }, is_unnamed)
    }

    /// Tells once that the limiter has decided the current request already.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        let is_twice = Outer::here().has(self.address());
        (is_twice && !self.inner.is_noticed.swap(true, Ordering::Relaxed)).then_some(Notice::Twice)
    }

    /// Tells the limiter's observers of a request that is answered without it.
    pub fn unasked<K>(&self, request: Unasked)
    where
        L: Gate<K>,
    {
        self.inner.limiter.unasked(request);
    }

    /// Whether denied requests pass.
    #[must_use]
    pub fn is_in_shadow(&self) -> bool {
        self.inner.options.shadow.as_ref().is_some_and(ShadowSwitch::is_on)
    }

    /// Whether a request passes that would be answered by the middleware. If so, counts it.
    #[must_use = "whether the request passes"]
    pub fn overrules(&self) -> bool {
        self.inner.options.shadow.as_ref().is_some_and(ShadowSwitch::overrule)
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.inner.limiter).addr()
    }
}

impl<L, V: FieldValue> Limits<L, V> {
    /// Decides a request with these keys and a cost of at least 1. Its permits may be refunded if
    /// the options say so.
    pub fn decide<K>(&self, keys: K, cost: u32) -> Outcome<L, K, V>
    where
        L: Gate<K>,
    {
        let options = &self.inner.options;
        let refundable = options.refunds || options.left;
        self.outcome(keys, cost, refundable, options.refund_unanswered)
    }

    /// Decides as [`decide`](Self::decide) does. The permits may be refunded, and stay charged if
    /// the charge is dropped.
    pub fn lend<K>(&self, keys: K, cost: u32) -> Outcome<L, K, V>
    where
        L: Gate<K> + AtOnce,
    {
        self.outcome(keys, cost, true, false)
    }

    /// A denial that is not the limiter's.
    #[cfg(feature = "wait")]
    pub(super) fn deny<K>(&self, keys: &K, refusal: Refusal) -> Denied<V>
    where
        L: Gate<K>,
    {
        self.inner.denied(keys, Box::new(refusal))
    }

    fn outcome<K>(&self, keys: K, cost: u32, refundable: bool, refund_unanswered: bool) -> Outcome<L, K, V>
    where
        L: Gate<K>,
    {
        let inner = &self.inner;
        let request = Request { cost, refundable, tell: inner.tell() };
        let decide = || inner.limiter.decide(&keys, request);
        // The limiter denies, and its observers see what becomes of that.
        let verdict = if self.is_in_shadow() { observe_overruled(decide) } else { decide() };
        Inner::outcome(inner, keys, verdict, refund_unanswered)
    }

    /// Decides as [`decide`](Self::decide) does, by a limiter that does not decide at once. The keys
    /// come back from any other limiter. Nothing is refunded.
    ///
    /// # Errors
    ///
    /// The keys, if the limiter decides at once.
    pub fn later<K>(&self, keys: K, cost: u32) -> Result<OutcomeLater<L, K, V>, K>
    where
        L: Gate<K> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let request = Request { cost, refundable: false, tell: self.inner.tell() };
        let Some(verdict) = self.inner.limiter.later(&keys, request) else { return Err(keys) };
        let inner = Arc::clone(&self.inner);
        Ok(Box::pin(async move { Inner::outcome(&inner, keys, verdict.await, false) }))
    }
}

impl<L, V> Clone for Limits<L, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<L, V> Inner<L, V> {
    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }
}

impl<L, V: FieldValue> Inner<L, V> {
    /// What a verdict on these keys means to a request.
    fn outcome<K>(this: &Arc<Self>, keys: K, verdict: Verdict, refund_unanswered: bool) -> Outcome<L, K, V>
    where
        L: Gate<K>,
    {
        match verdict {
            Verdict::Uncounted => Outcome::Admitted(None),
            Verdict::Admitted(Granted { left, receipt: Some(receipt) }) => {
                let loan = Loan::new(Arc::clone(this), *receipt, left, keys, refund_unanswered);
                Outcome::Admitted(Some(Charge { state: State::Loan(Box::new(loan)) }))
            }
            Verdict::Admitted(Granted { left, receipt: None }) => {
                let told = left.and_then(|left| this.told(&keys, &left));
                Outcome::Admitted(told.map(|told| Charge { state: State::Told(told) }))
            }
            Verdict::Refused(refusal) => Outcome::Denied(this.denied(&keys, refusal)),
        }
    }

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

    fn denied<K>(&self, keys: &K, refusal: Box<Refusal>) -> Denied<V>
    where
        L: Gate<K>,
    {
        let prepared = self.prepared(keys, Arc::clone);
        let counts_bytes = self.options.unit == QuotaUnit::ContentBytes;
        Denied { refusal, prepared, counts_bytes, has_field: self.options.headers == Headers::Draft11 }
    }

    /// The texts about the quotas of these keys. They are made anew after a change.
    fn prepared<K, R>(&self, keys: &K, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: Gate<K>,
    {
        let unnamed = if self.options.name.is_some() { 0 } else { Outer::here().unnamed().min(MOST_UNNAMED) };
        match self.prepared[unnamed].first().filter(|first| first.is_of(&*self.limiter, keys)) {
            Some(first) => look(first),
            None => self.prepared_later(keys, unnamed, look),
        }
    }

    fn prepared_later<K, R>(&self, keys: &K, unnamed: usize, look: impl FnOnce(&Arc<Prepared<V>>) -> R) -> R
    where
        L: Gate<K>,
    {
        let current = Current::of(&*self.limiter, keys);
        let make = || current.prepare(&self.options.name_inside(unnamed), self.options.unit);
        self.prepared[unnamed].find_or_make(&current, make, look)
    }
}

impl<V> Denied<V> {
    /// Makes the answer of its parts: the problem, and the value of `RateLimit-Policy`.
    pub fn answer<R>(&self, answer: impl FnOnce(&Problem<'_>, Option<&V>) -> R) -> R {
        let kind = match self.refusal.kind {
            DenialKind::CostExceedsLimit if self.counts_bytes => DenialKind::ContentExceedsLimit,
            kind => kind,
        };
        let Refusal { wait, violated, .. } = &*self.refusal;
        let mut violated = self.prepared.violated(violated, *wait).peekable();
        let field = if self.has_field { self.prepared.field() } else { None };
        let answer = |violated: &[ServiceLimit<'_>]| answer(&Problem::new(kind, *wait).violated(violated), field);
        match (violated.next(), violated.peek()) {
            // The usual case.
            (Some(one), None) => answer(&[one]),
            (first, _) => answer(&first.into_iter().chain(violated).collect::<Vec<_>>()),
        }
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
