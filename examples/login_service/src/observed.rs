//! [`Observed`]: what operators see of a limiter.

use std::fmt;
use std::sync::Arc;

use tollgate::{Clock, Dimensions, JointLimiter};
use tollgate_observe::{MetricsObserver, TopDenied};

/// The metrics of a limiter, and its list of denied keys.
pub(crate) struct Observed {
    name: &'static str,
    denied: Arc<TopDenied>,
    before_scrape: Box<dyn Fn() + Send + Sync>,
}

/// The observers of the limiter of this name. The list has room for a thousand keys.
pub(crate) fn observers(name: &'static str) -> (Arc<MetricsObserver>, Arc<TopDenied>) {
    (Arc::new(MetricsObserver::new(name)), Arc::new(TopDenied::new(1_000)))
}

impl Observed {
    pub(crate) fn new<D, C>(
        name: &'static str,
        metrics: Arc<MetricsObserver>,
        denied: Arc<TopDenied>,
        limiter: Arc<JointLimiter<D, C>>,
    ) -> Self
    where
        D: Dimensions + 'static,
        C: Clock + Send + Sync + 'static,
    {
        let before_scrape = move || {
            metrics.set_gauges(&limiter.counts());
            // Quotas may have changed since the last scrape.
            limiter.dimensions().for_each(|(dimension, quotas)| metrics.register(dimension, &quotas));
        };
        Self { name, denied, before_scrape: Box::new(before_scrape) }
    }

    /// Brings the metrics up to date that no decision changes.
    pub(crate) fn before_scrape(&self) {
        (self.before_scrape)();
    }
}

/// The keys that were denied most, one in a line.
impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} denied", self.name, self.denied.denials())?;
        self.denied.top(20).iter().try_for_each(|key| writeln!(f, "{key}"))
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("name", &self.name).finish_non_exhaustive()
    }
}
