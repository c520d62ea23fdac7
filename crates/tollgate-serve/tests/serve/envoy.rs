//! A real Envoy, by the configurations of the guide. `ENVOY` names its program, if that is not
//! `envoy`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::processes::{guided, is_there, proxy, service};
use crate::support::{Answer, agent, problem_of};

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

/// What every form of the guide must do.
fn is_guarded(configuration: &str) {
    if !is_there(&program(), "--version") {
        return;
    }
    let (tollgate, clock) = guided();
    let (_envoy, address, _folder) = proxy(configuration, [tollgate.address, service()], envoy);
    let ask = |path: &str| Answer::of(agent().get(format!("http://{address}{path}")).call().unwrap());
    for left in (0..100).rev() {
        let path = if left == 50 { "/forbidden" } else { "/page?x=y" };
        let admitted = ask(path);
        let of_service = if left == 50 { (403, "forbidden by the service\n") } else { (200, "hello\n") };
        assert_eq!((admitted.status, admitted.body.as_str()), of_service);
        assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"address\";r={left};t=")), "{admitted:?}");
        assert_eq!(admitted.field("ratelimit-policy"), Some(r#""address";q=100;w=60"#));
    }
    clock.advance(Duration::from_millis(52_800));
    for _ in 0..2 {
        let denied = ask("/page");
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("8")), "{denied:?}");
        assert_eq!(denied.field("ratelimit"), Some(r#""address";r=0;t=8"#));
        assert_eq!(denied.field("cache-control"), Some("no-store"));
        assert_eq!(denied.field("content-type"), Some("application/problem+json"), "{denied:?}");
        assert_eq!(problem_of(&denied.body, 429)["violated-policies"], serde_json::json!(["address"]));
    }
    // What a client writes counts for nothing.
    let forged = agent().get(format!("http://{address}/")).header("x-tollgate-client", "192.0.2.9").call().unwrap();
    assert_eq!(forged.status().as_u16(), 429);
    clock.advance(Duration::from_secs(8));
    assert_eq!(ask("/page").status, 200);
    let posted = agent().post(format!("http://{address}/page")).send("a body").unwrap();
    assert_eq!(posted.status().as_u16(), 200);
    assert_eq!(tollgate.metric(r#"tollgate_requests_total{result="admitted"}"#), 102);
    // Without a server, requests pass.
    tollgate.stop();
    assert_eq!(ask("/page").status, 200);
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
