//! `replay --policy`: the totals against an independent program, and what is said of files that are
//! no policies.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use tollgate_kit::key::Quotas;
use tollgate_policy::Policy;

use crate::replay::naive::{self, Part, Totals, log, token_bucket};
use crate::replay::support::{SAMPLE, Scratch, replay, shared, text, total};

const SAMPLE_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");

/// What `examples/sample/policy.toml` says, for the independent program.
fn sample_rules() -> Vec<(Part, Vec<Quotas>)> {
    let address = vec![log(5, 1), log(40, 60)];
    let endpoint = vec![token_bucket(30, 10, 60)];
    vec![(Part::Client, address), (Part::Path, endpoint)]
}

/// Tighter, so that each of three quotas bites on the real log too.
const TIGHT_POLICY: &str = r#"
[[dimension]]
name = "address"
key = ["client"]
quota = [{ limit = 3, per = "1s" }, { limit = 20, per = "5m" }]

[[dimension]]
name = "endpoint"
key = ["path"]
quota = [{ algorithm = "token-bucket", capacity = 4, refill = 1, per = "1m" }]
"#;

fn tight_rules() -> Vec<(Part, Vec<Quotas>)> {
    let address = vec![log(3, 1), log(20, 300)];
    let endpoint = vec![token_bucket(4, 1, 60)];
    vec![(Part::Client, address), (Part::Path, endpoint)]
}

/// Windows alone.
const LOGS_POLICY: &str = r#"
[[dimension]]
name = "endpoint"
key = ["path"]
quota = [{ limit = 30, per = "10m" }]

[[dimension]]
name = "address"
key = ["client"]
quota = [{ limit = 2, per = "1s" }, { limit = 50, per = "1h" }]
"#;

fn logs_rules() -> Vec<(Part, Vec<Quotas>)> {
    let address = vec![log(2, 1), log(50, 3600)];
    vec![(Part::Path, vec![log(30, 600)]), (Part::Client, address)]
}

/// The numbers of the report's part on dimensions and quotas, by what they are of.
fn denied_by(output: &Output) -> HashMap<String, (u64, Option<u64>)> {
    let report = text(&output.stdout);
    let part = report.split("denied by").nth(1).unwrap_or_else(|| panic!("{report}"));
    let number = |word: &str| word.trim().replace(',', "").parse::<u64>().ok();
    let row = |line: &str| (line[24..].trim().to_owned(), (number(&line[..11]).unwrap(), number(&line[11..24])));
    part.lines().skip(3).take_while(|line| !line.is_empty()).map(row).collect()
}

/// Replays a log by a policy and compares every number with those of the independent program.
fn compare(scratch: &Scratch, policy: &str, log: &str, rules: &[(Part, Vec<Quotas>)]) -> Totals {
    let file = scratch.file("decisions.csv");
    let output = replay(&["--policy", policy, "--decisions", &file, log]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let expected = naive::decide(&String::from_utf8_lossy(&fs::read(log).unwrap()), rules);
    assert_eq!(total(&output, "requests"), expected.admitted + expected.denied);
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (expected.admitted, expected.denied));

    let policy = Policy::from_toml(&fs::read_to_string(policy).unwrap()).unwrap();
    let shown = denied_by(&output);
    for (at, dimension) in policy.dimensions().iter().enumerate() {
        let (denied, in_the_way) = expected.by_dimension[at];
        assert_eq!(shown[dimension.name()], (denied, Some(in_the_way)), "{}", text(&output.stdout));
        for (quota, denied) in dimension.quotas().iter().zip(&expected.by_quota[at]) {
            assert_eq!(shown[&quota.to_string()], (*denied, None), "{quota}: {}", text(&output.stdout));
        }
    }

    let mut reader = csv::Reader::from_path(&file).unwrap();
    let header = "time,key,allowed,retry_after_ns,delay_ns,dimension,quota,in_the_way";
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), header);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let waits: Vec<u64> = rows.iter().map(|row| row[3].parse().unwrap()).collect();
    assert!(waits == expected.waits, "the waits are those of the independent program");
    assert!(rows.iter().all(|row| (&row[2] == "1") == (&row[3] == "0")));
    for (at, dimension) in policy.dimensions().iter().enumerate() {
        let by = rows.iter().filter(|row| &row[5] == dimension.name()).count() as u64;
        let way = rows.iter().filter(|row| row[7].split(" + ").any(|name| name == dimension.name())).count() as u64;
        assert_eq!((by, way), expected.by_dimension[at]);
    }
    expected
}

#[test]
fn two_dimensions_and_three_quotas_on_the_sample() {
    let scratch = Scratch::new("policies");
    let totals = compare(&scratch, SAMPLE_POLICY, SAMPLE, &sample_rules());
    assert_eq!((totals.admitted, totals.denied), (1966, 434));
    assert_eq!(totals.by_quota, [vec![81, 142], vec![211]], "each of the three bites");
    for (name, policy, rules) in [("tight", TIGHT_POLICY, tight_rules()), ("logs", LOGS_POLICY, logs_rules())] {
        let totals = compare(&scratch, &scratch.with(name, policy), SAMPLE, &rules);
        let bite = totals.by_quota.iter().flatten().filter(|denied| **denied > 0).count();
        assert!(bite >= if name == "tight" { 3 } else { 2 }, "{name}: {:?}", totals.by_quota);
    }
}

#[test]
fn two_dimensions_and_three_quotas_on_the_real_log() {
    let Some(log) = shared("apache_access.log") else { return };
    let scratch = Scratch::new("real-policies");
    let totals = compare(&scratch, SAMPLE_POLICY, &log, &sample_rules());
    assert_eq!((totals.admitted, totals.denied), (9774, 226));
    for (name, policy, rules) in [("tight", TIGHT_POLICY, tight_rules()), ("logs", LOGS_POLICY, logs_rules())] {
        let totals = compare(&scratch, &scratch.with(name, policy), &log, &rules);
        let bite = totals.by_quota.iter().flatten().filter(|denied| **denied > 0).count();
        assert!(bite >= if name == "tight" { 3 } else { 2 }, "{name}: {:?}", totals.by_quota);
    }
}

#[test]
fn a_request_without_the_key_of_a_dimension_is_asked_in_the_others() {
    let scratch = Scratch::new("lacking");
    let policy = scratch.with(
        "policy.toml",
        "[[dimension]]\nname = \"user\"\nquota = [{ limit = 1, per = \"1m\" }]\n\
         [[dimension]]\nname = \"both\"\nkey = [\"client\", \"path\"]\nquota = [{ limit = 2, per = \"1m\" }]\n",
    );
    let log =
        scratch.with("log.csv", "time,user,client,path\n1,a,x y,/\n2,-,x y,/\n3,a,z,/\n4,,x y,/?q\n5,b,,\n6,,,\n");
    let file = scratch.file("decisions.csv");
    let output = replay(&["--policy", &policy, "--decisions", &file, &log]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 without a user or client + path"), "{}", text(&output.stdout));
    let expected = "time,key,allowed,retry_after_ns,delay_ns,dimension,quota,in_the_way\n\
        1970-01-01T00:00:01Z,a x\\\\\\ y\\ /,1,0,0,,,\n\
        1970-01-01T00:00:02Z,- x\\\\\\ y\\ /,1,0,0,,,\n\
        1970-01-01T00:00:03Z,a z\\ /,0,58000000000,,user,1 per 1m,user\n\
        1970-01-01T00:00:04Z,- x\\\\\\ y\\ /,0,57000000000,,both,2 per 1m,both\n\
        1970-01-01T00:00:05Z,b -,1,0,0,,,\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
}

#[test]
fn a_policy_in_shadow_mode_reports_its_denials() {
    let scratch = Scratch::new("shadow");
    let log = scratch.with("log.csv", "time,client\n1,a\n2,a\n3,a\n");
    let policy = "shadow = true\n[[dimension]]\nname = \"client\"\nquota = [{ limit = 1, per = \"1m\" }]\n";
    let replayed = replay(&["--policy", &scratch.with("policy.toml", policy), &log]);
    assert_eq!((total(&replayed, "admitted"), total(&replayed, "denied")), (1, 2));
}

#[test]
fn the_cap_on_keys_is_that_of_the_policy() {
    let scratch = Scratch::new("key-cap");
    let log = scratch.with("log.csv", "time,client\n1,a\n2,b\n3,c\n4,a\n");
    let policy = |at_key_cap: &str| {
        let text =
            "[[dimension]]\nname = \"client\"\nquota = [{ limit = 9, per = \"1m\" }, { limit = 99, per = \"2m\" }]\n";
        scratch.with("policy.toml", format!("key_cap = 2\nat_key_cap = \"{at_key_cap}\"\n{text}"))
    };
    let denied = replay(&["--policy", &policy("deny"), &log]);
    assert_eq!((total(&denied, "admitted"), total(&denied, "denied")), (3, 1));
    assert_eq!(denied_by(&denied)["no place for a new key"].0, 1);
    let admitted = replay(&["--policy", &policy("admit"), &log]);
    assert_eq!((total(&admitted, "admitted"), total(&admitted, "denied")), (4, 0));
}

#[test]
fn a_cost_above_a_limit_is_too_big_in_that_dimension() {
    let scratch = Scratch::new("policy-cost");
    let log = scratch.with("log.csv", "time,user,client,cost\n1,u,c,4\n2,u,c,3\n3,u,c,2\n");
    let policy = scratch.with(
        "policy.toml",
        "[[dimension]]\nname = \"user\"\nquota = [{ limit = 3, per = \"1m\" }]\n\
         [[dimension]]\nname = \"client\"\nquota = [{ limit = 4, per = \"1m\" }]\n",
    );
    let output = replay(&["--policy", &policy, "--cost-column", "cost", &log]);
    assert!(text(&output.stdout).contains("too big"), "{}", text(&output.stdout));
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (1, 1));
    let worst = text(&output.stdout);
    let worst = worst.split("worst keys of user").nth(1).unwrap().lines().nth(3).unwrap().to_owned();
    assert_eq!(worst.split_whitespace().collect::<Vec<_>>(), ["1", "3", "33.33%", "u"]);
    let output = replay(&["--policy", &policy, "--cost-column", "cost", "--format", "json", &log]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let too_big = [0, 1].map(|at| report["dimensions"][at]["too_big"].as_u64().unwrap());
    assert_eq!(too_big, [1, 0], "a cost of 4 is above the limit of users alone");
}

#[test]
fn a_policy_error_comes_before_any_log_is_read() {
    let scratch = Scratch::new("bad-policy");
    let file = scratch.file("decisions.csv");
    for (policy, reason) in [
        ("", "line 1, column 1: 0 dimensions"),
        ("[[dimension]]\nname = \"a\"\nquota = [{ limit = 0, per = \"1s\" }]", "line 3, column 10: the limit is zero"),
        ("key_cap = 5\nkey_cup = 5", "line 2, column 1: unknown field `key_cup`"),
    ] {
        let path = scratch.with("policy.toml", policy);
        let output = replay(&["--policy", &path, "--decisions", &file, SAMPLE]);
        assert_eq!(output.status.code(), Some(2), "{policy}");
        let complaint = text(&output.stderr);
        assert!(complaint.contains(&format!("{path}: {reason}")), "{complaint}");
        assert!(output.stdout.is_empty() && !Path::new(&file).exists());
    }
    let nowhere = scratch.file("nowhere.toml");
    let output = replay(&["--policy", &nowhere, SAMPLE]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&nowhere), "{}", text(&output.stderr));
}

#[test]
fn a_policy_stands_alone_and_is_not_written_over() {
    for option in
        [["--limit", "5"], ["--per", "1s"], ["--key", "path"], ["--algorithm", "fixed-window"], ["--leak", "1"]]
    {
        let output = replay(&["--policy", SAMPLE_POLICY, option[0], option[1], SAMPLE]);
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        assert!(text(&output.stderr).contains("cannot be used with"), "{}", text(&output.stderr));
    }
    let scratch = Scratch::new("policy-overwrite");
    let policy = scratch.with("policy.toml", fs::read(SAMPLE_POLICY).unwrap());
    let output = replay(&["--policy", &policy, "--decisions", &policy, SAMPLE]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("would overwrite"));
    assert_eq!(fs::read(&policy).unwrap(), fs::read(SAMPLE_POLICY).unwrap());
}

#[test]
fn a_policy_whose_key_no_record_has_says_so() {
    let scratch = Scratch::new("policy-key");
    let policy =
        scratch.with("policy.toml", "[[dimension]]\nname = \"tenant\"\nquota = [{ limit = 1, per = \"1s\" }]\n");
    let log = scratch.with("log.csv", "time,client\n1,a\n");
    let output = replay(&["--policy", &policy, &log]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("`key` in the policy"), "{}", text(&output.stderr));
}

/// Nothing decides in process by mistake.
#[cfg(not(feature = "redis"))]
#[test]
fn a_policy_for_a_store_is_refused_where_there_can_be_none() {
    let scratch = Scratch::new("no-store");
    let store = "[store]\nurl = \"redis://db:6379\"\nsecret = { env = \"S\" }\n";
    let policy = scratch.with("p.toml", format!("{store}{TIGHT_POLICY}"));
    let output = replay(&["--policy", &policy, SAMPLE]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("built without the feature `redis`"), "{said}");
    let output = replay(&["--in-process", "--policy", &policy, SAMPLE]);
    assert!(output.status.success() && total(&output, "denied") > 0, "{}", text(&output.stderr));
}

/// Two permits of each network of 48 bits, and of each IPv4 address.
#[test]
fn a_dimension_of_networks_counts_ipv6_clients_together() {
    let scratch = Scratch::new("policy-networks");
    let clients = ["2001:db8:1::1", "2001:db8:1:2::3", "2001:db8:1:ffff::9", "2001:db8:2::1", "192.0.2.1", "192.0.2.2"];
    let lines = clients.map(|client| format!("{client} - - [02/Mar/2026:08:00:01 +0000] \"GET / HTTP/1.1\" 200 1\n"));
    let log = scratch.with("access.log", lines.concat());
    let policy = scratch.with(
        "policy.toml",
        "[[dimension]]\nname = \"client\"\nquota = [{ limit = 2, per = \"1h\" }]\n\n\
         [[dimension]]\nname = \"site\"\nkey = [\"client/48\"]\nquota = [{ limit = 2, per = \"1h\" }]\n",
    );
    let output = replay(&["--policy", &policy, &log]);
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (5, 1));
    // The policy of a service with such dimensions.
    let service = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/login_service/policy.toml");
    let output = replay(&["--policy", service, SAMPLE]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}
