//! A limiter as the middleware asks it: [`Gate`].

mod direct;
mod joint;
mod keyed;
mod single;

use core::time::Duration;

use tollgate::{Denial, Quota, Receipt, Status};
use tollgate_http::{DenialKind, Usage};

use crate::key::{Head, KeyError, KeyExtractor, Missing};

/// A limiter that can be asked about requests with such keys:
/// - a [`DirectLimiter`](tollgate::DirectLimiter), without a key ([`NoKey`](crate::NoKey));
/// - a [`Limiter<K>`](tollgate::Limiter), with an extractor of `K`;
/// - a [`JointLimiter`](tollgate::JointLimiter), with a tuple of extractors.
///
/// This trait is implemented for these limiters; it is not meant to be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot limit by the key of `{X}`",
    label = "this limiter needs another key",
    note = "a `Limiter<K>` needs `.key(..)` with an extractor of exactly `K`; \
            a `JointLimiter` needs `.key((..,))` with a tuple of one extractor for each dimension; \
            a `DirectLimiter` needs no key"
)]
pub trait Gate<X: KeyExtractor>: sealed::Ask<X> {}

impl<X: KeyExtractor, L: sealed::Ask<X>> Gate<X> for L {}

pub(crate) mod sealed {
    use super::{Head, KeyError, KeyExtractor, Missing, Quota, Receipt, Request, Status, Verdict};

    /// Asks a limiter.
    pub trait Ask<X: KeyExtractor> {
        /// The keys of a request.
        type Keys;

        /// How many extractors there have to be, if that is not known from their type.
        fn keys_needed(&self) -> Option<usize> {
            None
        }

        /// How many extractors there are.
        fn keys_given() -> Option<usize> {
            None
        }

        /// The keys to ask for; `None` if the request is not limited.
        fn find(
            &self,
            extractor: &X,
            missing: &Missing<X::Key>,
            head: &Head<'_>,
        ) -> Result<Option<Self::Keys>, KeyError>;

        /// Decides.
        fn decide(&self, keys: &Self::Keys, request: Request) -> Verdict;

        /// What is left of the quotas, if the limiter can tell and the keys are counted.
        fn status(&self, keys: &Self::Keys) -> Option<Status>;

        /// Passes the quotas of these keys to `each`: those of each dimension, with its name if it
        /// has one.
        fn each_quotas(&self, keys: &Self::Keys, each: &mut dyn FnMut(Option<&str>, &[Quota]));

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
