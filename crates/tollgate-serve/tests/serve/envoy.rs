//! A real Envoy, by the configurations of the guide. `ENVOY` names its program, if that is not
//! `envoy`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::guarded;
use tollgate_kit::programs::is_there;

fn program() -> String {
    std::env::var("ENVOY").unwrap_or_else(|_| "envoy".to_owned())
}

fn envoy(configuration: &str, folder: &Path) -> Command {
    let file = folder.join("envoy.yaml");
    std::fs::write(&file, configuration).unwrap();
    let mut command = Command::new(program());
    command.args(["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error", "-c"]).arg(file);
    command.stdout(Stdio::null());
    command
}

fn is_guarded(configuration: &str) {
    if is_there(&program(), "--version") {
        guarded::is_guarded(configuration, envoy);
    }
}

#[test]
fn envoy_is_answered_by_ext_authz_over_grpc() {
    is_guarded(include_str!("../../guide/envoy-ext-authz-grpc.yaml"));
}

#[test]
fn envoy_is_answered_by_ext_authz_over_http() {
    is_guarded(include_str!("../../guide/envoy-ext-authz-http.yaml"));
}

#[test]
fn envoy_is_answered_by_the_rate_limit_service() {
    is_guarded(include_str!("../../guide/envoy-ratelimit.yaml"));
}

/// As the guide says: over HTTP, `failure_mode_allow` takes the answer for that of a server that fails.
#[cfg(feature = "redis")]
#[test]
fn envoy_refuses_requests_while_the_store_is_away_unless_it_lets_failures_pass() {
    if !is_there(&program(), "--version") {
        return;
    }
    let by_http = include_str!("../../guide/envoy-ext-authz-http.yaml");
    let allows = "failure_mode_allow: true";
    assert!(by_http.contains(allows));
    let strict = by_http.replace(allows, "failure_mode_allow: false");
    let with_503 = by_http.replace(allows, "status_on_error: { code: 503 }");
    for (configuration, status) in [
        (include_str!("../../guide/envoy-ext-authz-grpc.yaml"), 503),
        (include_str!("../../guide/envoy-ratelimit.yaml"), 429),
        (by_http, 200),
        (&strict, 403),
        (&with_503, 503),
    ] {
        let Some(told) = guarded::without_its_store(configuration, envoy) else { return };
        assert_eq!(told, status, "{configuration}");
    }
}
