//! What the workers share, and how they judge a request.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use actix_web::HttpResponse;
use tollgate_http::{DenialKind, Headers, Problem, QuotaUnit};

use crate::answer;
use crate::charge::{Charge, Fields, Lent};
use crate::gate::{Gate, Granted, Refusal, Request, Verdict};
use crate::key::{Head, KeyExtractor, Missing};
use crate::prepared::{Collect, Prepared};
use crate::settings::Settings;

/// What the workers share.
pub(crate) struct Shared<L, X: KeyExtractor> {
    pub(crate) limiter: Arc<L>,
    pub(crate) extractor: Arc<X>,
    pub(crate) missing: Missing<X::Key>,
    pub(crate) settings: Settings,
    /// What was prepared last: for the quotas of all keys, and for those of keys with their own.
    prepared: RwLock<VecDeque<Arc<Prepared>>>,
}

impl<L, X: KeyExtractor> Shared<L, X> {
    pub(crate) fn new(limiter: Arc<L>, extractor: X, settings: Settings) -> Self {
        let (extractor, missing) = (Arc::new(extractor), Missing::Reject);
        Self { limiter, extractor, missing, settings, prepared: RwLock::default() }
    }
}

impl<L, X: KeyExtractor> Clone for Shared<L, X> {
    fn clone(&self) -> Self {
        Self {
            limiter: Arc::clone(&self.limiter),
            extractor: Arc::clone(&self.extractor),
            missing: self.missing.clone(),
            settings: self.settings.clone(),
            // It depends on the settings.
            prepared: RwLock::default(),
        }
    }
}

/// What becomes of a request.
pub(crate) enum Judgement<L: Gate<X>, X: KeyExtractor> {
    /// It goes on to the inner service.
    Pass(Option<Charge<L, X>>),
    /// The middleware answers it.
    Answer(HttpResponse),
}

impl<L: Gate<X>, X: KeyExtractor> Shared<L, X> {
    /// As many as there are usually different quotas at a time.
    const MOST_PREPARED: usize = 8;

    /// Decides a request. All callbacks but that of refunds are called before it is charged, so that
    /// one that panics leaves nothing charged.
    pub(crate) fn judge(self: &Arc<Self>, head: &Head<'_>) -> Judgement<L, X> {
        let settings = &self.settings;
        let cost = settings.cost_of(head);
        if cost == 0 {
            return Judgement::Pass(None);
        }
        let keys = match self.limiter.find(&self.extractor, &self.missing, head) {
            Ok(Some(keys)) => keys,
            Ok(None) => return Judgement::Pass(None),
            Err(_) if settings.overrules() => return Judgement::Pass(None),
            Err(error) => return Judgement::Answer(answer::rejected(error)),
        };
        let with_status = settings.headers != Headers::Off;
        let prepared = with_status.then(|| self.prepared(&keys));
        let request = Request { cost, refundable: settings.refunds(), with_status };
        match self.limiter.decide(&keys, request) {
            Verdict::Uncounted => Judgement::Pass(None),
            Verdict::Admitted(granted) => Judgement::Pass(self.charge(granted, prepared, keys)),
            Verdict::Refused(_) if settings.overrules() => Judgement::Pass(None),
            Verdict::Refused(refusal) => {
                let prepared = prepared.unwrap_or_else(|| self.prepared(&keys));
                Judgement::Answer(self.answer(&refusal, &prepared, head))
            }
        }
    }

    /// What is left to do when the response comes.
    fn charge(
        self: &Arc<Self>,
        granted: Granted,
        prepared: Option<Arc<Prepared>>,
        keys: L::Keys,
    ) -> Option<Charge<L, X>> {
        let Granted { status, receipt } = granted;
        let refund = self.settings.refund_unanswered;
        let lent = receipt.map(|receipt| Lent { receipt: Some(receipt), keys, refund });
        let fields = prepared.map(|prepared| Fields { prepared, status });
        let any = lent.is_some() || fields.is_some();
        any.then(|| Charge::new(Arc::clone(self), fields, lent))
    }

    fn answer(&self, refusal: &Refusal, prepared: &Prepared, head: &Head<'_>) -> HttpResponse {
        let counts_bytes = self.settings.unit == QuotaUnit::ContentBytes;
        let kind = match refusal.kind {
            DenialKind::CostExceedsLimit if counts_bytes => DenialKind::ContentExceedsLimit,
            kind => kind,
        };
        let violated = prepared.violated(&refusal.violated, refusal.wait);
        let problem = Problem::new(kind, refusal.wait).violated(&violated);
        answer::denied(&problem, prepared, &self.settings, head)
    }

    /// What clients are told about the quotas of these keys. It is made anew when they have changed.
    fn prepared(&self, keys: &L::Keys) -> Arc<Prepared> {
        let is_current = |prepared: &&Arc<Prepared>| prepared.is_of(|each| self.limiter.each_quotas(keys, each));
        let last = self.prepared.read().unwrap_or_else(PoisonError::into_inner).iter().find(is_current).cloned();
        last.unwrap_or_else(|| self.prepare(keys))
    }

    #[cold]
    fn prepare(&self, keys: &L::Keys) -> Arc<Prepared> {
        let mut collect = Collect::new(&self.settings.name, self.settings.unit);
        self.limiter.each_quotas(keys, &mut |name, quotas| collect.push(name, quotas));
        let prepared = Arc::new(collect.finish());
        let mut last = self.prepared.write().unwrap_or_else(PoisonError::into_inner);
        last.truncate(Self::MOST_PREPARED - 1);
        last.push_front(Arc::clone(&prepared));
        prepared
    }
}
