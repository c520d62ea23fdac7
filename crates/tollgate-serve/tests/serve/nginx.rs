//! A real nginx, by the configuration of the guide.

use std::path::Path;
use std::process::Command;

use crate::guarded::is_guarded;
use crate::place::by_both;
use crate::processes::{guided, proxy, service};
use crate::support::{Answer, agent};
use tollgate_kit::programs::is_there;

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
    if is_there("nginx", "-v") {
        is_guarded(CONFIGURATION, nginx);
    }
}

#[test]
fn nginx_lets_requests_pass_while_there_is_no_server() {
    if !is_there("nginx", "-v") {
        return;
    }
    by_both(|place| {
        let (tollgate, _clock) = guided(place);
        let (_nginx, address, _folder) = proxy(CONFIGURATION, [tollgate.address, service()], nginx);
        tollgate.stop();
        let answer = Answer::of(agent().get(format!("http://{address}/")).call().unwrap());
        assert_eq!((answer.status, answer.body.as_str(), answer.field("ratelimit")), (200, "hello\n", None));
    });
}

#[cfg(feature = "redis")]
#[test]
fn nginx_answers_503_while_the_store_is_away() {
    if is_there("nginx", "-v") {
        let told = crate::guarded::without_its_store(CONFIGURATION, nginx);
        assert!(told.is_none_or(|status| status == 503), "{told:?}");
    }
}
