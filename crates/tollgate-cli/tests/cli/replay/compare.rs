//! `tollgate compare`: every figure against a naive program.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use tollgate_kit::key::Quotas;

use crate::replay::naive::{self, Part, fixed_window, log, requests_of, sliding_counter, token_bucket, wait};
use crate::replay::support::{SAMPLE, Scratch, replay, shared, text, tollgate};

const SAMPLE_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/policy.toml");
const NANOS_PER_SECOND: u64 = 1_000_000_000;

fn compare(args: &[&str]) -> Output {
    tollgate().arg("compare").args(args).output().unwrap()
}

/// What came out of one of those compared, but for its name.
fn figures(shown: &Value) -> Value {
    let names = ["denied", "keys", "keys_denied", "median_wait_ns", "longest_wait_ns", "bursts"];
    names.into_iter().map(|name| (name.to_owned(), shown[name].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// The same of rules that all have to grant a request, by a program that keeps every granted stamp.
fn naive_figures(requests: &[(String, u64)], rules: &[Quotas], windows: &[u64]) -> Value {
    let mut granted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let (mut waits, mut denied_keys) = (Vec::new(), Vec::new());
    let mut bursts: Vec<(u64, &str)> = vec![(0, ""); windows.len()];
    for (key, seconds) in requests {
        let (stamps, now) = (granted.entry(key).or_default(), seconds * NANOS_PER_SECOND);
        let wait = rules.iter().map(|rule| wait(rule, stamps, now)).max().unwrap();
        if wait > 0 {
            waits.push(wait);
            denied_keys.push(key);
        } else {
            stamps.push(now);
        }
    }
    for (key, stamps) in &granted {
        for (burst, window) in bursts.iter_mut().zip(windows) {
            let held = |at: usize| stamps[..=at].iter().filter(|stamp| **stamp + window > stamps[at]).count() as u64;
            *burst = (0..stamps.len()).map(held).fold(*burst, |most, held| most.max((held, key)));
        }
    }
    waits.sort_unstable();
    denied_keys.sort_unstable();
    denied_keys.dedup();
    let half = waits.len().div_ceil(2).max(1) - 1;
    json!({
        "denied": waits.len(),
        "keys": granted.len(),
        "keys_denied": denied_keys.len(),
        "median_wait_ns": waits.get(half).unwrap_or(&0),
        "longest_wait_ns": waits.last().unwrap_or(&0),
        "bursts": bursts.iter().zip(windows).map(|((most, _), window)| json!({ "window_ns": window, "most": most }))
            .collect::<Vec<_>>(),
    })
}

/// Without the keys of bursts, of which several may be as large.
fn without_keys(mut figures: Value) -> Value {
    for burst in figures["bursts"].as_array_mut().unwrap() {
        burst.as_object_mut().unwrap().remove("key");
    }
    figures
}

fn every_algorithm(file: &str) {
    let requests = requests_of(&String::from_utf8_lossy(&fs::read(file).unwrap()), Part::Client);
    for (limit, per, seconds) in [(20, "10s", 10), (5, "1s", 1), (40, "5m", 300)] {
        let bucket = || token_bucket(limit, limit, seconds);
        let expected = [
            ("sliding-window-log", log(limit, seconds)),
            ("token-bucket", bucket()),
            // What leaks away in one comes back in the other.
            ("leaky-bucket", bucket()),
            ("fixed-window", fixed_window(limit, seconds)),
            ("sliding-counter", sliding_counter(limit, seconds)),
        ];
        let windows = format!("{per},1m");
        let args = ["--limit", &limit.to_string(), "--per", per, "--window", &windows, "--format", "json", file];
        let output = compare(&args);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let compared = report["compared"].as_array().unwrap();
        assert_eq!(compared.len(), expected.len());
        let mut lengths = [seconds * NANOS_PER_SECOND, 60 * NANOS_PER_SECOND];
        lengths.sort_unstable();
        for (shown, (name, rule)) in compared.iter().zip(expected) {
            assert!(shown["name"].as_str().unwrap().starts_with(name), "{shown}");
            let naive = naive_figures(&requests, &[rule], &lengths);
            assert_eq!(without_keys(figures(shown)), naive, "{name} {limit} {per}");
        }
    }
}

fn policies(file: &str) {
    let scratch = Scratch::new(&format!("compare-{}", fs::metadata(file).unwrap().len()));
    let bytes = fs::read(file).unwrap();
    let requests = requests_of(&String::from_utf8_lossy(&bytes), Part::Path);
    let policy = "[[dimension]]\nname = \"p\"\nkey = [\"path\"]\nquota = [{ limit = 2, per = \"1s\" }, { limit = 30, per = \"5m\" }]\n";
    let policy = scratch.with("policy.toml", policy);
    let output = compare(&["--policy", &policy, "--policy", SAMPLE_POLICY, "--format", "json", file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = [log(2, 1), log(30, 300)];
    let naive = naive_figures(&requests, &rules, &[NANOS_PER_SECOND, 60 * NANOS_PER_SECOND]);
    assert_eq!(without_keys(figures(&report["compared"][0])), naive);

    let address = vec![log(5, 1), log(40, 60)];
    let endpoint = vec![token_bucket(30, 10, 60)];
    let both = [(Part::Client, address), (Part::Path, endpoint)];
    let totals = naive::decide(&String::from_utf8_lossy(&bytes), &both);
    let mut waits: Vec<u64> = totals.waits.into_iter().filter(|wait| *wait > 0).collect();
    waits.sort_unstable();
    let shown = &report["compared"][1];
    assert_eq!((shown["denied"].as_u64(), shown["admitted"].as_u64()), (Some(totals.denied), Some(totals.admitted)));
    assert_eq!(shown["median_wait_ns"].as_u64(), Some(waits[waits.len().div_ceil(2) - 1]));
    assert_eq!(shown["longest_wait_ns"].as_u64(), waits.last().copied());
}

#[test]
fn every_figure_on_the_sample_is_that_of_a_naive_program() {
    every_algorithm(SAMPLE);
    policies(SAMPLE);
}

#[test]
fn every_figure_on_the_real_log_is_that_of_a_naive_program() {
    let Some(log) = shared("apache_access.log") else { return };
    every_algorithm(&log);
    policies(&log);
}

#[test]
fn each_is_decided_as_if_it_were_alone() {
    let scratch = Scratch::new("compare-alone");
    // Of these, each knows some: the others are not its requests.
    let log = scratch.with("log.csv", "time,client,user\n1,a,\n1,a,u\n2,,u\n3,,u\n4,b,\n");
    let dimension = |name: &str| format!("[[dimension]]\nname = \"{name}\"\nquota = [{{ limit = 1, per = \"1m\" }}]\n");
    let user = scratch.with("user.toml", dimension("user"));
    let both = scratch.with("both.toml", dimension("user") + &dimension("client"));
    let args = ["--limit", "1", "--per", "1m", "--algorithm", "fixed-window", "--policy", &user, "--policy", &both];
    let output = compare(&[args.as_slice(), &["--format", "json", &log]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (at, policy) in [(1, &user), (2, &both)] {
        let alone: Value =
            serde_json::from_slice(&replay(&["--policy", policy, "--format", "json", &log]).stdout).unwrap();
        for name in ["requests", "admitted", "denied"] {
            assert_eq!(report["compared"][at][name], alone[name], "{policy} {name}");
        }
    }
    assert_eq!(report["compared"][0]["requests"], 3, "three have a client");
    assert_eq!(report["compared"][0]["bursts"], json!([{ "window_ns": 60_000_000_000_u64, "most": 1, "key": "a" }]));
}

#[test]
fn queued_requests_pass_later() {
    let scratch = Scratch::new("compare-queue");
    let log = scratch.with("log.csv", "time,client\n0,a\n0,a\n0,a\n0,a\n");
    let args =
        ["--limit", "1", "--per", "2s", "--max-delay", "4s", "--algorithm", "leaky-queue", "--window", "2s,3s,5s"];
    let output = compare(&[args.as_slice(), &["--format", "json", &log]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let queue = &report["compared"][0];
    let most: Vec<u64> =
        queue["bursts"].as_array().unwrap().iter().map(|burst| burst["most"].as_u64().unwrap()).collect();
    assert_eq!(most, [1, 2, 3], "at 0, 2 and 4 s");
    assert_eq!(
        (&queue["delayed"], &queue["longest_delay_ns"], &queue["denied"]),
        (&json!(2), &json!(4_000_000_000_u64), &json!(1))
    );
}

/// Neither those that are compared by themselves, nor one that is asked for.
#[test]
fn requests_in_flight_are_not_compared() {
    let scratch = Scratch::new("compare-in-flight");
    let output = compare(&["--limit", "20", "--per", "10s", "--format", "json", SAMPLE]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = report["compared"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert!(names.clone().count() > 3 && names.clone().all(|name| !name.contains("concurrency")), "{report}");
    let policy = "[[dimension]]\nname = \"client\"\nquota = [{ algorithm = \"concurrency\", limit = 2 }]\n";
    let policy = scratch.with("p.toml", policy);
    for (options, named) in [
        (&["--limit", "20", "--per", "10s", "--algorithm", "concurrency"][..], "--algorithm concurrency: "),
        (&["--policy", &policy, "--policy", SAMPLE_POLICY], "p.toml: dimension \"client\": "),
    ] {
        let output = compare(&[options, &[SAMPLE]].concat());
        let complaint = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{complaint}");
        let reason = format!("{named}a log does not tell when its requests have ended");
        assert!(complaint.contains(&reason), "{complaint}");
    }
}

#[test]
fn the_table_and_the_plot() {
    let scratch = Scratch::new("compare-plot");
    let plot = scratch.file("plot.svg");
    let output = compare(&["--limit", "20", "--per", "10s", "--plot", &plot, SAMPLE]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    let row = report.split("sliding-window-log: 20 per 10s\n").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(row.split_whitespace().take(5).collect::<Vec<_>>(), ["220", "9.17%", "4", "2.00%", "20"], "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 72), "{report}");
    let svg = fs::read_to_string(&plot).unwrap();
    for part in ["<svg", "time (UTC)", "denied per ", "fixed window, 20 per 10s"] {
        assert!(svg.contains(part), "no {part:?}");
    }
}

#[test]
fn policies_that_cannot_be_compared_are_refused() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&[SAMPLE], 2, "nothing says what to compare"),
        (&["--limit", "5", SAMPLE], 2, "--per is missing"),
        (&["--limit", "5", "--per", "1s", "--algorithm", "leaky-queue", SAMPLE], 2, "--max-delay is missing"),
        (
            &["--limit", "5", "--per", "1s", "--algorithm", "warm-up", SAMPLE],
            2,
            "--warm-up is missing: warm-up takes it",
        ),
        (&["--limit", "65536", "--per", "1s", SAMPLE], 2, "at most 65535"),
        (&["--policy", "nowhere.toml", SAMPLE], 1, "nowhere.toml"),
        (&["--limit", "5", "--per", "1s", "--plot", "x.png", SAMPLE], 2, ".svg"),
    ];
    for (args, code, reason) in cases {
        let output = compare(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(text(&output.stderr).contains(reason), "{args:?}: {}", text(&output.stderr));
    }
}
