//! What well-known limiters' own tests expect of these algorithms, replayed on a [`Limiter`].
//!
//! `vectors/<algorithm>.json` holds facts: inputs and expected answers, each case with the
//! repository, the test and the commit that it comes from. What the fields mean is told in
//! `tollgate_kit::vectors`. Every difference to a source is named there, and listed on the standard
//! error of every run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tollgate::{Algorithm, BuildError, Decision, Limiter, MockClock, Status};
use tollgate_kit::vectors::{Ask, Case, Expect, Fault, read};

type Keyed = Limiter<str, MockClock>;

/// Each file, and the algorithm that it is about; none of the one with several quotas on a key.
const FILES: [(&str, Option<Algorithm>); 8] = [
    (include_str!("vectors/sliding_window_log.json"), Some(Algorithm::SlidingWindowLog)),
    (include_str!("vectors/token_bucket.json"), Some(Algorithm::TokenBucket)),
    (include_str!("vectors/leaky_bucket.json"), Some(Algorithm::LeakyBucket)),
    (include_str!("vectors/leaky_queue.json"), Some(Algorithm::LeakyQueue)),
    (include_str!("vectors/fixed_window.json"), Some(Algorithm::FixedWindow)),
    (include_str!("vectors/sliding_counter.json"), Some(Algorithm::SlidingCounter)),
    (include_str!("vectors/several_limits.json"), None),
    (include_str!("vectors/warm_up.json"), Some(Algorithm::WarmUp)),
];

fn cases() -> Vec<Case> {
    FILES.iter().flat_map(|(file, _)| read(file).unwrap_or_else(|fault| panic!("{fault}"))).collect()
}

fn build(case: &Case, clock: &MockClock) -> Result<Keyed, BuildError> {
    let builder = Limiter::<str>::builder(case.quotas[0]).clock(clock.clone());
    case.quotas[1..].iter().fold(builder, |builder, &quota| builder.and(quota)).build()
}

/// Replays a case; the first step that is answered otherwise than expected is the fault.
fn replay(case: &Case) -> Result<(), Fault> {
    let clock = MockClock::new();
    let limiter = match (build(case, &clock), &case.error) {
        (Ok(limiter), None) => limiter,
        // The name is that of the quota's error, or of the builder's.
        (Err(error), Some(expected)) if format!("{error:?}").trim_start_matches("Quota(").starts_with(expected) => {
            return Ok(());
        }
        (built, expected) => {
            return Err(format!("{}: {:?}, expected {expected:?}", case.name, built.err()));
        }
    };
    for (position, ask) in case.asks.iter().enumerate() {
        clock.set(ask.at_ns);
        let got = take(&limiter, ask, &clock);
        if !ask.expect.is_met_by(&got) {
            return Err(format!("{} ({}), step {position}: {ask:?}\ngot {got:?}", case.name, case.repo));
        }
    }
    Ok(())
}

fn take(limiter: &Keyed, ask: &Ask, clock: &MockClock) -> Expect {
    let key = ask.key.as_str();
    match (ask.what.as_str(), ask.times) {
        ("acquire", None) => seen(limiter.try_acquire_n_status(key, ask.cost).ok()),
        ("would", None) => seen(limiter.peek_n(key, ask.cost).ok()),
        ("look", None) => Expect { answer: None, ..seen(limiter.peek_n(key, 0).ok()) },
        ("forget", None) => {
            limiter.forget(key);
            Expect::default()
        }
        ("acquire", Some(times)) => {
            let admitted = (0..times).filter(|time| {
                clock.set(ask.at_ns + time * ask.every_ns);
                matches!(limiter.try_acquire_n(key, ask.cost), Ok(Decision::Admitted(_)))
            });
            let admitted = u64::try_from(admitted.count()).expect("a number of times");
            Expect { answer: None, numbers: BTreeMap::from([("admitted", admitted)]) }
        }
        // Only an acquire is repeated: nothing was done, so whatever is expected was not got.
        _ => Expect::default(),
    }
}

fn seen(status: Option<Status>) -> Expect {
    let Some(status) = status else { return Expect { answer: Some("never".to_owned()), ..Expect::default() } };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut numbers =
        BTreeMap::from([("remaining", status.remaining().into()), ("reset_ns", nanos(status.reset_after()))]);
    let answer = match status.decision() {
        Decision::Admitted(admission) => {
            numbers.insert("delay_ns", nanos(admission.delay()));
            "admitted"
        }
        Decision::Denied(denial) => {
            numbers.insert("retry_ns", nanos(denial.retry_after()));
            numbers.insert("quota", u64::try_from(denial.quota()).expect("a few"));
            "denied"
        }
    };
    Expect { answer: Some(answer.to_owned()), numbers }
}

/// To the standard error itself: what is printed by the usual macros is hidden when a test passes.
fn say_loudly(line: &str) {
    writeln!(std::io::stderr(), "vectors: {line}").expect("the standard error takes a line");
}

#[test]
fn every_case_is_answered_as_expected_and_every_difference_is_named() {
    let mut count = 0;
    for (file, algorithm) in FILES {
        for case in read(file).unwrap_or_else(|fault| panic!("{fault}")) {
            assert_eq!(algorithm.is_none(), case.quotas.len() > 1, "{}", case.name);
            let of_this_file =
                |quota: &tollgate::Quota| algorithm.is_none_or(|algorithm| algorithm == quota.algorithm());
            assert!(case.quotas.iter().all(of_this_file), "{}", case.name);
            replay(&case).unwrap_or_else(|fault| panic!("{fault}"));
            for said in &case.said {
                say_loudly(&format!("{}: {said}", case.name));
            }
            for (position, ask) in case.asks.iter().enumerate() {
                if let Some((theirs, why)) = &ask.theirs {
                    let origin = if ask.ours_alone { "added" } else { "differs" };
                    let line =
                        format!("{} step {position} {origin}: {why}; by its rules the source answers", case.name);
                    say_loudly(&format!("{line} {}", theirs.in_words()));
                }
            }
            count += 1;
        }
    }
    assert_eq!(count, 72);
}

#[test]
fn unknown_fields_are_errors_and_wrong_expectations_fail() {
    let with = |at: usize, from: &str, to: &str| {
        let (file, _) = FILES[at];
        assert!(file.contains(from), "{from}");
        read(&file.replacen(from, to, 1))
    };
    let (log, bucket, queue, warm_up) = (0, 1, 3, 7);
    assert!(with(log, r#""do": "look""#, r#""do": "glance""#).is_err_and(|fault| fault.contains("glance")));
    assert!(with(log, r#""at_ns": 0,"#, r#""at_ns": 0, "jitter": 1,"#).is_err_and(|fault| fault.contains("jitter")));
    assert!(with(log, r#""remaining": 10"#, r#""left": 10"#).is_err_and(|fault| fault.contains("left")));
    assert!(with(log, r#""limit": 10,"#, r#""limit": 10, "burst": 3,"#).is_err_and(|fault| fault.contains("burst")));
    assert!(with(log, r#""commit": "#, r#""commits": "#).is_err_and(|fault| fault.contains("no commit")));
    assert!(with(log, r#""do": "forget""#, r#""do": "forget", "expect": {"remaining": 2}"#).is_err());
    assert!(with(log, r#""ours_alone": true"#, r#""ours_alone": 1"#).is_err());
    assert!(with(bucket, r#""capacity": 100,"#, r#""capacity": 100, "burst": 3,"#).is_err());
    assert!(with(bucket, r#""format": 2"#, r#""format": 1"#).is_err());
    assert!(with(bucket, r#""expect": {"answer": "admitted"}"#, r#""expect": {}"#).is_err(), "nothing expected");
    let fails = |cases: Result<Vec<Case>, Fault>| cases.expect("can be read").iter().any(|case| replay(case).is_err());
    assert!(fails(with(log, r#""remaining": 10"#, r#""remaining": 9"#)));
    assert!(fails(with(bucket, r#""remaining": 51"#, r#""remaining": 50"#)));
    assert!(fails(with(bucket, r#""error": "ZeroRate""#, r#""error": "ZeroLimit""#)));
    assert!(fails(with(bucket, r#""retry_ns": 10"#, r#""retry_ns": 11"#)));
    assert!(fails(with(queue, r#""delay_ns": 100000000"#, r#""delay_ns": 100000001"#)));
    assert!(fails(with(warm_up, r#""retry_ns": 1125000000"#, r#""retry_ns": 1125000001"#)));
}

/// Where the collection is at hand from which the cases were taken: is each of them here, with the
/// inputs and the answers that the source has?
#[test]
fn nothing_is_left_out() {
    let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors");
    let Ok(files) = std::fs::read_dir(&collection) else {
        say_loudly("NOT COMPARED with the collection that the cases were taken from: it is not beside this checkout");
        return;
    };
    let cases = cases();
    let ours: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), case)).collect();
    let mut compared = 0;
    for file in files.map(|file| file.expect("a file").path()).filter(|path| path.extension() == Some("json".as_ref()))
    {
        let text = std::fs::read_to_string(&file).expect("a text");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        for theirs in value["vectors"].as_array().expect("a list") {
            let name = theirs["id"].as_str().expect("an id");
            same_facts(ours.get(name).unwrap_or_else(|| panic!("{name} is not carried over")), theirs);
            compared += 1;
        }
    }
    // Two cases were read in their sources, which the collection does not have.
    assert_eq!(compared + 2, ours.len(), "as many in the collection as here");
}

/// Each step of theirs is among ours, in the same order. (What a source says about the moment
/// before a request is a step of its own with us.) A case that ours refuses may leave some away.
fn same_facts(case: &Case, theirs: &Value) {
    let name = &case.name;
    let source = &theirs["source"];
    assert_eq!(
        (&source["repo"], &source["commit"]),
        (&case.repo.clone().into(), &case.commit.clone().into()),
        "{name}"
    );
    let without_remark = |test: &str| test.split(" (").next().map(str::to_owned);
    assert_eq!(source["test"].as_str().and_then(without_remark), without_remark(&case.test), "{name}");
    let mut ours = case.asks.iter().filter(|ask| !ask.ours_alone);
    for (position, theirs) in theirs["steps"].as_array().expect("a list").iter().enumerate() {
        if case.error.is_none() {
            assert!(ours.any(|ask| is_the_same(ask, theirs)), "{name}, step {position}: {theirs}");
        }
    }
}

fn is_the_same(ours: &Ask, theirs: &Value) -> bool {
    let what = match theirs["op"].as_str() {
        None | Some("hit") if theirs["n"] == 0 => "look",
        None | Some("hit" | "reserve") => "acquire",
        Some("test") => "would",
        Some("peek") => "look",
        Some("reset") => "forget",
        Some(unknown) => panic!("{unknown}: {theirs}"),
    };
    let carried = ours.theirs.as_ref().map_or(&ours.expect, |(theirs, _)| theirs);
    let expected = &theirs["expect"];
    let allowed = expected["allowed"].as_bool().filter(|_| what != "look" && ours.times.is_none());
    let remaining = expected["remaining"].as_u64();
    theirs["at_ns"] == ours.at_ns
        && theirs["key"] == *ours.key
        && (ours.what == what || what == "look" && ours.what == "acquire" && ours.cost == 0)
        && (theirs["n"] == ours.cost || !["acquire", "would"].contains(&what))
        && theirs["repeat"].as_u64() == ours.times
        && allowed.is_none_or(|allowed| carried.answer.as_deref().map(|answer| answer == "admitted") == Some(allowed))
        // Of what is never possible ours says nothing more; the step after it looks.
        && (carried.answer.as_deref() == Some("never")
            || remaining.is_none_or(|remaining| carried.numbers.get("remaining") == Some(&remaining)))
}
