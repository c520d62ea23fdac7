//! Who the clients of a log are, by the policy or by options; and when windows begin.

use std::process::Output;

use tollgate_kit::clients::{POLICY, Request, requests};
use tollgate_kit::{months, phases};

use crate::replay::support::{Scratch, replay, text, tollgate, total};

/// The log that nginx writes with the format `main` of its packages.
fn of_nginx(request: &Request) -> String {
    let forwarded = request.forwarded.as_deref().unwrap_or("-");
    let head = format!("{} - - [02/Mar/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 1", request.peer);
    format!("{head} \"-\" \"agent\" \"{forwarded}\"\n")
}

/// A log that has the whole list in the place of the client.
fn as_list(request: &Request) -> String {
    format!("{} - - [02/Mar/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n", request.hops())
}

fn of_json(request: &Request) -> String {
    // Each line of the field apart, as Caddy has them.
    let lines: Vec<&str> = request.forwarded.iter().flat_map(|list| list.split(", ")).collect();
    let headers = format!("{{\"headers\":{{\"X-Forwarded-For\":{lines:?}}}}}");
    format!("{{\"ts\":1772438400,\"remote_ip\":\"{}\",\"request\":{headers}}}\n", request.peer)
}

fn of_table(request: &Request) -> String {
    format!("1772438400,{},\"{}\"\n", request.peer, request.forwarded.as_deref().unwrap_or_default())
}

fn of_w3c(request: &Request) -> String {
    let forwarded = request.forwarded.as_deref().map_or("-".to_owned(), |list| format!("\"{list}\""));
    format!("2026-03-02 08:00:00 {} {forwarded}\n", request.peer)
}

/// The log of the requests, in each format.
fn logs(scratch: &Scratch) -> Vec<String> {
    let log = |name: &str, head: &str, line: fn(&Request) -> String| {
        scratch.with(name, head.to_owned() + &requests().iter().map(line).collect::<String>())
    };
    vec![
        log("access.log", "", of_nginx),
        log("list.log", "", as_list),
        log("log.jsonl", "", of_json),
        log("log.csv", "time,remote_addr,http_x_forwarded_for\n", of_table),
        log("u_ex.log", "#Fields: date time c-ip cs(X-Forwarded-For)\n", of_w3c),
    ]
}

/// Whether each request is admitted, by a file of decisions.
fn admitted(path: &str) -> Vec<bool> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|row| row.split(',').nth(2).unwrap() == "1").collect()
}

fn good(output: Output) -> Output {
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    output
}

const BY_OPTIONS: [&str; 4] = ["--limit", "5", "--per", "1d"];

#[test]
fn a_log_of_any_format_is_decided_as_the_service_decides() {
    let scratch = Scratch::new("clients");
    let (policy, file) = (scratch.with("policy.toml", POLICY), scratch.file("decisions.csv"));
    let expected: Vec<bool> = requests().iter().map(|request| request.is_admitted).collect();
    for log in logs(&scratch) {
        let output = good(replay(&["--policy", &policy, "--decisions", &file, &log]));
        assert_eq!(admitted(&file), expected, "{log}");
        let report = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(report.matches("IPv6 by /64; behind 10.0.0.0/8, by x-forwarded-for").count(), 1, "{report}");
        // The same without a file.
        let options = ["--trusted-proxy", "10.0.0.0/8", "--decisions", &file, &log];
        good(replay(&[&BY_OPTIONS[..], &options].concat()));
        assert_eq!(admitted(&file), expected, "{log}");
    }
}

#[test]
fn a_phase_counts_from_1970() {
    let scratch = Scratch::new("phases");
    let line = |(minute, _)| format!("{},192.0.2.7\n", phases::nanos_at(minute));
    let lines: String = phases::REQUESTS.map(line).concat();
    let log = scratch.with("log.csv", format!("time,client\n{lines}"));
    let (policy, file) = (scratch.with("policy.toml", phases::POLICY), scratch.file("decisions.csv"));
    good(replay(&["--policy", &policy, "--decisions", &file, &log]));
    assert!(phases::REQUESTS.iter().map(|(_, is_admitted)| *is_admitted).eq(admitted(&file)));
}

#[test]
fn a_month_begins_at_midnight_in_its_zone() {
    let scratch = Scratch::new("months");
    let lines: String = months::REQUESTS.map(|(time, _)| format!("{time},192.0.2.7\n")).concat();
    let log = scratch.with("log.csv", format!("time,client\n{lines}"));
    let (policy, file) = (scratch.with("policy.toml", months::POLICY), scratch.file("decisions.csv"));
    good(replay(&["--policy", &policy, "--decisions", &file, &log]));
    assert!(months::REQUESTS.iter().map(|(_, is_admitted)| *is_admitted).eq(admitted(&file)));
}

#[test]
fn fifty_addresses_of_a_network_are_one_client_and_mapped_ipv4_is_ipv4() {
    let scratch = Scratch::new("networks-of-clients");
    let peers = (0..50).map(|at| format!("2001:db8:1:2::{at:x}")).chain((0..8).map(|at| match at % 2 {
        0 => "192.0.2.7".to_owned(),
        _ => "::ffff:192.0.2.7".to_owned(),
    }));
    let line = |peer: String| of_nginx(&Request { peer, forwarded: None, is_admitted: false });
    let log = scratch.with("access.log", peers.map(line).collect::<String>());
    let output = good(replay(&[&BY_OPTIONS[..], &[&log]].concat()));
    assert_eq!((total(&output, "admitted"), total(&output, "keys")), (10, 2));
    let report = text(&output.stdout);
    assert!(report.contains("IPv6 by /64\n") && report.contains("  2001:db8:1:2::\n"), "{report}");
    let output = good(replay(&[&BY_OPTIONS[..], &["--ipv6-prefix", "128", &log]].concat()));
    assert_eq!((total(&output, "admitted"), total(&output, "keys")), (55, 51));
    let output = good(replay(&[&BY_OPTIONS[..], &["--key", "method", "--format", "json", &log]].concat()));
    assert!(text(&output.stdout).contains("\"clients\": null"));
}

#[test]
fn a_suggested_policy_says_who_clients_are_and_compare_takes_them_so() {
    let scratch = Scratch::new("clients-suggested");
    let log = &logs(&scratch)[0];
    let file = scratch.file("suggested.toml");
    let by_options = ["--trusted-proxy", "10.0.0.0/8", "--ipv6-prefix", "56"];
    // All in one moment say nothing of a window.
    let later = scratch.with("later.log", of_nginx(&requests()[0]).replace("08:00", "09:00"));
    let suggest = |options: &[&str]| good(tollgate().arg("suggest").args(options).output().unwrap());
    let suggestion = [&by_options[..], &["--window", "10s", "--policy-out", &file, log, &later]].concat();
    let report = text(&suggest(&suggestion).stdout);
    let policy = std::fs::read_to_string(&file).unwrap();
    let table = "[client]\ntrusted_proxies = [\"10.0.0.0/8\"]\nipv6_prefix = 56\n";
    assert!(policy.contains(table), "{policy}");
    let output = good(replay(&["--policy", &file, log, &later]));
    assert_eq!(total(&output, "keys"), 5, "{report}");

    let compare = |options: &[&str]| text(&good(tollgate().arg("compare").args(options).output().unwrap()).stdout);
    let policy = scratch.with("policy.toml", POLICY);
    let compared =
        compare(&[&BY_OPTIONS[..], &["--algorithm", "sliding-window-log", "--policy", &policy, log]].concat());
    // The policy folds what is behind proxies, and the options do not.
    let denied = |name: &str| {
        let row = compared.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{compared}"));
        row.to_owned()
    };
    assert_ne!(
        denied("sliding-window-log: ").split_whitespace().nth(1),
        denied("policy.toml").split_whitespace().nth(1)
    );
}

#[test]
fn a_log_without_the_header_field_is_told_of() {
    let scratch = Scratch::new("clients-alone");
    let line = |at: u8| as_list(&Request { peer: format!("10.0.0.{at}"), forwarded: None, is_admitted: true });
    let log = scratch.with("access.log", (0..3).map(line).collect::<String>());
    let output = replay(&[&BY_OPTIONS[..], &["--trusted-proxy", "10.0.0.0/8", &log]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("no line has the header field x-forwarded-for"), "{said}");
}

#[test]
fn options_that_say_nothing_good_of_clients_are_refused() {
    let scratch = Scratch::new("clients-refused");
    let (log, policy) = (scratch.with("access.log", of_nginx(&requests()[0])), scratch.with("policy.toml", POLICY));
    for (options, words) in [
        (&["--trusted-proxy", "10.0.0.0/8,10.1.0.0/16"][..], "overlaps with '10.0.0.0/8': leave one of them out"),
        (&["--trusted-proxy", "example.com"], "'example.com' is not a network: give an address"),
        (&["--ipv6-prefix", "16"], "32"),
    ] {
        let output = replay(&[&BY_OPTIONS[..], options, &[&log]].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    }
    let output = replay(&["--policy", &policy, "--trusted-proxy", "10.0.0.0/8", &log]);
    assert_eq!(output.status.code(), Some(2), "the policy says it");
    let refused = POLICY.replace("\"10.0.0.0/8\"", "\"10.0.0.0/8\", \"10.1.2.3\"");
    let output = replay(&["--policy", &scratch.with("wrong.toml", refused), &log]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("wrong.toml: line 3, column 34: "), "{said}");
    let output = tollgate().args(["compare", "--policy", &policy, "--ipv6-prefix", "56", &log]).output().unwrap();
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("a policy has [client]"));
}
