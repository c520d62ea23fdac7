//! Logs in other formats than access logs: each is written here from the sample, as its server
//! writes it, and has to be decided as the sample is.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use crate::replay::decisions::seconds_of;
use crate::replay::support::{SAMPLE, Scratch, replay, text, total};

/// A request of the sample, by a parser of one line of code a part.
pub(crate) struct Request<'a> {
    pub(crate) client: &'a str,
    pub(crate) user: &'a str,
    /// As the sample has it: `02/Mar/2026:08:00:00 +0000`.
    pub(crate) time: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) status: &'a str,
}

impl<'a> Request<'a> {
    fn of(line: &'a str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let (path, query) = words[6].split_once('?').unwrap_or((words[6], "-"));
        let time = line.split(['[', ']']).nth(1).unwrap();
        Self { client: words[0], user: words[2], time, method: &words[5][1..], path, query, status: words[8] }
    }

    /// `2026-03-02` and `08:00:00`: all of the sample is in that month.
    pub(crate) fn date_and_time(&self) -> (String, &'a str) {
        assert_eq!(&self.time[2..12], "/Mar/2026:");
        (format!("2026-03-{}", &self.time[..2]), &self.time[12..20])
    }
}

pub(crate) fn write_sample(mut line_of: impl FnMut(usize, &Request<'_>) -> String) -> String {
    let sample = fs::read_to_string(SAMPLE).unwrap();
    let mut log = String::new();
    for (at, line) in sample.lines().enumerate() {
        writeln!(log, "{}", line_of(at, &Request::of(line))).unwrap();
    }
    log
}

/// The decisions on a log, and how many lines could not be used.
fn decide(scratch: &Scratch, options: &[&str], log: &str) -> (String, u64) {
    let file = scratch.file("decisions.csv");
    let limit = ["--limit", "20", "--per", "10s", "--decisions", &file, "--format", "json"];
    let output = replay(&[limit.as_slice(), options, &[log]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (fs::read_to_string(file).unwrap(), report["log"]["lines_not_used"].as_u64().unwrap())
}

/// Has the log decided by several keys, and compares with the sample.
fn compare(scratch: &Scratch, options: &[&str], log: &str, unusable: u64) {
    compare_by(&["client", "client,path", "user", "method"], scratch, options, log, unusable);
}

pub(crate) fn compare_by(keys: &[&str], scratch: &Scratch, options: &[&str], log: &str, unusable: u64) {
    for key in keys {
        let sample = decide(scratch, &["--key", key], SAMPLE).0;
        let (decisions, bad) = decide(scratch, &[options, &["--key", key]].concat(), log);
        assert!(decisions == sample, "by {key}");
        assert!(decisions.lines().count() > 100, "by {key}");
        assert_eq!(bad, unusable, "by {key}");
    }
}

#[test]
fn the_w3c_format_of_iis() {
    let scratch = Scratch::new("iis");
    let header = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-03-02 08:00:00\n";
    let log = write_sample(|at, request| {
        let Request { client, user, method, path, query, status, .. } = request;
        let (date, time) = request.date_and_time();
        let fields =
            "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status";
        let others = "c-ip date time cs-method cs-uri-stem cs-username sc-status";
        match at {
            0 => format!(
                "{header}#Fields: {fields}\n{date} {time} 10.0.0.5 {method} {path} {query} 443 {user} {client} Mozilla/5.0+(X11;+Linux) {status}"
            ),
            // Started again, to log other fields; the line before was cut off.
            1200 => format!(
                "{date} {time} 10.0.0.5 {method}\n{header}#Fields: {others}\n{client} {date} {time} {method} {path} {user} {status}"
            ),
            at if at < 1200 => format!(
                "{date} {time} 10.0.0.5 {method} {path} {query} 443 {user} {client} \"Mozilla/5.0 (X11; Linux)\" {status}"
            ),
            _ => format!("{client} {date} {time} {method} {path} {user} {status}"),
        }
    });
    let log = scratch.with("u_ex260302.log", log);
    compare(&scratch, &[], &log, 1);
    compare(&scratch, &["--log-format", "w3c"], &log, 1);
    let output = replay(&["--limit", "20", "--per", "10s", "--key", "cs(Cookie)", &log]);
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("has no column for the key cs(Cookie): its columns are \"date\", \"time\""),
        "{complaint}"
    );
}

#[test]
fn the_w3c_format_of_cloudfront() {
    let scratch = Scratch::new("cloudfront");
    let log = write_sample(|at, request| {
        let Request { client, user, method, path, query, status, .. } = request;
        let (date, time) = request.date_and_time();
        let header = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs-username\n";
        let start = if at == 0 { header } else { "" };
        format!(
            "{start}{date}\t{time}\tFRA56-P4\t512\t{client}\t{method}\td111.cloudfront.net\t{path}\t{status}\t-\tMozilla/5.0%20(X11)\t{query}\t{user}"
        )
    });
    compare(&scratch, &[], &scratch.with("E2.log", log), 0);
}

#[test]
fn a_time_of_day_without_a_date_is_no_time() {
    let scratch = Scratch::new("no-date");
    let log = scratch.with("log", "#Fields: time c-ip\n10:05:03 192.0.2.7\n");
    let complaint = text(&replay(&["--limit", "1", "--per", "1s", &log]).stderr);
    assert!(complaint.contains("has no column for the date, and a time of day alone is no time"), "{complaint}");
}

#[test]
fn the_format_of_zeek() {
    let scratch = Scratch::new("zeek");
    for (separator, char) in [("\\x09", '\t'), ("\\x7c", '|')] {
        let log = write_sample(|at, request| {
            let Request { client, user, time, method, path, query, status } = request;
            let uri = if *query == "-" { (*path).to_owned() } else { format!("{path}?{query}") };
            let user = if *user == "-" { "(none)" } else { user };
            let header = [
                "#set_separator\t,",
                "#empty_field\t(empty)",
                "#unset_field\t(none)",
                "#path\thttp",
                "#open\t2026-03-02-08-00-00",
                "#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tmethod\thost\turi\tusername\tstatus_code\ttags",
                "#types\ttime\tstring\taddr\tport\taddr\tstring\tstring\tstring\tstring\tcount\tset[enum]\n",
            ];
            let start = if at == 0 { format!("#separator {separator}\n{}", header.join("\n")) } else { String::new() };
            let end = if at == 2399 { "\n#close\t2026-03-02-14-00-00" } else { "" };
            let seconds = seconds_of(time);
            let values = format!(
                "{seconds}.000000\tCHhAvV{at}\t{client}\t5353\t10.0.0.5\t{method}\texample.org\t{uri}\t{user}\t{status}\t(empty)"
            );
            format!("{start}{values}{end}").replace('\t', &char.to_string())
        });
        compare(&scratch, &[], &scratch.with("http.log", log), 0);
    }
}

#[test]
fn the_format_of_haproxy() {
    let scratch = Scratch::new("haproxy");
    for syslog in ["", "Mar  2 08:00:00 lb1 haproxy[812]: ", "<134>1 2026-03-02T09:00:00+01:00 lb1 haproxy 812 - - "] {
        let log = write_sample(|at, request| {
            let Request { client, time, method, path, query, status, .. } = request;
            let start = if at == 0 { format!("{syslog}Proxy http-in started.\n") } else { String::new() };
            format!(
                "{start}{syslog}{client}:{} [{}.000] http-in~ app/srv1 10/0/30/69/109 {status} 2750 - - ---- \
                 1/1/1/1/0 0/0 {{example.org|curl}} {{}} \"{method} {path}?{query} HTTP/1.1\"",
                30_000 + at,
                &time[..20]
            )
        });
        let log = scratch.with("haproxy.log", log);
        compare_by(&["client", "client,path", "method"], &scratch, &[], &log, 1);
        compare_by(&["client"], &scratch, &["--log-format", "haproxy"], &log, 1);
    }
}

#[test]
fn the_format_of_aws_load_balancers() {
    let scratch = Scratch::new("alb");
    let log = write_sample(|at, request| {
        let Request { client, method, path, query, status, .. } = request;
        let (date, time) = request.date_and_time();
        let start = if at == 0 { "https 2026-03-02T08:00\n" } else { "" };
        format!(
            "{start}https 2026-03-03T00:00:00.186641Z app/lb/50dc6c495c0c9188 {client}:2817 10.0.0.1:80 0.086 0.048 \
             0.037 {status} 200 0 57 \"{method} https://www.example.com:443{path}?{query} HTTP/1.1\" \"curl/7.46.0\" \
             ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:x \"Root=1-58337281-1d84f3d7\" \
             \"www.example.com\" \"arn:aws:acm:x\" 1 {date}T{time}.000000Z \"authenticate,forward\" \"-\" \"-\" \
             \"10.0.0.1:80\" \"200\" \"-\" \"-\" TID_1234"
        )
    });
    let log = scratch.with("alb.log", log);
    compare_by(&["client", "client,path", "method"], &scratch, &[], &log, 1);
    compare_by(&["client"], &scratch, &["--log-format", "alb"], &log, 1);
    let output = replay(&["--limit", "20", "--per", "10s", "--time-column", "time", &log]);
    assert!(text(&output.stdout).contains("all at 2026-03-03"), "{}", text(&output.stdout));
    let output = replay(&["--limit", "20", "--per", "10s", "--key", "user", &log]);
    assert!(text(&output.stderr).contains("has no column for the key user"), "{}", text(&output.stderr));
}

#[test]
fn lines_of_syslog_by_a_pattern() {
    let scratch = Scratch::new("syslog");
    let log = write_sample(|at, request| {
        let Request { client, user, time, method, path, query, .. } = request;
        let start = if at == 0 { "Mar  2 08:00:00 web1 systemd[1]: Started nginx.\n" } else { "" };
        let day = time[..2].trim_start_matches('0');
        format!("{start}Mar {day:>2} {} web1 nginx[812]: {client} user={user} {method} {path}?{query}", &time[12..20])
    });
    let log = scratch.with("syslog", log);
    let pattern = r"^(?<time>\S+ +\d+ \S+) \S+ nginx\S+ (?<client>\S+) user=(?<user>\S+) (?<method>\S+) (?<path>\S+)";
    compare(&scratch, &["--pattern", pattern, "--year", "2026"], &log, 1);
    let format = ["--pattern", pattern, "--year", "2026", "--time-format", "%b %d %T"];
    compare(&scratch, &format, &log, 1);

    let output = replay(&["--limit", "1", "--per", "1s", "--pattern", pattern, &log]);
    assert!(text(&output.stderr).contains("\"Mar  2 08:01:07\" has no year: give that of the first line with --year"));
    let output = replay(&["--limit", "1", "--per", "1s", "--pattern", "(?<time>.*)", &log]);
    assert!(text(&output.stderr).contains("has no column for the key client: its columns are \"time\""));
    for (pattern, reason) in [("(", "unclosed group"), ("x", "its groups name the columns")] {
        let output = replay(&["--limit", "1", "--per", "1s", "--pattern", pattern, &log]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn a_log_that_is_not_understood_says_which_pattern_reads_it() {
    let scratch = Scratch::new("guess");
    let lines = [
        ("Mar 12 08:00:00 web1 sshd[812]: Failed password, from 192.0.2.7 port 22", "-03-12T08:00:00Z"),
        ("time=2026-03-02T08:00:00Z level=info remote=2001:db8::7 msg=\"hello, all\"", "2026-03-02T08:00:00Z"),
        ("2026-03-02 08:00:00.125 INFO [main] request of 192.0.2.7:5353", "2026-03-02T08:00:00.125Z"),
        ("192.0.2.7|GET|2026-03-02 08:00:00", "2026-03-02T08:00:00Z"),
        // Of several times, the most precise.
        ("Mar  2 08:00:01 lb1 proxy: of 192.0.2.7:80 [02/Mar/2026:08:00:00.655]", "2026-03-02T08:00:00.655Z"),
        ("2026-03-02T08:00:01Z lb1 192.0.2.7 2026-03-02T08:00:00.655Z", "2026-03-02T08:00:00.655Z"),
        ("Mar  2 08:00:01 lb1 from 192.0.2.7 at 1772438400.655", "2026-03-02T08:00:00.655Z"),
        // Those that are only read as options say.
        ("2026/03/02 08:00:00 [error] 7#7: *1 limiting, client: 192.0.2.7, server: _", "2026-03-02T08:00:00Z"),
        ("[Mon Mar 02 08:00:00.125 2026] [core:error] [client 192.0.2.7:80] denied", "2026-03-02T08:00:00.125Z"),
        ("02.03.2026 08:00:00 192.0.2.7 GET", "2026-03-02T08:00:00Z"),
    ];
    for (line, time) in lines {
        // The first two lines are cut off: only the third has what a guess needs.
        let log = scratch.with("log", format!("restarted\nby hand\n{line}\n"));
        let output = replay(&["--limit", "1", "--per", "1s", &log]);
        assert_eq!(output.status.code(), Some(1));
        let complaint = text(&output.stderr);
        assert!(complaint.contains("known by its first lines (\"restarted\", \"by hand\", \""), "{complaint}");
        // What it proposes is run as it is written.
        let start = complaint.find("--pattern '").unwrap_or_else(|| panic!("{complaint}"));
        let proposed = complaint[start..].split(" reads").next().unwrap();
        let options: Vec<&str> = proposed
            .split('\'')
            .map(str::trim)
            .flat_map(|part| {
                let is_option = part.starts_with("--");
                part.split(' ').filter(move |_| is_option).chain((!is_option).then_some(part))
            })
            .filter(|part| !part.is_empty())
            .collect();
        let file = scratch.file("decisions.csv");
        let limit = ["--limit", "1", "--per", "1s", "--decisions", &file, &log];
        let output = replay(&[limit.as_slice(), &options].concat());
        assert_eq!(total(&output, "requests"), 1, "{options:?} {}", text(&output.stderr));
        let decisions = fs::read_to_string(&file).unwrap();
        assert!(decisions.contains(time), "{options:?} {decisions}");
        assert!(decisions.contains("192.0.2.7") || decisions.contains("2001:db8::,"), "{options:?} {decisions}");
    }
    let output = replay(&["--limit", "1", "--per", "1s", &scratch.with("log", "hello\n")]);
    let complaint = text(&output.stderr);
    assert!(complaint.contains("take it apart with --pattern"), "{complaint}");
    assert!(complaint.contains("say with --time-format how its times are written"), "{complaint}");
    let output = replay(&["--limit", "1", "--per", "1s", &scratch.with("log", "1772438400 ann bought 7\n")]);
    assert!(text(&output.stderr).contains("add a group for the key"), "{}", text(&output.stderr));
}

#[test]
fn zstd_is_read_as_it_is() {
    let scratch = Scratch::new("zstd");
    let sample = fs::read(SAMPLE).unwrap();
    let (one, other) = sample.split_at(sample.len() / 3);
    let frames = [one, other].map(|part| zstd::encode_all(part, 3).unwrap()).concat();
    let log = scratch.with("access.log.zst", &frames);
    compare(&scratch, &[], &log, 0);
    let cut = scratch.with("cut.zst", &frames[..frames.len() - 9]);
    let output = replay(&["--limit", "20", "--per", "10s", &cut]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("can't be read past line"), "{}", text(&output.stderr));
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(&sample).unwrap();
    let frame = encoder.finish().unwrap();
    let damaged: Vec<u8> = frame.iter().enumerate().map(|(at, byte)| if at == 400 { !byte } else { *byte }).collect();
    let output = replay(&["--limit", "20", "--per", "10s", &scratch.with("damaged.zst", damaged)]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
}

#[test]
fn a_sample_of_json_is_the_same_sample() {
    let scratch = Scratch::new("json-sample");
    let made = crate::replay::support::tollgate().args(["sample", "--log-format", "jsonl"]).output().unwrap();
    compare(&scratch, &[], &scratch.with("log.jsonl", made.stdout), 0);
}
