//! Every decision, against the definition and against an independent program.

use std::collections::HashMap;
use std::fs;
use std::io::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::replay::support::{
    Numbers, Row, SAMPLE, Scratch, as_digits, decisions, replay, replay_stdin, shared, text, total,
};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The exact answers, from the definition and nothing else: a list of every granted stamp of every
/// key.
#[derive(Default)]
struct Oracle(HashMap<String, Vec<u64>>);

impl Oracle {
    /// Zero for what is admitted, else the wait: how long until enough of the granted permits have
    /// left the window.
    fn decide(&mut self, key: &str, now: u64, cost: usize, limit: usize, window: u64) -> u64 {
        let granted = self.0.entry(key.to_owned()).or_default();
        let live: Vec<u64> = granted.iter().copied().filter(|stamp| stamp + window > now).collect();
        if live.len() + cost <= limit {
            granted.extend(std::iter::repeat_n(now, cost));
            return 0;
        }
        live[live.len() + cost - limit - 1] + window - now
    }
}

/// Seconds since 1970 of a date such as `02/Mar/2026:08:01:07 +0000`, by counting days.
pub(crate) fn seconds_of(date: &str) -> u64 {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let parts: Vec<&str> = date.split(['/', ':', ' ']).collect();
    let number = |at: usize| parts[at].parse::<u64>().unwrap();
    assert_eq!(parts[6], "+0000");
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month = MONTHS.iter().position(|month| *month == parts[1]).unwrap();
    let years: u64 = (1970..number(2)).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let months = LENGTHS[..month].iter().sum::<u64>() + u64::from(month > 1 && leap(number(2)));
    let days = years + months + number(0) - 1;
    ((days * 24 + number(3)) * 60 + number(4)) * 60 + number(5)
}

/// Client and time of every line of an access log, in time order.
fn events_of(log: &str) -> Vec<(String, u64)> {
    let event = |line: &str| {
        let client = line.split(' ').next().unwrap().to_owned();
        let date = line.split(['[', ']']).nth(1).unwrap();
        (client, seconds_of(date) * NANOS_PER_SECOND)
    };
    let mut events: Vec<(String, u64)> = log.lines().map(event).collect();
    events.sort_by_key(|(_, time)| *time);
    events
}

#[test]
fn decisions_on_the_sample_are_those_of_the_definition() {
    let scratch = Scratch::new("sample");
    let events = events_of(&fs::read_to_string(SAMPLE).unwrap());
    let mut denied_somewhere = 0;
    let quotas =
        [(1, "1s", 1), (2, "3s", 3), (5, "1s", 1), (20, "10s", 10), (30, "1m", 60), (60, "5m", 300), (100, "1h", 3600)];
    for (limit, per, seconds) in quotas {
        let file = scratch.file("decisions.csv");
        let limits = ["--limit", &limit.to_string(), "--per", per, "--ipv6-prefix", "128"];
        let output = replay(&[&limits[..], &["--decisions", &file, SAMPLE]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let rows = decisions(&file);
        assert_eq!(rows.len(), events.len());
        let mut oracle = Oracle::default();
        for (row, (client, time)) in rows.iter().zip(&events) {
            let wait = oracle.decide(client, *time, 1, limit, seconds * NANOS_PER_SECOND);
            assert_eq!((&row.key, row.allowed, row.retry_after_ns), (client, wait == 0, Some(wait)), "{}", row.time);
        }
        let denied = rows.iter().filter(|row| !row.allowed).count() as u64;
        assert_eq!(total(&output, "denied"), denied);
        assert_eq!(total(&output, "admitted"), rows.len() as u64 - denied);
        assert_eq!(total(&output, "requests"), rows.len() as u64);
        denied_somewhere += usize::from(denied > 0);
    }
    assert_eq!(denied_somewhere, quotas.len(), "every one of these limits bites on the sample");
}

#[test]
fn decisions_on_the_real_log_are_those_of_an_independent_program() {
    let (Some(log), Some(expected)) = (shared("apache_access.log"), shared("apache_access.expected.json")) else {
        return;
    };
    let scratch = Scratch::new("real");
    let expected: Value = serde_json::from_slice(&fs::read(expected).unwrap()).unwrap();
    let ours = expected.as_array().unwrap().iter().filter(|case| case["window"] == "half_open");
    let mut cases = 0;
    for case in ours {
        cases += 1;
        let (limit, window) = (case["limit"].to_string(), format!("{}ns", case["window_ns"]));
        let file = scratch.file("decisions.csv");
        let output = replay(&["--limit", &limit, "--per", &window, "--decisions", &file, &log]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(total(&output, "admitted"), case["allowed"].as_u64().unwrap(), "{case}");
        assert_eq!(total(&output, "denied"), case["rejected"].as_u64().unwrap(), "{case}");
        let digits = as_digits(&decisions(&file));
        assert_eq!(digits.len() as u64, case["events"].as_u64().unwrap());
        let digest: String = Sha256::digest(digits).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, case["sha256"].as_str().unwrap(), "{case}");
    }
    assert_eq!(cases, 4);
}

/// The sample's requests in the other formats: the same decisions must come out.
#[test]
fn every_format_says_the_same() {
    let scratch = Scratch::new("formats");
    let log = fs::read_to_string(SAMPLE).unwrap();
    let (mut csv, mut tsv, mut json) = (String::from("id,ts,client_ip\n"), String::from("Time\tip\n"), String::new());
    for (number, line) in log.lines().enumerate() {
        let client = line.split(' ').next().unwrap();
        let date = line.split(['[', ']']).nth(1).unwrap();
        let seconds = seconds_of(date);
        csv += &format!("{number},{seconds}.000,\"{client}\"\n");
        tsv += &format!("{date}\t{client}\r\n");
        json += &format!("{{\"msg\":\"x\",\"timestamp\":{}000,\"remote_addr\":\"{client}\"}}\n", seconds);
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(log.as_bytes()).unwrap();
    let inputs = [
        SAMPLE.to_owned(),
        scratch.with("log.csv", csv),
        scratch.with("log.tsv", tsv),
        scratch.with("log.jsonl", json),
        // Known by its content: the name does not say it.
        scratch.with("log", gzip.finish().unwrap()),
    ];
    let mut answers = Vec::new();
    for input in &inputs {
        let file = scratch.file("decisions.csv");
        let output = replay(&["--limit", "20", "--per", "10s", "--decisions", &file, input]);
        assert!(output.status.success(), "{input}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{input}: {}", text(&output.stderr));
        answers.push(fs::read(&file).unwrap());
    }
    for (input, answer) in inputs.iter().zip(&answers) {
        assert!(*answer == answers[0], "{input} is decided otherwise than the access log");
    }
    assert!(text(&answers[0]).contains(",0,"));

    let file = scratch.file("stdin.csv");
    let output = replay_stdin(&["--limit", "20", "--per", "10s", "--decisions", &file, "-"], log.as_bytes());
    assert!(output.status.success() && fs::read(&file).unwrap() == answers[0]);
}

#[test]
fn files_are_one_log_in_time_order() {
    let scratch = Scratch::new("several");
    let late = scratch.with("late.csv", "time,client\n10,a\n12,a\n");
    let early = scratch.with("early.csv", "time,client\n11,a\n3,b\n11,c\n");
    let file = scratch.file("decisions.csv");
    assert!(replay(&["--limit", "1", "--per", "2s", "--decisions", &file, &late, &early]).status.success());
    let shown: Vec<(String, String, bool)> =
        decisions(&file).into_iter().map(|row| (row.time[17..].to_owned(), row.key, row.allowed)).collect();
    let expected =
        [("03Z", "b", true), ("10Z", "a", true), ("11Z", "a", false), ("11Z", "c", true), ("12Z", "a", true)];
    assert_eq!(shown, expected.map(|(time, key, allowed)| (time.to_owned(), key.to_owned(), allowed)));
}

#[test]
fn the_window_is_exact_to_the_nanosecond_before_1970_too() {
    let scratch = Scratch::new("nanosecond");
    let log = "time,client\n\
        1969-12-31T23:59:59.000000001Z,a\n\
        1970-01-01T00:00:00Z,a\n\
        1970-01-01T00:00:00.000000001Z,a\n\
        1970-01-01T00:00:01.000000000Z,a\n";
    let (input, file) = (scratch.with("log.csv", log), scratch.file("decisions.csv"));
    let output = replay(&["--limit", "1", "--per", "1s", "--decisions", &file, &input]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answers: Vec<(bool, Option<u64>)> =
        decisions(&file).iter().map(|row| (row.allowed, row.retry_after_ns)).collect();
    assert_eq!(answers, [(true, Some(0)), (false, Some(1)), (true, Some(0)), (false, Some(1))]);
}

#[test]
fn costs_are_charged_all_or_none_and_too_large_ones_never_pass() {
    let scratch = Scratch::new("cost");
    let log = "time,user,weight\n1,u,3\n2,u,3\n3,u,2\n4,u,6\n5,u,0\n6,u,99999999999\n";
    let (input, file) = (scratch.with("log.csv", log), scratch.file("decisions.csv"));
    let args =
        ["--limit", "5", "--per", "1m", "--key", "user", "--cost-column", "weight", "--decisions", &file, &input];
    let output = replay(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answers: Vec<(bool, Option<u64>)> =
        decisions(&file).iter().map(|row| (row.allowed, row.retry_after_ns)).collect();
    let wait = Some(59 * NANOS_PER_SECOND);
    let expected = [(true, Some(0)), (false, wait), (true, Some(0)), (false, None), (true, Some(0)), (false, None)];
    assert_eq!(answers, expected);
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (3, 1));
    assert!(text(&output.stdout).contains("too big") && text(&output.stdout).contains("can never pass"));
}

#[test]
fn keys_can_be_several_fields_and_are_quoted_where_need_be() {
    let scratch = Scratch::new("keys");
    let line = |client: &str, path: &str| {
        format!("{client} - - [17/May/2015:10:05:03 +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"-\"\n")
    };
    let log = [line("a", "/x,\"y\"?q=1"), line("a", "/x,\"y\"?q=2"), line("a", "/z"), line("b", "/z")].concat();
    // A quote in a request is written with a backslash, as servers do.
    let (input, file) = (scratch.with("access.log", log.replace("\"y\"", "\\\"y\\\"")), scratch.file("decisions.csv"));
    let run = |key: &str| {
        let output = replay(&["--limit", "1", "--per", "1s", "--key", key, "--decisions", &file, &input]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        decisions(&file).into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(run("client"), ["a", "a", "a", "b"]);
    assert_eq!(run("path"), ["/x,\\\"y\\\"", "/x,\\\"y\\\"", "/z", "/z"]);
    assert_eq!(run("client,path")[2..], ["a /z", "b /z"]);
    assert!(fs::read_to_string(&file).unwrap().contains("\"a /x,\\\\\"\"y\\\\\"\"\""));
}

#[test]
fn columns_can_be_named() {
    let scratch = Scratch::new("columns");
    let csv = scratch.with("log.csv", "when,time,tenant\n1500,x,a\n2499,x,a\n2500,x,a\n");
    let file = scratch.file("decisions.csv");
    let args = ["--limit", "1", "--per", "1s", "--key", "tenant", "--time-column", "when", "--time-unit", "ms"];
    let output = replay(&[args.as_slice(), &["--decisions", &file, &csv]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(as_digits(&decisions(&file)), "101");
    assert_eq!(decisions(&file)[0].time, "1970-01-01T00:00:01.5Z");
    let json = b"{\"at\":{\"s\":\"2024-02-29T12:00:00+02:00\"},\"tenant\":7}\n";
    let args = ["--limit", "1", "--per", "1s", "--key", "tenant", "--time-column", "at.s", "--decisions", &file];
    let output = replay_stdin(&args, json);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let row = Row { time: "2024-02-29T10:00:00Z".into(), key: "7".into(), allowed: true, retry_after_ns: Some(0) };
    assert_eq!(decisions(&file), [row]);
}

#[test]
fn costs_of_every_size_are_decided_as_the_definition_says() {
    const LIMIT: u64 = 8;
    const WINDOW: u64 = 1_000;
    let scratch = Scratch::new("random-costs");
    let file = scratch.file("decisions.csv");
    let mut outcomes = [0; 3];
    for seed in 0..8 {
        let mut numbers = Numbers::from(seed);
        // Dense enough for stamps to leave the window at the very nanosecond of a request.
        let mut events: Vec<(u64, String, u64)> = (0..1500)
            .map(|_| (numbers.below(100_000) / 50 * 50, format!("k{}", numbers.below(7)), numbers.below(LIMIT + 2)))
            .collect();
        let mut log = String::from("cost,key,time\n");
        for (time, key, cost) in &events {
            log += &format!("{cost},{key},{time}\n");
        }
        let input = scratch.with("log.csv", log);
        let args = ["--limit", "8", "--per", "1000ns", "--key", "key", "--cost-column", "cost", "--time-unit", "ns"];
        let output = replay(&[args.as_slice(), &["--decisions", &file, &input]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        events.sort_by_key(|(time, ..)| *time);
        let mut oracle = Oracle::default();
        let rows = decisions(&file);
        assert_eq!(rows.len(), events.len());
        for (row, (time, key, cost)) in rows.iter().zip(&events) {
            let expected = if *cost > LIMIT {
                None
            } else {
                Some(oracle.decide(key, *time, usize::try_from(*cost).unwrap(), 8, WINDOW))
            };
            assert_eq!((&row.key, row.retry_after_ns), (key, expected), "seed {seed} at {time}");
            assert_eq!(row.allowed, expected == Some(0));
            outcomes[expected.map_or(2, |wait| usize::from(wait > 0))] += 1;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 500), "admitted, denied and never all occur: {outcomes:?}");
}
