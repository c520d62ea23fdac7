//! What operators do: they watch the service, and change its limits while it runs.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::curl;
use crate::program::Program;

/// A policy file with days for windows, so that none ends during a test.
fn policy(attempts: u32) -> String {
    format!(
        "[[dimension]]\nname = \"login\"\nquota = [{{ limit = {attempts}, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"address\"\nquota = [{{ limit = 100, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"site\"\nquota = [{{ limit = 100, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"provider\"\nquota = [{{ limit = 100, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"key\"\nquota = [{{ limit = 3, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"endpoint\"\nquota = [{{ limit = 1000, per = \"1d\" }}]\n"
    )
}

/// Puts a file in the place of the other.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// The program with a policy file of its own.
fn start(every: &str) -> (TempDir, PathBuf, Program) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("policy.toml");
    replace(&path, &policy(2));
    let program = Program::start(&["--policy", path.to_str().unwrap(), "--every", every]);
    (folder, path, program)
}

/// The statuses of so many wrong log-ins, each denied at once or not at all.
fn guess(program: &Program, user: &str, times: usize) -> Vec<String> {
    let url = format!("http://127.0.0.1:3000/login?[1-{times}]");
    let command = format!("curl -s -o /dev/null -w '%{{http_code}}\\n' -X POST -u {user}:guess {url}");
    curl::run(&command, program.clients).lines().map(str::to_owned).collect()
}

fn ask_operators(program: &Program, path: &str) -> String {
    curl::run(&format!("curl -s http://127.0.0.1:3000{path}"), program.operators)
}

/// Checks that these lines are in the metrics.
fn assert_metrics(program: &Program, lines: &[&str]) {
    let metrics = ask_operators(program, "/metrics");
    for line in lines {
        assert!(metrics.lines().any(|there| there == *line), "{line}\nis not in\n{metrics}");
    }
}

#[test]
fn operators_see_who_is_denied_and_change_the_limits() {
    let (_folder, path, program) = start("10ms");
    assert_metrics(
        &program,
        &[
            "tollgate_requests_total{policy=\"log-in\",result=\"quota\"} 0",
            "tollgate_reloads_total{result=\"applied\"} 0",
            "tollgate_reloads_total{result=\"refused\"} 0",
        ],
    );
    assert_eq!(guess(&program, "mallory", 5), ["401", "401", "429", "429", "429"]);
    assert_eq!(guess(&program, "alice", 1), ["401"]);
    assert_eq!(ask_operators(&program, "/denied"), "log-in: 3 denied\n3 login \"mallory\", 127.0.0.1\napi: 0 denied\n");
    assert_metrics(
        &program,
        &[
            "tollgate_requests_total{policy=\"log-in\",result=\"admitted\"} 3",
            "tollgate_requests_total{policy=\"log-in\",result=\"quota\"} 3",
            "tollgate_live_keys{policy=\"log-in\"} 5",
            "tollgate_live_keys{policy=\"api\"} 0",
        ],
    );

    // A higher limit, and what was granted counts.
    replace(&path, &policy(4));
    let applied = format!("{}: the policy was applied", path.display());
    assert_eq!(program.next_of_log(), applied);
    assert_eq!(guess(&program, "mallory", 3), ["401", "401", "429"]);

    // A broken file changes nothing, nor does one with another dimension.
    for (text, message) in [
        (policy(9).replace("limit = 9", "limit = -9"), "policy.toml: line 3, column 20: "),
        (policy(9).replace("\"endpoint\"", "\"endpoints\""), "policy.toml: line 17: no limiter has the dimension"),
    ] {
        replace(&path, &text);
        let line = program.next_of_log();
        assert!(line.contains("the old policy stays: ") && line.contains(message), "{line}");
        assert_eq!(guess(&program, "mallory", 1), ["429"]);
    }
    replace(&path, &format!("shadow = true\n{}", policy(4)));
    assert_eq!(program.next_of_log(), applied);
    assert_eq!(guess(&program, "mallory", 2), ["401", "401"]);
    assert!(ask_operators(&program, "/denied").starts_with("log-in: 8 denied\n8 login \"mallory\""));
    assert_metrics(
        &program,
        &[
            "tollgate_requests_total{policy=\"log-in\",result=\"overruled\"} 2",
            "tollgate_reloads_total{result=\"applied\"} 2",
            "tollgate_reloads_total{result=\"refused\"} 2",
        ],
    );
}

/// Who is denied names users.
#[test]
fn clients_do_not_see_what_operators_see() {
    let (_folder, _, program) = start("1h");
    for path in ["metrics", "denied"] {
        let command = format!("curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:3000/{path}");
        assert_eq!(curl::run(&command, program.clients), "404", "{path}");
        assert_eq!(curl::run(&command, program.operators), "200", "{path}");
    }
}

#[cfg(unix)]
#[test]
fn a_hangup_signal_reloads_at_once() {
    let (_folder, path, program) = start("1h");
    let hang_up = || {
        let command = format!("kill -HUP {}", program.child.id());
        assert!(std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success());
        program.next_of_log()
    };
    assert!(hang_up().ends_with("policy.toml: the policy is unchanged"));
    assert_eq!(guess(&program, "mallory", 3), ["401", "401", "429"]);
    replace(&path, &policy(3));
    // The next look at the file is an hour away.
    assert_eq!(guess(&program, "mallory", 1), ["429"]);
    assert!(hang_up().ends_with("policy.toml: the policy was applied"));
    assert_eq!(guess(&program, "mallory", 2), ["401", "429"]);
    fs::remove_file(&path).unwrap();
    assert!(hang_up().contains("policy.toml can't be read: "));
    assert_eq!(guess(&program, "mallory", 1), ["429"]);
    assert_metrics(&program, &["tollgate_reloads_total{result=\"unchanged\"} 1"]);
}
