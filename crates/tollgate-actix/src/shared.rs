//! The state that the workers share, and their judgement of a request.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use actix_web::HttpResponse;
use tollgate::Unasked;
use tollgate_http::Problem;
use tollgate_http::middleware::{Around, Find, KeyError, Limits, Missing, Outcome};

use crate::answer::{self, Value};
use crate::charge::Charge;
use crate::gate::Gate;
use crate::key::{Actix, Head, KeyExtractor};
use crate::settings::Settings;

/// The state that the workers share.
pub(crate) struct Shared<L, X: KeyExtractor> {
    pub(crate) limits: Limits<L, Value>,
    pub(crate) extractor: Arc<X>,
    pub(crate) missing: Missing<X::Key>,
    pub(crate) settings: Settings,
    /// Whether it has been logged that the set-up provides no key.
    is_logged: AtomicBool,
}

impl<L, X: KeyExtractor> Shared<L, X> {
    pub(crate) fn new(limits: Limits<L, Value>, extractor: X, settings: Settings) -> Self {
        let (extractor, missing) = (Arc::new(extractor), Missing::Reject);
        Self { limits, extractor, missing, settings, is_logged: false.into() }
    }
}

impl<L, X: KeyExtractor> Clone for Shared<L, X> {
    fn clone(&self) -> Self {
        Self {
            limits: self.limits.clone(),
            extractor: Arc::clone(&self.extractor),
            missing: self.missing.clone(),
            settings: self.settings.clone(),
            is_logged: false.into(),
        }
    }
}

/// The outcome of a request that waits: in a line, or for a store.
pub(crate) type Waiting<L, X> = Pin<Box<dyn Future<Output = Outcome<L, <L as Find<Actix, X>>::Keys, Value>>>>;

/// What comes of a decision: the request goes to the inner service, or this is its answer.
pub(crate) type Settled<L, X> = Result<Option<Charge<L, X>>, Box<HttpResponse>>;

/// The judgement of a request.
pub(crate) enum Judgement<L: Gate<X>, X: KeyExtractor> {
    /// The request passes, and the limiter is not asked.
    Skipped,
    /// The request is decided.
    Settled(Settled<L, X>),
    /// The request waits.
    Wait(Waiting<L, X>),
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
            log::warn!("{notice}");
        }
        let keys = match L::decide_later(&self.limits, keys, cost) {
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
    fn line(&self, keys: L::Keys, cost: u32) -> Result<Waiting<L, X>, L::Keys> {
        // While the switch is on, each request passes at once.
        if !self.settings.waits.is_on() || self.limits.is_in_shadow() {
            return Err(keys);
        }
        let (limits, waits) = (self.limits.clone(), Arc::clone(&self.settings.waits));
        Ok(Box::pin(async move { waits.decide(&limits, keys, cost).await }))
    }

    #[cfg(not(feature = "wait"))]
    const fn line(&self, keys: L::Keys, _: u32) -> Result<Waiting<L, X>, L::Keys> {
        Err(keys)
    }

    /// Logs that the set-up provides no key, with the remedy. Logs once, because each request would
    /// write.
    fn log(&self, error: KeyError, key: Option<&str>) {
        let is_set_up = error.status() == 500;
        if is_set_up && !self.is_logged.swap(true, Ordering::Relaxed) {
            log::error!(
                "requests are answered with 500 for want of {}: {error}; for the address of a client behind a Unix socket, use \
                 `ClientIp::behind(TrustedProxies::unix_sockets()).peer_from(|_| Some(Peer::UnixSocket))`",
                key.unwrap_or("the key")
            );
        }
    }
}
