//! [`Limits`]: a limiter of a policy file, with its observers.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate::Clock;
use tollgate_observe::{LogObserver, MetricsObserver, ReloadMetrics, TopDenied};
use tollgate_policy::{Policy, Reloader, Watcher};
use tollgate_tower::{
    ClientConfigError, ClientIp, JointLimiter, MatchedRoute, RateLimitLayer, Route, TrustedProxies, matched_path,
};

/// By address, and by route.
type Limiter<C> = JointLimiter<(IpAddr, Route), C>;

pub(crate) struct Limits<C> {
    path: PathBuf,
    policy: Policy,
    limiter: Arc<Limiter<C>>,
    metrics: Arc<MetricsObserver>,
    denied: Arc<TopDenied>,
    reloads: Arc<ReloadMetrics>,
}

impl<C: Clock + Send + Sync + 'static> Limits<C> {
    /// Those of the file in the folder that has this name.
    pub(crate) fn new(
        name: &str,
        folder: &Path,
        clock: C,
        reloads: &Arc<ReloadMetrics>,
    ) -> Result<Self, Box<dyn Error>> {
        let path = folder.join(name).with_extension("toml");
        let policy = Policy::load(&path)?;
        let (metrics, denied) = (Arc::new(MetricsObserver::new(name)), Arc::new(TopDenied::new(1_000)));
        let limiter = policy
            .builder()?
            .observer(Arc::clone(&metrics))
            .observer(LogObserver::new(name))
            .observer(Arc::clone(&denied))
            .clock(clock)
            .build()?;
        register(&metrics, &limiter);
        Ok(Self { path, policy, limiter: Arc::new(limiter), metrics, denied, reloads: Arc::clone(reloads) })
    }

    pub(crate) fn layer(&self) -> Result<RateLimitLayer<Limiter<C>, (ClientIp, MatchedRoute)>, ClientConfigError> {
        // The traffic of the example says in `X-Forwarded-For` from where it would come.
        let clients = ClientIp::behind(TrustedProxies::new(["127.0.0.0/8"])?);
        Ok(RateLimitLayer::new(Arc::clone(&self.limiter)).key((clients, matched_path())))
    }

    /// Applies the file when its contents change.
    pub(crate) fn watch(&self) -> io::Result<Watcher> {
        let (limiter, metrics) = (Arc::clone(&self.limiter), Arc::clone(&self.metrics));
        let reloads = Arc::clone(&self.reloads);
        let reloader = Reloader::new(&self.path, self.policy.clone(), Arc::clone(&self.limiter));
        let reloader = reloader.on_reload(move |reloaded| {
            reloads.count(reloaded.result());
            register(&metrics, &limiter);
        });
        Watcher::start(reloader, Watcher::EVERY)
    }

    pub(crate) fn denied(&self) -> Arc<TopDenied> {
        Arc::clone(&self.denied)
    }

    /// To be called before a scrape.
    pub(crate) fn set_gauges(&self) {
        self.metrics.set_gauges(&self.limiter.counts());
    }
}

/// The denials of each quota begin at zero: a series that begins with its first denial shows none.
fn register<C: Clock>(metrics: &MetricsObserver, limiter: &Limiter<C>) {
    limiter.dimensions().for_each(|(dimension, quotas)| metrics.register(dimension, &quotas));
}
