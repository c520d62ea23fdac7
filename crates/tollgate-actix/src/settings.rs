//! What the middleware does beside asking its limiter.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode, header};
use tollgate_http::{Headers, Problem, QuotaUnit};

use crate::key::Head;
use crate::shadow::ShadowSwitch;

type Cost = dyn Fn(&Head<'_>) -> u32 + Send + Sync;
type Skip = dyn Fn(&Head<'_>) -> bool + Send + Sync;
type RefundWhen = dyn Fn(StatusCode) -> bool + Send + Sync;
type OnDenied = dyn Fn(&Problem<'_>, &Head<'_>) -> Option<HttpResponse> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Settings {
    /// The name of the policy of a limiter that has none itself.
    pub(crate) name: Box<str>,
    pub(crate) unit: QuotaUnit,
    pub(crate) headers: Headers,
    pub(crate) cost: Option<Arc<Cost>>,
    pub(crate) skip: Option<Arc<Skip>>,
    pub(crate) skip_preflights: bool,
    pub(crate) refund_when: Option<Arc<RefundWhen>>,
    pub(crate) refund_unanswered: bool,
    pub(crate) on_denied: Option<Arc<OnDenied>>,
    pub(crate) shadow: Option<ShadowSwitch>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "default".into(),
            unit: QuotaUnit::default(),
            headers: Headers::default(),
            cost: None,
            skip: None,
            skip_preflights: false,
            refund_when: None,
            refund_unanswered: false,
            on_denied: None,
            shadow: None,
        }
    }
}

impl Settings {
    /// What a request costs. Nothing if it is skipped.
    pub(crate) fn cost_of(&self, head: &Head<'_>) -> u32 {
        let is_skipped =
            (self.skip_preflights && is_preflight(head)) || self.skip.as_ref().is_some_and(|skip| skip(head));
        if is_skipped { 0 } else { self.cost.as_ref().map_or(1, |cost| cost(head)) }
    }

    /// Whether permits may be given back.
    pub(crate) fn refunds(&self) -> bool {
        self.refund_unanswered || self.refund_when.is_some()
    }

    /// Whether a request passes that would be denied or has no key.
    pub(crate) fn overrules(&self) -> bool {
        self.shadow.as_ref().is_some_and(ShadowSwitch::overrule)
    }
}

/// Whether a browser asks if it may send another request (the Fetch standard, section 3.3).
fn is_preflight(head: &Head<'_>) -> bool {
    *head.method == Method::OPTIONS
        && head.headers.contains_key(header::ORIGIN)
        && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}
