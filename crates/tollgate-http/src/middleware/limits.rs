//! A limiter, and the texts about it that clients see.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use tollgate::{Unasked, observe_overruled};

use super::around::{Around, Outer};
use super::charge::{Charge, Loan, State};
use super::gate::{AskedWith, AtOnce, Granted, Kind, Refusal, Request, Verdict};
use super::inner::{Inner, Options};
use super::notice::Notice;
use super::prepared::Prepared;
use super::shadow::ShadowSwitch;
use super::values::FieldValue;
use crate::headers::Headers;
use crate::limit::ServiceLimit;
use crate::policy::QuotaUnit;
use crate::problem::{DenialKind, Problem};

/// A limiter, and the texts about it that clients see. `V` is the value of a header field.
#[derive(Debug)]
pub struct Limits<L, V> {
    inner: Arc<Inner<L, V>>,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome<L: AskedWith<K>, K, V> {
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
        L: AskedWith<K>,
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
        L: AskedWith<K>,
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
        L: AskedWith<K>,
    {
        let options = &self.inner.options;
        let refundable = options.refunds || options.left;
        self.outcome(keys, cost, refundable, options.refund_unanswered)
    }

    /// Decides as [`decide`](Self::decide) does. The permits may be refunded, and stay charged if
    /// the charge is dropped.
    pub fn lend<K>(&self, keys: K, cost: u32) -> Outcome<L, K, V>
    where
        L: AskedWith<K> + AtOnce,
    {
        self.outcome(keys, cost, true, false)
    }

    /// The charge of a handler: `None` if nothing is charged, because the cost is zero or a switch
    /// lets the request pass.
    ///
    /// # Errors
    ///
    /// The call is denied.
    pub fn charge<K>(&self, keys: K, cost: u32) -> Result<Option<Charge<L, K, V>>, Denied<V>>
    where
        L: AskedWith<K> + AtOnce,
    {
        if cost == 0 {
            return Ok(None);
        }
        self.charged(self.lend(keys, cost))
    }

    /// As [`charge`](Self::charge), by a limiter that may decide on a store.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bytes::Bytes;
    /// use tollgate::{DirectLimiter, Quota};
    /// use tollgate_http::middleware::{Limits, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::BuildError> {
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
    /// let limits = Limits::<_, Bytes>::new(Arc::clone(&limiter), Options::default());
    /// let mut charge = limits.charge_async((), 3).await.unwrap().unwrap();
    /// charge.costs(9);
    /// assert!(limits.charge_async((), 1).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The call is denied, or the store did not decide.
    pub async fn charge_async<K>(&self, keys: K, cost: u32) -> Result<Option<Charge<L, K, V>>, Denied<V>>
    where
        L: AskedWith<K> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        if cost == 0 {
            return Ok(None);
        }
        let outcome = match self.outcome_later(keys, cost, true, false) {
            Ok(later) => later.await,
            Err(keys) => self.outcome(keys, cost, true, false),
        };
        self.charged(outcome)
    }

    fn charged<K>(&self, outcome: Outcome<L, K, V>) -> Result<Option<Charge<L, K, V>>, Denied<V>>
    where
        L: AskedWith<K>,
    {
        match outcome {
            Outcome::Admitted(charge) => Ok(charge),
            Outcome::Denied(_) if self.overrules() => Ok(None),
            Outcome::Denied(denied) => Err(denied),
        }
    }

    /// The texts about the quotas of these keys.
    pub(super) fn prepared<K>(&self, keys: &K) -> Arc<Prepared<V>>
    where
        L: AskedWith<K>,
    {
        self.inner.prepared(keys, Arc::clone)
    }

    /// A denial that is not the limiter's.
    #[cfg(feature = "wait")]
    pub(super) fn deny<K>(&self, keys: &K, refusal: Refusal) -> Denied<V>
    where
        L: AskedWith<K>,
    {
        self.inner.denied(keys, Box::new(refusal))
    }

    fn outcome<K>(&self, keys: K, cost: u32, refundable: bool, refund_unanswered: bool) -> Outcome<L, K, V>
    where
        L: AskedWith<K>,
    {
        let inner = &self.inner;
        let request = Request { cost, refundable, kind: Kind::Enters, tell: inner.tell() };
        let decide = || inner.limiter.decide(&keys, request);
        // The limiter denies, and its observers see what becomes of that.
        let verdict = if self.is_in_shadow() { observe_overruled(decide) } else { decide() };
        Inner::outcome(inner, keys, verdict, refund_unanswered)
    }

    /// Decides as [`decide`](Self::decide) does, by a limiter that does not decide at once. The keys
    /// come back from any other limiter. A task makes refunds.
    ///
    /// # Errors
    ///
    /// The keys, if the limiter decides at once.
    pub fn later<K>(&self, keys: K, cost: u32) -> Result<OutcomeLater<L, K, V>, K>
    where
        L: AskedWith<K> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let options = &self.inner.options;
        self.outcome_later(keys, cost, options.refunds || options.left, options.refund_unanswered)
    }

    fn outcome_later<K>(
        &self,
        keys: K,
        cost: u32,
        refundable: bool,
        refund_unanswered: bool,
    ) -> Result<OutcomeLater<L, K, V>, K>
    where
        L: AskedWith<K> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let request = Request { cost, refundable, kind: Kind::Enters, tell: self.inner.tell() };
        let Some(verdict) = self.inner.limiter.later(&keys, request) else { return Err(keys) };
        let inner = Arc::clone(&self.inner);
        Ok(Box::pin(async move { Inner::outcome(&inner, keys, verdict.await, refund_unanswered) }))
    }
}

impl<L, V> Clone for Limits<L, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<L, V: FieldValue> Inner<L, V> {
    /// What a verdict on these keys means to a request.
    fn outcome<K>(this: &Arc<Self>, keys: K, verdict: Verdict, refund_unanswered: bool) -> Outcome<L, K, V>
    where
        L: AskedWith<K>,
    {
        match verdict {
            Verdict::Uncounted | Verdict::Overruled(_) => Outcome::Admitted(None),
            Verdict::Admitted(Granted { left, receipt: Some(receipt), in_flight, .. }) => {
                let loan = Loan::new(Arc::clone(this), (*receipt, in_flight), left, keys, refund_unanswered);
                Outcome::Admitted(Some(Charge { state: State::Loan(Box::new(loan)) }))
            }
            Verdict::Admitted(Granted { left, receipt: None, .. }) => {
                let told = left.and_then(|left| this.told(&keys, &left));
                Outcome::Admitted(told.map(|told| Charge { state: State::Told(told) }))
            }
            Verdict::Refused(refusal) => Outcome::Denied(this.denied(&keys, refusal)),
        }
    }

    fn denied<K>(&self, keys: &K, refusal: Box<Refusal>) -> Denied<V>
    where
        L: AskedWith<K>,
    {
        let prepared = self.prepared(keys, Arc::clone);
        let counts_bytes = self.options.unit == QuotaUnit::ContentBytes;
        Denied { refusal, prepared, counts_bytes, has_field: self.options.headers == Headers::Draft11 }
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
