//! What the program says: once for each cause, with the true bounds, wrapped between words, and to
//! the right place.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::replay::support::{SAMPLE, Scratch, replay, replay_stdin, text, tollgate, total};

#[test]
fn options_of_another_algorithm_say_whose_they_are() {
    let cases: [(&[&str], &str); 3] = [
        (&["--capacity", "5", "--per", "1s"], "--capacity is not for sliding-window-log"),
        (&["--capacity", "5", "--per", "1s"], "it belongs to token-bucket and leaky-bucket; name one with --algorithm"),
        (&["--max-delay", "5s"], "it belongs to leaky-queue"),
    ];
    for (options, reason) in cases {
        let output = replay(&[options, &[SAMPLE]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn bounds_are_those_of_limits_and_windows_in_units_of_people() {
    for limit in ["-1", "4294967296", "99999999999999999999"] {
        let output = replay(&["--limit", limit, "--per", "1s", SAMPLE]);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint.contains("at least 1 and at most 1,048,576 (sliding-window-log)"), "{complaint}");
        assert!(complaint.contains(&format!("'{limit}'")), "{complaint}");
    }
    assert!(text(&replay(&["--limit", "many", "--per", "1s", SAMPLE]).stderr).contains("not a whole number"));
    let too_long = text(&replay(&["--limit", "1", "--per", "20000d", SAMPLE]).stderr);
    assert_eq!(too_long, "tollgate: the window 20000d is too long: at most 13343d 23h\n");
    let scratch = Scratch::new("days");
    let policy = "[[dimension]]\nname = \"client\"\nquota = [{ limit = 1, per = \"20000d\" }]\n";
    let too_long = text(&replay(&["--policy", &scratch.with("policy.toml", policy), SAMPLE]).stderr);
    assert!(too_long.contains("line 3, column 10: the window 20000d is too long: at most 13343d"), "{too_long}");
}

/// Before anything is read: the log need not be there.
#[test]
fn requests_in_flight_are_refused_since_a_log_tells_no_ends() {
    let scratch = Scratch::new("in-flight");
    let dimension = |name: &str, quota: &str| format!("[[dimension]]\nname = \"{name}\"\nquota = [{{ {quota} }}]\n");
    let (rate, in_flight) = ("limit = 5, per = \"1m\"", "algorithm = \"concurrency\", limit = 5");
    let tier = format!(
        "{}[[dimension.tier]]\nname = \"slow\"\nmatch = {{ path = \"/\" }}\nquota = [{{ {in_flight} }}]\n",
        dimension("path", rate)
    );
    for (at, policy) in [dimension("client", rate) + &dimension("path", in_flight), tier].iter().enumerate() {
        let policy = scratch.with(&format!("{at}.toml"), policy);
        let output = replay(&["--policy", &policy, "no such log"]);
        let expected = format!(
            "tollgate: {policy}: dimension \"path\": a log does not tell when its requests have ended, so that requests \
             in flight can't be counted: leave the concurrency limit out, and replay the other limits"
        );
        let told = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((output.status.code(), told), (Some(2), expected));
    }
    let output = replay(&["--algorithm", "concurrency", "--limit", "5", "--max-hold", "10m", "no such log"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("tollgate: --algorithm concurrency: a log does not tell"));
}

#[test]
fn one_cause_is_told_once() {
    let scratch = Scratch::new("once");
    let nowhere = scratch.file("nowhere.log");
    let output = replay(&["--limit", "1", "--per", "1s", &nowhere]);
    let complaint = text(&output.stderr);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with(&format!("tollgate: {nowhere} can't be opened")), "{complaint}");
    assert!(complaint.ends_with(": check its name and permissions\n"), "{complaint}");
    let several = text(&replay(&["--limit", "1", "--per", "1s", &nowhere, &scratch.file("other")]).stderr);
    assert_eq!(several.lines().count(), 3, "{several}");
    assert!(several.starts_with("tollgate: none of the 2 files can be read\n"), "{several}");
}

#[test]
fn a_plot_is_an_svg_or_nothing() {
    let scratch = Scratch::new("png");
    for name in ["plot.png", "plot.PDF"] {
        let file = scratch.file(name);
        let output = replay(&["--limit", "1", "--per", "1s", "--plot", &file, SAMPLE]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("name a file that ends in .svg"), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty() && fs::metadata(&file).is_err());
    }
}

#[test]
fn decisions_go_to_standard_output_and_the_report_past_it() {
    let scratch = Scratch::new("decisions-stdout");
    let file = scratch.file("decisions.csv");
    let to_file = replay(&["--limit", "20", "--per", "10s", "--decisions", &file, SAMPLE]);
    let to_stdout = replay(&["--limit", "20", "--per", "10s", "--decisions", "-", SAMPLE]);
    assert!(to_stdout.status.success());
    assert!(to_stdout.stdout == fs::read(&file).unwrap(), "standard output has the decisions and nothing else");
    assert_eq!(text(&to_stdout.stderr), text(&to_file.stdout));
}

#[test]
fn decisions_that_are_not_read_to_the_end_are_no_error() {
    let mut child = tollgate()
        .args(["replay", "--limit", "1", "--per", "1s", "--decisions", "-", SAMPLE])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(!text(&output.stderr).contains("could not be written"), "{}", text(&output.stderr));
}

#[test]
fn a_single_moment_has_no_chart() {
    for log in ["time,client\n1,a\n", "time,client\n1,a\n1,a\n1,b\n"] {
        let output = replay_stdin(&["--limit", "1", "--per", "1s"], log.as_bytes());
        let report = text(&output.stdout);
        assert!(report.contains("all at 1970-01-01T00:00:01Z"), "{report}");
        assert!(!report.contains('█') && !report.contains("admitted per"), "{report}");
    }
}

#[test]
fn lines_of_the_report_break_between_words() {
    let args = ["--limit", "5", "--per", "1s", "--limit", "40", "--per", "1m", "--where", "method=GET", SAMPLE];
    let whole = text(&replay(&[args.as_slice(), &["--width", "400"]].concat()).stdout);
    let words =
        |report: &str| report.split("denied by").next().unwrap().split_whitespace().map(str::to_owned).collect();
    let expected: Vec<String> = words(&whole);
    for width in 40..=100 {
        let report = text(&replay(&[args.as_slice(), &["--width", &width.to_string()]].concat()).stdout);
        let head = report.split("denied by").next().unwrap();
        assert!(head.lines().all(|line| line.chars().count() <= width), "{width}:\n{report}");
        let got: Vec<String> = words(&report);
        assert_eq!(got, expected, "{width}");
    }
}

#[test]
fn numbers_that_are_none_are_told_what_to_write() {
    for option in ["--top", "--width", "--year"] {
        let output = replay(&["--limit", "1", "--per", "1s", option, "abc", SAMPLE]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(text(&output.stderr).contains("not a whole number: write it with digits alone"), "{option}");
    }
    let cases = [
        ("--seed", "x", "not a whole number"),
        ("--lines", "2.5", "not a whole number"),
        ("--lines", "4294967296", "at least 0 and at most 4,294,967,295"),
        ("--seed", "-1", "at least 0 and at most 18,446,744,073,709,551,615"),
    ];
    for (option, number, reason) in cases {
        let output = tollgate().args(["sample", option, number]).output().unwrap();
        assert!(text(&output.stderr).contains(reason), "{option} {number}: {}", text(&output.stderr));
    }
    let narrow = replay(&["--limit", "1", "--per", "1s", "--width", "9", SAMPLE]);
    assert!(text(&narrow.stderr).contains("at least 40 and at most 400"), "{}", text(&narrow.stderr));
}

#[test]
fn help_names_the_formats_of_reports() {
    for command in ["replay", "suggest", "compare", "check"] {
        let help = text(&tollgate().args([command, "--help"]).output().unwrap().stdout);
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("--format <FORMAT> How the report is written: text or json"), "{command}: {help}");
    }
}

#[test]
fn a_window_is_what_per_says() {
    let per = replay(&["--limit", "20", "--per", "10s", SAMPLE]);
    let window = replay(&["--limit", "20", "--window", "10s", SAMPLE]);
    assert!(window.status.success(), "{}", text(&window.stderr));
    assert_eq!(text(&window.stdout), text(&per.stdout));
    let help = text(&tollgate().args(["replay", "--help"]).output().unwrap().stdout);
    assert!(!help.contains("--window"), "the alias is not shown");
}

#[test]
fn causes_come_before_consequences() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&[], "", "standard input: there is not one line: name a log with requests"),
        (&[], "\n\n", "standard input: all 2 lines are blank or headers: name a log with requests"),
        (
            &["--key", "user"],
            "{\"time\":1}\n{\"time\":2}\n",
            "standard input: no record has a user: the fields are \"time\"; name one of them with --key",
        ),
        (
            &["--from", "9"],
            "time,client\n1,a\n2,a\n",
            "standard input: all 2 records are left out by --from, --until or --where: widen them",
        ),
        (
            &[],
            "time,client\nx,a\ny,a\n",
            "standard input: all 2 lines are not what is expected, for the reasons above: say how lines are written with",
        ),
    ];
    for (options, log, cause) in cases {
        let output = replay_stdin(&[&["--limit", "1", "--per", "1s"], options].concat(), log.as_bytes());
        let complaint = text(&output.stderr);
        assert!(complaint.lines().any(|line| line.starts_with(&format!("tollgate: {cause}"))), "{complaint}");
    }
}

#[test]
fn help_fits_its_width() {
    for command in ["replay", "sample"] {
        let output = tollgate().args([command, "--help"]).env("COLUMNS", "80").output().unwrap();
        let help = text(&output.stdout);
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

#[test]
fn the_report_names_the_whole_of_a_share() {
    let report = text(&replay(&["--limit", "20", "--per", "10s", SAMPLE]).stdout);
    assert!(report.contains("     denied     of its requests  key\n        184        264   69.70%  203.0.113.66"));
}

#[test]
fn counts_of_keys_and_lines_are_told_in_sentences() {
    let report = text(&replay(&["--limit", "20", "--per", "10s", SAMPLE]).stdout);
    let lines = [
        "  keys               200  4 keys (2.00%) were denied at least once\n",
        "  lines            2,400  each a request\n",
    ];
    lines.iter().for_each(|line| assert!(report.contains(line), "{report}"));
    let log = b"time,client\n1,a\n1,a\n1,b\n";
    let report = text(&replay_stdin(&["--limit", "1", "--per", "1s"], log).stdout);
    assert!(report.contains("  1 key (50.00%) was denied at least once\n"), "{report}");
    let report = text(&replay_stdin(&["--limit", "5", "--per", "1s"], log).stdout);
    assert!(report.contains("  none of them was denied\n"), "{report}");
}

#[test]
fn the_report_as_json_has_the_same_numbers() {
    let args = ["--limit", "20", "--per", "10s", SAMPLE];
    let people = replay(&args);
    let output = replay(&[args.as_slice(), &["--format", "json"]].concat());
    assert!(output.status.success() && output.stderr.is_empty());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["requests", "admitted", "denied"] {
        assert_eq!(report[name].as_u64(), Some(total(&people, name)), "{name}");
    }
    assert_eq!(report["replayed"], "20 per 10s for each client");
    assert_eq!((&report["log"]["lines"], &report["log"]["first"]), (&2400.into(), &"2026-03-02T08:01:07Z".into()));
    let dimension = &report["dimensions"][0];
    assert_eq!(
        (&dimension["keys"], &dimension["keys_denied"], &dimension["quotas"][0]["denied"]),
        (&200.into(), &4.into(), &220.into())
    );
    let worst = dimension["worst_keys"][0].clone();
    assert_eq!(worst, serde_json::json!({ "key": "203.0.113.66", "requests": 264, "denied": 184 }));
    let sum =
        |name: &str| report["timeline"][name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("admitted"), sum("denied")), (2180, 220));
}

#[test]
fn the_formats_of_logs_and_of_reports_are_not_mixed_up() {
    let output = replay(&["--limit", "20", "--per", "10s", "--format", "csv", SAMPLE]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("write --log-format csv"), "{}", text(&output.stderr));
}

#[test]
fn a_duration_has_a_unit_in_every_option() {
    let penalty = [
        "replay",
        "--limit",
        "1",
        "--per",
        "1s",
        "--penalty-denials",
        "3",
        "--penalty-within",
        "1m",
        "--penalty-for",
        "1h",
    ];
    let longest = ["--penalty-factor", "2", "--penalty-longest", "30", "--penalty-quiet", "1d"];
    let quiet = ["--penalty-factor", "2", "--penalty-longest", "1d", "--penalty-quiet", "30"];
    let cases: [&[&str]; 10] = [
        &[penalty.as_slice(), &longest].concat(),
        &[penalty.as_slice(), &quiet].concat(),
        &["replay", "--limit", "1", "--per", "30"],
        &["replay", "--limit", "1", "--window", "30"],
        &["replay", "--algorithm", "leaky-queue", "--leak", "1", "--per", "1s", "--max-delay", "30"],
        &["replay", "--algorithm", "quantised-log", "--limit", "1", "--per", "1m", "--resolution", "30"],
        &[
            "replay",
            "--limit",
            "1",
            "--per",
            "1s",
            "--penalty-denials",
            "3",
            "--penalty-within",
            "30",
            "--penalty-for",
            "1h",
        ],
        &["suggest", "--window", "1s,30"],
        &["compare", "--limit", "1", "--per", "30"],
        &["compare", "--limit", "1", "--per", "1s", "--window", "30"],
    ];
    for args in cases {
        let output = tollgate().args(args).arg(SAMPLE).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains("a unit is missing: write \"30s\" for seconds"),
            "{args:?} {}",
            text(&output.stderr)
        );
    }
}
