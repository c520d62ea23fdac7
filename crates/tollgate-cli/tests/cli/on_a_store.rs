//! `replay --policy` with a store: the same decisions as in process, by a real server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tollgate_kit::clients;
use tollgate_kit::redis::{Server, ask};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/access.log");
const SAMPLE_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");
const SECRET: (&str, &str) = ("SECRET_OF_TESTS", "the secret of the tests");

/// A policy of one quota for each client.
fn of_clients(quota: &str) -> String {
    format!("[[dimension]]\nname = \"address\"\nkey = [\"client\"]\nquota = [{quota}]\n")
}

/// The same policy on that store.
fn on(url: &str, policy: &str) -> String {
    format!("[store]\nurl = \"{url}\"\nsecret = {{ env = \"{}\" }}\nprefix = \"shop\"\n\n{policy}", SECRET.0)
}

fn replay(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("replay").args(args).env(SECRET.0, SECRET.1).env_remove("NO_COLOR").stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The decisions on a log by a policy, and the report.
fn played(folder: &Path, policy: &str, log: &str) -> (String, String) {
    let (file, rows) = (folder.join("policy.toml"), folder.join("decisions.csv"));
    fs::write(&file, policy).unwrap();
    let output = replay(&["--policy", file.to_str().unwrap(), "--decisions", rows.to_str().unwrap(), log]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    (fs::read_to_string(rows).unwrap(), text(&output.stdout))
}

/// A row with its wait in whole microseconds, rounded up, as the store has it. Only what fades has
/// others.
fn in_micros(row: &str) -> String {
    let Some((before, after)) = row.split_once(",0,").filter(|_| row.contains("sliding window counter")) else {
        return row.to_owned();
    };
    let (wait, after) = after.split_once(',').unwrap();
    let wait = wait.parse::<u64>().unwrap().next_multiple_of(1_000);
    format!("{before},0,{wait},{after}")
}

#[test]
fn every_row_is_that_of_the_same_policy_in_process() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let sample = fs::read_to_string(SAMPLE_POLICY).unwrap();
    let two_logs = of_clients("{ limit = 3, per = \"10s\" }, { limit = 20, per = \"1h\" }");
    // A key cap comes before all tables.
    let (head, tail) = sample.split_once("\n[[dimension]]").unwrap();
    let sample_on = |url: &str| format!("{head}\n{}", on(url, &format!("[[dimension]]{tail}")));
    let mut cases =
        vec![(sample.clone(), sample_on(&server.address())), (two_logs.clone(), on(&server.address(), &two_logs))];
    for quota in [
        "{ algorithm = \"leaky-bucket\", capacity = 4, leak = 1, per = \"8s\" }",
        "{ algorithm = \"leaky-queue\", leak = 1, per = \"2s\", max_delay = \"10s\" }",
        "{ algorithm = \"fixed-window\", limit = 10, per = \"1m\", phase = \"40s\" }",
        "{ algorithm = \"fixed-window\", limit = 10, per = \"1m\" }",
        "{ algorithm = \"sliding-counter\", limit = 10, per = \"1m\" }",
        "{ algorithm = \"quantised-log\", limit = 10, per = \"1m\", resolution = \"5s\" }",
        "{ algorithm = \"token-bucket\", capacity = 4, refill = 1, per = \"4s\", start = 1 }",
    ] {
        cases.push((of_clients(quota), on(&server.address(), &of_clients(quota))));
    }
    let lines = fs::read_to_string(SAMPLE).unwrap().lines().count();
    for (in_process, on_store) in &cases {
        let (rows, report) = played(folder.path(), in_process, SAMPLE);
        let (rows_of_store, report_of_store) = played(folder.path(), on_store, SAMPLE);
        for (row, of_store) in rows.lines().zip(rows_of_store.lines()) {
            assert_eq!(in_micros(row), of_store, "{on_store}");
        }
        assert_eq!((rows.lines().count(), rows_of_store.lines().count()), (lines + 1, lines + 1));
        assert!(rows.lines().any(|row| row.contains(",0,")), "nothing is denied: {in_process}");
        assert_eq!(report_of_store.replace(", on a store", ""), report);
        assert!(report_of_store.contains(", on a store"), "{report_of_store}");
    }
}

#[test]
fn clients_are_taken_as_in_process() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let line = |request: clients::Request| {
        let forwarded = request.forwarded.as_deref().unwrap_or("-");
        format!(
            "{} - - [02/Mar/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\" \"{forwarded}\"\n",
            request.peer
        )
    };
    let log = folder.path().join("access.log");
    fs::write(&log, clients::requests().into_iter().map(line).collect::<String>()).unwrap();
    let (rows, _) = played(folder.path(), &on(&server.address(), clients::POLICY), log.to_str().unwrap());
    let is_admitted: Vec<bool> = rows.lines().skip(1).map(|row| row.split(',').nth(2) == Some("1")).collect();
    assert!(clients::requests().iter().map(|request| request.is_admitted).eq(is_admitted), "{rows}");
}

#[test]
fn a_lease_is_not_played_and_the_program_says_so() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let in_process = of_clients("{ algorithm = \"quantised-log\", limit = 40, per = \"1h\", resolution = \"1h\" }");
    let with_lease = on(&server.address(), &in_process).replace("prefix", "lease = { most = 20, slots = 64 }\nprefix");
    let (rows, _) = played(folder.path(), &in_process, SAMPLE);
    let (file, of_store) = (folder.path().join("leased.toml"), folder.path().join("of_store.csv"));
    fs::write(&file, with_lease).unwrap();
    let output = replay(&["--policy", file.to_str().unwrap(), "--decisions", of_store.to_str().unwrap(), SAMPLE]);
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("leased.toml: the lease is not played"), "{told}");
    assert_eq!(fs::read_to_string(of_store).unwrap(), rows);
    assert!(rows.lines().any(|row| row.contains(",0,")), "nothing is denied");
}

#[test]
fn its_keys_are_removed_and_all_others_stay() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let () = ask(&mut connection, &["SET", "shop:1:L:{other}", "of a service"]);
    let folder = tempfile::tempdir().unwrap();
    let policy = on(&server.address(), &of_clients("{ limit = 1, per = \"10m\" }"));
    let line = |second: u32| format!("192.0.2.7 - - [02/Mar/2026:08:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n");
    let log = folder.path().join("access.log");
    // So much out of order that what was decided while the log was read is decided anew.
    let late = (0..20_000).map(|_| line(30)).collect::<String>() + &line(10);
    for content in [line(5) + &line(6), late] {
        fs::write(&log, content).unwrap();
        let (rows, _) = played(folder.path(), &policy, log.to_str().unwrap());
        assert_eq!(rows.lines().filter(|row| row.contains(",1,0,")).count(), 1);
        let keys: Vec<String> = ask(&mut connection, &["KEYS", "*"]);
        assert_eq!(keys, ["shop:1:L:{other}"]);
    }
    let writes: String = ask(&mut connection, &["INFO", "commandstats"]);
    assert!(writes.contains("cmdstat_append"), "the server decided: {writes}");
}

#[test]
fn a_store_that_is_away_ends_the_replay_and_tells_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let path = policy.to_str().unwrap();
    let url = format!("redis+unix://{}", folder.path().join("nobody").display());
    fs::write(&policy, on(&url, &of_clients("{ limit = 1, per = \"10m\" }"))).unwrap();
    let output = replay(&["--policy", path, SAMPLE]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no connection to the server (not charged)") && !said.contains("nobody"), "{said}");
    assert!(output.stdout.is_empty() && said.lines().count() == 1, "{said}");
    // It is asked for in process.
    let output = replay(&["--in-process", "--policy", path, SAMPLE]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // What a store does not keep, and a secret that is not there.
    let penalty = "[dimension.penalty]\ndenials = 3\nwithin = \"1m\"\nblocked_for = \"1h\"\n";
    fs::write(&policy, on(&url, &of_clients("{ limit = 1, per = \"10m\" }")) + penalty).unwrap();
    let output = replay(&["--policy", path, SAMPLE]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("a store keeps no `penalty`"), "{said}");
    fs::write(&policy, on(&url, &of_clients("{ limit = 1, per = \"10m\" }")).replace(SECRET.0, "NOT_SET")).unwrap();
    let output = replay(&["--policy", path, SAMPLE]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("NOT_SET: it is not set"), "{said}");
}

#[test]
fn rules_matches_and_tiers_hold() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "[[rule]]\nmatch = { client = \"203.0.113.66\" }\naction = \"deny\"\n";
    let matched = "match = { path = \"/api/{*rest}\", method = \"GET\" }\n";
    let dimension = of_clients("{ limit = 3, per = \"1m\" }") + matched;
    let tier = |name: &str, matched: &str, quota: &str| {
        format!("[[dimension.tier]]\nname = \"{name}\"\nmatch = {{ {matched} }}\n{quota}\n")
    };
    let tiers = tier("of tools", "user = \"sync\"", "unlimited = true")
        + &tier("of items", "path = \"/api/v1/items\"", "quota = [{ limit = 1, per = \"1m\" }]");
    let Some(server) = Server::start(&[]) else { return };
    let policy = dimension + &tiers + rules;
    let (rows, report) = played(folder.path(), &policy, SAMPLE);
    let (rows_of_store, report_of_store) = played(folder.path(), &on(&server.address(), &policy), SAMPLE);
    assert_eq!(rows_of_store, rows);
    assert_eq!(report_of_store.replace(", on a store", ""), report);
    assert!(rows.contains(",rule 1,") && rows.contains(",address,1 per 1m,"), "{rows}");
}
