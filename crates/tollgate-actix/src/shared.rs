//! The state that the workers share, and their judgement of a request.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use actix_web::HttpResponse;
use tollgate_http::middleware::{Limits, Outcome};

use crate::answer::{self, Value};
use crate::charge::Charge;
use crate::gate::Gate;
use crate::key::{Head, KeyError, KeyExtractor, Missing};
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

/// The judgement of a request.
pub(crate) enum Judgement<L: Gate<X>, X: KeyExtractor> {
    /// The request goes to the inner service.
    Pass(Option<Charge<L, X>>),
    /// The middleware answers it.
    Answer(HttpResponse),
}

impl<L: Gate<X>, X: KeyExtractor> Shared<L, X> {
    /// Decides a request. All callbacks except that of refunds run before the charge, so a callback
    /// that panics leaves nothing charged.
    pub(crate) fn judge(&self, head: &Head<'_>) -> Judgement<L, X> {
        let settings = &self.settings;
        let cost = settings.cost_of(head);
        if cost == 0 {
            return Judgement::Pass(None);
        }
        let keys = match L::find(&self.extractor, &self.missing, head) {
            Ok(Some(keys)) => keys,
            Ok(None) => return Judgement::Pass(None),
            Err(_) if settings.overrules() => return Judgement::Pass(None),
            Err(error) => {
                self.log(error);
                let headers = self.limits.options().headers;
                return Judgement::Answer(answer::to_rejected(&error.into(), None, headers, settings, head));
            }
        };
        match self.limits.decide(keys, cost) {
            Outcome::Admitted(charge) => {
                Judgement::Pass(charge.map(|charge| Charge::new(charge, settings.on_answer.clone())))
            }
            Outcome::Denied(_) if settings.overrules() => Judgement::Pass(None),
            Outcome::Denied(denied) => Judgement::Answer(denied.answer(|problem, policies| {
                answer::to_rejected(problem, policies, self.limits.options().headers, settings, head)
            })),
        }
    }

    /// Logs that the set-up provides no key, with the remedy. Logs once, because each request would
    /// write.
    fn log(&self, error: KeyError) {
        let is_set_up = error.status() == 500;
        if is_set_up && !self.is_logged.swap(true, Ordering::Relaxed) {
            log::error!(
                "requests are answered with 500: {error}; for the address of a client behind a Unix socket, use \
                 `ClientIp::behind(TrustedProxies::unix_sockets()).peer_from(|_| Some(Peer::UnixSocket))`"
            );
        }
    }
}
