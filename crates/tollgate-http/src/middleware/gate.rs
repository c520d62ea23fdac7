//! A limiter as middleware asks it: [`Gate`].

mod direct;
mod joint;
mod keyed;
mod single;

use core::time::Duration;

pub use joint::JointKey;
use tollgate::{Denial, JointQuotaStatus, Quota, QuotaStatus, Receipt};

use crate::limit::Usage;
use crate::problem::DenialKind;

/// A limiter that can be asked about requests with such keys: a
/// [`DirectLimiter`](tollgate::DirectLimiter) by `()`, a [`Limiter<K>`](tollgate::Limiter) by `K`, and
/// a [`JointLimiter`](tollgate::JointLimiter) by a tuple of `Option`s, with `None` for a dimension
/// that is not asked.
///
/// This trait is implemented for these limiters; it is not meant to be implemented elsewhere.
pub trait Gate<K>: sealed::Ask<K> {}

impl<K, L: sealed::Ask<K>> Gate<K> for L {}

pub(crate) mod sealed {
    use super::{Items, Quota, Receipt, Request, Tell, Verdict};

    /// Asks a limiter.
    pub trait Ask<K> {
        /// Decides.
        fn decide(&self, keys: &K, request: Request) -> Verdict;

        /// What is left of the quotas now.
        fn left(&self, keys: &K, tell: Tell) -> Option<Items>;

        /// Passes the quotas of these keys to `each`: those of each dimension, with its name if it
        /// has one. The limiter keeps a slice as long as it lives, and never changes it.
        fn each_quotas(&self, keys: &K, each: impl FnMut(Option<&str>, &[Quota]));

        /// Takes permits back.
        fn give_back(&self, receipt: Receipt);
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// At least 1.
    pub(crate) cost: u32,
    /// Whether the permits may be given back.
    pub(crate) refundable: bool,
    pub(crate) tell: Tell,
}

/// Of which quotas header fields tell what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// Of none.
    Nothing,
    /// Of the tightest.
    Tightest,
    /// Of all.
    All,
}

/// What a limiter says.
#[derive(Debug)]
pub enum Verdict {
    /// It may pass and was not charged.
    Uncounted,
    /// It may pass.
    Admitted(Granted),
    /// It may not.
    Refused(Refusal),
}

/// What was granted.
#[derive(Debug)]
pub struct Granted {
    /// What is left, where that is told.
    pub(crate) left: Option<Items>,
    /// For permits that may be given back.
    pub(crate) receipt: Option<Receipt>,
}

/// Why a request is denied.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] where no wait helps.
    pub(crate) wait: Duration,
    /// The quotas that are in the way.
    pub(crate) violated: Items,
}

/// Some quotas. One, as it mostly is, takes no allocation.
#[derive(Debug)]
pub enum Items {
    /// One of them.
    One(Item),
    /// None, or several.
    Several(Vec<Item>),
}

/// What is left of one quota.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub(crate) usage: Usage,
    pub(crate) limit: u32,
    // In octets, because items are moved about with what is admitted.
    dimension: u8,
    quota: u8,
}

impl Item {
    pub(crate) const fn dimension(&self) -> usize {
        self.dimension as usize
    }

    pub(crate) const fn quota(&self) -> usize {
        self.quota as usize
    }
}

impl Items {
    pub(crate) const NONE: Self = Self::Several(Vec::new());

    /// What is told of a status with these items, of which one is the tightest.
    fn told<T, I>(tell: Tell, tightest: impl FnOnce() -> Option<T>, items: impl FnOnce() -> I) -> Option<Self>
    where
        Item: From<T>,
        I: Iterator<Item = T>,
    {
        match tell {
            Tell::Nothing => None,
            Tell::Tightest => tightest().map(|item| Self::One(item.into())),
            Tell::All => Some(items().map(Item::from).collect()),
        }
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
    /// A denial by these quotas, if it is by quota.
    fn of(denial: &Denial, violated: impl FnOnce() -> Items) -> Self {
        let kind = DenialKind::from(denial.reason());
        let violated = if kind == DenialKind::Quota { violated() } else { Items::NONE };
        Self { kind, wait: denial.retry_after(), violated }
    }

    /// More than the limit was asked for.
    const fn cost() -> Self {
        Self { kind: DenialKind::CostExceedsLimit, wait: Duration::MAX, violated: Items::NONE }
    }
}

/// The quotas that are in the way of a request of which no more than the denial is known, by what is
/// left a moment later. By then fewer may be in the way; the one that decides the wait was.
fn violated_by(left: impl Iterator<Item = Item>, denial: &Denial, cost: u32) -> Items {
    let decides = |item: &Item| (item.dimension(), item.quota()) == (denial.dimension(), denial.quota());
    let of_then = |item: Item| {
        let now = item.usage;
        let then = Usage { remaining: cost - 1, next_after: denial.retry_after() };
        Item { usage: if now.remaining < cost { now } else { then }, ..item }
    };
    left.filter(|item| item.usage.remaining < cost || decides(item)).map(of_then).collect()
}

impl From<QuotaStatus> for Item {
    fn from(status: QuotaStatus) -> Self {
        let usage = Usage { remaining: status.remaining(), next_after: status.next_after() };
        Self { usage, limit: status.limit(), dimension: 0, quota: octet(status.quota()) }
    }
}

impl From<JointQuotaStatus> for Item {
    fn from(status: JointQuotaStatus) -> Self {
        Self { dimension: octet(status.dimension()), ..status.status().into() }
    }
}

/// There are at most eight dimensions, and eight quotas of a key.
fn octet(place: usize) -> u8 {
    u8::try_from(place).unwrap_or(u8::MAX)
}
