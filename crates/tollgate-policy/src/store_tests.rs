//! The `[store]` of a policy: every field there and back, every problem, and who refuses it.

use core::num::NonZeroU32;
use core::time::Duration;

use super::{Given, OnFailure, Policy, PolicyProblem};

const DIMENSION: &str = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]\n";

/// A policy with these lines in its store.
fn with(lines: &str) -> String {
    format!("[store]\nurl = \"redis://host\"\nsecret = {{ env = \"S\" }}\n{lines}\n{DIMENSION}")
}

fn read(lines: &str) -> Policy {
    Policy::from_toml(&with(lines)).expect(lines)
}

/// Line and problem.
fn refused(text: &str) -> (usize, PolicyProblem) {
    let error = Policy::from_toml(text).expect_err(text);
    (error.line(), error.problem().clone())
}

#[test]
fn every_field_is_read_and_printed_and_read() {
    let policy = read(
        "name = \"api\"\nprefix = \"shop\"\nhash_tag = \"eu\"\ntimeout = \"20ms\"\nconnect_timeout = \"5s\"\nmax_calls = 7\n\
         max_clock_skew = \"5s\"\nbreaker = { failures = 3, pause = \"2s\" }\non_failure = \"local\"\nnodes = 4\n\
         cache_denials = 1000\nlease = { most = 100, slots = 4096 }",
    );
    let store = policy.store().unwrap();
    assert_eq!((store.url(), store.secret()), (&Given::Text("redis://host".into()), &Given::Env("S".into())));
    assert_eq!((store.name(), store.prefix(), store.hash_tag()), ("api", Some("shop"), Some("eu")));
    assert_eq!((store.timeout(), store.max_calls()), (Some(Duration::from_millis(20)), Some(7)));
    assert_eq!(store.connect_timeout(), Some(Duration::from_secs(5)));
    assert_eq!(store.max_clock_skew(), Some(Duration::from_secs(5)));
    assert_eq!(store.breaker(), Some((3, Duration::from_secs(2))));
    assert_eq!(store.on_failure(), OnFailure::Local { nodes: NonZeroU32::new(4).unwrap() });
    assert_eq!((store.cache_denials(), store.lease()), (Some(1000), Some((100, 4096))));
    for policy in [policy, read(""), read("on_failure = \"open\""), read("on_failure = \"closed\"")] {
        assert_eq!(Policy::from_toml(&policy.to_string()).unwrap(), policy);
    }
    let of_files = with("").replace("\"redis://host\"", "{ file = \"/run/a \\\"b\\\"\" }");
    let policy = Policy::from_toml(&of_files).unwrap();
    assert_eq!(policy.store().unwrap().url(), &Given::File("/run/a \"b\"".into()));
    assert_eq!(policy.store().unwrap().name(), "policy");
    assert_eq!(Policy::from_toml(&policy.to_string()).unwrap(), policy);
}

#[test]
fn every_problem_has_its_line() {
    for (lines, line, problem) in [
        ("on_failure = \"deny\"", 4, PolicyProblem::UnknownOnFailure { word: "deny".into() }),
        ("\non_failure = \"local\"", 5, PolicyProblem::NoNodes),
        ("on_failure = \"local\"\nnodes = 0", 5, PolicyProblem::NoNodes),
        ("on_failure = \"open\"\nnodes = 2", 5, PolicyProblem::NodesWithoutLocal),
        ("nodes = 2", 4, PolicyProblem::NodesWithoutLocal),
    ] {
        assert_eq!(refused(&with(lines)), (line, problem), "{lines}");
    }
    let secret = |given: &str| with("").replace("{ env = \"S\" }", given);
    assert_eq!(refused(&secret("\"a secret\"")), (3, PolicyProblem::InTheFile { field: "secret" }));
    let both = "{ env = \"S\", file = \"f\" }";
    assert_eq!(refused(&secret(both)), (3, PolicyProblem::Given { field: "secret" }));
    assert_eq!(refused(&secret("{}")), (3, PolicyProblem::Given { field: "secret" }));
    assert!(matches!(refused(&with("timeout = 50")), (4, PolicyProblem::Duration { field: "timeout", .. })));
    let words = |text: &str| match refused(text) {
        (line, PolicyProblem::Toml { message }) => (line, message),
        other => panic!("{other:?}"),
    };
    let (line, message) = words(&secret("7"));
    assert!(line == 3 && message.contains("{ env = \"NAME\" }"), "{message}");
    let (line, message) = words(&with("timout = \"1s\""));
    assert!(line == 4 && message.contains("`timout`") && message.contains("`timeout`"), "{message}");
    let (line, message) = words(&with("lease = { most = 100 }"));
    assert!(line == 4 && message.contains("`slots`"), "{message}");
    let (line, message) = words(&format!("[store]\nurl = \"redis://host\"\n{DIMENSION}"));
    assert!(line == 1 && message.contains("missing field `secret`: add it"), "{message}");
}

#[test]
fn an_address_with_a_password_is_refused_and_not_told() {
    let url = |url: &str| with("").replace("redis://host", url);
    for bad in ["redis://me:hunter2@host", "rediss://:hunter2@host:1/2", "redis://me:hunt/er2@host", "me:hunter2@host"]
    {
        let text = url(bad);
        assert_eq!(refused(&text), (2, PolicyProblem::InTheFile { field: "url" }), "{bad}");
        assert!(!Policy::from_toml(&text).unwrap_err().to_string().contains("hunt"));
    }
    for good in ["redis://host:6379/1", "redis://me@host", "redis+unix:///run/redis.sock", "redis://[::1]:6379"] {
        assert!(Policy::from_toml(&url(good)).is_ok(), "{good}");
    }
}

#[test]
fn a_reload_to_a_store_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.toml");
    std::fs::write(&path, DIMENSION).unwrap();
    let policy = Policy::load(&path).unwrap();
    let limiter = std::sync::Arc::new(policy.builder::<(String,)>().unwrap().build().unwrap());
    let reloader = super::Reloader::new(&path, policy, limiter);
    std::fs::write(&path, format!("# first\n{}", with(""))).unwrap();
    let told = reloader.reload_now();
    assert_eq!(told.result(), "refused");
    assert!(told.to_string().contains("limits.toml: line 2: a limiter in process"), "{told}");
}

/// A FIFO has no end until a writer comes and goes.
#[cfg(unix)]
#[test]
fn a_fifo_is_an_error_and_hangs_neither_a_watcher_nor_its_drop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.toml");
    std::fs::write(&path, DIMENSION).unwrap();
    let policy = Policy::load(&path).unwrap();
    let limiter = std::sync::Arc::new(policy.builder::<(String,)>().unwrap().build().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let reloader = super::Reloader::new(&path, policy, limiter).on_reload(move |reloaded| {
        let _ = tell.send(reloaded.to_string());
    });
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let watcher = super::Watcher::start(reloader, core::time::Duration::from_millis(1)).unwrap();
    let text = told.recv_timeout(core::time::Duration::from_secs(60)).expect("the watcher hangs");
    assert!(text.contains("limits.toml is not a regular file"), "{text}");
    drop(watcher);
    assert!(matches!(Policy::load(&path), Err(super::LoadError::NotRegular { .. })));
}
