//! Requests whose cost is above a limit: they are counted apart from those that are denied, in the
//! totals, for each key and over time.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::replay::support::{SAMPLE, Scratch, replay, text, tollgate, total};

fn json_of(args: &[&str]) -> Value {
    let output = replay(&[args, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sum(list: &Value, of: impl Fn(&Value) -> u64) -> u64 {
    list.as_array().unwrap().iter().map(of).sum()
}

/// A log in which each key has requests of three kinds, and its true counts of each.
fn mixed() -> (String, [u64; 3]) {
    let (mut log, mut counts) = ("time,client,cost\n".to_owned(), [0; 3]);
    for key in 0..7 {
        let mut held = 0;
        for nth in 0..20 {
            let cost = (key + nth * 5) % 9;
            log += &format!("{},k{key},{cost}\n", nth * 7 + key);
            let kind = if cost > 6 {
                2
            } else if held + cost > 6 {
                1
            } else {
                held += cost;
                0
            };
            counts[kind] += 1;
        }
    }
    (log, counts)
}

#[test]
fn totals_are_the_sums_over_keys_and_over_time() {
    let scratch = Scratch::new("too-big-sums");
    let (log, [admitted, denied, too_big]) = mixed();
    assert!([admitted, denied, too_big].iter().all(|count| *count > 10));
    let input = scratch.with("log.csv", log);
    let args = ["--limit", "6", "--per", "1h", "--cost-column", "cost", "--top", "100", &input];
    let report = json_of(&args);
    let named = [("admitted", admitted), ("denied", denied), ("too_big", too_big)];
    for (name, count) in named {
        assert_eq!(report[name], count, "{name}");
        assert_eq!(sum(&report["timeline"][name], |step| step.as_u64().unwrap()), count, "{name} over time");
    }
    let dimension = &report["dimensions"][0];
    assert_eq!(sum(&dimension["worst_keys"], |key| key["denied"].as_u64().unwrap()), denied);
    assert_eq!((&dimension["denied"], &dimension["too_big"]), (&denied.into(), &too_big.into()));
    let people = text(&replay(&args).stdout);
    assert!(people.contains("too big per "), "{people}");
}

#[test]
fn costs_that_are_all_too_big_are_told_of_and_deny_no_key() {
    let args = ["--limit", "20", "--per", "10s", "--cost-column", "bytes", SAMPLE];
    let costs: Vec<u64> = fs::read_to_string(SAMPLE).unwrap().lines().map(bytes_of).collect();
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    let output = replay(&args);
    assert_eq!(total(&output, "denied"), 0);
    let report = text(&output.stdout);
    assert!(report.contains("too big          2,400") && !report.contains("worst keys"), "{report}");
    let complaint = text(&output.stderr);
    let thousands = |count: &u64| format!("{},{:03}", count / 1000, count % 1000);
    let expected = format!(
        "every request costs more than can ever be granted by 20 per 10s: the costs in the column \"bytes\" go from \
         {least} to {}; look whether --cost-column names the right column\n",
        thousands(most)
    );
    assert_eq!(complaint, expected);
    let report = json_of(&args);
    let dimension = &report["dimensions"][0];
    assert_eq!((&report["denied"], &report["too_big"]), (&0.into(), &2400.into()));
    assert_eq!((&dimension["keys_denied"], &dimension["keys_too_big"]), (&0.into(), &200.into()));
    assert_eq!(dimension["worst_keys"], Value::Array(Vec::new()));
}

/// The size of the answer in a line of the sample.
fn bytes_of(line: &str) -> u64 {
    line.split('"').nth(2).unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_plot_tells_those_that_are_too_big_apart() {
    let scratch = Scratch::new("too-big-plot");
    let (log, [admitted, denied, too_big]) = mixed();
    let (input, plot) = (scratch.with("log.csv", log), scratch.file("plot.svg"));
    let args = ["--limit", "6", "--per", "1h", "--cost-column", "cost", "--plot", &plot, &input];
    assert!(replay(&args).status.success());
    let svg = fs::read_to_string(&plot).unwrap();
    for words in [format!("admitted: {admitted}"), format!("denied: {denied}"), format!("too big: {too_big}")] {
        assert!(svg.contains(&words), "no {words}");
    }
}

#[test]
fn compare_keeps_them_apart_too() {
    let compare = |args: &[&str]| -> Output {
        let options = ["compare", "--limit", "6", "--per", "1h", "--algorithm", "sliding-window-log"];
        tollgate().args(options).args(args).output().unwrap()
    };
    let scratch = Scratch::new("too-big-compare");
    let (log, [_, denied, too_big]) = mixed();
    let input = scratch.with("log.csv", log);
    let people = text(&compare(&["--cost-column", "cost", &input]).stdout);
    assert!(people.contains(&format!("and {too_big} too big, can never pass")), "{people}");
    let row: Vec<&str> = people.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["and", &too_big.to_string(), "too"]);
    let figures = people.lines().nth_back(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(figures, denied.to_string(), "{people}");
    let all = compare(&["--cost-column", "bytes", "--format", "json", SAMPLE]);
    let one = serde_json::from_slice::<Value>(&all.stdout).unwrap()["compared"][0].clone();
    assert_eq!((&one["denied"], &one["too_big"], &one["keys_denied"]), (&0.into(), &2400.into(), &0.into()));
    assert!(text(&all.stderr).contains("every request costs more than can ever be granted by 6 per 1h"));
}
