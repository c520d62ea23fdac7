//! The tokens of a request, which are settled when it has ended.

use std::fmt;
use std::sync::Arc;

use metrics::Counter;
use tollgate::{JointLimiter, Reservation};

/// The dimensions of a request: its tokens, and its stream. Each has the API key for a key.
pub type Budget = JointLimiter<(String, String)>;

/// The tokens of a request until its answer has ended.
pub type Estimated = Reservation<Arc<Budget>>;

/// The tokens of all requests.
#[derive(Clone)]
pub struct Counts {
    /// Those that requests were charged when they came.
    pub estimated: Counter,
    /// Those that they have used.
    pub actual: Counter,
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

/// A request that has been charged an estimate. When this is dropped, however the answer has ended, the
/// key is charged the tokens that were used, and the stream no longer counts.
#[derive(Debug)]
pub struct Metered {
    estimated: Option<Estimated>,
    used: u32,
    counts: Counts,
}

impl Metered {
    /// A request whose prompt has so many tokens.
    #[must_use]
    pub fn new(estimated: Estimated, prompt: u32, counts: &Counts) -> Self {
        counts.estimated.increment(estimated.cost().into());
        Self { estimated: Some(estimated), used: prompt, counts: counts.clone() }
    }

    /// A part of the answer has come.
    pub fn count(&mut self, part: &[u8]) {
        let tokens = part.iter().filter(|&&byte| byte == b'\n').count();
        self.used = self.used.saturating_add(u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    /// The model did not take the request.
    pub fn costs_nothing(&mut self) {
        self.used = 0;
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        if let Some(estimated) = self.estimated.take() {
            // More than the estimate is debt, also if the budget has no more.
            estimated.settle(self.used);
            self.counts.actual.increment(self.used.into());
        }
    }
}
