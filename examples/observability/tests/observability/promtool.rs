//! What Prometheus' own tool says of scrape, configuration, rules and queries. Without it, these
//! tests are skipped, loudly.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::queries::{of_dashboard, path};

fn is_here() -> bool {
    let is_here = Command::new("promtool").arg("--version").output().is_ok();
    if !is_here {
        let line = "!".repeat(100);
        eprintln!("{line}\n!!! SKIPPED: there is no `promtool` here (Debian: apt-get install prometheus).\n{line}");
    }
    is_here
}

/// Runs the tool; what it says is in the message if it complains.
fn promtool(arguments: &[&str], input: &str) {
    if !is_here() {
        return;
    }
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "promtool {arguments:?}: {said}{complained}");
}

/// Names, types and help texts as Prometheus wants them.
pub(crate) fn check_metrics(scrape: &str) {
    promtool(&["check", "metrics"], scrape);
}

#[test]
fn the_configuration_and_its_rules_are_valid() {
    promtool(&["check", "config", path("prometheus.yml").to_str().unwrap()], "");
}

#[test]
fn alerts_fire_when_they_should_and_not_before() {
    promtool(&["test", "rules", path("alerts_test.yml").to_str().unwrap()], "");
}

#[test]
fn the_queries_of_the_dashboard_are_valid() {
    let rules = of_dashboard().into_iter().enumerate().map(|(place, query)| {
        format!("  - record: panel:{place}\n    expr: {}\n", serde_json::Value::from(query.text))
    });
    let text = format!("groups:\n- name: dashboard\n  rules:\n{}", rules.collect::<String>());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()], "");
}
