//! What comes out: the report, the plot, the sample, and what happens when it can't be written.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::replay::support::{SAMPLE, Scratch, replay, text, tollgate, total};

#[test]
fn the_shipped_sample_is_the_output_of_its_generator() {
    let made = tollgate().args(["sample", "--seed", "1", "--lines", "2400"]).output().unwrap();
    assert!(made.status.success());
    assert!(made.stdout == fs::read(SAMPLE).unwrap(), "examples/sample/access.log is not `tollgate sample`");
    assert!(made.stdout.len() < 400_000);
    let other = tollgate().args(["sample", "--seed", "2"]).output().unwrap();
    assert!(other.stdout != made.stdout, "the seed makes no difference");
}

#[test]
fn samples_have_as_many_lines_as_asked_for() {
    for lines in [0, 1, 7, 100, 3001] {
        let made = tollgate().args(["sample", "--lines", &lines.to_string()]).output().unwrap();
        assert_eq!(text(&made.stdout).lines().count(), lines);
    }
}

#[test]
fn no_log_is_overwritten() {
    let scratch = Scratch::new("overwrite");
    let content = "time,client\n1,a\n";
    let input = scratch.with("log.csv", content);
    let roundabout = scratch.0.join(".").join("log.csv");
    for option in ["--decisions", "--plot"] {
        let output = replay(&["--limit", "1", "--per", "1s", option, roundabout.to_str().unwrap(), &input]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("would overwrite"));
    }
    assert_eq!(fs::read_to_string(&input).unwrap(), content);
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let scratch = Scratch::new("unwritable");
    let nowhere = scratch.file("no/such/directory/file");
    for option in ["--decisions", "--plot"] {
        let output = replay(&["--limit", "1", "--per", "1s", option, &nowhere, SAMPLE]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(&format!("{nowhere} could not be written")), "{}", text(&output.stderr));
    }
}

#[test]
fn the_plot_is_labelled() {
    let scratch = Scratch::new("plot");
    let file = scratch.file("plot.svg");
    assert!(replay(&["--limit", "20", "--per", "10s", "--plot", &file, SAMPLE]).status.success());
    let svg = fs::read_to_string(&file).unwrap();
    let parts = [
        "<svg",
        "20 per 10s for each client",
        "admitted: 2,180",
        "denied: 220",
        "time (UTC)",
        "requests per ",
        "denied per ",
        "2 Mar 10:00",
    ];
    for part in parts {
        assert!(svg.contains(part), "no {part:?}");
    }
    assert!(svg.trim_end().ends_with("</svg>"));
}

#[test]
fn the_report_fits_its_width_and_is_plain_text_in_a_pipe() {
    for width in [40, 72, 120] {
        let output = replay(&["--limit", "20", "--per", "10s", "--width", &width.to_string(), SAMPLE]);
        let report = text(&output.stdout);
        assert!(!report.contains('\x1b'));
        assert!(report.contains("worst keys") && report.contains("203.0.113.66"));
        let charts: Vec<&str> = report.lines().filter(|line| line.contains(['┤', '│', '┴'])).collect();
        assert_eq!(charts.len(), 6 + 1 + 3 + 1, "two charts with a base line each");
        for line in charts {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let painted = replay(&["--limit", "20", "--per", "10s", "--color", "always", SAMPLE]);
    assert!(text(&painted.stdout).contains("\x1b[31m"));
}

#[test]
fn a_reader_that_closes_the_pipe_causes_no_panic() {
    for args in [
        ["sample", "--lines", "200000"].as_slice(),
        &["replay", "--limit", "1", "--per", "1s", "--top", "99999", SAMPLE],
    ] {
        let mut child = tollgate().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut complaints = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(complaints, "");
    }
}

#[test]
fn the_longest_log_there_can_be_is_drawn() {
    let scratch = Scratch::new("longest");
    let log = "time,client\n1677-09-21T00:12:44Z,a\n1970-01-01T00:00:00Z,a\n2262-04-11T23:47:16.854775807Z,a\n";
    let (input, plot) = (scratch.with("log.csv", log), scratch.file("plot.svg"));
    let output = replay(&["--limit", "1", "--per", "1ns", "--plot", &plot, &input]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(total(&output, "admitted"), 3);
    assert_eq!(text(&output.stdout).matches('▁').count() + text(&output.stdout).matches('█').count(), 3 * 6);
    assert!(fs::read_to_string(&plot).unwrap().contains("admitted: 3"));
}

#[test]
fn years_that_only_pauses_fill_change_no_decision() {
    let scratch = Scratch::new("pauses");
    // Two a minute; the pauses are 50 years, one window, and a nanosecond less than one.
    let times =
        ["1970-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:59.999999999Z"];
    let more = ["2020-01-01T00:01:00Z", "2020-01-01T00:01:00Z", "2020-01-01T00:01:00Z"];
    let lines: String = times.iter().chain(&more).map(|time| format!("{time},a\n")).collect();
    let input = scratch.with("log.csv", format!("time,client\n{lines}"));
    let output = replay(&["--limit", "2", "--per", "1m", &input]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((total(&output, "admitted"), total(&output, "denied")), (5, 2));
}

#[test]
fn more_years_than_the_clock_can_count_are_an_error_that_says_so() {
    let scratch = Scratch::new("years");
    let lines: String = (1700..=2200).step_by(50).map(|year| format!("{year}-01-01T00:00:00Z,a\n")).collect();
    let input = scratch.with("log.csv", format!("time,client\n{lines}"));
    let output = replay(&["--limit", "1", "--per", "13000d", &input]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("109 years"), "{}", text(&output.stderr));
}
