//! What reads the metrics agrees with the metrics that there are: a running service is scraped over
//! loopback, and each query of the dashboard and of the alert rules is held against the scrape.

mod promtool;
mod queries;
mod scrape;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use observability::ask;
use queries::{Query, of_alerts, of_dashboard, path};
use scrape::Scrape;
use tokio::net::TcpListener;
use tollgate::MockClock;
use tollgate_policy::Watcher;

/// The service on loopback, on a time that stands still.
async fn serve(folder: &Path) -> (SocketAddr, Vec<Watcher>) {
    let (app, watchers) = observability::app(folder, observability::recorder().unwrap(), MockClock::new()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    (address, watchers)
}

#[tokio::test]
async fn each_metric_and_label_of_dashboard_and_alerts_is_in_a_scrape() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["items.toml", "search.toml"] {
        fs::copy(path(file), folder.path().join(file)).unwrap();
    }
    let (service, watchers) = serve(folder.path()).await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(ask(service, "/items", "203.0.113.7").await.unwrap().0);
        assert_eq!(ask(service, "/search", "203.0.113.7").await.unwrap().0, 200, "on trial");
    }
    assert_eq!(statuses, [[200; 5].as_slice(), &[429; 7]].concat(), "five a second");
    assert_eq!(ask(service, "/report", "203.0.113.7").await.unwrap().0, 200);

    fs::write(folder.path().join("items.toml"), "key_cup = 5").unwrap();
    assert_eq!(watchers[0].reloader().reload_now().result(), "refused");

    let (status, text) = ask(service, "/metrics", "203.0.113.7").await.unwrap();
    assert_eq!(status, 200);
    promtool::check_metrics(&text);
    let scrape = Scrape::parse(&text);
    let requests =
        |policy, result| scrape.value("tollgate_requests_total", &[("policy", policy), ("result", result)]).unwrap();
    assert_eq!((requests("items", "admitted"), requests("items", "quota")), (5.0, 7.0));
    assert_eq!((requests("search", "overruled"), requests("search", "quota")), (7.0, 0.0));
    let address = [("policy", "items"), ("dimension", "address"), ("quota", "address-1s")];
    assert_eq!(scrape.value("tollgate_denials_total", &address), Some(7.0));
    assert_eq!(scrape.value("tollgate_wait_seconds_count", &[("policy", "reports")]), Some(1.0));
    assert_eq!(scrape.value("tollgate_waiters", &[("policy", "reports")]), Some(0.0));
    assert!(scrape.value("tollgate_reloads_total", &[("result", "refused")]) >= Some(1.0));
    assert!(!text.contains("203.0.113"), "no label of a request");

    let all: Vec<Query> = of_dashboard().into_iter().chain(of_alerts()).collect();
    assert!(all.len() >= 15, "hardly a query was found");
    let complaints: Vec<String> = all.iter().flat_map(|query| query.complaints(&scrape)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    // The other way round: what is scraped is shown.
    for metric in scrape.metrics().filter(|metric| !metric.ends_with("_sum") && !metric.ends_with("_count")) {
        assert!(of_dashboard().iter().any(|query| query.text.contains(metric)), "no panel has {metric}");
    }

    let (_, top) = ask(service, "/denied", "203.0.113.7").await.unwrap();
    assert_eq!(top, "items\n7 address 203.0.113.7\nsearch, on trial\n7 address 203.0.113.7\n");
}

#[test]
fn what_is_not_in_a_scrape_is_complained_about() {
    let scrape = Scrape::parse(
        "# TYPE tollgate_requests_total counter\ntollgate_requests_total{policy=\"a\",result=\"quota\"} 1\n",
    );
    let said = |text: &str| Query::new("a panel", text, "").complaints(&scrape).join("\n");
    assert_eq!(said("sum by (policy) (rate(tollgate_requests_total{result=~\"quota\"}[5m]))"), "");
    assert_eq!(said("rate(tollgate_request_total[5m])"), "a panel: there is no tollgate_request_total");
    let no_label = "a panel: tollgate_requests_total has no label `reason`";
    assert_eq!(said("rate(tollgate_requests_total{reason=\"quota\"}[5m])"), no_label);
    assert_eq!(said("sum by (reason) (tollgate_requests_total)"), no_label);
    let no_value = "a panel: no tollgate_requests_total has the `result` \"qouta\"";
    assert_eq!(said("tollgate_requests_total{result=~\"quota|qouta\"} > 1"), no_value);
    assert!(said("rate(tollgate_requests_total[5m)").starts_with("a panel: "));
    let of_legend = Query::new("a panel", "sum by (policy) (tollgate_requests_total)", "{{policy}} {{result}}");
    assert_eq!(of_legend.complaints(&scrape), ["a panel: the legend has `result`, and the query has not"]);
}
