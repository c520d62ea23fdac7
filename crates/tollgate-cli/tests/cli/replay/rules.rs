//! Rules, matches and tiers of a policy: decided as `RequestLimiter` does, and told in the report.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tollgate::MockClock;
use tollgate_policy::{Asked, Policy, Value};

use crate::replay::browser::{count, elements, rows, text_of};
use crate::replay::support::{Numbers, Scratch, replay, text, tollgate, total};

const RULES: &str = r#"
network_limits = false

[[rule]]
match = { path = "/health" }
action = "admit"

[[rule]]
match = { client = ["203.0.113.0/24", "2001:db8:bad::7"] }
action = "deny"
"#;

const TIERS: &str = r#"
[[dimension]]
name = "tenant"
key = ["client"]
tier_by = "header.x-plan"
quota = [{ limit = 3, per = "10s" }]

[[dimension.tier]]
name = "premium"
quota = [{ limit = 6, per = "10s" }]

[[dimension.tier]]
name = "export"
match = { path = "/export/{*rest}", method = "POST" }
quota = [{ limit = 1, per = "10s" }]

[[dimension.tier]]
name = "internal"
match = { client = "10.0.0.0/8" }
unlimited = true
"#;

const LOGIN: &str = r#"
[[dimension]]
name = "login"
key = ["user", "path"]
match = { path = ["/login", "/export/{*rest}"], host = "*.example.com" }
quota = [{ limit = 2, per = "1m" }]
"#;

const FIELDS: [&str; 6] = ["client", "method", "path", "host", "header.x-plan", "user"];

/// Requests at whole seconds, with the values of [`FIELDS`]; nothing where one is lacking.
fn requests(count: usize) -> Vec<(u64, [&'static str; 6])> {
    const VALUES: [&[&str]; 6] = [
        &[
            "192.0.2.7",
            "192.0.2.8",
            "2001:db8:bad::7",
            "2001:db8:bad::8",
            "203.0.113.9",
            "10.1.2.3",
            "::ffff:192.0.2.7",
        ],
        &["GET", "POST"],
        &["/", "/health", "/login?next=/", "/export/all", "/login"],
        &["www.example.com", "example.com:8080", "API.example.com.", ""],
        &["", "premium", "gold", "export"],
        &["ann", "bela"],
    ];
    let mut numbers = Numbers::from(45);
    let mut time = 1_700_000_000;
    let mut one = || {
        time += numbers.below(3);
        (time, VALUES.map(|values| values[numbers.index(values.len())]))
    };
    (0..count).map(|_| one()).collect()
}

fn csv_of(requests: &[(u64, [&str; 6])]) -> String {
    let row = |(time, values): &(u64, [&str; 6])| format!("{time},{}\n", values.join(","));
    format!("time,client,method,path,host,http_x_plan,user\n{}", requests.iter().map(row).collect::<String>())
}

fn jsonl_of(requests: &[(u64, [&str; 6])]) -> String {
    let row = |(time, [client, method, path, host, plan, user]): &(u64, [&str; 6])| {
        let (host, plan) = ((!host.is_empty()).then_some(host), (!plan.is_empty()).then_some(plan));
        let request = json!({ "host": host, "headers": { "X-Plan": plan }, "method": method, "uri": path });
        format!("{}\n", json!({ "ts": time, "request": request, "client_ip": client, "user": user }))
    };
    requests.iter().map(row).collect()
}

/// Whether the limiter of a service admits each request.
fn admitted(policy: &Policy, requests: &[(u64, [&str; 6])]) -> Vec<bool> {
    let clock = MockClock::new();
    let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).unwrap();
    let start = requests[0].0;
    let decide = |(time, values): &(u64, [&str; 6])| {
        clock.set(u64::try_from(Duration::from_secs(time - start + 3_600).as_nanos()).unwrap());
        let value = |name: &String| {
            let text = values[FIELDS.iter().position(|field| field == name)?];
            let client = || Value::address(policy.client(), text.parse::<IpAddr>().unwrap().to_canonical());
            (!text.is_empty())
                .then(|| if name == "client" { client() } else { text.split('?').next().unwrap().to_owned().into() })
        };
        match limiter.ask(limiter.fields().iter().map(value).collect()) {
            Asked::Admitted { .. } => true,
            Asked::Denied { .. } => false,
            Asked::Limits(keys) => {
                keys.iter().all(Option::is_none) || limiter.limiter().try_acquire(&keys[..]).unwrap().is_admitted()
            }
            Asked::Lacks { field } => panic!("{values:?} lacks {field}"),
        }
    };
    requests.iter().map(decide).collect()
}

#[test]
fn each_request_of_a_log_is_decided_as_a_service_would() {
    let scratch = Scratch::new("rules");
    let requests = requests(3_000);
    let logs = [scratch.with("log.csv", csv_of(&requests)), scratch.with("log.jsonl", jsonl_of(&requests))];
    for (at, policy) in [
        format!("{RULES}{TIERS}"),
        format!("{RULES}{LOGIN}"),
        format!("{TIERS}{LOGIN}"),
        format!("{RULES}{TIERS}{LOGIN}"),
    ]
    .iter()
    .enumerate()
    {
        let expected = admitted(&Policy::from_toml(policy).unwrap(), &requests);
        assert!(expected.contains(&true) && expected.contains(&false));
        let file = scratch.with("policy.toml", policy);
        for log in &logs {
            let rows = scratch.file("decisions.csv");
            let output = replay(&["--policy", &file, "--decisions", &rows, log]);
            assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
            let mut reader = csv::Reader::from_path(&rows).unwrap();
            let allowed: Vec<bool> = reader.records().map(|row| &row.unwrap()[2] == "1").collect();
            let differs = allowed.iter().zip(&expected).position(|(one, other)| one != other);
            assert_eq!(
                (allowed.len(), differs),
                (expected.len(), None),
                "policy {at}, {log}: {:?}",
                differs.map(|at| requests[at])
            );
            let admitted = expected.iter().filter(|admitted| **admitted).count() as u64;
            assert_eq!((total(&output, "admitted"), total(&output, "requests")), (admitted, 3_000));
        }
    }
}

const LOG: &str = "time,client,path,x-plan\n1,192.0.2.7,/health,\n2,203.0.113.9,/,\n3,192.0.2.7,/,premium\n4,192.0.2.7,/,premium\n\
                   5,192.0.2.7,/,gold\n6,192.0.2.7,/,\n7,10.1.2.3,/,premium\n";

/// One permit of each set of quotas.
fn narrow() -> String {
    format!("{RULES}{TIERS}").replace("limit = 3", "limit = 1").replace("limit = 6", "limit = 1")
}

#[test]
fn the_report_counts_what_each_rule_and_tier_decided() {
    let scratch = Scratch::new("rules-report");
    let (policy, log) =
        (scratch.with("policy.toml", narrow().replace(", method = \"POST\"", "")), scratch.with("log.csv", LOG));
    let (rows, page) = (scratch.file("decisions.csv"), scratch.file("report.html"));
    let output = replay(&["--policy", &policy, "--decisions", &rows, "--html", &page, &log]);
    let told = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_eq!((total(&output, "admitted"), total(&output, "denied"), total(&output, "keys")), (4, 3, 2), "{told}");
    let part = told.split("decided before any limit\n").nth(1).unwrap();
    let words: Vec<&str> = part.split("denied by").next().unwrap().split_whitespace().collect();
    let expected = "1 admitted path /health 1 denied client 203.0.113.0/24 or 2001:db8:bad::7 \
                    1 admitted no limit is for them \
                    a value of `tier_by` named no tier once: its dimension's own quotas decided";
    assert_eq!(words.join(" "), expected);
    assert!(told.contains("  1                1 per 10s\n") && told.contains("premium: 1 per 10s\n"), "{told}");
    assert!(told.contains("192.0.2.7 (tier premium)\n") && told.contains(" 192.0.2.7\n"), "{told}");

    let expected = [
        ",1,0,,,rule 1,",
        ",0,,,,rule 2,",
        ",1,0,0,,,",
        ",0,9000000000,,tenant,1 per 10s,tenant",
        ",1,0,0,,,",
        ",0,9000000000,,tenant,1 per 10s,tenant",
        ",1,0,,,,",
    ];
    let rows = fs::read_to_string(rows).unwrap();
    assert!(
        rows.lines().skip(1).zip(expected).all(|(row, end)| row.ends_with(end)) && rows.lines().count() == 8,
        "{rows}"
    );
    let page = fs::read_to_string(page).unwrap();
    for part in
        ["Decided before any limit", "path /health", "no limit is for them", "(tier premium)", "premium: 1 per 10s"]
    {
        assert!(page.contains(part), "{part}");
    }

    let report: Json =
        serde_json::from_slice(&replay(&["--policy", &policy, "--format", "json", &log]).stdout).unwrap();
    let rules = json!([
        { "match": "path /health", "action": "admit", "requests": 1 },
        { "match": "client 203.0.113.0/24 or 2001:db8:bad::7", "action": "deny", "requests": 1 },
    ]);
    assert_eq!(
        (&report["rules"], &report["without_a_limit"], &report["unknown_tiers"]),
        (&rules, &json!(1), &json!(1))
    );
    let tenant = &report["dimensions"][0];
    let quota = json!([{ "quota": "1 per 10s", "denied": 1 }]);
    assert_eq!(tenant["quotas"], quota);
    assert_eq!(tenant["tiers"][0], json!({ "name": "premium", "unlimited": false, "quotas": quota }));
    assert_eq!(tenant["tiers"][2], json!({ "name": "internal", "unlimited": true, "quotas": [] }));
    let worst = json!([
        { "key": "192.0.2.7", "requests": 2, "denied": 1 },
        { "key": "192.0.2.7", "tier": "premium", "requests": 2, "denied": 1 },
    ]);
    assert_eq!(tenant["worst_keys"], worst);
}

#[test]
fn the_report_tells_what_a_dimension_in_shadow_mode_would_deny_and_of_which_keys() {
    let scratch = Scratch::new("rules-shadow");
    let dimension = |name: &str, limit: u32, more: &str| {
        format!(
            "[[dimension]]\nname = \"{name}\"\nkey = [\"client\"]\n{more}quota = [{{ limit = {limit}, per = \"1m\" }}]\n"
        )
    };
    let policy = dimension("client", 3, "") + &dimension("new", 1, "shadow = true\n");
    let policy = scratch.with("policy.toml", format!("network_limits = false\n{policy}"));
    // Four requests of one client, of which the limit in force denies the last, and one of another.
    let log = scratch.with("log.csv", "time,client\n1,192.0.2.7\n2,192.0.2.7\n3,192.0.2.7\n4,192.0.2.7\n5,192.0.2.8\n");
    let page = scratch.file("report.html");
    let output = replay(&["--policy", &policy, "--html", &page, &log]);
    let told = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (4, 1), "{told}");
    let part = told.split("would be denied, but for shadow mode\n").nth(1).unwrap().trim_start();
    assert!(part.starts_with("3   60.00% of requests  new\n"), "{told}");
    assert!(told.contains("1 (50.00%) would be denied at least once (new)"), "{told}");
    let keys = told.split("keys that new would deny most\n").nth(1).unwrap();
    let words: Vec<&str> = keys.split_whitespace().skip(5).take(4).collect();
    assert_eq!(words, ["3", "4", "75.00%", "192.0.2.7"], "{told}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Would be denied, but for shadow mode"));
    let report: Json =
        serde_json::from_slice(&replay(&["--policy", &policy, "--format", "json", &log]).stdout).unwrap();
    let new = &report["dimensions"][1];
    assert_eq!((&new["shadow"], &new["in_the_way"], &new["denied"]), (&json!(true), &json!(3), &json!(0)));
}

#[test]
fn a_field_that_only_matches_look_at_may_be_lacking() {
    let scratch = Scratch::new("rules-lacking");
    let policy = scratch.with("policy.toml", format!("{RULES}{TIERS}"));
    let line = "192.0.2.7 - - [02/Mar/2026:08:00:01 +0000] \"GET /health HTTP/1.1\" 200 1\n";
    let output = replay(&["--policy", &policy, &scratch.with("access.log", line)]);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(told, "no record has a header.x-plan, so that no match that looks at it holds\n");
    assert!(text(&output.stdout).contains("        1  admitted   path /health\n"));
    // A key is no match.
    let keyed = scratch
        .with("keyed.toml", format!("{RULES}{}", TIERS.replace("key = [\"client\"]", "key = [\"header.x-plan\"]")));
    let output = replay(&["--policy", &keyed, &scratch.with("access.log", line)]);
    assert!(text(&output.stderr).contains("no column for the key header.x-plan"), "{}", text(&output.stderr));
}

/// A line whose dimensions have no key is decided by rules alone.
#[test]
fn a_line_without_a_key_is_decided_by_rules() {
    let scratch = Scratch::new("rules-keys");
    let policy = scratch.with("policy.toml", format!("{RULES}{TIERS}"));
    let log =
        scratch.with("log.csv", "time,client,path,method,x-plan\n1,,/health,GET,\n2,,/,GET,\n3,192.0.2.7,/,GET,\n");
    let output = replay(&["--policy", &policy, &log]);
    assert_eq!((total(&output, "requests"), total(&output, "admitted")), (2, 2), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("of them 1 without a client"), "{}", text(&output.stdout));
}

#[test]
fn policies_with_rules_are_compared() {
    let scratch = Scratch::new("rules-compare");
    let (one, log) = (
        scratch.with("one.toml", narrow()),
        scratch.with(
            "log.csv",
            LOG.replace("path,", "path,method,").replace(",/health,", ",/health,GET,").replace(",/,", ",/,GET,"),
        ),
    );
    let other =
        scratch.with("other.toml", "[[dimension]]\nname = \"client\"\nquota = [{ limit = 1, per = \"10s\" }]\n");
    let page = scratch.file("compare.html");
    let compare = |format: &str| {
        let output = tollgate()
            .args(["compare", "--policy", &one, "--policy", &other, "--html", &page, "--format", format, &log])
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        output.stdout
    };
    let told = text(&compare("text"));
    for line in ["of all, 1 admitted by rules", "of all, 1 denied by rules", "of all, 1 without a limit"] {
        assert_eq!(told.matches(line).count(), 1, "{told}");
    }
    let document = fs::read_to_string(&page).unwrap();
    let columns = elements(&document, "th").iter().map(|(_, cell)| text_of(cell)).collect::<Vec<_>>();
    let of_rules = ["admitted by rules", "denied by rules", "without a limit"];
    assert!(columns.ends_with(&of_rules.map(str::to_owned)), "{columns:?}");
    let shown = rows(&document, "compared");
    let last = |at: usize| shown[at][columns.len() - 3..].iter().map(|cell| count(cell)).collect::<Vec<_>>();
    assert_eq!((last(0), last(1)), (vec![1; 3], vec![0; 3]));
    let report: Json = serde_json::from_slice(&compare("json")).unwrap();
    let of = |at: usize| (report["compared"][at]["admitted"].as_u64(), report["compared"][at]["denied"].as_u64());
    assert_eq!((of(0), of(1)), ((Some(4), Some(3)), (Some(3), Some(4))));
    assert_eq!(report["compared"][0]["bursts"][0]["most"], json!(1), "what a rule admits is granted by no limit");
    assert_eq!(report["compared"][0]["without_a_limit"], json!(1));
}
