//! The options of the middleware beside its limiter.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::{Method, header};
#[cfg(feature = "wait")]
use tollgate_http::middleware::Waits;

use crate::answered::AnswerHead;
use crate::key::Head;
use crate::rejection::Rejection;

type Cost = dyn Fn(&Head<'_>) -> u32 + Send + Sync;
type Skip = dyn Fn(&Head<'_>) -> bool + Send + Sync;
type RefundWhen = dyn Fn(&AnswerHead<'_>) -> bool + Send + Sync;
type CostAfter = dyn Fn(&AnswerHead<'_>) -> u32 + Send + Sync;
type OnDenied = dyn Fn(Rejection<'_>) -> HttpResponse + Send + Sync;

/// What is decided by the head of the inner service's answer.
#[derive(Clone, Default)]
pub(crate) struct OnAnswer {
    pub(crate) refund_when: Option<Arc<RefundWhen>>,
    pub(crate) cost_after: Option<Arc<CostAfter>>,
}

#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) cost: Option<Arc<Cost>>,
    pub(crate) skip: Option<Arc<Skip>>,
    pub(crate) skip_preflights: bool,
    pub(crate) on_answer: Option<Arc<OnAnswer>>,
    pub(crate) on_denied: Option<Arc<OnDenied>>,
    #[cfg(feature = "wait")]
    pub(crate) waits: Arc<Waits>,
}

impl Settings {
    /// The cost of a request; zero if it is skipped.
    pub(crate) fn cost_of(&self, head: &Head<'_>) -> u32 {
        let is_skipped =
            (self.skip_preflights && is_preflight(head)) || self.skip.as_ref().is_some_and(|skip| skip(head));
        if is_skipped { 0 } else { self.cost.as_ref().map_or(1, |cost| cost(head)) }
    }
}

/// Whether the request is a CORS preflight (the Fetch standard, section 3.3).
fn is_preflight(head: &Head<'_>) -> bool {
    *head.method == Method::OPTIONS
        && head.headers.contains_key(header::ORIGIN)
        && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}
