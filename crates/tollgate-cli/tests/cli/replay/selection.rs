//! `--from`, `--until` and `--where`: the same answers as those of a log that has only such lines.

use std::fs;

use crate::replay::decisions::seconds_of;
use crate::replay::support::{SAMPLE, Scratch, replay, replay_stdin, text, total};

/// The sample's lines that are so.
fn lines_that(keep: impl Fn(&str) -> bool) -> String {
    let log = fs::read_to_string(SAMPLE).unwrap();
    log.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect()
}

fn seconds(line: &str) -> u64 {
    seconds_of(line.split(['[', ']']).nth(1).unwrap())
}

/// Decides the sample with those options, and the lines alone without them.
fn same(options: &[&str], lines: &str) {
    let scratch = Scratch::new(&format!("selection-{}", options.concat().replace(['/', '-'], "_")));
    let (ours, theirs, alone) = (scratch.file("ours.csv"), scratch.file("theirs.csv"), scratch.with("log", lines));
    let limit = ["--limit", "3", "--per", "10s"];
    let selected = replay(&[limit.as_slice(), options, &["--decisions", &ours, SAMPLE]].concat());
    assert!(selected.status.success(), "{options:?}: {}", text(&selected.stderr));
    assert!(replay(&[limit.as_slice(), &["--decisions", &theirs, &alone]].concat()).status.success());
    assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap(), "{options:?}");
    let left_out = 2400 - lines.lines().count() as u64;
    assert_eq!(total(&selected, "requests"), lines.lines().count() as u64);
    assert!(left_out > 100 && text(&selected.stdout).contains("left out by filters"));
}

#[test]
fn a_range_of_time_is_half_open() {
    let (from, until) = (seconds_of("02/Mar/2026:09:30:00 +0000"), seconds_of("02/Mar/2026:12:10:00 +0000"));
    let options = ["--from", "2026-03-02T09:30:00Z", "--until", "2026-03-02T12:10:00Z"];
    let inside = lines_that(|line| (from..until).contains(&seconds(line)));
    assert!(inside.contains("02/Mar/2026:09:30:00"), "the first moment has requests");
    same(&options, &inside);
    same(&["--until", &until.to_string()], &lines_that(|line| seconds(line) < until));
    same(&["--from", "02/Mar/2026:12:10:00 +0000"], &lines_that(|line| seconds(line) >= until));
}

#[test]
fn fields_are_filtered() {
    same(&["--where", "method=GET"], &lines_that(|line| line.contains("\"GET ")));
    same(&["--where", "method!=GET"], &lines_that(|line| !line.contains("\"GET ")));
    same(&["--where", "path=/static/*"], &lines_that(|line| line.contains("GET /static/")));
    same(
        &["--where", "status=404", "--where", "user=-"],
        &lines_that(|line| line.contains("\" 404 ") && line.contains(" - - [")),
    );
    same(&["--where", "user!=-"], &lines_that(|line| !line.contains(" - - [")));
    same(&["--where", "column:path=*q=limits"], &lines_that(|line| line.contains("q=limits ")));
}

#[test]
fn filters_that_cannot_be_are_refused() {
    let cases = [("method", "FIELD=VALUE"), ("=x", "has no name")];
    for (filter, reason) in cases {
        let output = replay(&["--limit", "1", "--per", "1s", "--where", filter, SAMPLE]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
    let output = replay(&["--limit", "1", "--per", "1s", "--where", "tenant=x", SAMPLE]);
    assert!(text(&output.stderr).contains("--where"), "{}", text(&output.stderr));
    let output = replay(&["--limit", "1", "--per", "1s", "--from", "soon", SAMPLE]);
    assert!(text(&output.stderr).contains("is not a time"), "{}", text(&output.stderr));
}

#[test]
fn a_missing_field_of_a_filter_is_not_called_the_key() {
    let output = replay(&["--limit", "1", "--per", "1s", "--where", "pth=x", SAMPLE]);
    let complaint = text(&output.stderr);
    assert!(complaint.contains("has no column for the field pth of --where: its columns are"), "{complaint}");
}

#[test]
fn fields_without_a_name_are_refused_at_once() {
    for fields in [["--key", ""], ["--key", "client,"], ["--key", "column:"], ["--where", "column:=x"]] {
        let output = replay(&[["--limit", "1", "--per", "1s"].as_slice(), &fields, &[SAMPLE]].concat());
        assert_eq!(output.status.code(), Some(2), "{fields:?}");
        assert!(text(&output.stderr).contains("a field has no name"), "{}", text(&output.stderr));
    }
}

#[test]
fn two_equals_signs_are_pointed_out() {
    let log = b"time,path\n1,/x\n2,=/x\n";
    for (sign, count) in [("=", 1), ("!=", 1)] {
        let filter = format!("path{sign}=/x");
        let output = replay_stdin(&["--limit", "1", "--per", "1s", "--key", "path", "--where", &filter], log);
        assert_eq!(total(&output, "requests"), count);
        let expected =
            format!("--where {filter} looks for \"=/x\", with the equals sign: for \"/x\" write path{sign}/x\n");
        assert_eq!(text(&output.stderr), expected);
    }
    let output = replay_stdin(&["--limit", "1", "--per", "1s", "--key", "path", "--where", "path=/x"], log);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_range_without_requests_says_so() {
    let args = ["--limit", "1", "--per", "1s", "--from", "2020-01-01"];
    let output = replay_stdin(&args, b"time,client\n1,a\n2,b\n");
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("all 2 records are left out by --from, --until or --where: widen them"), "{complaint}");
}
