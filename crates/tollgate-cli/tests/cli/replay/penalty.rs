//! Penalties and refused requests that count, against programs that only know their definitions.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::replay::naive::{Part, requests_of};
use crate::replay::support::{SAMPLE, Scratch, as_digits, decisions, replay, text};

/// The client and the second of each request of the sample.
fn sample() -> Vec<(String, u64)> {
    requests_of(&fs::read_to_string(SAMPLE).unwrap(), Part::Client)
}

/// Whether each request is admitted, by a penalty's definition, in whole seconds.
fn with_penalty(limit: usize, seconds: u64, penalty: (usize, u64, u64)) -> (String, u64) {
    let (denials, within, blocked_for) = penalty;
    let mut of_key: HashMap<String, (Vec<u64>, Vec<u64>, u64)> = HashMap::new();
    let (mut digits, mut blocked) = (String::new(), 0);
    for (key, now) in sample() {
        let (granted, denied, until) = of_key.entry(key).or_default();
        let live = |stamps: &[u64], window: u64| stamps.iter().filter(|stamp| **stamp + window > now).count();
        let digit = if now < *until {
            blocked += 1;
            '0'
        } else if live(granted, seconds) < limit {
            granted.push(now);
            '1'
        } else if live(denied, within) + 1 < denials {
            denied.push(now);
            '0'
        } else {
            *until = now + blocked_for;
            blocked += 1;
            '0'
        };
        digits.push(digit);
    }
    (digits, blocked)
}

#[test]
fn penalties_are_those_of_their_definition() {
    let scratch = Scratch::new("penalty");
    let file = scratch.file("decisions.csv");
    for penalty in [(1, 60, 600), (5, 60, 30), (20, 3600, 7200)] {
        let (denials, within, blocked_for) = penalty;
        let (n, within, blocked_for) = (denials.to_string(), format!("{within}s"), format!("{blocked_for}s"));
        let limit = ["--limit", "10", "--per", "10s", "--format", "json", "--decisions", &file, SAMPLE];
        let options =
            [limit.as_slice(), &["--penalty-denials", &n, "--penalty-within", &within, "--penalty-for", &blocked_for]];
        let output = replay(&options.concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (expected, blocked) = with_penalty(10, 10, penalty);
        let mut rows = csv::Reader::from_path(&file).unwrap();
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        assert_eq!(rows.iter().map(|row| row[2].to_owned()).collect::<String>(), expected, "{penalty:?}");
        assert_eq!(rows.iter().filter(|row| &row[6] == "penalty").count() as u64, blocked, "{penalty:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["dimensions"][0]["denied_by_penalty"], blocked, "{penalty:?}");
        // A policy file says the same.
        let policy = format!(
            "[[dimension]]\nname = \"client\"\nquota = [{{ limit = 10, per = \"10s\" }}]\n\
             [dimension.penalty]\ndenials = {n}\nwithin = \"{within}\"\nblocked_for = \"{blocked_for}\"\n"
        );
        let policy = scratch.with("policy.toml", &policy);
        let output = replay(&["--policy", &policy, "--format", "json", "--decisions", &file, SAMPLE]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut rows = csv::Reader::from_path(&file).unwrap();
        let digits: String = rows.records().map(|row| row.unwrap()[2].to_owned()).collect();
        assert_eq!(digits, expected, "{penalty:?}");
        let by_policy: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(by_policy["dimensions"][0]["denied_by_penalty"], blocked, "{penalty:?}");
        assert_eq!(by_policy["denied"], report["denied"], "{penalty:?}");
        let without = replay(&["--limit", "10", "--per", "10s", "--format", "json", SAMPLE]);
        let without: Value = serde_json::from_slice(&without.stdout).unwrap();
        assert!(report["denied"].as_u64() > without["denied"].as_u64() && blocked > 100, "{penalty:?}: it shows");
    }
    let penalty = ["--penalty-denials", "5", "--penalty-within", "1m", "--penalty-for", "1h"];
    let report = text(&replay(&[["--limit", "10", "--per", "10s", SAMPLE].as_slice(), &penalty].concat()).stdout);
    assert!(report.starts_with("10 per 10s for each client; blocked for 1h by 5 denials within 1m\n"), "{report}");
    assert!(report.contains("blocked by the penalty"), "{report}");
}

/// Whether each request is admitted, and how many are denied by a block, by the definition of a penalty
/// that grows, in whole seconds: ten in ten seconds, and a block for each denial.
fn with_growth(first: u64, factor: u64, longest: u64, quiet: u64) -> (String, u64) {
    // Of a key the times that were granted, and the length and the end of its last block.
    let mut of_key: HashMap<String, (Vec<u64>, (u64, u64))> = HashMap::new();
    let (mut digits, mut blocked) = (String::new(), 0);
    for (key, now) in sample() {
        let (granted, last) = of_key.entry(key).or_default();
        if now >= last.1 && granted.iter().filter(|stamp| **stamp + 10 > now).count() < 10 {
            granted.push(now);
            digits.push('1');
            continue;
        }
        blocked += 1;
        digits.push('0');
        if now >= last.1 {
            let is_next = last.0 > 0 && now < last.1 + quiet;
            let length = if is_next { longest.min(last.0 * factor) } else { first };
            *last = (length, now + length);
        }
    }
    (digits, blocked)
}

#[test]
fn penalties_that_grow_are_those_of_their_definition() {
    let scratch = Scratch::new("penalty-growth");
    let file = scratch.file("decisions.csv");
    let fixed = with_growth(5, 1, 5, 1);
    for (first, factor, longest, quiet) in [(5, 2, 3600, 7200), (5, 3, 60, 30), (1, 10, 86_400, 600)] {
        let [of_first, of_longest, of_quiet] = [first, longest, quiet].map(|seconds| format!("{seconds}s"));
        let n = factor.to_string();
        let limit = ["--limit", "10", "--per", "10s", "--format", "json", "--decisions", &file, SAMPLE];
        let penalty = ["--penalty-denials", "1", "--penalty-within", "1s", "--penalty-for", &of_first];
        let growth = ["--penalty-factor", &n, "--penalty-longest", &of_longest, "--penalty-quiet", &of_quiet];
        let output = replay(&[limit.as_slice(), &penalty, &growth].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (expected, blocked) = with_growth(first, factor, longest, quiet);
        let digits = || {
            let mut rows = csv::Reader::from_path(&file).unwrap();
            rows.records().map(|row| row.unwrap()[2].to_owned()).collect::<String>()
        };
        assert_eq!(digits(), expected, "{growth:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["dimensions"][0]["denied_by_penalty"], blocked, "{growth:?}");
        assert!(blocked > fixed.1 || first < 5, "{growth:?}: it shows");
        // A policy file says the same.
        let policy = format!(
            "[[dimension]]\nname = \"client\"\nquota = [{{ limit = 10, per = \"10s\" }}]\n\
             [dimension.penalty]\ndenials = 1\nwithin = \"1s\"\nblocked_for = \"{of_first}\"\n\
             factor = {n}\nlongest = \"{of_longest}\"\nquiet_for = \"{of_quiet}\"\n"
        );
        let policy = scratch.with("policy.toml", &policy);
        let output = replay(&["--policy", &policy, "--format", "json", "--decisions", &file, SAMPLE]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(digits(), expected, "{growth:?}");
    }
    let penalty = ["--penalty-denials", "5", "--penalty-within", "1m", "--penalty-for", "10m"];
    let growth = ["--penalty-factor", "2", "--penalty-longest", "1d", "--penalty-quiet", "7d"];
    let report = replay(&[["--limit", "10", "--per", "10s", SAMPLE].as_slice(), &penalty, &growth].concat());
    let words = "10 per 10s for each client; blocked for 10m by 5 denials within 1m; each\nblock 2 times as long as \
                 the last, up to 1d, until not blocked for 7d\n";
    assert!(text(&report.stdout).starts_with(words), "{}", text(&report.stdout));
}

/// Between blocks that count towards each other, nothing else is remembered.
#[test]
fn a_pause_ends_no_quiet_time_early() {
    let scratch = Scratch::new("penalty-quiet");
    let file = scratch.file("decisions.csv");
    for (again, wait) in [(3600 + 86_399, "7200000000000"), (3600 + 86_400, "3600000000000")] {
        let log = scratch.with("log.csv", format!("time,client\n0,a\n0,a\n{again},a\n{again},a\n"));
        let penalty = ["--penalty-denials", "1", "--penalty-within", "1s", "--penalty-for", "1h"];
        let growth = ["--penalty-factor", "2", "--penalty-longest", "4h", "--penalty-quiet", "1d"];
        let limit = ["--limit", "1", "--per", "1s", "--decisions", &file, &log];
        assert!(replay(&[limit.as_slice(), &penalty, &growth].concat()).status.success());
        let mut rows = csv::Reader::from_path(&file).unwrap();
        let waits: Vec<String> = rows.records().map(|row| row.unwrap()[3].to_owned()).collect();
        assert_eq!(waits, ["0", "3600000000000", "0", wait], "{again}");
    }
}

#[test]
fn a_pause_ends_no_penalty_early() {
    let scratch = Scratch::new("penalty-pause");
    let (log, file) =
        (scratch.with("log.csv", "time,client\n0,a\n0,a\n3599,a\n3600,a\n"), scratch.file("decisions.csv"));
    let penalty = ["--penalty-denials", "1", "--penalty-within", "1s", "--penalty-for", "1h"];
    let limit = ["--limit", "1", "--per", "1s", "--decisions", &file, &log];
    assert!(replay(&[limit.as_slice(), &penalty].concat()).status.success());
    let mut rows = csv::Reader::from_path(&file).unwrap();
    let rows: Vec<(String, String)> =
        rows.records().map(|row| row.unwrap()).map(|row| (row[2].to_owned(), row[3].to_owned())).collect();
    let expected = [("1", "0"), ("0", "3600000000000"), ("0", "1000000000"), ("1", "0")];
    assert_eq!(rows, expected.map(|(allowed, wait)| (allowed.to_owned(), wait.to_owned())));
}

#[test]
fn refused_requests_count_if_that_is_asked_for() {
    let scratch = Scratch::new("count-refused");
    let file = scratch.file("decisions.csv");
    let limit = ["--limit", "10", "--per", "10s", "--decisions", &file, SAMPLE];
    assert!(replay(&limit).status.success());
    let without = as_digits(&decisions(&file));
    let output = replay(&[limit.as_slice(), &["--count-refused"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("10 per 10s, refused requests counted for each client\n"));
    let mut asked: HashMap<String, Vec<u64>> = HashMap::new();
    let expected: String = sample()
        .into_iter()
        .map(|(key, now)| {
            let stamps = asked.entry(key).or_default();
            let live = stamps.iter().filter(|stamp| **stamp + 10 > now).count();
            stamps.push(now);
            if live < 10 { '1' } else { '0' }
        })
        .collect();
    let with = as_digits(&decisions(&file));
    assert_eq!(with, expected);
    assert!(with.matches('0').count() > without.matches('0').count() + 50, "it shows");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");
    let limit = ["--limit", "1", "--per", "1s"];
    let fixed = ["--penalty-denials", "1", "--penalty-within", "1s", "--penalty-for", "1m"];
    let growth = ["--penalty-factor", "2", "--penalty-longest", "1s", "--penalty-quiet", "1d"];
    let all = [fixed, growth].concat();
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&limit, &growth, "--penalty-denials"),
        (&limit, &all[..8], "--penalty-longest"),
        (&limit, &[&fixed[..], &growth[2..]].concat(), "--penalty-factor"),
        (&limit, &all, "the longest block of a penalty is shorter than the first: give at least 60s"),
        (&limit, &["--penalty-denials", "1"], "--penalty-within"),
        (&limit, &["--penalty-for", "1s"], "--penalty-denials"),
        (
            &limit,
            &["--penalty-denials", "0", "--penalty-within", "1s", "--penalty-for", "1s"],
            "the number of a penalty's denials is zero",
        ),
        (&["--policy", policy], &["--count-refused"], "cannot be used with"),
        (
            &["--policy", policy],
            &["--penalty-denials", "1", "--penalty-within", "1s", "--penalty-for", "1s"],
            "cannot be",
        ),
        (
            &["--algorithm", "fixed-window", "--limit", "1", "--per", "1s"],
            &["--count-refused"],
            "is not for fixed-window",
        ),
    ];
    for (options, more, reason) in cases {
        let output = replay(&[options, more, &[SAMPLE]].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(text(&output.stderr).contains(reason), "{more:?}: {}", text(&output.stderr));
    }
}
