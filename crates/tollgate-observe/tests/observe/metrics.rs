//! The metrics, as a recorder for Prometheus has them.

use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use tollgate::{AtKeyCap, Counts, JointLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_observe::{MetricsObserver, ReloadMetrics, WaitMetrics};

/// A recorder for this thread.
fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new().build_recorder()
}

fn observer(policy: &str) -> Arc<MetricsObserver> {
    Arc::new(MetricsObserver::new(policy))
}

/// The lines of a metric that are not zero.
fn lines(of: &PrometheusRecorder, metric: &str) -> Vec<String> {
    let text = of.handle().render();
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric));
    let mut lines: Vec<String> = lines.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn each_result_has_its_counter_from_the_start() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = observer("api");
    let text = recorder.handle().render();
    for result in [
        "admitted",
        "uncounted",
        "overruled",
        "cost",
        "quota",
        "key_cap",
        "penalty",
        "deny_list",
        "in_flight",
        "skipped",
        "missing_key",
        "rule",
    ] {
        let line = format!("tollgate_requests_total{{policy=\"api\",result=\"{result}\"}} 0");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    let minute = Duration::from_secs(60);
    let limiter = Limiter::<str>::builder(Quota::per_minute(1))
        .list_cap(2)
        .key_cap(2)
        .penalty(Penalty::new(2, minute, 10 * minute))
        .observer(Arc::clone(&metrics))
        .clock(MockClock::new())
        .build()
        .unwrap();
    limiter.allow("friend").unwrap();
    limiter.deny("mallory").unwrap();
    // Admitted, a quota, a quota that begins a block, a block.
    let _ = limiter.try_acquire_many(["alice"; 4]);
    let _ = limiter.try_acquire_many(["friend", "mallory", "mallory", "bob", "carol"]);
    assert!(limiter.try_acquire_n("bob", 2).is_err());
    assert_eq!(
        lines(&recorder, "tollgate_requests_total"),
        [
            r#"{policy="api",result="admitted"} 2"#,
            r#"{policy="api",result="cost"} 1"#,
            r#"{policy="api",result="deny_list"} 2"#,
            r#"{policy="api",result="key_cap"} 1"#,
            r#"{policy="api",result="penalty"} 2"#,
            r#"{policy="api",result="quota"} 1"#,
            r#"{policy="api",result="uncounted"} 1"#,
        ]
    );
}

#[test]
fn a_request_without_a_place_that_is_admitted_is_uncounted() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = observer("api");
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).key_cap(1).at_key_cap(AtKeyCap::Admit);
    let limiter = builder.observer(metrics).clock(MockClock::new()).build().unwrap();
    let _ = limiter.try_acquire_many([1, 2, 3]);
    assert_eq!(
        lines(&recorder, "tollgate_requests_total"),
        [r#"{policy="api",result="admitted"} 1"#, r#"{policy="api",result="uncounted"} 2"#,]
    );
}

#[test]
fn denials_have_the_dimension_and_the_quota_and_no_label_of_a_request() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = observer("api");
    let limiter = JointLimiter::<(String, u64)>::builder()
        .dimension("user", [Quota::per_second(2), Quota::per_minute(3).named("user-1m")])
        .dimension("tenant", [Quota::per_hour(4)])
        .observer(Arc::clone(&metrics))
        .shadow(true)
        .clock(MockClock::new())
        .build()
        .unwrap();
    for (dimension, quotas) in limiter.dimensions() {
        metrics.register(dimension, &quotas);
    }
    let text = recorder.handle().render();
    assert!(text.contains(r#"{policy="api",dimension="user",quota="user-1m"} 0"#), "{text}");
    let _ = limiter.try_acquire_many([("alice\"}", 7); 3]);
    let _ = limiter.try_acquire_n(("bob", 7), 2).unwrap();
    let _ = limiter.try_acquire(("dave", 7)).unwrap();
    // More than two a second: a denial, too, in shadow mode.
    let _ = limiter.try_acquire_n(("carol", 7), 9).unwrap();
    assert_eq!(
        lines(&recorder, "tollgate_denials_total"),
        [
            r#"{policy="api",dimension="tenant",quota="4 per 1h"} 1"#,
            r#"{policy="api",dimension="user",quota="2 per 1s"} 2"#,
        ]
    );
    assert_eq!(
        lines(&recorder, "tollgate_requests_total"),
        [r#"{policy="api",result="admitted"} 3"#, r#"{policy="api",result="overruled"} 3"#,]
    );
    let text = recorder.handle().render();
    assert!(!text.contains("alice") && !text.contains("bob"), "{text}");
}

#[test]
fn a_request_beyond_those_in_flight_has_a_result_of_its_own_and_the_series_of_its_quota() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let builder = Limiter::<str>::builder(Quota::concurrent(1).named("at-a-time")).observer(observer("api"));
    let limiter = builder.build().unwrap();
    let in_flight = limiter.try_enter("alice").unwrap();
    assert!(limiter.try_enter("alice").is_err());
    drop(in_flight);
    assert!(limiter.try_enter("alice").is_ok());
    assert_eq!(
        lines(&recorder, "tollgate_requests_total"),
        [r#"{policy="api",result="admitted"} 2"#, r#"{policy="api",result="in_flight"} 1"#]
    );
    assert_eq!(lines(&recorder, "tollgate_denials_total"), [r#"{policy="api",dimension="",quota="at-a-time"} 1"#]);
}

/// The limit of a key is the operator's, and there may be thousands.
#[test]
fn series_are_bounded_and_a_named_quota_goes_on() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = observer("api");
    let builder = Limiter::<u32>::builder(Quota::per_minute(1)).keys_with_quotas(1_000);
    let limiter = builder.observer(metrics).clock(MockClock::new()).build().unwrap();
    for key in 1..=200 {
        limiter.set_quotas_of(key, &[Quota::per_minute(key).named("own")]).unwrap();
        let _ = limiter.try_acquire_n(key, key).unwrap();
        assert!(limiter.try_acquire(key).is_denied());
    }
    assert_eq!(lines(&recorder, "tollgate_denials_total"), [r#"{policy="api",dimension="",quota="own"} 200"#]);
    for key in 201..=300 {
        limiter.set_quotas_of(key, &[Quota::per_minute(key)]).unwrap();
        let _ = limiter.try_acquire_n(key, key).unwrap();
        let _ = limiter.try_acquire_many([key; 2]);
    }
    let series = lines(&recorder, "tollgate_denials_total");
    assert_eq!(series.len(), 65);
    let other = series.iter().find(|line| line.contains("other")).unwrap();
    assert_eq!(other, r#"{policy="api",dimension="other",quota="other"} 74"#);
}

#[test]
fn gauges_are_those_of_the_counts() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = observer("api");
    let limiter = Limiter::<u32>::builder(Quota::per_minute(1)).build().unwrap();
    let _ = limiter.try_acquire_many([1, 2, 3]);
    let counts: Counts = limiter.counts();
    metrics.set_gauges(&counts);
    assert_eq!(lines(&recorder, "tollgate_live_keys"), [r#"{policy="api"} 3"#]);
    assert_eq!(lines(&recorder, "tollgate_bytes{"), [format!("policy=\"api\"}} {}", counts.bytes)]);
}

#[test]
fn a_wait_is_measured_until_it_is_over_or_dropped() {
    let recorder = PrometheusBuilder::new().set_buckets(&[1.0, 5.0]).unwrap().build_recorder();
    let clock = MockClock::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let waits = WaitMetrics::new("crawler").clock(clock.clone());
    let waiters = || lines(&recorder, "tollgate_waiters");
    let mut context = Context::from_waker(Waker::noop());

    assert!(pin!(waits.measure(ready(7))).poll(&mut context).is_ready());
    {
        let mut waiting = pin!(waits.measure(pending::<()>()));
        assert_eq!(waiters(), [""; 0], "it has not begun");
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(waiters(), [r#"{policy="crawler"} 1"#]);
        clock.advance(Duration::from_secs(3));
    }
    assert_eq!(waiters(), [""; 0]);
    assert_eq!(
        lines(&recorder, "tollgate_wait_seconds"),
        [
            r#"_bucket{policy="crawler",le="+Inf"} 2"#,
            r#"_bucket{policy="crawler",le="1"} 1"#,
            r#"_bucket{policy="crawler",le="5"} 2"#,
            r#"_count{policy="crawler"} 2"#,
            r#"_sum{policy="crawler"} 3"#,
        ]
    );
}

#[test]
fn reloads_are_counted_by_their_results() {
    let recorder = recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let reloads = ReloadMetrics::default();
    assert_eq!(recorder.handle().render().matches("tollgate_reloads_total{").count(), 4);
    ["applied", "refused", "refused", "no result"].iter().for_each(|result| reloads.count(result));
    let counted = [r#"{result="applied"} 1"#, r#"{result="refused"} 2"#];
    assert_eq!(lines(&recorder, "tollgate_reloads_total"), counted);
}
