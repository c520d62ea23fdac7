//! [`ByDimension`]: a decision for another service.

use core::cmp::Reverse;
use core::time::Duration;
use std::sync::Arc;

use super::gate::joint::JointKey;
use super::gate::{AskedWith, Granted, Item, Kind, Refusal, Request, Tell, Verdict};
use super::in_flight::RequestInFlight;
use super::limits::Limits;
#[cfg(feature = "redis")]
use super::policy_limiter::{ask, bytes_and_tiers};
use super::prepared::Prepared;
use super::values::FieldValue;
use crate::limit::ServiceLimit;
use crate::problem::{DenialKind, Problem};

/// A decision of a limiter with dimensions, and what each of them says of it. A server tells it to
/// the services that ask it.
///
/// ```
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use tollgate::{JointLimiter, Quota};
/// use tollgate_http::middleware::{Limits, Options, Ruling};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = JointLimiter::<[String]>::builder().dimension("user", [Quota::per_minute(1)]);
/// let limiter = builder.dimension("tenant", [Quota::per_minute(9)]).build()?;
/// let limits = Limits::<_, Bytes>::new(Arc::new(limiter), Options::default());
///
/// let keys = vec![Some("alice".to_owned()), None];
/// let decided = limits.by_dimension(&keys, 1, false).await;
/// assert_eq!(decided.ruling(), Ruling::Admitted);
/// let user = decided.tightest(|dimension| dimension == 0).expect("its quota");
/// assert_eq!((user.policy().name(), user.remaining()), ("user", 0));
/// assert!(decided.tightest(|dimension| dimension == 1).is_none(), "it is not asked");
///
/// let decided = limits.by_dimension(&keys, 1, false).await;
/// assert_eq!(decided.decides(), Some((0, 0)));
/// assert_eq!(decided.problem(|problem| problem.status()), Some(429));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ByDimension<V> {
    verdict: Verdict,
    /// The texts about the quotas; none if no limiter is asked.
    prepared: Option<Arc<Prepared<V>>>,
}

/// What was decided.
///
/// ```
/// use tollgate_http::middleware::Ruling;
///
/// fn is_admitted(ruling: Ruling) -> bool {
///     !matches!(ruling, Ruling::Denied(_))
/// }
///
/// assert!(is_admitted(Ruling::Uncounted));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The request is admitted.
    Admitted,
    /// It is admitted without a charge, such as at the key cap, or while a store is away.
    Uncounted,
    /// It is admitted without a charge by the limiter's shadow mode, in place of a denial.
    Overruled,
    /// It is denied, or not decided.
    Denied(DenialKind),
}

impl<L, V: FieldValue> Limits<L, V> {
    /// Decides a request with these keys and a cost of at least 1, or only looks. No permits are
    /// refunded. A limiter on a store is waited for. An error of the limiter is a denial.
    pub async fn by_dimension<K: JointKey>(&self, keys: &K, cost: u32, is_peek: bool) -> ByDimension<V>
    where
        L: AskedWith<K>,
    {
        let kind = if is_peek { Kind::Peek } else { Kind::AtOnce };
        let request = Request { cost, refundable: false, kind, tell: Tell::All };
        let limiter = self.limiter();
        let verdict = match limiter.later(keys, request) {
            Some(later) => later.await,
            None => limiter.decide(keys, request),
        };
        ByDimension { verdict, prepared: Some(self.prepared(keys)) }
    }

    /// As [`by_dimension`](Self::by_dimension), by a limiter in process. An admitted request that a
    /// concurrency limit counts is in flight until the guard is dropped.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bytes::Bytes;
    /// use tollgate::{JointLimiter, Quota};
    /// use tollgate_http::middleware::{Limits, Options, Ruling};
    ///
    /// let builder = JointLimiter::<[String]>::builder().dimension("rate", [Quota::per_minute(9)]);
    /// let limiter = Arc::new(builder.dimension("in flight", [Quota::concurrent(1)]).build()?);
    /// let limits = Limits::<_, Bytes>::new(limiter, Options::default());
    ///
    /// let keys = vec![Some("alice".to_owned()), Some("alice".to_owned())];
    /// let (first, in_flight) = limits.enter_by_dimension(&keys, 1);
    /// assert_eq!(first.ruling(), Ruling::Admitted);
    /// let (second, _) = limits.enter_by_dimension(&keys, 1);
    /// assert_eq!(second.decides(), Some((1, 0)));
    /// drop(in_flight);
    /// assert_eq!(limits.enter_by_dimension(&keys, 1).0.ruling(), Ruling::Admitted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter_by_dimension<K: JointKey>(&self, keys: &K, cost: u32) -> (ByDimension<V>, Option<RequestInFlight>)
    where
        L: AskedWith<K>,
    {
        let request = Request { cost, refundable: false, kind: Kind::Enters, tell: Tell::All };
        let mut verdict = self.limiter().decide(keys, request);
        let in_flight = if let Verdict::Admitted(granted) = &mut verdict { granted.in_flight.take() } else { None };
        (ByDimension { verdict, prepared: Some(self.prepared(keys)) }, in_flight)
    }

    /// As [`enter_by_dimension`](Self::enter_by_dimension), by the limiter of these limits, which is on
    /// a store. (Feature `redis`.)
    ///
    /// ```
    /// use bytes::Bytes;
    /// use tollgate_http::middleware::Limits;
    /// use tollgate_policy::Key;
    /// use tollgate_redis::{InFlight, PolicyLimiter};
    ///
    /// async fn token(limits: &Limits<PolicyLimiter<[Key]>, Bytes>, keys: &Vec<Option<Key>>) -> Option<String> {
    ///     let (_, in_flight) = limits.enter_on_store(limits.limiter().on_store()?, keys, 1).await;
    ///     in_flight.and_then(InFlight::into_token)
    /// }
    /// ```
    #[cfg(feature = "redis")]
    pub async fn enter_on_store<K: JointKey + tollgate_redis::StoreKeys>(
        &self,
        limiter: &tollgate_redis::RedisJointLimiter,
        keys: &K,
        cost: u32,
    ) -> (ByDimension<V>, Option<tollgate_redis::InFlight>)
    where
        L: AskedWith<K>,
    {
        let request = Request { cost, refundable: false, kind: Kind::Enters, tell: Tell::All };
        let (bytes, tiers) = bytes_and_tiers(keys);
        let (verdict, in_flight) = ask(limiter, &bytes, &tiers, request).await;
        (ByDimension { verdict, prepared: Some(self.prepared(keys)) }, in_flight)
    }
}

impl<V> ByDimension<V> {
    /// A request that is admitted without a charge, and of which no limiter is asked.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use tollgate_http::middleware::{ByDimension, Ruling};
    ///
    /// assert_eq!(ByDimension::<Bytes>::uncounted().ruling(), Ruling::Uncounted);
    /// ```
    #[must_use]
    pub const fn uncounted() -> Self {
        Self { verdict: Verdict::Uncounted, prepared: None }
    }

    /// A request that is denied for another reason than a limit, such as by a rule, and of which no
    /// limiter is asked. No wait helps.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use tollgate_http::DenialKind;
    /// use tollgate_http::middleware::ByDimension;
    ///
    /// let denied = ByDimension::<Bytes>::denied(DenialKind::Rule);
    /// assert_eq!(denied.problem(|problem| problem.status()), Some(403));
    /// ```
    #[must_use]
    pub fn denied(kind: DenialKind) -> Self {
        Self { verdict: Refusal::without_wait(kind), prepared: None }
    }

    /// What was decided.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        match &self.verdict {
            Verdict::Admitted(_) => Ruling::Admitted,
            Verdict::Uncounted => Ruling::Uncounted,
            Verdict::Overruled(_) => Ruling::Overruled,
            Verdict::Refused(refusal) => Ruling::Denied(refusal.kind),
        }
    }

    /// The dimension and the quota that decide the wait of a denial, also of one that shadow mode
    /// overruled, of the limiter or of that dimension. `None` if no quota does.
    #[must_use]
    pub fn decides(&self) -> Option<(usize, usize)> {
        match &self.verdict {
            Verdict::Refused(refusal) | Verdict::Overruled(refusal) => refusal.decides,
            Verdict::Admitted(granted) => granted.overruled.map(|(dimension, quota)| (dimension.into(), quota.into())),
            Verdict::Uncounted => None,
        }
    }

    /// The tightest limit of an admitted request in the dimensions that are `wanted`.
    pub fn tightest(&self, wanted: impl Fn(usize) -> bool) -> Option<ServiceLimit<'_>> {
        let Verdict::Admitted(Granted { left: Some(left), .. }) = &self.verdict else { return None };
        let wanted = left.iter().filter(|item| wanted(item.dimension()));
        let tightest = wanted.min_by_key(|item| (item.usage.remaining, Reverse(item.usage.next_after)))?;
        self.prepared.as_ref()?.admitted(core::slice::from_ref(tightest)).next()
    }

    /// The violated limits of a denied request in the dimensions that are `wanted`.
    pub fn violated(&self, wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = ServiceLimit<'_>> {
        let (items, wait): (&[Item], _) = match &self.verdict {
            Verdict::Refused(refusal) => (&refusal.violated, refusal.wait),
            _ => (&[], Duration::MAX),
        };
        let wanted = items.iter().filter(move |item| wanted(item.dimension()));
        let prepared = self.prepared.iter();
        wanted.zip(prepared.cycle()).flat_map(move |(item, it)| it.violated(core::slice::from_ref(item), wait))
    }

    /// Makes the answer to a denied request of its problem; `None` if it is admitted.
    pub fn problem<R>(&self, answer: impl FnOnce(&Problem<'_>) -> R) -> Option<R> {
        let Verdict::Refused(refusal) = &self.verdict else { return None };
        let Refusal { kind, wait, .. } = **refusal;
        Some(answer(&Problem::new(kind, wait).violated(&self.violated(|_| true).collect::<Vec<_>>())))
    }

    /// The value of `RateLimit-Policy`: the quotas of the dimensions that were asked.
    #[must_use]
    pub fn policies(&self) -> Option<&V> {
        self.prepared.as_ref()?.field()
    }
}
