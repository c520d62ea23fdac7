//! [`Shared`]: the state that a middleware and its services share, and their judgement of a request.

#[cfg(not(feature = "wait"))]
use core::future::{Future, ready};
use core::hash::Hash;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use tollgate::Unasked;

use super::adapter::Middleware;
use super::around::Around;
use super::find::Gate;
use super::gate::AskedWith;
use super::key::Extracts;
use super::key_error::KeyError;
use super::limits::{Limits, Outcome, OutcomeLater};
use super::missing::Missing;
use super::request_charge::RequestCharge;
use super::settings::Settings;
use super::values::FieldValue;
#[cfg(feature = "wait")]
use super::waits::Waits;
use crate::problem::Problem;

/// The state that a middleware and its services share.
pub struct Shared<W: Middleware + Extracts<X>, L, X> {
    /// The limiter.
    pub limits: Limits<L, W::Field>,
    /// The key of requests.
    pub extractor: Arc<X>,
    /// The treatment of a request without a key.
    pub missing: Missing<W::Key>,
    /// The other options.
    pub settings: Settings<W>,
    /// Whether it has been logged that the set-up provides no key.
    is_logged: AtomicBool,
}

impl<W: Middleware + Extracts<X>, L, X> Shared<W, L, X> {
    /// The state of a middleware.
    #[must_use]
    pub fn new(limits: Limits<L, W::Field>, extractor: X, settings: Settings<W>) -> Self {
        let (extractor, missing) = (Arc::new(extractor), Missing::Reject);
        Self { limits, extractor, missing, settings, is_logged: false.into() }
    }

    /// The same with another key, and without a treatment of its absence.
    #[must_use]
    pub fn with_key<Y>(&self, extractor: Y) -> Shared<W, L, Y>
    where
        W: Extracts<Y>,
    {
        Shared::new(self.limits.clone(), extractor, self.settings.clone())
    }
}

impl<W: Middleware + Extracts<X>, L, X> Clone for Shared<W, L, X> {
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

/// What comes of a decision: the request goes to the inner service, or this is its answer.
pub type Settled<W, L, X> = Result<Option<RequestCharge<W, L, X>>, Box<<W as Middleware>::Answer>>;

/// The judgement of a request.
pub enum Judgement<W: Middleware + Extracts<X>, L: Gate<W, X>, X> {
    /// The request passes, and the limiter is not asked.
    Skipped,
    /// The request is decided.
    Settled(Settled<W, L, X>),
    /// The request waits for a store.
    Later(OutcomeLater<L, L::Keys, W::Field>),
    /// The request waits for its permits.
    InLine(InLine<L, L::Keys, W::Field>),
}

impl<W: Middleware + Extracts<X>, L: Gate<W, X>, X> Shared<W, L, X> {
    /// Decides a request. All callbacks except that of refunds run before the charge, so a callback
    /// that panics leaves nothing charged.
    pub fn judge(&self, head: &W::Head<'_>) -> Judgement<W, L, X> {
        let cost = self.settings.cost_of(head);
        if cost == 0 {
            return self.skip();
        }
        let keys = match L::find(&self.extractor, &self.missing, head) {
            Ok(Some(keys)) => keys,
            Ok(None) => return self.skip(),
            Err(error) => return self.without_key(error, head),
        };
        if let Some(notice) = self.limits.notice() {
            W::warn(&notice);
        }
        let keys = match L::decide_later(&self.limits, keys, cost) {
            Ok(later) => return Judgement::Later(later),
            Err(keys) => keys,
        };
        match self.in_line(keys, cost) {
            Ok(line) => Judgement::InLine(line),
            Err(keys) => Judgement::Settled(self.settle(self.limits.decide(keys, cost), head)),
        }
    }

    /// The request passes, and the observers are told.
    fn skip(&self) -> Judgement<W, L, X> {
        self.limits.unasked::<L::Keys>(Unasked::Skipped);
        Judgement::Skipped
    }

    fn without_key(&self, error: KeyError, head: &W::Head<'_>) -> Judgement<W, L, X> {
        let is_by_rule = error == KeyError::by_rule();
        self.limits.unasked::<L::Keys>(if is_by_rule { Unasked::Rule } else { Unasked::MissingKey });
        if self.limits.overrules() {
            return Judgement::Skipped;
        }
        let key = W::lacks(&self.extractor, head, error);
        self.log(error, key.as_deref());
        let problem = Problem::from(error).wanting(key.as_deref());
        let headers = self.limits.options().headers;
        Judgement::Settled(Err(Box::new(W::reject(&self.settings.answers, &problem, None, headers, head))))
    }

    /// This limit, as those inside see it.
    pub fn around(&self, is_asked: bool) -> Around {
        self.limits.around::<L::Keys>(is_asked)
    }

    /// What comes of a decision.
    ///
    /// # Errors
    ///
    /// The answer to a request that is denied.
    pub fn settle(&self, outcome: Outcome<L, L::Keys, W::Field>, head: &W::Head<'_>) -> Settled<W, L, X> {
        let settings = &self.settings;
        match outcome {
            Outcome::Admitted(charge) => {
                Ok(charge.map(|charge| RequestCharge::new(charge, settings.on_answer.clone())))
            }
            Outcome::Denied(_) if self.limits.overrules() => Ok(None),
            Outcome::Denied(denied) => Err(Box::new(denied.answer(|problem, policies| {
                W::reject(&settings.answers, problem, policies, self.limits.options().headers, head)
            }))),
        }
    }

    /// A place in the line of the keys; the keys if requests do not wait.
    #[cfg(feature = "wait")]
    fn in_line(&self, keys: L::Keys, cost: u32) -> Result<InLine<L, L::Keys, W::Field>, L::Keys> {
        // While the switch is on, each request passes at once.
        if !self.settings.waits.is_on() || self.limits.is_in_shadow() {
            return Err(keys);
        }
        Ok(InLine { limits: self.limits.clone(), waits: Arc::clone(&self.settings.waits), keys, cost })
    }

    #[cfg(not(feature = "wait"))]
    const fn in_line(&self, keys: L::Keys, _: u32) -> Result<InLine<L, L::Keys, W::Field>, L::Keys> {
        Err(keys)
    }

    /// Logs that the set-up provides no key, with the remedy. Logs once, because each request would
    /// write.
    fn log(&self, error: KeyError, key: Option<&str>) {
        let is_set_up = error.status() == 500;
        if is_set_up && !self.is_logged.swap(true, Ordering::Relaxed) {
            let (key, remedy) = (key.unwrap_or("the key"), W::REMEDY);
            W::error(format_args!("requests are answered with 500 for want of {key}: {error}; {remedy}"));
        }
    }
}

/// A request that waits for its permits.
pub struct InLine<L, K, V> {
    limits: Limits<L, V>,
    #[cfg(feature = "wait")]
    waits: Arc<Waits>,
    keys: K,
    cost: u32,
}

impl<L: AskedWith<K>, K: Hash + Clone, V: FieldValue> InLine<L, K, V> {
    /// The outcome, once the turn of the request has come. (Feature `wait`.)
    #[cfg(feature = "wait")]
    pub async fn outcome(self) -> Outcome<L, K, V> {
        self.waits.decide(&self.limits, self.keys, self.cost).await
    }

    /// The outcome at once.
    #[cfg(not(feature = "wait"))]
    pub fn outcome(self) -> impl Future<Output = Outcome<L, K, V>> {
        ready(self.limits.decide(self.keys, self.cost))
    }
}
