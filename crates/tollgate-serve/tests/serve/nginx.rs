//! A real nginx, by the configuration of the guide.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::guarded::is_guarded;
use crate::place::by_both;
use crate::processes::{guided, proxy, service};
use crate::support::{Answer, agent};
use tollgate_kit::programs::is_there;

const README: &str = include_str!("../../README.md");
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

/// As the guide shows it.
#[test]
fn nginx_sends_what_rules_tiers_and_networks_look_at_and_no_plan_of_a_client() {
    if !is_there("nginx", "-v") {
        return;
    }
    let blocks = README.split("```nginx\n").skip(2).map(|rest| rest.split("```").next().unwrap());
    let [fields, maps] = blocks.collect::<Vec<_>>()[..] else { panic!("two more blocks") };
    let client = "        proxy_set_header X-Tollgate-Client $remote_addr;\n";
    assert!(CONFIGURATION.contains(client));
    let configuration = format!("{maps}{}", CONFIGURATION.replace(client, fields));
    by_both(|place| {
        let tollgate = place.of(include_str!("../../guide/tiers.toml"));
        let with = |configuration: &str| proxy(configuration, [tollgate.address, service()], nginx);
        let ask = |address: SocketAddr, method: &str, path: &str, client: &str| {
            let request = ureq::http::Request::builder().method(method).uri(format!("http://{address}{path}"));
            let request = request.header("x-forwarded-for", client).header("x-plan", "pro");
            let answer = Answer::of(agent().run(request.body(()).unwrap()).unwrap());
            (answer.status, answer.field("ratelimit-policy").map(str::to_owned))
        };
        let quota = |limit: u32| Some(format!("\"address\";q={limit};w=60"));
        let (_nginx, address, _folder) = with(&configuration);
        assert_eq!(ask(address, "GET", "/page?x=y", "198.51.100.7"), (200, quota(1_000)));
        assert_eq!(ask(address, "GET", "/page", "10.1.2.3"), (200, None));
        assert_eq!(ask(address, "GET", "/health?x=y", "198.51.100.7"), (200, None));
        assert_eq!(ask(address, "DELETE", "/export/7", "198.51.100.7"), (200, quota(1_000)));
        assert_eq!(ask(address, "POST", "/export/7", "198.51.100.7"), (403, None));
        // The proxy that authenticates is another one, so that this peer may not name a plan.
        let (_nginx, address, _folder) = with(&configuration.replace("127.0.0.1/32 1;", "192.0.2.1/32 1;"));
        assert_eq!(ask(address, "GET", "/page", "198.51.100.7"), (200, quota(100)));
        let result = |result: &str| tollgate.metric(&format!("tollgate_requests_total{{result=\"{result}\"}}"));
        let results = ["admitted", "unlimited", "admitted_by_rule", "denied_by_rule"].map(result);
        assert_eq!(results, [3, 1, 1, 1]);
    });
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
