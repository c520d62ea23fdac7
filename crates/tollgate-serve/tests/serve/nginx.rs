//! A real nginx, by the configuration of the guide.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::processes::{guided, is_there, proxy, service};
use crate::support::{Answer, agent, problem_of};

const CONFIGURATION: &str = include_str!("../../guide/nginx.conf");

/// nginx in the foreground and as one process, with all of its files in a folder.
fn nginx(configuration: &str, folder: &Path) -> Command {
    let at = folder.display();
    let paths =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {at}/{name};"));
    let whole = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}}\nhttp {{ access_log off; {}\n{configuration}\n}}",
        paths.join(" ")
    );
    std::fs::write(folder.join("nginx.conf"), whole).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(folder.join("nginx.conf"));
    command
}

#[test]
fn nginx_admits_a_hundred_requests_and_answers_the_next_with_429_and_the_wait() {
    if !is_there("nginx", "-v") {
        return;
    }
    let (tollgate, clock) = guided();
    let (_nginx, address, _folder) = proxy(CONFIGURATION, [tollgate.address, service()], nginx);
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
        assert_eq!(denied.field("content-type"), Some("application/problem+json"));
        assert_eq!(problem_of(&denied.body, 429)["violated-policies"], serde_json::json!(["address"]));
    }
    // What a client writes counts for nothing: nginx sets the field.
    let forged = agent().get(format!("http://{address}/")).header("x-tollgate-client", "192.0.2.9").call().unwrap();
    assert_eq!(forged.status().as_u16(), 429);
    clock.advance(Duration::from_secs(8));
    assert_eq!(ask("/page").status, 200);
    // A request with a body, and another method.
    let posted = agent().post(format!("http://{address}/page")).send("a body").unwrap();
    assert_eq!(posted.status().as_u16(), 200);
    assert_eq!(tollgate.metric(r#"tollgate_requests_total{result="admitted"}"#), 102);
}

#[test]
fn nginx_lets_requests_pass_while_there_is_no_server() {
    if !is_there("nginx", "-v") {
        return;
    }
    let (tollgate, _clock) = guided();
    let (_nginx, address, _folder) = proxy(CONFIGURATION, [tollgate.address, service()], nginx);
    tollgate.stop();
    let answer = Answer::of(agent().get(format!("http://{address}/")).call().unwrap());
    assert_eq!((answer.status, answer.body.as_str(), answer.field("ratelimit")), (200, "hello\n", None));
}
