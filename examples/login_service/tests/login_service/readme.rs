//! What the README of `tollgate-tower` shows of this service is what the service says.

use std::net::SocketAddr;
use std::process::Command;

use axum::Router;
use login_service::{OneUser, Service};
use metrics_exporter_prometheus::PrometheusBuilder;
use tollgate::MockClock;
use tollgate_policy::Policy;
use tollgate_tower::ClientAddress;

use crate::curl;
use crate::program::Program;

const README: &str = include_str!("../../../../crates/tollgate-tower/README.md");

/// The session in the README: commands, each with the lines that it prints.
fn session() -> Vec<(&'static str, Vec<&'static str>)> {
    let (_, block) = README.split_once("```console\n").expect("a session in the README");
    let (block, _) = block.split_once("```").expect("the end of the session");
    let mut commands = Vec::<(&str, Vec<&str>)>::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, printed))) => printed.push(line),
            (None, None) => panic!("`{line}` before any command"),
        }
    }
    commands
}

/// Checks that each line which the README shows is printed, in its order.
fn assert_shown(command: &str, shown: &[&str], printed: &str) {
    let mut lines = printed.lines();
    for line in shown.iter().filter(|line| !line.is_empty()) {
        assert!(lines.any(|printed| printed == *line), "{command}\nshould print\n{line}\nand prints\n{printed}");
    }
}

async fn serve(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await });
    address
}

/// Time stands still, so that the session is the same however slow the machine is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_in_the_readme_is_as_it_is_shown() {
    let policy = Policy::from_toml(include_str!("../../policy.toml")).unwrap();
    // Before the observers, which take their handles of it.
    let recorder = PrometheusBuilder::new().install_recorder().unwrap();
    let service = Service::new(&policy, ClientAddress::peer(), OneUser, MockClock::new()).unwrap();
    let [clients, operators] = [service.clients(), service.operators(recorder)];
    let [clients, operators] = [serve(clients).await, serve(operators).await];

    let session = session();
    let (start, listening) = &session[0];
    assert_eq!(
        (*start, &listening[..]),
        (
            "cargo run -p login_service",
            &["listening on http://127.0.0.1:3000", "for operators: http://127.0.0.1:3001/metrics and /denied", ""][..]
        )
    );
    assert!(session.len() > 5, "{session:?}");
    for (command, shown) in &session[1..] {
        assert!(shown.len() > 1, "`{command}` shows nothing");
        // Operators ask at the next port.
        let server = if command.contains(":3001/") { operators } else { clients };
        let command = command.replace(":3001/", ":3000/");
        let printed = tokio::task::block_in_place(|| curl::run(&command, server));
        assert_shown(&command, shown, &printed);
    }
}

#[test]
fn the_program_limits_failed_log_ins_by_user_and_address() {
    let program = Program::start(&["--trust", "127.0.0.0/8"]);
    let status = |user: &str, client: &str| {
        let command = format!(
            "curl -s -o /dev/null -w '%{{http_code}}\\n' -X POST -u {user} \
             -H 'X-Forwarded-For: 203.0.113.1, {client}' http://127.0.0.1:3000/login"
        );
        curl::run(&command, program.clients).trim().to_owned()
    };
    for _ in 0..7 {
        assert_eq!(status("'alice:open sesame'", "192.0.2.1"), "200");
    }
    for _ in 0..5 {
        assert_eq!(status("ALICE:guess", "192.0.2.1"), "401");
    }
    assert_eq!(status("alice:guess", "192.0.2.1"), "429");
    assert_eq!(status("'alice:open sesame'", "192.0.2.1"), "429");
    assert_eq!(status("bob:guess", "192.0.2.1"), "401");
    assert_eq!(status("'alice:open sesame'", "192.0.2.2"), "200");
}

#[test]
fn the_program_does_not_start_with_a_policy_that_is_wrong() {
    let directory = std::env::temp_dir().join(format!("login-service-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("policy.toml");
    let whole = include_str!("../../policy.toml");
    for (text, message) in [
        (whole.replace("\"1s\" }, {", "\"0s\" }, {"), "the window is zero: give at least one nanosecond"),
        (
            whole.replace("\"endpoint\"", "\"endpoints\""),
            "the service does not use the dimension `endpoints`: remove it",
        ),
        (
            whole.split("# Each endpoint").next().unwrap().into(),
            "the policy has no dimension \"endpoint\", only \"login\", ",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_login_service"))
            .args(["--listen", "127.0.0.1:0", "--operators", "127.0.0.1:0", "--policy", file.to_str().unwrap()])
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(message) && error.contains("policy.toml"), "{error}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
