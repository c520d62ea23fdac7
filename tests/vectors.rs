//! What well-known limiters' own tests expect of a sliding window log, replayed on ours.
//!
//! `vectors/sliding_window_log.json` holds facts: inputs and expected answers, each case with the repository and the test
//! that it comes from. `expect` is what ours must answer. Where that differs from the source, `theirs` has the source's
//! expectation and `why` the difference in semantics; these steps are listed on the standard error of every run. A step
//! with `ours_alone` is not in the source: it pins our side of a difference.
//!
//! Read strictly: an unknown field or operation is an error, so that nothing in the file can go unchecked.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use tollgate::{Decision, Limiter, MockClock, Quota, Status};

const FILE: &str = include_str!("vectors/sliding_window_log.json");

type Fault = String;

/// An object, all of whose fields are among those named.
fn object<'v>(value: &'v Value, fields: &[&str]) -> Result<&'v Map<String, Value>, Fault> {
    let object = value.as_object().ok_or_else(|| format!("not an object: {value}"))?;
    match object.keys().find(|name| !fields.contains(&name.as_str())) {
        Some(unknown) => Err(format!("unknown field {unknown:?} in {value}")),
        None => Ok(object),
    }
}

fn number(object: &Map<String, Value>, field: &str) -> Result<Option<u64>, Fault> {
    let Some(value) = object.get(field) else { return Ok(None) };
    value.as_u64().map(Some).ok_or_else(|| format!("{field} is no natural number: {value}"))
}

fn text<'v>(object: &'v Map<String, Value>, field: &str) -> Result<Option<&'v str>, Fault> {
    let Some(value) = object.get(field) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| format!("{field} is no text: {value}"))
}

fn list<'v>(object: &'v Map<String, Value>, field: &str) -> Result<&'v Vec<Value>, Fault> {
    object.get(field).and_then(Value::as_array).ok_or_else(|| format!("no list {field}"))
}

fn needed<T>(value: Option<T>, field: &str) -> Result<T, Fault> {
    value.ok_or_else(|| format!("no {field}"))
}

fn small(value: u64, field: &str) -> Result<u32, Fault> {
    u32::try_from(value).map_err(|_| format!("{field} is too large: {value}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Admitted,
    Denied,
    /// More permits at once than the limit.
    Never,
}

/// What is expected; what is `None` is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Expect {
    answer: Option<Answer>,
    /// Of a repeated request: how often it is admitted.
    admitted: Option<u64>,
    remaining: Option<u32>,
    retry_ms: Option<u64>,
    reset_ms: Option<u64>,
}

impl Expect {
    fn read(value: &Value) -> Result<Self, Fault> {
        let object = object(value, &["answer", "admitted", "remaining", "retry_ms", "reset_ms"])?;
        let answer = text(object, "answer")?.map(|answer| match answer {
            "admitted" => Ok(Answer::Admitted),
            "denied" => Ok(Answer::Denied),
            "never" => Ok(Answer::Never),
            unknown => Err(format!("unknown answer {unknown:?}")),
        });
        Ok(Self {
            answer: answer.transpose()?,
            admitted: number(object, "admitted")?,
            remaining: number(object, "remaining")?.map(|value| small(value, "remaining")).transpose()?,
            retry_ms: number(object, "retry_ms")?,
            reset_ms: number(object, "reset_ms")?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Do {
    Acquire,
    /// Would it be admitted? Charges nothing.
    Would,
    /// What is left? Charges nothing.
    Look,
    Forget,
}

#[derive(Debug, Clone)]
struct Step {
    at_ms: u64,
    what: Do,
    key: String,
    cost: u32,
    times: u64,
    expect: Expect,
    /// What the source answers where ours differs, and why.
    theirs: Option<(Expect, String)>,
    ours_alone: bool,
}

impl Step {
    fn read(value: &Value) -> Result<Self, Fault> {
        let fields = ["at_ms", "do", "key", "cost", "times", "expect", "theirs", "why", "ours_alone"];
        let object = object(value, &fields)?;
        let what = match needed(text(object, "do")?, "do")? {
            "acquire" => Do::Acquire,
            "would" => Do::Would,
            "look" => Do::Look,
            "forget" => Do::Forget,
            unknown => return Err(format!("unknown operation {unknown:?}")),
        };
        let theirs = match (object.get("theirs"), text(object, "why")?) {
            (Some(theirs), Some(why)) => {
                Some((Expect::read(theirs)?, format!("{why}; by its rules the source answers {theirs}")))
            }
            (None, None) => None,
            _ => return Err(format!("`theirs` and `why` go together: {value}")),
        };
        let expect = Expect::read(needed(object.get("expect"), "expect")?)?;
        let times = number(object, "times")?;
        let checked = match (what, times) {
            (Do::Forget, None) => expect == Expect::default(),
            (Do::Acquire, Some(_)) => expect == Expect { admitted: expect.admitted, ..Expect::default() },
            (Do::Acquire | Do::Would, None) => expect.answer.is_some() && expect.admitted.is_none(),
            (Do::Look, None) => expect.answer.is_none() && expect.admitted.is_none() && expect.retry_ms.is_none(),
            _ => false,
        };
        if !checked || (times.is_some() && expect.admitted.is_none()) {
            return Err(format!("expectations that this operation does not check: {value}"));
        }
        Ok(Self {
            at_ms: needed(number(object, "at_ms")?, "at_ms")?,
            what,
            key: text(object, "key")?.unwrap_or("k").to_owned(),
            cost: small(number(object, "cost")?.unwrap_or(1), "cost")?,
            times: times.unwrap_or(1),
            expect,
            theirs,
            ours_alone: object.get("ours_alone").is_some_and(|value| *value == Value::Bool(true)),
        })
    }
}

#[derive(Debug, Clone)]
struct Case {
    name: String,
    source: String,
    limit: u32,
    window_ms: u64,
    steps: Vec<Step>,
    note: Option<String>,
}

impl Case {
    fn read(value: &Value) -> Result<Self, Fault> {
        let fields = ["name", "repo", "test", "semantics_there", "note", "limit", "window_ms", "steps"];
        let object = object(value, &fields)?;
        let name = needed(text(object, "name")?, "name")?.to_owned();
        let in_case = |fault| format!("{name}: {fault}");
        let [repo, test] = ["repo", "test"].map(|field| text(object, field).and_then(|value| needed(value, field)));
        text(object, "semantics_there")?;
        Ok(Self {
            source: format!("{}, {}", repo?, test?),
            limit: small(needed(number(object, "limit")?, "limit")?, "limit")?,
            window_ms: needed(number(object, "window_ms")?, "window_ms")?,
            steps: list(object, "steps")?.iter().map(Step::read).collect::<Result<_, _>>().map_err(in_case)?,
            note: text(object, "note")?.map(str::to_owned),
            name,
        })
    }
}

fn read(file: &str) -> Result<Vec<Case>, Fault> {
    let value: Value = serde_json::from_str(file).map_err(|error| error.to_string())?;
    let object = object(&value, &["format", "cases"])?;
    if number(object, "format")? != Some(1) {
        return Err("not format 1".to_owned());
    }
    list(object, "cases")?.iter().map(Case::read).collect()
}

/// Replays a case; the first step that is answered otherwise than expected is the fault.
fn replay(case: &Case) -> Result<(), Fault> {
    let clock = MockClock::new();
    let quota = Quota::new(case.limit, Duration::from_millis(case.window_ms));
    let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().map_err(|error| error.to_string())?;
    for (position, step) in case.steps.iter().enumerate() {
        clock.set(step.at_ms * 1_000_000);
        let got = take(&limiter, step);
        let expect = step.expect;
        let agrees = got.answer == expect.answer.or(got.answer)
            && got.admitted == expect.admitted.or(got.admitted)
            && got.remaining == expect.remaining.or(got.remaining)
            && got.retry_ms == expect.retry_ms.or(got.retry_ms)
            && got.reset_ms == expect.reset_ms.or(got.reset_ms);
        if !agrees {
            return Err(format!("{} ({}), step {position}: {step:?} got {got:?}", case.name, case.source));
        }
    }
    Ok(())
}

fn take(limiter: &Limiter<str, MockClock>, step: &Step) -> Expect {
    let key = step.key.as_str();
    match step.what {
        Do::Acquire if step.times > 1 => {
            let admitted = |_: &u64| matches!(limiter.try_acquire_n(key, step.cost), Ok(Decision::Admitted(_)));
            let admitted = u64::try_from((0..step.times).filter(admitted).count()).expect("fits");
            Expect { admitted: Some(admitted), ..Expect::default() }
        }
        Do::Acquire => seen(limiter.try_acquire_status(key, step.cost).ok()),
        Do::Would => seen(limiter.peek_n(key, step.cost).ok()),
        Do::Look => seen(Some(limiter.peek(key))),
        Do::Forget => {
            limiter.forget(key);
            Expect::default()
        }
    }
}

fn seen(status: Option<Status>) -> Expect {
    let Some(status) = status else { return Expect { answer: Some(Answer::Never), ..Expect::default() } };
    let whole_ms = |time: Duration| {
        assert_eq!(time.subsec_nanos() % 1_000_000, 0, "all times in the file are whole milliseconds, not {time:?}");
        u64::try_from(time.as_millis()).expect("short")
    };
    Expect {
        answer: Some(if status.is_admitted() { Answer::Admitted } else { Answer::Denied }),
        admitted: None,
        remaining: Some(status.remaining()),
        retry_ms: status.retry_after().map(whole_ms),
        reset_ms: Some(whole_ms(status.reset_after())),
    }
}

/// To the standard error itself: what is printed by the usual macros is hidden when a test passes.
fn say_loudly(line: &str) {
    writeln!(std::io::stderr(), "vectors: {line}").expect("the standard error takes a line");
}

#[test]
fn every_case_is_answered_as_expected_and_every_difference_is_named() {
    let cases = read(FILE).expect("the file can be read");
    assert!(!cases.is_empty());
    for case in &cases {
        replay(case).unwrap_or_else(|fault| panic!("{fault}"));
        if let Some(note) = &case.note {
            say_loudly(&format!("{}: {note}", case.name));
        }
        for (position, step) in case.steps.iter().enumerate() {
            if let Some((theirs, why)) = &step.theirs {
                let origin = if step.ours_alone { "added" } else { "differs" };
                say_loudly(&format!("{} step {position} {origin}: {why}", case.name));
                assert_ne!(*theirs, step.expect, "{}, step {position}: no difference", case.name);
            }
        }
    }
}

#[test]
fn what_the_reader_does_not_know_is_an_error_and_a_wrong_expectation_fails() {
    let with = |from: &str, to: &str| {
        assert!(FILE.contains(from), "{from}");
        read(&FILE.replacen(from, to, 1))
    };
    assert!(with(r#""do": "look""#, r#""do": "glance""#).is_err_and(|fault| fault.contains("glance")));
    assert!(with(r#""at_ms": 0,"#, r#""at_ms": 0, "jitter": 1,"#).is_err_and(|fault| fault.contains("jitter")));
    assert!(with(r#""remaining": 10"#, r#""left": 10"#).is_err_and(|fault| fault.contains("left")));
    assert!(with(r#""limit": 10,"#, r#""limit": 10, "burst": 3,"#).is_err_and(|fault| fault.contains("burst")));
    assert!(with(r#""format": 1"#, r#""format": 2"#).is_err());
    assert!(with(r#""expect": {"answer": "denied"}"#, r#""expect": {}"#).is_err(), "nothing expected");
    let wrong = with(r#""remaining": 10"#, r#""remaining": 9"#).expect("can be read");
    assert!(wrong.iter().map(replay).any(|result| result.is_err()));
}

/// Where the collection is at hand from which the cases were taken: is each case of this algorithm here, with the inputs
/// and the answers that the source has?
#[test]
fn nothing_is_left_out() {
    let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors");
    let Ok(files) = std::fs::read_dir(&collection) else {
        say_loudly("NOT COMPARED with the collection that the cases were taken from: it is not beside this checkout");
        return;
    };
    let cases = read(FILE).expect("the file can be read");
    let ours: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), case)).collect();
    let mut compared = 0;
    for file in files.map(|file| file.expect("a file").path()).filter(|path| path.extension() == Some("json".as_ref()))
    {
        let text = std::fs::read_to_string(&file).expect("a text");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let logs = value["vectors"].as_array().expect("a list").iter();
        for theirs in logs.filter(|vector| vector["algorithm"] == "sliding_window_log") {
            let name = theirs["id"].as_str().expect("an id");
            let case =
                ours.get(name).unwrap_or_else(|| panic!("{name} is neither carried over nor listed as different"));
            same_facts(case, theirs);
            compared += 1;
        }
    }
    assert_eq!(compared, ours.len(), "as many in the collection as here");
}

fn same_facts(case: &Case, theirs: &Value) {
    let name = &case.name;
    assert_eq!(theirs["params"]["limit"], case.limit, "{name}");
    assert_eq!(theirs["params"]["window_ns"], case.window_ms * 1_000_000, "{name}");
    let ours: Vec<&Step> = case.steps.iter().filter(|step| !step.ours_alone).collect();
    let steps = theirs["steps"].as_array().expect("a list");
    assert_eq!(ours.len(), steps.len(), "{name}");
    for (position, (ours, theirs)) in ours.into_iter().zip(steps).enumerate() {
        let what = match theirs["op"].as_str() {
            None | Some("hit") => Do::Acquire,
            Some("test") => Do::Would,
            Some("peek") => Do::Look,
            Some("reset") => Do::Forget,
            unknown => panic!("{name}, step {position}: {unknown:?}"),
        };
        assert_eq!(theirs["at_ns"], ours.at_ms * 1_000_000, "{name}, step {position}");
        assert_eq!((what, theirs["key"].as_str()), (ours.what, Some(ours.key.as_str())), "{name}, step {position}");
        assert_eq!(theirs["repeat"].as_u64().unwrap_or(1), ours.times, "{name}, step {position}");
        if matches!(what, Do::Acquire | Do::Would) {
            assert_eq!(theirs["n"], ours.cost, "{name}, step {position}");
        }
        let carried = ours.theirs.as_ref().map_or(ours.expect, |(theirs, _)| *theirs);
        if let Some(allowed) = theirs["expect"]["allowed"].as_bool() {
            assert_eq!(
                carried.answer.map(|answer| answer == Answer::Admitted),
                Some(allowed),
                "{name}, step {position}"
            );
        }
        if let Some(remaining) = theirs["expect"]["remaining"].as_u64() {
            assert_eq!(carried.remaining.map(u64::from), Some(remaining), "{name}, step {position}");
        }
    }
}
