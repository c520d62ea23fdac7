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
    use super::{Left, Quota, Receipt, Request, Tell, Verdict};

    /// Asks a limiter.
    pub trait Ask<K> {
        /// Decides.
        fn decide(&self, keys: &K, request: Request) -> Verdict;

        /// What is left of the quotas now.
        fn left(&self, keys: &K, tell: Tell) -> Left;

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
    /// What is left.
    pub(crate) left: Left,
    /// For permits that may be given back.
    pub(crate) receipt: Option<Receipt>,
}

/// What is left of the quotas of a request's keys.
#[derive(Debug)]
pub enum Left {
    /// It is not told.
    Untold,
    /// Of the tightest quota.
    Tightest(Item),
    /// Of all quotas.
    All(Vec<Item>),
}

/// Why a request is denied.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] where no wait helps.
    pub(crate) wait: Duration,
    /// The quotas that are in the way.
    pub(crate) violated: Vec<Item>,
}

/// What is left of one quota.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub(crate) dimension: usize,
    pub(crate) quota: usize,
    pub(crate) limit: u32,
    pub(crate) usage: Usage,
}

impl Left {
    /// What is left by a status with these items, of which one is the tightest.
    fn of<T>(tell: Tell, tightest: impl FnOnce() -> Option<T>, items: impl Iterator<Item = T>) -> Self
    where
        Item: From<T>,
    {
        match tell {
            Tell::Nothing => Self::Untold,
            Tell::Tightest => tightest().map_or(Self::Untold, |item| Self::Tightest(item.into())),
            Tell::All => Self::All(items.map(Item::from).collect()),
        }
    }
}

impl Refusal {
    /// A denial by these quotas, if it is by quota.
    fn of(denial: &Denial, violated: impl FnOnce() -> Vec<Item>) -> Self {
        let kind = DenialKind::from(denial.reason());
        let violated = if kind == DenialKind::Quota { violated() } else { Vec::new() };
        Self { kind, wait: denial.retry_after(), violated }
    }

    /// More than the limit was asked for.
    const fn cost() -> Self {
        Self { kind: DenialKind::CostExceedsLimit, wait: Duration::MAX, violated: Vec::new() }
    }
}

/// The quotas that are in the way of a request of which no more than the denial is known, by what is
/// left a moment later. By then fewer may be in the way; the one that decides the wait was.
fn violated_by(left: impl Iterator<Item = Item>, denial: &Denial, cost: u32) -> Vec<Item> {
    let decides = |item: &Item| (item.dimension, item.quota) == (denial.dimension(), denial.quota());
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
        Self { dimension: 0, quota: status.quota(), limit: status.limit(), usage }
    }
}

impl From<JointQuotaStatus> for Item {
    fn from(status: JointQuotaStatus) -> Self {
        Self { dimension: status.dimension(), ..status.status().into() }
    }
}
