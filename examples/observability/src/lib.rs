//! A service whose limits are observed: metrics, a log, and the list of the keys that are denied
//! most.

mod limits;
mod traffic;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tollgate::{Clock, DirectLimiter, Quota};
use tollgate_observe::{MetricsObserver, ReloadMetrics, WaitMetrics};
use tollgate_policy::Watcher;
use tollgate_wait::{TokioTimer, WaitingLimiter};

use limits::Limits;
pub use traffic::{ask, traffic};

/// The recorder of the process. It has to be there before the observers.
///
/// # Errors
///
/// When there is a recorder already.
pub fn recorder() -> Result<PrometheusHandle, BuildError> {
    // Without buckets, waits would be summaries, which can't be added up over several instances.
    let waits = Matcher::Full("tollgate_wait_seconds".to_owned());
    let buckets = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0];
    PrometheusBuilder::new().set_buckets_for_metric(waits, &buckets)?.install_recorder()
}

/// The service, with the limits of the policy files in a folder, and what watches these files: keep
/// it as long as the service.
///
/// - `GET /items`: limited by address and as a whole.
/// - `GET /search`: the same on trial, in shadow mode.
/// - `GET /report`: five a second. Requests wait their turn for up to two seconds.
/// - `GET /metrics`: what Prometheus scrapes.
/// - `GET /denied`: the keys that are denied most.
///
/// A real service has the last two where its clients can't reach them.
///
/// # Errors
///
/// When a policy file can't be read, or a limiter can't be built.
pub fn app<C>(folder: &Path, recorder: PrometheusHandle, clock: C) -> Result<(Router, Vec<Watcher>), Box<dyn Error>>
where
    C: Clock + Clone + Send + Sync + 'static,
{
    let reloads = Arc::new(ReloadMetrics::new());
    let items = Arc::new(Limits::new("items", folder, clock.clone(), &reloads)?);
    let search = Arc::new(Limits::new("search", folder, clock.clone(), &reloads)?);
    let limited = Router::new().route("/items", get(async || "items\n")).route_layer(items.layer()?);
    let on_trial = Router::new().route("/search", get(async || "results\n")).route_layer(search.layer()?);
    let watchers = vec![items.watch()?, search.watch()?];

    let metrics = Arc::new(MetricsObserver::new("reports"));
    let builder = DirectLimiter::builder(Quota::token_bucket(1, 5, Duration::from_secs(1)).named("reports"));
    let reports = Arc::new(builder.observer(Arc::clone(&metrics)).clock(clock).build()?);
    metrics.register("", &reports.quotas());
    let waiting = Arc::new(WaitingLimiter::new(Arc::clone(&reports)).timer(TokioTimer));
    let waits = Arc::new(WaitMetrics::new("reports"));
    let report = move || {
        let (waiting, waits) = (Arc::clone(&waiting), Arc::clone(&waits));
        async move {
            match waits.measure(waiting.acquire(()).within(Duration::from_secs(2))).await {
                Ok(_) => (StatusCode::OK, "a report\n".to_owned()),
                Err(error) => (StatusCode::TOO_MANY_REQUESTS, format!("{error}\n")),
            }
        }
    };

    let lists = [("items", items.denied()), ("search, on trial", search.denied())];
    let denied = move || {
        let text = lists.each_ref().map(|(name, denied)| {
            let lines: String = denied.top(20).iter().map(|key| format!("{key}\n")).collect();
            format!("{name}\n{lines}")
        });
        std::future::ready(text.concat())
    };
    let scrape = move || {
        items.set_gauges();
        search.set_gauges();
        metrics.set_gauges(&reports.counts());
        std::future::ready(recorder.render())
    };
    let others = Router::new().route("/report", get(report)).route("/metrics", get(scrape));
    Ok((others.route("/denied", get(denied)).merge(limited).merge(on_trial), watchers))
}
