//! `tollgate check`: what it says of policies, and where it says that they are wrong.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::replay::support::{Scratch, text, tollgate};

const SAMPLE_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");

fn check(args: &[&str]) -> Output {
    tollgate().arg("check").args(args).output().unwrap()
}

#[test]
fn a_good_policy_is_told_in_words() {
    let output = check(&[SAMPLE_POLICY]);
    assert!(output.status.success() && output.stderr.is_empty());
    let expected = format!(
        "{SAMPLE_POLICY}: good, 2 dimensions\n  holds at most 100,000 keys\n  \
         when it is full, requests with a new key are denied\n  address: for each client (IPv6 by /64)\n    \
         at most 5 in any 1s\n    at most 40 in any 1m\n  endpoint: for each path\n    token bucket of 30, refilled by 10 per 1m\n  \
         for IPv6 networks, added by `tollgate serve` without `network_limits = false`:\n    \
         client/48: token bucket of 4000, refilled by 4000 per 1m\n    \
         client/32: token bucket of 40000, refilled by 40000 per 1m\n"
    );
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn requests_in_flight_are_told_in_words_and_by_which_ways_none_is_held() {
    let scratch = Scratch::new("check-in-flight");
    let dimension = |name: &str, quota: &str| format!("[[dimension]]\nname = \"{name}\"\nquota = [{{ {quota} }}]\n");
    let tier = "[[dimension.tier]]\nname = \"pro\"\nquota = [{ algorithm = \"concurrency\", limit = 2000 }]\n";
    let in_flight = dimension("user", "algorithm = \"concurrency\", limit = 4, max_hold = \"10m\"");
    let policy = scratch.with("p.toml", in_flight + tier + &dimension("tenant", "limit = 5, per = \"1m\""));
    let expected = format!(
        "{policy}: good, 2 dimensions\n  user: for each user\n    at most 4 in flight at once, each held by a store or `tollgate \
         serve` for at most 10m\n    tier pro: requests for which the program chooses it\n      at most 2,000 in flight at \
         once, each held by a store or `tollgate serve` for at most 1m\n  tenant: for each tenant\n    at most 5 in any 1m\n  in flight: \
         `/acquire` holds a request until `/release`\n    asked by nginx or Envoy, which tell no end, a request is over at \
         once and holds no place\n"
    );
    let told = text(&check(&[&policy]).stdout);
    assert_eq!(told.split_whitespace().collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
    let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
    let quota = &report["policies"][0]["dimensions"][0]["quotas"][0]["quota"];
    assert_eq!(quota, "concurrency limit, 4 in flight, held for at most 10m");
}

#[test]
fn limits_of_networks_that_serve_adds_are_told() {
    let scratch = Scratch::new("check-networks");
    let dimension = "[[dimension]]\nname = \"a\"\nkey = [\"client\"]\nquota = [{ limit = 524, per = \"1m\" }]\n";
    let added = |policy: String| {
        let policy = scratch.with("p.toml", policy);
        let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
        let names = report["policies"][0]["added_by_serve"].as_array().unwrap().iter().map(|it| it["name"].clone());
        (names.collect::<Vec<_>>(), text(&check(&[&policy]).stdout))
    };
    let (names, told) = added(dimension.to_owned());
    assert_eq!(names, ["client/48", "client/32"]);
    assert!(told.ends_with("client/32: token bucket of 524000, refilled by 524000 per 1m\n"), "{told}");
    // Twice as many as a bucket has, in a window of a client: more than a cap of a million.
    let (_, told) = added(dimension.replace("524", "525"));
    assert!(told.ends_with("can fill the cap on keys: give networks limits of their own\n"), "{told}");
    let (names, told) = added(format!("network_limits = false\n{dimension}"));
    assert!(names.is_empty() && !told.contains("IPv6 networks"), "{told}");
}

#[test]
fn who_a_client_is_is_told_in_words() {
    let scratch = Scratch::new("check-clients");
    let quota = "quota = [{ limit = 5, per = \"1m\" }]";
    let dimension = |name: &str, key: &str| format!("[[dimension]]\nname = \"{name}\"\nkey = [{key}]\n{quota}\n");
    let client = "[client]\ntrusted_proxies = [\"10.0.0.0/8\", \"unix\"]\nheader = \"X-Real-IP\"\nipv6_prefix = 56\n";
    let dimensions = dimension("log in", "\"client\", \"user\"") + &dimension("path", "\"path\"");
    let policy = scratch.with("p.toml", format!("network_limits = false\n{client}{dimensions}"));
    let words = "IPv6 by /56; behind 10.0.0.0/8, unix, by x-real-ip";
    let told = text(&check(&[&policy]).stdout);
    assert!(told.contains(&format!("  log in: for each client + user ({words})\n    at most 5 in any 1m\n")), "{told}");
    assert!(told.contains("  path: for each path\n"), "{told}");
    let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
    assert_eq!(report["policies"][0]["client"], json!(words));
}

#[test]
fn quotas_that_never_decide_are_told() {
    let scratch = Scratch::new("check-idle");
    // A second's worth of 10 fills a minute with 600 at most, and 50 in 10 s is more than 40 in a
    // minute.
    let quotas = [(10, "1s"), (600, "1m"), (599, "1m"), (40, "2m"), (10, "1500ms"), (10, "1s")];
    let tables: String = quotas.map(|(limit, per)| format!("{{ limit = {limit}, per = \"{per}\" }},")).concat();
    let policy = scratch.with("p.toml", format!("[[dimension]]\nname = \"client\"\nquota = [{tables}]\n"));
    let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
    let quotas = report["policies"][0]["dimensions"][0]["quotas"].as_array().unwrap();
    let beside: Vec<&Value> = quotas.iter().map(|quota| &quota["never_decides_beside"]).collect();
    // 10 in 1.5 s is tighter than 10 in 1 s; 40 in 2 m is tighter than 600 or 599 in 1 m.
    let tight = json!("10 per 1s500ms");
    assert_eq!(
        beside,
        [&tight, &json!("10 per 1s"), &json!("40 per 2m"), &Value::Null, &Value::Null, &json!("10 per 1s")]
    );
    assert!(text(&check(&[&policy]).stdout).contains("never decides: 40 per 2m is tighter; leave it out"));
}

#[test]
fn of_equal_quotas_the_later_is_told_to_be_the_same() {
    let scratch = Scratch::new("check-equal");
    let quotas = "[{ limit = 5, per = \"1m\" }, { limit = 5, per = \"60s\", name = \"again\" }]";
    let policy = scratch.with("p.toml", format!("[[dimension]]\nname = \"user\"\nquota = {quotas}\n"));
    let report = text(&check(&[&policy]).stdout);
    assert!(report.ends_with("    at most 5 in any 1m\n      the same as the one above: leave it out\n"), "{report}");
    assert!(!report.contains("tighter"), "{report}");
}

#[test]
fn errors_are_shown_at_their_place() {
    let scratch = Scratch::new("check-wrong");
    let cases = [
        ("[[dimension]]\nname = \"a\"\n\tquota = [{ limit = 0, per = \"1s\" }]\n", 3, 11, "the limit is zero"),
        ("[[dimension]]\nname = \"a\"\nquota = [{ limit = 5, per = \"1.5\" }]\n", 3, 29, "write \"1.5s\""),
        ("[[dimension]]\nname = \"a\"\nquota = [{ limit = 5, per = \"20000d\" }]\n", 3, 10, "at most 13343d 23h"),
        ("key_cap = 7\n", 2, 1, "give at least one"),
    ];
    for (policy, line, column, reason) in cases {
        let file = scratch.with("policy.toml", policy);
        let output = check(&[&file]);
        assert_eq!(output.status.code(), Some(2), "{policy}");
        assert!(output.stdout.is_empty());
        let complaint = text(&output.stderr);
        assert!(
            complaint.starts_with(&format!("{file}:{line}:{column}: ")) && complaint.contains(reason),
            "{complaint}"
        );
        // What is missing at the end has no line to show.
        let mark = complaint.lines().nth(2).map(|mark| mark.chars().count());
        assert_eq!(mark, (line == 3).then_some(4 + column), "{complaint}");
        let json: Value = serde_json::from_slice(&check(&["--format", "json", &file]).stdout).unwrap();
        let told = &json["policies"][0];
        assert_eq!((&told["good"], told["line"].as_u64()), (&json!(false), Some(line)), "{json}");
        assert!(told["error"].as_str().unwrap().contains(reason));
    }
}

#[test]
fn every_file_is_told_of_and_the_worst_decides_the_exit_code() {
    let scratch = Scratch::new("check-many");
    let (nowhere, wrong) = (scratch.file("nowhere.toml"), scratch.with("wrong.toml", "x = 1\n"));
    let output = check(&[&nowhere, SAMPLE_POLICY]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("can't be read") && text(&output.stdout).contains("good, 2 dimensions"));
    let output = check(&[&nowhere, &wrong, SAMPLE_POLICY]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(&format!("{wrong}:1:1: ")), "{}", text(&output.stderr));
    assert_eq!(check(&[]).status.code(), Some(2), "no file at all");
    fs::write(&wrong, [0xff, 0xfe]).unwrap();
    assert_eq!(check(&[&wrong]).status.code(), Some(1), "not text");
}

#[test]
fn a_store_is_told_without_its_secret() {
    let scratch = Scratch::new("check-store");
    let policy = scratch.with(
        "p.toml",
        "key_cap = 7\n[store]\nurl = \"redis://db:6379\"\nsecret = { env = \"S\" }\non_failure = \"local\"\nnodes = 4\n\
         [[dimension]]\nname = \"client\"\nquota = [{ limit = 8, per = \"1s\" }]\n",
    );
    let report = text(&check(&[&policy]).stdout);
    let away = "each of 4 nodes decides by its share in process";
    assert!(report.contains(&format!("on the store redis://db:6379; while it is away, {away}")), "{report}");
    assert!(report.contains("holds at most 7 keys\n"), "{report}");
    let closed = fs::read_to_string(&policy).unwrap().replace("on_failure = \"local\"\nnodes = 4\n", "");
    let told = text(&check(&[&scratch.with("closed.toml", closed)]).stdout);
    assert!(told.contains("while it is away, requests are refused\n"), "{told}");
    assert!(told.contains("the cap on keys has no effect on a store\n") && !told.contains("holds"), "{told}");
    let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
    let told = &report["policies"][0];
    assert_eq!((&told["store"], &told["while_the_store_is_away"]), (&json!("redis://db:6379"), &json!(away)));
}

const RULES: &str = r#"
network_limits = false

[client]
trusted_proxies = ["10.0.0.0/8"]

[[rule]]
match = { path = "/health" }
action = "admit"

[[rule]]
match = { client = ["192.0.2.0/24"] }
action = "admit"

[[rule]]
match = { path = "/health", method = "GET" }
action = "deny"

[[rule]]
match = { client = "192.0.2.7" }
action = "deny"

[[dimension]]
name = "login"
key = ["client"]
match = { path = "/login", method = ["POST", "PUT"] }
quota = [{ limit = 5, per = "1m" }]
tier_by = "header.x-plan"

[[dimension.tier]]
name = "premium"
quota = [{ limit = 600, per = "1m" }, { limit = 10, per = "1s" }]

[[dimension.tier]]
name = "internal"
match = { client = "172.16.0.0/12" }
unlimited = true

[[dimension.tier]]
name = "office"
match = { client = "172.16.7.0/24" }
quota = [{ limit = 7, per = "1m" }]

[[dimension.tier]]
name = "health"
match = { path = "/health" }
quota = [{ limit = 8, per = "1m" }]

[[dimension.tier]]
name = "free"
match = { header.x-plan = ["free", "gold"] }
quota = [{ limit = 4, per = "1m" }]

[[dimension.tier]]
name = "gold"
quota = [{ limit = 9, per = "1m" }]
"#;

#[test]
fn each_rule_dimension_and_tier_is_told_in_a_sentence_and_whether_it_ever_decides() {
    let scratch = Scratch::new("check-rules");
    let policy = scratch.with("p.toml", RULES);
    let output = check(&[&policy]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let expected = "good, 1 dimension
  requests with path /health are admitted without a limit
  clients in 192.0.2.0/24 are admitted without a limit
  requests with method GET and path /health are denied
    never decides: rule 1 is for all of them; leave it out, or put it first
  clients in 192.0.2.7 are denied
    never decides: rule 2 is for all of them; leave it out, or put it first
  login: for each client (IPv6 by /64; behind 10.0.0.0/8, by x-forwarded-for) of requests with method POST or PUT and path /login
    at most 5 in any 1m
    tier premium: requests whose header x-plan is premium
      at most 600 in any 1m
        never decides: 10 per 1s is tighter; leave it out
      at most 10 in any 1s
    tier internal: clients in 172.16.0.0/12 are not limited
    tier office: clients in 172.16.7.0/24
      is never chosen: tier internal is for all of them; leave it out
      at most 7 in any 1m
    tier health: requests with path /health
      is never chosen: rule 1 is for all of them; leave it out
      at most 8 in any 1m
    tier free: requests whose header x-plan is free or gold
      at most 4 in any 1m
    tier gold: requests whose header x-plan is gold
      is never chosen: tier free is for all of them; leave it out
      at most 9 in any 1m
    requests whose header x-plan names no tier have the quotas of the dimension
";
    assert_eq!(text(&output.stdout), format!("{policy}: {expected}"));

    let report: Value = serde_json::from_slice(&check(&["--format", "json", &policy]).stdout).unwrap();
    let told = &report["policies"][0];
    let rule = json!({ "match": "client 192.0.2.7", "action": "deny", "never_decides_behind": "rule 2" });
    assert_eq!((&told["rules"][3], &told["rules"][1]["never_decides_behind"]), (&rule, &Value::Null));
    let login = &told["dimensions"][0];
    assert_eq!(
        (&login["match"], &login["tier_by"]),
        (&json!("method POST or PUT, path /login"), &json!("header.x-plan"))
    );
    assert_eq!(login["tiers"][2]["never_chosen_behind"], json!("tier internal"));
    assert_eq!(login["tiers"][0]["quotas"][0]["never_decides_beside"], json!("10 per 1s"));
    assert_eq!(login["tiers"][1]["unlimited"], json!(true));
}

#[test]
fn a_quota_that_another_dimension_implies_is_told() {
    let scratch = Scratch::new("check-implied");
    let dimension = |name: &str, fields: &str, limit: u32, per: &str| {
        format!(
            "[[dimension]]\nname = \"{name}\"\nkey = [\"user\"]\n{fields}\nquota = [{{ limit = {limit}, per = \"{per}\" }}]\n"
        )
    };
    let told = |dimensions: [String; 2]| text(&check(&[&scratch.with("p.toml", dimensions.concat())]).stdout);
    let wide = dimension("all", "", 10, "1m");
    let implied = told([wide.clone(), dimension("login", "match = { path = \"/login\" }", 10, "30s")]);
    assert!(
        implied.ends_with(
            "    at most 10 in any 30s\n      never decides: 10 per 1m of all denies as much; leave it out\n"
        ),
        "{implied}"
    );
    for other in [
        dimension("login", "match = { path = \"/login\" }", 9, "30s"),
        dimension("login", "match = { path = \"/login\" }", 10, "2m"),
        dimension("login", "match = { path = \"/login\" }", 10, "30s").replace("user", "client"),
    ] {
        let told = told([wide.clone(), other]);
        assert!(!told.contains("never decides"), "{told}");
    }
    // One in shadow mode denies nothing.
    let shadowed = told([dimension("all", "shadow = true", 10, "1m"), dimension("login", "", 10, "30s")]);
    assert!(!shadowed.contains("never decides"), "{shadowed}");
    assert!(shadowed.contains("for each user\n    in shadow mode: what it would deny is admitted\n"), "{shadowed}");
    // One that is asked of less implies nothing of the rest.
    let narrow = dimension("all", "match = { path = \"/\" }", 10, "1m");
    let told_of = told([narrow, dimension("login", "", 10, "30s")]);
    assert!(!told_of.contains("never decides"), "{told_of}");
    let never = told([
        format!("[[rule]]\nmatch = {{ path = \"/login\" }}\naction = \"admit\"\n{wide}"),
        dimension("login", "match = { path = \"/login\" }", 9, "30s"),
    ]);
    assert!(never.contains("    is never asked: rule 1 is for all of them; leave it out\n"), "{never}");
}

#[test]
fn what_a_store_does_not_keep_is_told() {
    let scratch = Scratch::new("check-not-kept");
    let policy = scratch.with(
        "p.toml",
        "shadow = true\n[store]\nurl = \"redis://db:6379\"\nsecret = { env = \"S\" }\n[[dimension]]\nname = \"client\"\n\
         quota = [{ limit = 8, per = \"1s\" }]\npenalty = { denials = 3, within = \"1m\", blocked_for = \"1h\" }\n",
    );
    let output = check(&[&policy]);
    let told = text(&output.stdout) + &text(&output.stderr);
    let parts: &[&str] = match cfg!(feature = "redis") {
        true => &["a store keeps no `penalty`"],
        false => &["a store keeps no penalty", "a store keeps no shadow mode"],
    };
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
}
