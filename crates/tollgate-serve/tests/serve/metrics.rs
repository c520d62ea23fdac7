//! `GET /metrics`.

use crate::support::{Running, server, until};

const POLICY: &str = r#"
    [[dimension]]
    name = "user"
    quota = [{ limit = 1, per = "1h" }, { limit = 9, per = "1d" }]
    tier_by = "plan"

    [[dimension.tier]]
    name = "free"
    quota = [{ limit = 2, per = "1d" }]
"#;

const TEXT: &str = r#"# HELP tollgate_requests_total Requests by result.
# TYPE tollgate_requests_total counter
tollgate_requests_total{result="admitted"} 1
tollgate_requests_total{result="admitted_by_rule"} 0
tollgate_requests_total{result="unlimited"} 0
tollgate_requests_total{result="overruled"} 0
tollgate_requests_total{result="uncounted"} 0
tollgate_requests_total{result="quota"} 2
tollgate_requests_total{result="in_flight"} 0
tollgate_requests_total{result="penalty"} 0
tollgate_requests_total{result="key_cap"} 0
tollgate_requests_total{result="deny_list"} 0
tollgate_requests_total{result="denied_by_rule"} 0
tollgate_requests_total{result="cost"} 0
tollgate_requests_total{result="missing_key"} 0
tollgate_requests_total{result="malformed"} 0
tollgate_requests_total{result="misdirected"} 0
tollgate_requests_total{result="undecided"} 0
# HELP tollgate_admissions_total Admissions by dimension.
# TYPE tollgate_admissions_total counter
tollgate_admissions_total{dimension="user"} 1
# HELP tollgate_denials_total Denials by the quota with the longest wait, also those that shadow mode overruled.
# TYPE tollgate_denials_total counter
tollgate_denials_total{dimension="user",quota="user-1h"} 2
tollgate_denials_total{dimension="user",quota="user-1d"} 0
tollgate_denials_total{dimension="user",tier="free",quota="user"} 0
# HELP tollgate_connections Open connections.
# TYPE tollgate_connections gauge
tollgate_connections 1
# HELP tollgate_connections_turned_away_total Connections beyond the most.
# TYPE tollgate_connections_turned_away_total counter
tollgate_connections_turned_away_total 0
# HELP tollgate_unknown_tiers_total Values of `tier_by` that name no tier.
# TYPE tollgate_unknown_tiers_total counter
tollgate_unknown_tiers_total 3
# HELP tollgate_live_keys Keys with a live permit.
# TYPE tollgate_live_keys gauge
tollgate_live_keys 1
# HELP tollgate_bytes Bytes that the limiter takes.
# TYPE tollgate_bytes gauge
tollgate_bytes"#;

#[test]
fn metrics_have_the_text_format_of_prometheus() {
    let served = Running::start(server(POLICY));
    for _ in 0..3 {
        served.acquire(r#"{"keys": {"user": "alice", "plan": "gold"}}"#);
    }
    // The server may not have seen the end of the connections before.
    let answer = until("one connection", || {
        Some(served.get("/metrics", &[])).filter(|answer| answer.body.contains("tollgate_connections 1\n"))
    });
    assert_eq!(answer.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let (text, bytes) = answer.body.trim_end().rsplit_once(' ').unwrap();
    assert_eq!(text, TEXT);
    assert!(bytes.parse::<u64>().unwrap() > 0);
}
