//! Requests are decided while others are still read. However they are ordered, what comes out is
//! the same.

use serde_json::Value;

use crate::replay::support::{Numbers, Scratch, replay, text};

/// More than wait for late ones twice over, so that many are decided beside reading.
const REQUESTS: u64 = 60_000;

fn lines(times: &[u64]) -> String {
    let lines: String = times.iter().map(|time| format!("{}.{:03},{}\n", time / 1000, time % 1000, time % 7)).collect();
    format!("time,client\n{lines}")
}

/// The report, and the file of decisions.
fn both(scratch: &Scratch, logs: &[&str]) -> (Value, String) {
    let limit = ["--limit", "3", "--per", "1s", "--format", "json"];
    let report = |options: &[&str]| -> Value {
        let output = replay(&[limit.as_slice(), options, logs].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let file = scratch.file("decisions.csv");
    let beside = report(&[]);
    // Those of the file are made once all is read.
    assert_eq!(beside, report(&["--decisions", &file]));
    (beside, std::fs::read_to_string(file).unwrap())
}

#[test]
fn the_order_of_lines_changes_nothing() {
    let scratch = Scratch::new("beside");
    let sorted: Vec<u64> = (0..REQUESTS).map(|at| 1_772_438_400_000 + at * 30).collect();
    let (report, decisions) = both(&scratch, &[&scratch.with("sorted.csv", lines(&sorted))]);
    assert_eq!(report["requests"], REQUESTS);
    assert!(report["denied"].as_u64().unwrap() > 1000 && report["admitted"].as_u64().unwrap() > 1000, "{report}");

    let mut numbers = Numbers::from(3);
    let mut nearly = sorted.clone();
    for at in 0..nearly.len() - 50 {
        nearly.swap(at, at + numbers.index(50));
    }
    assert_eq!(both(&scratch, &[&scratch.with("nearly.csv", lines(&nearly))]), (report.clone(), decisions.clone()));

    let backwards: Vec<u64> = sorted.iter().rev().copied().collect();
    assert_eq!(
        both(&scratch, &[&scratch.with("backwards.csv", lines(&backwards))]),
        (report.clone(), decisions.clone())
    );

    let (early, late) = sorted.split_at(sorted.len() / 2 + 1);
    let (early, late) = (scratch.with("early.csv", lines(early)), scratch.with("late.csv", lines(late)));
    let (mut of_two, decided) = both(&scratch, &[&late, &early]);
    assert!(decided == decisions, "two files, the later one first");
    // There are two headers.
    of_two["log"] = report["log"].clone();
    assert_eq!(of_two, report);
}

#[test]
fn a_log_that_cannot_be_decided_is_read_to_the_end_all_the_same() {
    let scratch = Scratch::new("beside-errors");
    let years: String = (0..REQUESTS).map(|at| format!("{}-01-01T00:00:00Z,a\n", 1700 + at / 120)).collect();
    let log = scratch.with("years.csv", format!("time,client\n{years}not a line\n"));
    let output = replay(&["--limit", "1", "--per", "13000d", &log]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("1 columns where the header has 2") && complaint.contains("109 years"), "{complaint}");
}
