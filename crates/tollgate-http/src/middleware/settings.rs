//! [`Settings`]: the options of middleware beside its limiter.

use std::sync::Arc;

use super::adapter::Middleware;
#[cfg(feature = "wait")]
use super::waits::Waits;

type Cost<W> = dyn Fn(&<W as super::key::Framework>::Head<'_>) -> u32 + Send + Sync;
type Skip<W> = dyn Fn(&<W as super::key::Framework>::Head<'_>) -> bool + Send + Sync;
type RefundWhen<W> = dyn Fn(&<W as Middleware>::AnswerHead<'_>) -> bool + Send + Sync;
type CostAfter<W> = dyn Fn(&<W as Middleware>::AnswerHead<'_>) -> u32 + Send + Sync;

/// The options of middleware beside its limiter.
pub struct Settings<W: Middleware> {
    /// The cost of a request; 1 without it.
    pub cost: Option<Arc<Cost<W>>>,
    /// The requests that are not limited.
    pub skip: Option<Arc<Skip<W>>>,
    /// Whether CORS preflights are not limited.
    pub skip_preflights: bool,
    /// What is decided by the head of the inner service's answer.
    pub on_answer: Option<Arc<OnAnswer<W>>>,
    /// The options of the middleware's own answers.
    pub answers: W::Answers,
    /// The lines in which requests wait.
    #[cfg(feature = "wait")]
    pub waits: Arc<Waits>,
}

/// What is decided by the head of the inner service's answer.
pub struct OnAnswer<W: Middleware> {
    /// The answers after which the permits are refunded.
    pub refund_when: Option<Arc<RefundWhen<W>>>,
    /// A further cost.
    pub cost_after: Option<Arc<CostAfter<W>>>,
}

impl<W: Middleware> Settings<W> {
    /// The cost of a request; zero if it is skipped.
    #[must_use]
    pub fn cost_of(&self, head: &W::Head<'_>) -> u32 {
        let is_skipped =
            (self.skip_preflights && is_preflight::<W>(head)) || self.skip.as_ref().is_some_and(|skip| skip(head));
        if is_skipped { 0 } else { self.cost.as_ref().map_or(1, |cost| cost(head)) }
    }
}

/// Whether the request is a CORS preflight (the Fetch standard, section 3.3).
fn is_preflight<W: Middleware>(head: &W::Head<'_>) -> bool {
    let has = |name| W::name(name).is_some_and(|name| W::values(head, &name).next().is_some());
    W::method(head) == "OPTIONS" && has("origin") && has("access-control-request-method")
}

impl<W: Middleware> Default for Settings<W> {
    fn default() -> Self {
        Self {
            cost: None,
            skip: None,
            skip_preflights: false,
            on_answer: None,
            answers: W::Answers::default(),
            #[cfg(feature = "wait")]
            waits: Arc::default(),
        }
    }
}

impl<W: Middleware> Clone for Settings<W> {
    fn clone(&self) -> Self {
        Self {
            cost: self.cost.clone(),
            skip: self.skip.clone(),
            skip_preflights: self.skip_preflights,
            on_answer: self.on_answer.clone(),
            answers: self.answers.clone(),
            #[cfg(feature = "wait")]
            waits: Arc::clone(&self.waits),
        }
    }
}

impl<W: Middleware> Default for OnAnswer<W> {
    fn default() -> Self {
        Self { refund_when: None, cost_after: None }
    }
}

impl<W: Middleware> Clone for OnAnswer<W> {
    fn clone(&self) -> Self {
        Self { refund_when: self.refund_when.clone(), cost_after: self.cost_after.clone() }
    }
}
