//! Replay decides the corpus of policies, on a log of its requests, as the limiter in process does.

use std::fmt::Write as _;

use tollgate_kit::corpus::{self, Answer, Case, Request};
use tollgate_policy::Policy;

use crate::replay::support::{Scratch, replay, text};

fn log_of(requests: &[Request]) -> String {
    let mut log = "time,client,x_forwarded_for,method,path,host,http_x_plan,user\n".to_owned();
    for it in requests {
        let (forwarded, plan) = (it.forwarded.unwrap_or_default(), it.plan.unwrap_or_default());
        let (seconds, millis) = (it.at.as_secs(), it.at.subsec_millis());
        let (peer, method, target, host, user) = (it.peer, it.method, it.target, it.host, it.user);
        writeln!(log, "{seconds}.{millis:03},{peer},\"{forwarded}\",{method},{target},{host},{plan},{user}").unwrap();
    }
    log
}

fn decide(scratch: &Scratch, policy: &Policy, requests: &[Request]) -> Vec<Answer> {
    let (policy, log) = (scratch.with("policy.toml", policy.to_string()), scratch.with("log.csv", log_of(requests)));
    let rows = scratch.file("decisions.csv");
    let output = replay(&["--policy", &policy, "--decisions", &rows, &log]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut reader = csv::Reader::from_path(&rows).unwrap();
    let heads = reader.headers().unwrap().clone();
    let place = |name: &str| heads.iter().position(|head| head == name);
    let (allowed, by) = (place("allowed").unwrap(), place("quota"));
    let answer = |row: csv::StringRecord| match (&row[allowed], by.map(|by| row[by].starts_with("rule "))) {
        ("1", _) => Answer::Admitted,
        (_, Some(true)) => Answer::ByRule,
        _ => Answer::Denied,
    };
    reader.records().map(|row| answer(row.unwrap())).collect()
}

/// In a replay, what a policy has in shadow mode as a whole is denied: it is to tell of that.
#[test]
fn replay_decides_each_policy_of_the_corpus_as_in_process() {
    let scratch = Scratch::new("corpus");
    let can_keep = |case: &Case| !case.has(&["all in shadow mode"]);
    let played = corpus::check(can_keep, |policy, requests| decide(&scratch, policy, requests));
    assert!(played >= 60, "{played}");
}
