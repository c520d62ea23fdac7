//! What is asked of a policy, and what it answers.

use core::time::Duration;

use tollgate::{JointStatus, MAX_DIMENSIONS};
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
    Admitted(Box<JointStatus>),
    /// Admitted without a charge.
    Uncounted,
    /// Admitted without a charge by shadow mode, in place of this.
    Overruled(Refusal),
    /// Denied.
    Denied(Refusal),
}

/// Why a request is denied.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: DenialKind,
    /// [`Duration::MAX`] if no wait helps.
    pub(crate) wait: Duration,
    pub(crate) violated: Vec<Violated>,
    /// The place of the policy that decides the wait; `None` if no quota does.
    pub(crate) decides: Option<usize>,
}

/// A violated quota.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Violated {
    pub(crate) dimension: usize,
    /// The place of its policy.
    pub(crate) policy: usize,
    pub(crate) usage: Usage,
}
