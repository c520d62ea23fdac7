//! `--algorithm` and several `--limit` and `--per`: decided as each says, and what is said of
//! options that don't go together.

use tollgate::Algorithm;
use tollgate::schema::{Field, FieldKind};

use crate::replay::support::{SAMPLE, Scratch, decisions, replay, text, total};

/// The same clients' requests at these seconds, one permit each, by those options: the waits in
/// seconds.
fn waits(options: &[&str], seconds: &[&str]) -> Vec<f64> {
    let scratch = Scratch::new(&format!("options-{}", options.join("").replace(['-', '.'], "")));
    let lines: String = seconds.iter().map(|second| format!("{second},a\n")).collect();
    let (log, file) = (scratch.with("log.csv", format!("time,client\n{lines}")), scratch.file("decisions.csv"));
    let output = replay(&[options, &["--decisions", &file, &log]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut reader = csv::Reader::from_path(&file).unwrap();
    reader.records().map(|row| row.unwrap()[3].parse::<u64>().unwrap() as f64 / 1e9).collect()
}

/// The fields of the algorithm, by options and as a quota of a policy: the same requests are granted.
#[test]
fn options_are_the_fields_of_a_policy() {
    let scratch = Scratch::new("fields");
    // A log does not tell what the other one counts.
    for algorithm in Algorithm::ALL.iter().filter(|algorithm| **algorithm != Algorithm::Concurrency) {
        let fields = algorithm.needed_fields().iter().chain(algorithm.optional_fields());
        // No policy has the one, and the other is for windows of the calendar.
        let fields = fields.filter(|field| !matches!(field, Field::CountingRefused | Field::Zone));
        let (mut options, mut quota) = (vec!["--algorithm".to_owned(), algorithm.name().to_owned()], String::new());
        for (at, field) in fields.enumerate() {
            options.push(format!("--{}", field.name().replace('_', "-")));
            let value = match field.kind() {
                FieldKind::Flag | FieldKind::Zone => None,
                FieldKind::Number => Some((5 - at).to_string()),
                FieldKind::Duration if *field == Field::Per => Some("20s".to_owned()),
                FieldKind::Duration => Some("5s".to_owned()),
            };
            let written = match (field.kind(), &value) {
                (FieldKind::Duration, Some(value)) => format!("{value:?}"),
                (_, value) => value.clone().unwrap_or_else(|| "true".to_owned()),
            };
            quota += &format!("{} = {written}\n", field.name());
            options.extend(value);
        }
        let dimension = format!(
            "[[dimension]]\nname = \"client\"\n[[dimension.quota]]\nalgorithm = \"{}\"\n{quota}",
            algorithm.name()
        );
        let policy = ["--policy".to_owned(), scratch.with("policy.toml", &dimension)];
        let [by_options, by_policy] = [options.as_slice(), &policy].map(|quota| {
            let file = scratch.file("decisions.csv");
            let rest = ["--decisions", &file, SAMPLE].map(str::to_owned);
            let all: Vec<String> = [quota, &rest].concat();
            let output = replay(&all.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(output.status.success(), "{algorithm}: {}", text(&output.stderr));
            let mut reader = csv::Reader::from_path(&file).unwrap();
            let rows = reader.records().map(|row| row.unwrap().iter().take(4).map(str::to_owned).collect());
            rows.collect::<Vec<Vec<String>>>()
        });
        assert_eq!(by_options, by_policy, "{algorithm}");
        let denied = by_options.iter().filter(|row| row[2] == "0" || row[2] == "false").count();
        assert!(denied > 50, "{algorithm}: {denied}");
    }
}

#[test]
fn token_bucket() {
    let options = ["--algorithm", "token-bucket", "--capacity", "2", "--refill", "1", "--per", "10s"];
    assert_eq!(
        waits(&options, &["0", "0", "0", "9", "10", "11", "40", "40", "40"]),
        [0.0, 0.0, 10.0, 1.0, 0.0, 9.0, 0.0, 0.0, 10.0]
    );
}

#[test]
fn leaky_bucket() {
    let options = ["--algorithm", "leaky-bucket", "--capacity", "2", "--leak", "2", "--per", "10s"];
    assert_eq!(waits(&options, &["0", "0", "0", "4.5", "5", "5"]), [0.0, 0.0, 5.0, 0.5, 0.0, 5.0]);
}

#[test]
fn leaky_queue_tells_delays() {
    let options = ["--algorithm", "leaky-queue", "--leak", "1", "--per", "2s", "--max-delay", "3s"];
    assert_eq!(waits(&options, &["0", "0", "0", "1", "1"]), [0.0, 0.0, 1.0, 0.0, 2.0]);
    let scratch = Scratch::new("delays");
    let (log, file) = (scratch.with("log.csv", "time,client\n0,a\n0,a\n1,a\n"), scratch.file("decisions.csv"));
    let output = replay(&[options.as_slice(), &["--decisions", &file, &log]].concat());
    let mut reader = csv::Reader::from_path(&file).unwrap();
    let delays: Vec<String> = reader.records().map(|row| row.unwrap()[4].to_owned()).collect();
    assert_eq!(delays, ["0", "2000000000", "3000000000"]);
    assert_eq!(total(&output, "delayed"), 2);
    assert!(text(&output.stdout).contains("by at most 3s"), "{}", text(&output.stdout));
}

#[test]
fn fixed_window() {
    let options = ["--algorithm", "fixed-window", "--limit", "2", "--per", "10s"];
    assert_eq!(waits(&options, &["3", "4", "5", "13", "13", "13"]), [0.0, 0.0, 8.0, 0.0, 0.0, 10.0]);
}

#[test]
fn sliding_counter_has_the_windows_of_the_clock_on_the_wall() {
    let options = ["--algorithm", "sliding-counter", "--limit", "2", "--per", "10s"];
    // Two at 12 s lie in the window from 10 s to 20 s: at 25 s they weigh one, and years later
    // nothing.
    assert_eq!(waits(&options, &["12", "12", "12", "25", "25", "1431857103"]), [0.0, 0.0, 13.0, 0.0, 5.0, 0.0]);
    // The same seconds of another minute, with years between that are cut short.
    let late = ["1431857112", "1431857112", "1431857112", "1431857125", "1431857125"];
    let long_ago = [["5"].as_slice(), &late].concat();
    assert_eq!(waits(&options, &long_ago)[1..], waits(&options, &late));
    assert_eq!(waits(&options, &late), [0.0, 0.0, 13.0, 0.0, 5.0]);
}

#[test]
fn quantised_log_has_the_steps_of_the_clock_on_the_wall() {
    let options = ["--algorithm", "quantised-log", "--limit", "2", "--per", "10s", "--resolution", "5s"];
    // Two at 12 s count as granted at 15 s, one at 25 s as of then.
    assert_eq!(waits(&options, &["12", "12", "12", "25", "26", "26"]), [0.0, 0.0, 13.0, 0.0, 0.0, 9.0]);
    // The same seconds of another minute, with years between that are cut short.
    let late = ["5", "1431857112", "1431857112", "1431857112", "1431857125"];
    assert_eq!(waits(&options, &late)[1..], [0.0, 0.0, 13.0, 0.0]);
}

#[test]
fn a_window_of_the_calendar_ends_at_midnight_in_its_zone() {
    // From the day before the clocks go forward in Berlin: hours of that day and the next two.
    let saturday = 1_774_652_400_u64;
    let times = [0, 23, 24, 46, 47, 48].map(|hour| (saturday + hour * 3600).to_string());
    let times = times.each_ref().map(String::as_str);
    let options = ["--algorithm", "fixed-window", "--limit", "1", "--per", "day", "--zone"];
    let hour = 3600.0;
    for (zone, expected) in
        [("Europe/Berlin", [0.0, hour, 0.0, hour, 0.0, 23.0 * hour]), ("UTC", [0.0, 0.0, hour, 0.0, 2.0 * hour, hour])]
    {
        assert_eq!(waits(&[options.as_slice(), &[zone]].concat(), &times), expected, "{zone}");
    }
    assert_eq!(waits(&options[..6], &times), waits(&[options.as_slice(), &["UTC"]].concat(), &times));
}

#[test]
fn several_limits_on_one_key() {
    let options = ["--limit", "2", "--per", "1s", "--limit", "3", "--per", "10s"];
    assert_eq!(waits(&options, &["0", "0", "0", "1", "1", "10"]), [0.0, 0.0, 1.0, 0.0, 9.0, 0.0]);
    let output =
        replay(&["--limit", "5", "--per", "1s", "--limit", "40", "--per", "1m", "--key", "client,path", SAMPLE]);
    let report = text(&output.stdout);
    assert!(report.starts_with("5 per 1s and 40 per 1m for each client + path"), "{report}");
    assert!(report.contains("denied by the quota to wait longest for"), "{report}");
}

#[test]
fn the_default_algorithm_can_be_named() {
    let scratch = Scratch::new("plain");
    let file = scratch.file("decisions.csv");
    let named = ["--algorithm", "sliding-window-log", "--limit", "20", "--per", "10s"];
    let output = replay(&[named.as_slice(), &["--decisions", &file, SAMPLE]].concat());
    // It asserts the header.
    assert_eq!(decisions(&file).iter().filter(|row| !row.allowed).count(), 220);
    let report = text(&output.stdout);
    assert!(report.starts_with("20 per 10s for each client\n") && !report.contains("denied by"), "{report}");
    assert_eq!(report, text(&replay(&["--limit", "20", "--per", "10s", SAMPLE]).stdout));
}

#[test]
fn options_that_do_not_go_together_say_which_would() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "--limit and --per, or --algorithm with its options, or --policy FILE"),
        (&["--limit", "5"], "--per is missing: sliding-window-log takes --limit and --per"),
        (&["--per", "5s"], "--limit is missing"),
        (&["--limit", "5", "--per", "1s", "--limit", "6"], "--limit is given twice and --per once: they go in pairs"),
        (
            &["--limit", "5", "--per", "1s", "--per", "2s", "--per", "3s"],
            "--limit is given once and --per 3 times: they",
        ),
        (&["--limit", "5", "--per", "1s", "--refill", "6"], "--refill is not for sliding-window-log"),
        (
            &["--algorithm", "warm-up", "--limit", "5", "--rate", "5", "--per", "1s"],
            "--warm-up is missing: warm-up takes",
        ),
        (&["--limit", "5", "--per", "1s", "--start", "1"], "it belongs to token-bucket; name one with --algorithm"),
        (
            &["--algorithm", "leaky-bucket", "--capacity", "5", "--leak", "1", "--per", "1s", "--start", "1"],
            "takes --capacity and --leak and --per: it belongs to token-bucket; choose another --algorithm",
        ),
        (&["--algorithm", "token-bucket", "--limit", "5", "--per", "1s"], "--capacity is missing: token-bucket takes"),
        (&["--algorithm", "leaky-bucket", "--capacity", "5", "--per", "1s"], "--leak is missing"),
        (&["--algorithm", "leaky-queue", "--leak", "5", "--per", "1s"], "--max-delay is missing"),
        (
            &["--algorithm", "fixed-window", "--limit", "5", "--per", "1s", "--leak", "1"],
            "--leak is not for fixed-window",
        ),
        (
            &["--algorithm", "sliding-counter", "--limit", "5", "--per", "1s", "--limit", "9", "--per", "2s"],
            "--limit is given more than once: only sliding-window-log",
        ),
        (&["--algorithm", "sliding-counter", "--limit", "65536", "--per", "1s"], "at most 65535"),
        (&["--algorithm", "quantised-log", "--limit", "5", "--per", "1s"], "--resolution is missing"),
        (
            &["--algorithm", "quantised-log", "--limit", "5", "--per", "1s", "--resolution", "300ms"],
            "give a resolution that divides it",
        ),
        (&["--algorithm", "token-bucket", "--capacity", "5", "--refill", "0", "--per", "1s"], "the rate is zero"),
        (&["--limit", "5", "--per", "1s", "--limit", "0", "--per", "1m"], "the limit is zero"),
        (&["--limit", "5", "--per", "month"], "only a fixed window has it"),
        (&["--algorithm", "fixed-window", "--limit", "5", "--per", "1d", "--zone", "UTC"], "`zone` is for windows of"),
        (&["--limit", "5", "--per", "1d", "--zone", "Mars"], "there is no such time zone"),
        (&["--algorithm", "tocken-bucket", "--per", "1s"], "token-bucket"),
    ];
    for (options, reason) in cases {
        let output = replay(&[options, [SAMPLE].as_slice()].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(text(&output.stderr).contains(reason), "{options:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}
