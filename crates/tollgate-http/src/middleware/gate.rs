//! A limiter as middleware asks it: [`Gate`].

mod direct;
mod joint;
mod keyed;
mod single;

use core::time::Duration;

pub use joint::JointKey;
use tollgate::{Denial, Quota, Receipt, Status};

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
    use super::{Left, Quota, Receipt, Request, Verdict};

    /// Asks a limiter.
    pub trait Ask<K> {
        /// Decides.
        fn decide(&self, keys: &K, request: Request) -> Verdict;

        /// What is left of the quotas now.
        fn left(&self, keys: &K) -> Left;

        /// Passes the quotas of these keys to `each`: those of each dimension, with its name if it
        /// has one.
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
    /// Whether header fields will tell what is left.
    pub(crate) with_status: bool,
}

/// What a limiter says.
#[expect(clippy::large_enum_variant, reason = "it is handed on at once, and a box would be an allocation per request")]
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
    /// What is left, where it is known already.
    pub(crate) status: Option<Status>,
    /// For permits that may be given back.
    pub(crate) receipt: Option<Receipt>,
}

/// What is left of the quotas of a request's keys.
#[expect(clippy::large_enum_variant, reason = "it is handed on at once, and a box would be an allocation per request")]
#[derive(Debug, Clone, Copy)]
pub enum Left {
    /// So much.
    Known(Status),
    /// The limiter cannot tell.
    Unknown,
    /// The keys are not counted.
    Uncounted,
}

/// Why a request is denied.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] where no wait helps.
    pub(crate) wait: Duration,
    /// The quotas that are in the way.
    pub(crate) violated: Vec<Violated>,
}

/// A quota that is in the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Violated {
    pub(crate) dimension: usize,
    pub(crate) quota: usize,
    pub(crate) usage: Usage,
}

impl Refusal {
    /// A denial by these quotas, if it is by quota.
    fn of(denial: &Denial, violated: impl FnOnce() -> Vec<Violated>) -> Self {
        let kind = DenialKind::from(denial.reason());
        let violated = if kind == DenialKind::Quota { violated() } else { Vec::new() };
        Self { kind, wait: denial.retry_after(), violated }
    }

    /// More than the limit was asked for.
    const fn cost() -> Self {
        Self { kind: DenialKind::CostExceedsLimit, wait: Duration::MAX, violated: Vec::new() }
    }
}
