//! Bad limits, bad files and bad lines: what is wrong is said, and the rest still counts.

use std::fs;
use std::io::Write;

use crate::replay::support::{Numbers, SAMPLE, Scratch, replay, replay_stdin, text, total};

#[test]
fn records_without_the_key_are_counted_apart() {
    let output = replay(&["--limit", "5", "--per", "10s", "--key", "user", SAMPLE]);
    assert!(output.status.success());
    let anonymous = fs::read_to_string(SAMPLE).unwrap().lines().filter(|line| line.contains(" - - [")).count() as u64;
    assert_eq!(total(&output, "requests") + anonymous, total(&output, "lines"));
    assert!(text(&output.stdout).contains(" without a user"));
    let output = replay_stdin(&["--limit", "5", "--per", "10s", "--key", "user"], b"{\"time\":1}\n{\"time\":2}\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("no record has a user: the fields are \"time\"; name one of them with --key"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_limit_that_the_library_refuses_is_shown_with_its_reason() {
    let cases = [
        (["--limit", "0", "--per", "1s"], "the limit is zero"),
        (["--limit", "1048577", "--per", "1s"], "at most 1048576"),
        (["--limit", "4294967296", "--per", "1s"], "4294967296"),
        (["--limit", "-1", "--per", "1s"], "-1"),
        (["--limit", "1", "--per", "0s"], "the window is zero"),
        (["--limit", "1", "--per", "20000d"], "too long"),
        (["--limit", "1", "--per", "60"], "write \"60s\""),
        (["--limit", "1", "--per", "-5s"], "negative"),
        (["--limit", "1", "--per", "soon"], "not a duration"),
    ];
    for (args, reason) in cases {
        let output = replay(&[args.as_slice(), &[SAMPLE]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(reason), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn lines_that_are_no_events_are_counted_and_shown_with_their_place() {
    let scratch = Scratch::new("bad-lines");
    let good = "10.0.0.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"\n";
    let log = [
        good.as_bytes(),
        &good.as_bytes()[..50],
        b"\n",
        b"\x00\x01\x02\xff\xfe\x1b[31m\n",
        good.replace("2015", "99999").as_bytes(),
        good.replace("2015", "0001").as_bytes(),
        b"\n",
        b"a b\x1b[31m c\n",
        good.replace("2015", "1969").as_bytes(),
        b"end\n",
        &[[0; 9].as_slice(), good.as_bytes()].concat(),
    ]
    .concat();
    let input = scratch.with("access.log", log);
    let output = replay(&["--limit", "5", "--per", "1s", &input]);
    assert_eq!(output.status.code(), Some(0));
    let complaints = text(&output.stderr);
    for (line, reason) in [
        (2, "cut off or malformed: the request's closing quote is missing"),
        (3, "binary data"),
        (4, "\"17/May/99999:10:05:03 +0000\" is out of range"),
        (5, "\"17/May/0001:10:05:03 +0000\" is out of range"),
        (7, "cut off or malformed"),
    ] {
        assert!(complaints.contains(&format!("{input}:{line}: {reason}")), "line {line}:\n{complaints}");
    }
    assert!(complaints.contains("and 2 more"), "{complaints}");
    assert!(!complaints.contains('\x1b'), "a log must not command the terminal");
    assert_eq!((total(&output, "requests"), total(&output, "lines")), (2, 10));
    assert!(
        text(&output.stdout).contains("of them 7 could not be used, 1 blank or header"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let scratch = Scratch::new("bad-files");
    let good = scratch.with("good.csv", "time,client\n1,a\n2,a\n");
    let directory = scratch.0.to_str().unwrap();
    let cases = [
        (scratch.file("nowhere.log"), "can't be opened"),
        (directory.to_owned(), "can't be read"),
        (scratch.with("other.csv", "when,who\n1,a\n"), "has no column for the time: its columns are \"when\", \"who\""),
        (scratch.with("nokey.csv", "time,who\n1,a\n"), "has no column for the key client"),
        (scratch.with("log.zst", b"\x28\xb5\x2f\xfd\x00\x00\x00"), "can't be read"),
        (scratch.with("log.xz", b"\xfd7zXZ\0\0"), "xz -dc"),
        (scratch.with("words", "hello world\nhow are you\n"), "--log-format"),
        (scratch.with("junk", [0x80, 0, 7, 200, 13, 255].repeat(999)), "in no format that is known"),
        (scratch.with("short.gz", [0x1f, 0x8b, 8, 0, 0]), "can't be read"),
    ];
    for (bad, reason) in &cases {
        let output = replay(&["--limit", "1", "--per", "1s", bad, &good]);
        assert_eq!(output.status.code(), Some(1), "{bad}");
        let complaint = text(&output.stderr);
        assert!(complaint.contains(bad) && complaint.contains(reason), "{bad}: {complaint}");
        assert_eq!(total(&output, "requests"), 2, "{bad}");
        let alone = replay(&["--limit", "1", "--per", "1s", bad]);
        assert_eq!(alone.status.code(), Some(1), "{bad}");
        assert!(alone.stdout.is_empty() && text(&alone.stderr).contains(reason), "{bad}");
    }
}

#[test]
fn empty_input_is_an_error() {
    for input in [b"".as_slice(), b"\n\n", b"time,client\n"] {
        let output = replay_stdin(&["--limit", "1", "--per", "1s"], input);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("name a log with requests"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_gzip_file_cut_short_counts_as_far_as_it_goes() {
    let scratch = Scratch::new("gzip");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&fs::read(SAMPLE).unwrap()).unwrap();
    let whole = gzip.finish().unwrap();
    let input = scratch.with("access.log.gz", &whole[..whole.len() * 3 / 4]);
    let output = replay(&["--limit", "20", "--per", "10s", &input]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("can't be read past line") && complaint.contains("what came before is counted"));
    let requests = total(&output, "requests");
    assert!((1000..2400).contains(&requests), "{requests}");
}

/// Damages logs of every format at random places: whatever happens, each line ends up in exactly
/// one of the counts.
#[test]
fn every_line_of_a_damaged_log_is_accounted_for() {
    let scratch = Scratch::new("damaged");
    let sample = fs::read_to_string(SAMPLE).unwrap();
    let lines: Vec<&str> = sample.lines().take(300).collect();
    let table = |row: fn(usize, &str) -> String| {
        let rows: Vec<String> =
            lines.iter().enumerate().map(|(at, line)| row(at, line.split(' ').next().unwrap())).collect();
        rows.join("\n")
    };
    let logs = [
        ("clf", lines.join("\n")),
        ("csv", format!("time,client\n{}", table(|at, client| format!("17000{at:05}.5,\"{client}\"")))),
        ("tsv", format!("time\tclient\n{}", table(|at, client| format!("2024-01-01T00:00:{:02}Z\t{client}", at % 60)))),
        ("jsonl", table(|at, client| format!("{{\"ts\":17000{at:05}.25,\"ip\":\"{client}\",\"n\":[{{}}]}}"))),
    ];
    let mut unusable = 0;
    for (format, log) in logs {
        for seed in 0..12 {
            let mut numbers = Numbers::from(seed);
            let mut bytes = log.clone().into_bytes();
            // The header stays: without it there is nothing to count.
            let first = if format.ends_with("sv") { 12 } else { 0 };
            for _ in 0..60 {
                let at = first + numbers.index(bytes.len() - first);
                match numbers.below(4) {
                    0 => bytes[at] = u8::try_from(numbers.below(256)).unwrap(),
                    1 => bytes.insert(at, [b'"', b'\n', b'\\', 0, b',', b'{', 0xff, b'9'][numbers.index(8)]),
                    2 => drop(bytes.drain(at..(at + numbers.index(200)).min(bytes.len()))),
                    _ => bytes.splice(at..at, [b'-'; 3]).for_each(drop),
                }
            }
            let count = bytes.split(|byte| *byte == b'\n').count() - usize::from(bytes.ends_with(b"\n"));
            let input = scratch.with("log", bytes);
            let output = replay(&["--limit", "3", "--per", "10s", "--log-format", format, &input]);
            assert_eq!(output.status.code(), Some(0), "{format} {seed}: {}", String::from_utf8_lossy(&output.stderr));
            let report = text(&output.stdout);
            assert_eq!(total(&output, "lines"), count as u64, "{format} {seed}");
            let others: u64 = ["could not be used", "without a client", "blank or header"]
                .iter()
                .filter_map(|kind| {
                    report.split(&format!(" {kind}")).next().filter(|before| before.len() < report.len())
                })
                .map(|before| before.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
                .sum();
            assert_eq!(total(&output, "requests") + others, count as u64, "{format} {seed}:\n{report}");
            unusable += others;
        }
    }
    assert!(unusable > 1000, "the damage shows: {unusable}");
}
