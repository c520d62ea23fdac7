//! What is asked of a policy, and what it answers.

use core::time::Duration;

use tollgate::MAX_DIMENSIONS;
use tollgate_http::{DenialKind, Usage};

/// The cost of a request, and whether it charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// At least 1.
    pub(crate) cost: u32,
    /// Only looks.
    pub(crate) is_peek: bool,
    /// The dimensions that are asked, if the request has their keys.
    pub(crate) asks: Asked,
}

impl Default for Ask {
    /// One permit of each dimension.
    fn default() -> Self {
        Self { cost: 1, is_peek: false, asks: [true; MAX_DIMENSIONS] }
    }
}

/// Dimensions by their places.
pub(crate) type Asked = [bool; MAX_DIMENSIONS];

/// What was decided, and by which dimensions.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) verdict: Verdict,
    pub(crate) asked: Asked,
}

/// What was decided.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Admitted, with the permits left of each quota.
    Admitted(Vec<Left>),
    /// Admitted without a charge: at the cap on keys, or without a store.
    Uncounted,
    /// Admitted without a charge by shadow mode, in place of this.
    Overruled(Refusal),
    /// Denied.
    Denied(Refusal),
}

/// Why a request is denied, or not decided.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] if no wait helps.
    pub(crate) wait: Duration,
    /// The violated quotas.
    pub(crate) violated: Vec<Left>,
    /// The dimension and the quota that decide the wait; `None` if no quota does.
    pub(crate) decides: Option<(usize, usize)>,
}

/// The permits left of a quota of a dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) dimension: usize,
    pub(crate) quota: usize,
    pub(crate) usage: Usage,
}

impl Refusal {
    /// A request of this cost that these quotas deny, by the permits left. `decides` has the quota that
    /// decides the wait.
    pub(crate) fn by_quotas(left: &[Left], cost: u32, wait: Duration, decides: (usize, usize)) -> Self {
        let violated = left.iter().filter_map(|left| {
            let usage = left.usage.violated(cost, wait, (left.dimension, left.quota) == decides)?;
            Some(Left { usage, ..*left })
        });
        Self { kind: DenialKind::Quota, wait, violated: violated.collect(), decides: Some(decides) }
    }
}

impl Verdict {
    /// A denial for which no wait helps and no quota decides.
    pub(crate) fn refused(kind: DenialKind) -> Self {
        Self::Denied(Refusal { kind, wait: Duration::MAX, violated: Vec::new(), decides: None })
    }

    /// The cost is above a limit.
    pub(crate) fn too_much() -> Self {
        Self::refused(DenialKind::CostExceedsLimit)
    }
}
