//! [`AskedWith`]: a limiter as middleware asks it.

pub(crate) mod joint;
pub(super) mod single;

use core::cmp::Reverse;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use tollgate::{Decision, Denial, InFlight, Lender, Quota, QuotaStatus, Receipt, Reservation, Status};

use super::in_flight::RequestInFlight;
use crate::limit::Usage;
use crate::problem::DenialKind;

/// A limiter that can be asked with keys of type `K`. For a
/// [`DirectLimiter`](tollgate::DirectLimiter) that is `()`. For a [`Limiter<K>`](tollgate::Limiter)
/// it is `K`. For a [`JointLimiter`](tollgate::JointLimiter) it is a tuple of `Option`s, with
/// `None` for a dimension that is not asked.
///
/// This trait is sealed: only these limiters implement it.
pub trait AskedWith<K>: sealed::Ask<K> {}

impl<K, L: sealed::Ask<K>> AskedWith<K> for L {}

/// A limiter that decides at once, in process: those of `tollgate`. Further costs and waits are for
/// such limiters alone, and so are charges of handlers that do not wait for them.
///
/// ```
/// use tollgate::{DirectLimiter, Quota};
/// use tollgate_http::middleware::AtOnce;
///
/// fn may_charge_more(_: &impl AtOnce) {}
///
/// may_charge_more(&DirectLimiter::new(Quota::per_minute(5))?);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// This trait is sealed: only these limiters implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may decide on a store, where this is not possible",
    note = "use a `JointLimiter`, `Limiter` or `DirectLimiter`, which decide in process; \
            a handler can charge by `charge_async`"
)]
pub trait AtOnce: sealed::AtOnce {}

impl<L: sealed::AtOnce> AtOnce for L {}

/// A verdict that is on its way.
pub(crate) type Later = Pin<Box<dyn Future<Output = Verdict> + Send + Sync>>;

pub(crate) mod sealed {
    use std::sync::Arc;

    use tollgate::{JointLimiter, Limiter, Unasked};

    use super::{AnyReceipt, Decision, Items, Later, Quota, Request, Tell, Verdict};

    /// Decides at once.
    pub trait AtOnce {}

    impl<K: ?Sized, C, F> AtOnce for Limiter<K, C, F> {}
    impl<D: ?Sized, C, F> AtOnce for JointLimiter<D, C, F> {}

    /// Asks a limiter.
    pub trait Ask<K> {
        /// Whether quotas have the names of dimensions.
        const HAS_DIMENSIONS: bool = false;

        /// Decides.
        fn decide(self: &Arc<Self>, keys: &K, request: Request) -> Verdict;

        /// Decides elsewhere; `None` if this limiter decides at once.
        #[inline]
        fn later(&self, _: &K, _: Request) -> Option<Later> {
            None
        }

        /// The permits left of the quotas now.
        fn left(&self, keys: &K, tell: Tell) -> Option<Items>;

        /// Passes the quotas of these keys to `each`: those of each dimension, with its name if it
        /// has one, and none of a dimension that is not asked.
        fn each_quotas<'a>(&'a self, keys: &K, each: impl FnMut(Option<&'a str>, Arc<[Quota]>));

        /// The decision now, without a charge; `None` if the cost is more than the limit.
        fn look(&self, keys: &K, cost: u32) -> Option<Decision>;

        /// The nanoseconds of the limiter's clock.
        fn reading(&self) -> u64;

        /// Charges the actual cost in place of what was charged. On a store, a task does it.
        fn settle(&self, receipt: AnyReceipt, actual: u32);

        /// Tells the observers of a request that is answered without this limiter.
        fn unasked(&self, request: Unasked);
    }
}

/// The cost of a request, and whether it may be refunded.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// At least 1.
    pub(crate) cost: u32,
    /// Whether the permits may be refunded.
    pub(crate) refundable: bool,
    pub(crate) kind: Kind,
    pub(crate) tell: Tell,
}

/// How long a request counts in concurrency limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is in flight until its verdict is dropped.
    Enters,
    /// It is over at once.
    AtOnce,
    /// It only looks. A limiter of one key does not heed it.
    Peek,
    /// It is a further charge of a request that is in flight.
    More,
}

/// The quotas whose permits left are shown in header fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// None.
    Nothing,
    /// The tightest.
    Tightest,
    /// All.
    All,
}

/// The answer of a limiter.
#[derive(Debug)]
pub enum Verdict {
    /// The request is admitted without a charge.
    Uncounted,
    /// The request is admitted without a charge, by the limiter's shadow mode, in place of this.
    Overruled(Box<Refusal>),
    /// The request is admitted.
    Admitted(Granted),
    /// The request is denied. Boxed, because most verdicts are not.
    Refused(Box<Refusal>),
}

impl Verdict {
    /// The verdict of a decided request. Its permits are not refunded.
    pub(crate) fn of(status: &Status, tell: Tell, hidden: Hidden) -> Self {
        match status.decision() {
            Decision::Admitted(admission) if admission.is_counted() => {
                let overruled = admission.overruled().map(|it| (octet(it.dimension()), octet(it.quota())));
                Self::Admitted(Granted {
                    left: Items::left(status, tell, hidden),
                    receipt: None,
                    in_flight: None,
                    overruled,
                })
            }
            Decision::Admitted(admission) => match admission.overruled() {
                Some(denial) => Self::Overruled(Refusal::by(&denial, || Items::marked(status))),
                None => Self::Uncounted,
            },
            Decision::Denied(denial) => Refusal::of(&denial, || Items::marked(status).without(hidden)),
        }
    }

    /// The verdict of a reserved request. Its permits stay charged, unless they are refunded later.
    fn reserved<L>(limiter: &Arc<L>, reservation: Reservation<&L>, request: Request, hidden: Hidden) -> Self
    where
        L: Lender + Send + Sync + 'static,
    {
        match Self::of(reservation.status(), request.tell, hidden) {
            Self::Admitted(granted) => {
                let counts = |quota: QuotaStatus| quota.counts_requests();
                let enters = request.kind == Kind::Enters && reservation.status().quotas().any(counts);
                let (in_flight, receipt) = if enters {
                    let (in_flight, receipt) = reservation.enter_owned(limiter);
                    // At the key cap it may count in no limit.
                    (Some(in_flight).filter(InFlight::counts).map(RequestInFlight::new), receipt)
                } else {
                    (None, reservation.commit())
                };
                let receipt = (request.refundable || enters).then(|| Box::new(AnyReceipt::InProcess(receipt)));
                Self::Admitted(Granted { receipt, in_flight, ..granted })
            }
            other => other,
        }
    }
}

/// The result of an admission.
#[derive(Debug)]
pub struct Granted {
    /// The permits left, if they are shown.
    pub(crate) left: Option<Items>,
    /// For permits that may be refunded. Boxed, because it moves with each verdict.
    pub(crate) receipt: Option<Box<AnyReceipt>>,
    /// The place of a request that a concurrency limit counts. There is a receipt then.
    pub(crate) in_flight: Option<RequestInFlight>,
    /// The dimension and the quota that would have denied it, but for the shadow mode of the dimension.
    pub(crate) overruled: Option<(u8, u8)>,
}

/// The receipt of permits that may be refunded, or of which more may be charged.
#[derive(Debug)]
pub enum AnyReceipt {
    /// Of a limiter in process.
    InProcess(Receipt),
    /// Of one on a store. Boxed, to keep the others small.
    #[cfg(feature = "redis")]
    OnStore(Box<tollgate_redis::Receipt>),
}

impl AnyReceipt {
    /// The permits that were charged.
    pub(crate) fn cost(&self) -> u32 {
        match self {
            Self::InProcess(receipt) => receipt.cost(),
            #[cfg(feature = "redis")]
            Self::OnStore(receipt) => receipt.cost(),
        }
    }

    /// The receipt of a limiter in process.
    pub(crate) fn in_process(self) -> Option<Receipt> {
        match self {
            Self::InProcess(receipt) => Some(receipt),
            #[cfg(feature = "redis")]
            Self::OnStore(_) => None,
        }
    }

    pub(crate) const fn is_on_store(&self) -> bool {
        !matches!(self, Self::InProcess(_))
    }
}

/// The dimensions in shadow mode, of which no answer tells: a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hidden(u8);

impl Hidden {
    pub(crate) const NONE: Self = Self(0);

    /// The dimensions for which it is so.
    pub(crate) fn of(dimensions: usize, is_hidden: impl Fn(usize) -> bool) -> Self {
        Self((0..dimensions).filter(|at| is_hidden(*at)).fold(0, |all, at| all | 1 << at))
    }

    pub(crate) const fn has(self, dimension: usize) -> bool {
        self.0 & (1 << dimension) != 0
    }
}

/// Why a request is denied.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] if no wait helps.
    pub(crate) wait: Duration,
    /// The violated quotas.
    pub(crate) violated: Items,
    /// The dimension and the quota that decide the wait; `None` if no quota does.
    pub(crate) decides: Option<(usize, usize)>,
}

/// Some quotas. A single quota, the usual case, takes no allocation.
#[derive(Debug)]
pub enum Items {
    /// One quota.
    One(Item),
    /// No quotas, or several.
    Several(Vec<Item>),
}

/// The permits left of one quota.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub(crate) usage: Usage,
    pub(crate) limit: u32,
    // One byte, because items move with admitted requests.
    dimension: u8,
    quota: u8,
    /// Whether it is a concurrency limit, to which a request of any cost is one.
    pub(crate) counts_requests: bool,
}

impl Item {
    pub(crate) const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    pub(crate) const fn quota(&self) -> usize {
        self.quota as usize
    }

    #[cfg(feature = "wait")]
    pub(crate) const fn with(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// The only quota of a key, of which no permit is left until `next_after`.
    const fn exhausted(limit: u32, next_after: Duration) -> Self {
        Self { usage: Usage { remaining: 0, next_after }, limit, dimension: 0, quota: 0, counts_requests: false }
    }
}

impl Items {
    pub(crate) const NONE: Self = Self::Several(Vec::new());

    /// The items to show of a status.
    pub(crate) fn left(status: &Status, tell: Tell, hidden: Hidden) -> Option<Self> {
        let shown = || status.quotas().filter(|quota| !hidden.has(quota.dimension()));
        match tell {
            Tell::Nothing => None,
            Tell::Tightest => {
                let tightest = if hidden == Hidden::NONE { status.tightest()? } else { fewest(shown())? };
                if !tightest.counts_requests() {
                    return Some(Self::One(tightest.into()));
                }
                // Places in flight are no measure of the permits of a rate: both are shown.
                let rate = fewest(shown().filter(|quota| !quota.counts_requests()));
                Some(rate.into_iter().chain([tightest]).map(Item::from).collect())
            }
            Tell::All => Some(shown().map(Item::from).collect()),
        }
    }

    /// The same without those of hidden dimensions.
    fn without(self, hidden: Hidden) -> Self {
        if hidden == Hidden::NONE {
            return self;
        }
        self.iter().filter(|item| !hidden.has(item.dimension())).copied().collect()
    }

    /// The quotas that a status marks as violated.
    fn marked(status: &Status) -> Self {
        status.quotas().filter(QuotaStatus::is_violated).map(Item::from).collect()
    }

    /// The violated quotas of a denied request, by the permits left, which may have been read a moment
    /// later. The quota that decides the wait is always listed.
    fn violated(left: &Status, denial: &Denial, cost: u32) -> Self {
        let (place, wait) = ((denial.dimension(), denial.quota()), denial.retry_after());
        let violated = |item: Item| {
            let cost = if item.counts_requests { cost.min(1) } else { cost };
            let usage = item.usage.violated(cost, wait, (item.dimension(), item.quota()) == place)?;
            Some(Item { usage, ..item })
        };
        left.quotas().map(Item::from).filter_map(violated).collect()
    }
}

impl core::ops::Deref for Items {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        match self {
            Self::One(item) => core::slice::from_ref(item),
            Self::Several(items) => items,
        }
    }
}

impl FromIterator<Item> for Items {
    fn from_iter<T: IntoIterator<Item = Item>>(items: T) -> Self {
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (None, _) => Self::NONE,
            (Some(one), None) => Self::One(one),
            (Some(first), Some(second)) => Self::Several([first, second].into_iter().chain(items).collect()),
        }
    }
}

impl Refusal {
    /// A denial, with the violated quotas if quotas deny it.
    fn of(denial: &Denial, violated: impl FnOnce() -> Items) -> Verdict {
        Verdict::Refused(Self::by(denial, violated))
    }

    fn by(denial: &Denial, violated: impl FnOnce() -> Items) -> Box<Self> {
        let kind = DenialKind::from(denial.reason());
        let (violated, decides) = if kind.is_of_quota() {
            (violated(), Some((denial.dimension(), denial.quota())))
        } else {
            (Items::NONE, None)
        };
        Box::new(Self { kind, wait: denial.retry_after(), violated, decides })
    }

    /// The cost is more than the limit.
    pub(crate) fn cost() -> Verdict {
        Self::without_wait(DenialKind::CostExceedsLimit)
    }

    /// No wait helps, and no quota decides.
    pub(crate) fn without_wait(kind: DenialKind) -> Verdict {
        Verdict::Refused(Box::new(Self { kind, wait: Duration::MAX, violated: Items::NONE, decides: None }))
    }
}

impl From<QuotaStatus> for Item {
    fn from(status: QuotaStatus) -> Self {
        let usage = Usage { remaining: status.remaining(), next_after: status.next_after() };
        let (dimension, quota) = (octet(status.dimension()), octet(status.quota()));
        Self { usage, limit: status.limit(), dimension, quota, counts_requests: status.counts_requests() }
    }
}

/// The quota with the fewest permits left, as [`Status::tightest`].
fn fewest(quotas: impl Iterator<Item = QuotaStatus>) -> Option<QuotaStatus> {
    quotas.min_by_key(|quota| (quota.remaining(), Reverse(quota.next_after())))
}

/// An index fits in a byte: there are at most eight dimensions, and eight quotas per key.
fn octet(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}
