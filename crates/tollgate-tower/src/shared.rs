//! The state that a layer and its services share, and their judgement of a request.

use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use tollgate::Unasked;
use tollgate_http::Problem;
use tollgate_http::middleware::{Around, Find, KeyError, Limits, Missing, Outcome};

use crate::answer::{self, Value};
use crate::charge::Charge;
use crate::gate::Gate;
use crate::key::{Head, KeyExtractor, Tower};
use crate::settings::Settings;

/// The state that a layer and its services share.
pub(crate) struct Shared<L, X: KeyExtractor> {
    pub(crate) limits: Limits<L, Value>,
    pub(crate) extractor: Arc<X>,
    pub(crate) missing: Missing<X::Key>,
    pub(crate) settings: Settings,
    /// Whether it has been logged that the set-up provides no key.
    #[cfg(feature = "tracing")]
    is_logged: core::sync::atomic::AtomicBool,
}

impl<L, X: KeyExtractor> Shared<L, X> {
    pub(crate) fn new(limits: Limits<L, Value>, extractor: X, settings: Settings) -> Self {
        let (extractor, missing) = (Arc::new(extractor), Missing::Reject);
        Self {
            limits,
            extractor,
            missing,
            settings,
            #[cfg(feature = "tracing")]
            is_logged: false.into(),
        }
    }
}

impl<L, X: KeyExtractor> Clone for Shared<L, X> {
    fn clone(&self) -> Self {
        Self {
            limits: self.limits.clone(),
            extractor: Arc::clone(&self.extractor),
            missing: self.missing.clone(),
            settings: self.settings.clone(),
            #[cfg(feature = "tracing")]
            is_logged: false.into(),
        }
    }
}

/// The outcome of a request that waits: in a line, or for a store.
pub(crate) type InLine<L, X> =
    Pin<Box<dyn Future<Output = Outcome<L, <L as Find<Tower, X>>::Keys, Value>> + Send + Sync>>;

/// What comes of a decision: the request goes to the inner service, or this is its answer.
pub(crate) type Settled<L, X> = Result<Option<Charge<L, X>>, Box<Response<Bytes>>>;

/// The judgement of a request.
pub(crate) enum Judgement<L: Gate<X>, X: KeyExtractor> {
    /// The request passes, and the limiter is not asked.
    Skipped,
    /// The request is decided.
    Settled(Settled<L, X>),
    /// The request waits.
    Wait(InLine<L, X>),
}

impl<L: Gate<X>, X: KeyExtractor> Shared<L, X> {
    /// Decides a request. All callbacks except that of refunds run before the charge, so a callback
    /// that panics leaves nothing charged.
    pub(crate) fn judge(&self, head: &Head<'_>) -> Judgement<L, X> {
        let settings = &self.settings;
        let cost = settings.cost_of(head);
        if cost == 0 {
            return self.skip();
        }
        let keys = match L::find(&self.extractor, &self.missing, head) {
            Ok(Some(keys)) => keys,
            Ok(None) => return self.skip(),
            Err(error) => {
                self.limits.unasked::<L::Keys>(Unasked::MissingKey);
                if self.limits.overrules() {
                    return Judgement::Skipped;
                }
                let key = self.extractor.lacks(head, error);
                self.log(error, key.as_deref());
                let problem = Problem::from(error).wanting(key.as_deref());
                let headers = self.limits.options().headers;
                let answer = answer::to_rejected(&problem, None, headers, settings, head);
                return Judgement::Settled(Err(Box::new(answer)));
            }
        };
        if let Some(notice) = self.limits.notice() {
            answer::log(&notice);
        }
        let keys = match self.limits.later(keys, cost) {
            Ok(later) => return Judgement::Wait(later),
            Err(keys) => keys,
        };
        match self.line(keys, cost) {
            Ok(line) => Judgement::Wait(line),
            Err(keys) => Judgement::Settled(self.settle(self.limits.decide(keys, cost), head)),
        }
    }

    /// The request passes, and the observers are told.
    fn skip(&self) -> Judgement<L, X> {
        self.limits.unasked::<L::Keys>(Unasked::Skipped);
        Judgement::Skipped
    }

    /// This limit, as those inside see it.
    pub(crate) fn around(&self, is_asked: bool) -> Around {
        self.limits.around::<L::Keys>(is_asked)
    }

    /// What comes of a decision.
    pub(crate) fn settle(&self, outcome: Outcome<L, L::Keys, Value>, head: &Head<'_>) -> Settled<L, X> {
        let settings = &self.settings;
        match outcome {
            Outcome::Admitted(charge) => Ok(charge.map(|charge| Charge::new(charge, settings.on_answer.clone()))),
            Outcome::Denied(_) if self.limits.overrules() => Ok(None),
            Outcome::Denied(denied) => Err(Box::new(denied.answer(|problem, policies| {
                answer::to_rejected(problem, policies, self.limits.options().headers, settings, head)
            }))),
        }
    }

    /// A place in the line of the keys; the keys if requests do not wait.
    #[cfg(feature = "wait")]
    fn line(&self, keys: L::Keys, cost: u32) -> Result<InLine<L, X>, L::Keys> {
        // While the switch is on, each request passes at once.
        if !self.settings.waits.is_on() || self.limits.is_in_shadow() {
            return Err(keys);
        }
        let (limits, waits) = (self.limits.clone(), Arc::clone(&self.settings.waits));
        Ok(Box::pin(async move { waits.decide(&limits, keys, cost).await }))
    }

    #[cfg(not(feature = "wait"))]
    const fn line(&self, keys: L::Keys, _: u32) -> Result<InLine<L, X>, L::Keys> {
        Err(keys)
    }

    /// Logs that the set-up provides no key, with the remedy. Logs once, because each request would
    /// write.
    #[cfg(feature = "tracing")]
    fn log(&self, error: KeyError, key: Option<&str>) {
        let is_set_up = error.status() == 500;
        if is_set_up && !self.is_logged.swap(true, core::sync::atomic::Ordering::Relaxed) {
            tracing::error!(
                "requests are answered with 500 for want of {}: {error}; for the peer's address with axum, serve \
                 `router.into_make_service_with_connect_info::<SocketAddr>()`",
                key.unwrap_or("the key")
            );
        }
    }

    #[cfg(not(feature = "tracing"))]
    const fn log(&self, _: KeyError, _: Option<&str>) {}
}
