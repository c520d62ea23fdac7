//! `tollgate suggest`: every figure against a naive program, and the policy against `replay`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use tollgate_policy::Policy;

use crate::replay::naive::{Part, requests_of};
use crate::replay::support::{SAMPLE, Scratch, replay, shared, text, tollgate, total};

fn suggest(args: &[&str]) -> Output {
    tollgate().arg("suggest").args(args).output().unwrap()
}

fn suggest_json(args: &[&str]) -> Value {
    let output = suggest(&[args, &["--format", "json"]].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each key's times in whole seconds, in order.
type Times = BTreeMap<String, Vec<u64>>;

fn times_of(log: &str, part: Part) -> Times {
    let mut times = Times::new();
    for (key, time) in requests_of(log, part) {
        times.entry(key).or_default().push(time);
    }
    times
}

/// How many of one key's requests are denied by limits on windows of so many seconds, from their
/// definition.
fn denied(times: &[u64], limits: &[(u64, u64)]) -> u64 {
    let mut granted: Vec<u64> = Vec::new();
    for &time in times {
        let live = |seconds: u64| granted.iter().rev().take_while(|&&stamp| stamp + seconds > time).count() as u64;
        if limits.iter().all(|&(limit, seconds)| live(seconds) < limit) {
            granted.push(time);
        }
    }
    (times.len() - granted.len()) as u64
}

/// The keys that limits deny, with their requests and denials, those with the most denials first.
fn hit(times: &Times, limits: &[(u64, u64)]) -> Vec<(String, u64, u64)> {
    let mut hit: Vec<_> = times
        .iter()
        .map(|(key, times)| (key.clone(), times.len() as u64, denied(times, limits)))
        .filter(|(_, _, denied)| *denied > 0)
        .collect();
    hit.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    hit
}

/// The most requests of a key in any window.
fn most(times: &[u64], seconds: u64) -> u64 {
    let held = |at: usize| times[..=at].iter().filter(|&&time| time + seconds > times[at]).count() as u64;
    (0..times.len()).map(held).max().unwrap()
}

/// A share in parts of a hundred thousand.
#[derive(Clone, Copy)]
struct Share(&'static str, u64);

struct Naive {
    times: Times,
    requests: u64,
    of: &'static str,
}

impl Naive {
    fn allows(&self, hit: &[(String, u64, u64)], share: (u64, u64)) -> bool {
        let (part, whole) = match self.of {
            "requests" => (hit.iter().map(|(.., denied)| denied).sum::<u64>(), self.requests),
            _ => (hit.len() as u64, self.times.len() as u64),
        };
        u128::from(part) * u128::from(share.1) <= u128::from(whole) * u128::from(share.0)
    }

    /// The least limit, found by trying each from 1.
    fn least(&self, seconds: u64, share: (u64, u64)) -> u64 {
        (1..).find(|&limit| self.allows(&hit(&self.times, &[(limit, seconds)]), share)).unwrap()
    }
}

fn worst_json(hit: &[(String, u64, u64)]) -> Value {
    hit.iter().map(|(key, requests, denied)| json!({ "key": key, "requests": requests, "denied": denied })).collect()
}

/// Compares every figure of one run with those of the naive program, and replays the policy.
fn compare(log: &str, key: (&str, Part), of: &'static str, windows: &[(&str, u64)], shares: &[Share]) {
    let bytes = fs::read(log).unwrap();
    let scratch = Scratch::new(&format!("suggest-{}-{of}-{}-{}", bytes.len(), key.0, shares.len()));
    let times = times_of(&String::from_utf8_lossy(&bytes), key.1);
    let naive = Naive { requests: times.values().map(|times| times.len() as u64).sum(), times, of };
    let policy = scratch.file("policy.toml");
    let names: Vec<&str> = windows.iter().map(|(name, _)| *name).collect();
    let (names, deny) = (names.join(","), shares.iter().map(|share| share.0).collect::<Vec<_>>().join(","));
    let args =
        ["--key", key.0, "--of", of, "--window", &names, "--deny", &deny, "--top", "99999", "--ipv6-prefix", "128"];
    let report = suggest_json(&[args.as_slice(), &["--policy-out", &policy, log]].concat());
    assert_eq!(
        (report["requests"].as_u64(), report["keys"].as_u64()),
        (Some(naive.requests), Some(naive.times.len() as u64))
    );

    for (shown, (name, seconds)) in report["windows"].as_array().unwrap().iter().zip(windows) {
        let mut peaks: Vec<u64> = naive.times.values().map(|times| most(times, *seconds)).collect();
        peaks.sort_unstable();
        let at = |per_mille: usize| peaks[(peaks.len() * per_mille).div_ceil(1000) - 1];
        let expected = json!({ "p50": at(500), "p90": at(900), "p99": at(990), "p99.9": at(999), "max": at(1000) });
        assert_eq!(shown["most_of_a_key"], expected, "{name}");
        assert_eq!(shown["window_ns"].as_u64(), Some(seconds * 1_000_000_000));
    }

    let mut limits = report["limits"].as_array().unwrap().iter();
    for share in shares {
        for (name, seconds) in windows {
            let shown = limits.next().unwrap();
            let least = naive.least(*seconds, (share.1, 100_000));
            let hit = hit(&naive.times, &[(least, *seconds)]);
            let context = format!("{} {of} {name}: {shown}", share.0);
            assert_eq!(shown["limit"].as_u64(), Some(least), "{context}");
            assert_eq!((&shown["at_most"], &shown["of"]), (&json!(share.0), &json!(of)), "{context}");
            assert_eq!(shown["denied"].as_u64(), Some(hit.iter().map(|(.., denied)| denied).sum()), "{context}");
            assert_eq!(shown["keys_denied"].as_u64(), Some(hit.len() as u64), "{context}");
            assert_eq!(shown["worst_keys"], worst_json(&hit), "{context}");
        }
    }
    assert!(limits.next().is_none());

    // Half the share, and half of that, until all windows together deny no more than the share.
    let mut whole = 100_000;
    let together = loop {
        let all: Vec<(u64, u64)> =
            windows.iter().map(|(_, seconds)| (naive.least(*seconds, (shares[0].1, whole)), *seconds)).collect();
        let together = hit(&naive.times, &all);
        if naive.allows(&together, (shares[0].1, 100_000)) {
            break together;
        }
        whole *= 2;
    };
    let denied: u64 = together.iter().map(|(.., denied)| denied).sum();
    assert_eq!(report["policy"]["denied"].as_u64(), Some(denied));
    assert_eq!(report["policy"]["keys_denied"].as_u64(), Some(together.len() as u64));
    assert_eq!(report["policy"]["worst_keys"], worst_json(&together));

    let written = fs::read_to_string(&policy).unwrap();
    assert_eq!(report["policy"]["toml"], written.as_str());
    Policy::from_toml(&written).unwrap().builder::<[String]>().unwrap().build().unwrap();
    let replayed = replay(&["--policy", &policy, "--format", "json", "--top", "99999", log]);
    let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(replayed["denied"].as_u64(), Some(denied), "{written}");
    assert_eq!(replayed["dimensions"][0]["worst_keys"], worst_json(&together));
}

const WINDOWS: [(&str, u64); 4] = [("1s", 1), ("10s", 10), ("1m", 60), ("1h", 3600)];

fn compare_all(log: &str) {
    let usual = [Share("0.1%", 100), Share("1%", 1000)];
    let wide = [Share("7.5%", 7500), Share("0%", 0), Share("0.03%", 30), Share("25%", 25_000)];
    for of in ["requests", "keys"] {
        compare(log, ("client", Part::Client), of, &WINDOWS, &usual);
        compare(log, ("client", Part::Client), of, &[("7s", 7), ("5m", 300)], &wide);
        compare(log, ("path", Part::Path), of, &[("1m", 60)], &[Share("2%", 2000)]);
    }
}

#[test]
fn every_figure_on_the_sample_is_that_of_a_naive_program() {
    compare_all(SAMPLE);
}

#[test]
fn every_figure_on_the_real_log_is_that_of_a_naive_program() {
    let Some(log) = shared("apache_access.log") else { return };
    compare_all(&log);
}

#[test]
fn the_report_for_people_has_the_same_figures() {
    let output = suggest(&[SAMPLE]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.starts_with("limits for each client\n"), "{report}");
    assert_eq!((total(&output, "requests"), total(&output, "keys")), (2400, 200));
    let figures = suggest_json(&[SAMPLE]);
    for limit in figures["limits"].as_array().unwrap() {
        let row = report.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let quota = limit["quota"].as_str().unwrap();
            line.trim_start().starts_with(quota)
                && words[3].replace(',', "").parse().ok() == limit["denied"].as_u64()
                && words[5].parse().ok() == limit["keys_denied"].as_u64()
        });
        assert!(row, "{limit}\n{report}");
    }
    let denied = &figures["policy"]["denied"];
    assert!(report.contains(&format!("denies {denied} of 2,400 requests")), "{report}");
    for width in [40, 72, 120] {
        let report = text(&suggest(&["--width", &width.to_string(), SAMPLE]).stdout);
        assert!(report.lines().all(|line| line.chars().count() <= width.max(72)), "{report}");
    }
}

#[test]
fn a_policy_can_go_to_standard_output() {
    let output = suggest(&["--window", "10s", "--deny", "1%", "--policy-out", "-", SAMPLE]);
    let policy = Policy::from_toml(&text(&output.stdout)).unwrap();
    assert_eq!(policy.dimensions()[0].quotas().len(), 1);
    assert!(text(&output.stderr).starts_with("limits for each client"));
}

#[test]
fn keys_of_several_fields_and_columns_come_back_from_the_policy() {
    let scratch = Scratch::new("suggest-fields");
    let log = scratch.with("log.csv", "time,client,column,path\n1,a,x y,/b?1\n1,a,x y,/b?2\n2,b,\"q\"\"\",/b?1\n");
    let policy = scratch.file("policy.toml");
    for key in ["column:client,column", "client,column:path"] {
        let output = suggest(&["--key", key, "--deny", "0%", "--policy-out", &policy, &log]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let loaded = Policy::from_toml(&fs::read_to_string(&policy).unwrap()).unwrap();
        assert_eq!(loaded.dimensions()[0].key().collect::<Vec<_>>().join(","), key);
        assert_eq!(total(&replay(&["--policy", &policy, &log]), "denied"), 0);
    }
}

#[test]
fn plots_and_troubles() {
    let scratch = Scratch::new("suggest-plot");
    let plot = scratch.file("limits.svg");
    assert!(suggest(&["--plot", &plot, SAMPLE]).status.success());
    let svg = fs::read_to_string(&plot).unwrap();
    for part in
        ["<svg", "requests denied, of 2,400", "keys denied at least once, of 200", "limit (permits a window)", "1m"]
    {
        assert!(svg.contains(part), "no {part:?}");
    }
    let log = scratch.with("log.csv", "time,client\n1,a\n2,a\n");
    assert!(suggest(&["--plot", &plot, &log]).status.success(), "two requests can be drawn");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--deny", "1", SAMPLE], 2, "a percent sign is missing"),
        (&["--deny", "100%", SAMPLE], 2, "below 100%"),
        (&["--window", "0s", SAMPLE], 2, "the window is zero"),
        (&["--window", "20000d", SAMPLE], 2, "too long: at most 13343d"),
        (&["--plot", "x.png", SAMPLE], 2, ".svg"),
        (&["--policy-out", &log, &log], 2, "would overwrite"),
        (&["--key", "user", &log], 1, "--key"),
    ];
    for (args, code, reason) in cases {
        let output = suggest(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(text(&output.stderr).contains(reason), "{args:?}: {}", text(&output.stderr));
    }
}

/// What a log says nothing of is not suggested: no window is longer than the log.
#[test]
fn windows_longer_than_the_log_are_left_out() {
    let scratch = Scratch::new("suggest-short");
    let log = scratch.with("log.csv", "time,client\n10,a\n10.5,a\n11,a\n12,a\n");
    let policy = scratch.file("policy.toml");
    let report = suggest_json(&["--policy-out", &policy, &log]);
    let lengths = |name: &str| {
        let windows = report[name].as_array().unwrap().iter();
        windows.map(|window| window["window_ns"].as_u64().unwrap() / 1_000_000_000).collect::<Vec<_>>()
    };
    assert_eq!((lengths("windows"), lengths("windows_left_out")), (vec![1], vec![10, 60, 3600]));
    assert!(report["limits"].as_array().unwrap().iter().all(|limit| limit["window_ns"] == 1_000_000_000));
    let written = fs::read_to_string(&policy).unwrap();
    assert_eq!(Policy::from_toml(&written).unwrap().dimensions()[0].quotas().len(), 1, "{written}");
    assert!(written.contains("# The log is shorter than windows of 10s, 1m and 1h: they are left out.\n"), "{written}");
    let text = text(&suggest(&[&log]).stdout);
    assert!(text.contains("the log is shorter than windows of 10s, 1m and 1h: they are left out"), "{text}");
    assert!(!text.contains("per 10s") && !text.contains("per 1h"), "{text}");
}

#[test]
fn a_window_as_long_as_the_log_is_kept() {
    let scratch = Scratch::new("suggest-as-long");
    let log = scratch.with("log.csv", "time,client\n10,a\n20,a\n");
    assert_eq!(suggest_json(&["--window", "10s", &log])["windows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_log_shorter_than_every_window_is_refused() {
    let scratch = Scratch::new("suggest-none");
    let cases = [
        ("time,client\n1,a\n", "a log of one moment"),
        ("time,client\n1,a\n1,b\n", "a log of one moment"),
        ("time,client\n1,a\n1.5,a\n", "a log of 500ms"),
    ];
    for (log, what) in cases {
        let output = suggest(&[&scratch.with("log.csv", log)]);
        assert_eq!(output.status.code(), Some(1));
        let complaint = text(&output.stderr);
        let expected = format!(
            "tollgate: {what} says nothing of windows of 1s, 10s, 1m and 1h: give a longer log or a shorter --window\n"
        );
        assert_eq!(complaint, expected);
    }
}
