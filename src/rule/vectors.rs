//! What well-known limiters' own tests expect of these algorithms, replayed on the rules.
//!
//! `tests/vectors/<algorithm>.json` holds facts, in format 2. A case names its `repo`, `test` and `commit`; it has a `quota` (or
//! `quotas`: several limits on one key, all of which must admit) and `steps`. Times are in nanoseconds after the clock's origin. A
//! step does one of:
//!
//! - `acquire` (`cost`, 1 unless said; `times`, and `every_ns` between them): `answer` (admitted, denied, never), and then
//!   `remaining`, `reset_ns`, and `retry_ns` or `delay_ns`; of a repeated one only how often it was `admitted`.
//! - `would`: the same, and charges nothing.
//! - `look`: `remaining` and `reset_ns`, and charges nothing.
//!
//! `expect` is what ours must answer. Where the source differs, `theirs` has its expectation and `why` the difference. A step
//! with `ours_alone` is not in the source. A case with an `error` is about a quota that ours refuses, with that error; its steps
//! are what the source answers instead, and `why`. Read strictly: an unknown field or word is an error.

mod format;

use std::collections::BTreeMap;

use super::tests::LATE_ORIGIN;
use super::{Account, Rule, Step};
use crate::quota::{Algorithm, Quota};
use format::{Case, Expect, Fault, read};

const FILES: [(&str, Option<Algorithm>); 6] = [
    (include_str!("../../tests/vectors/token_bucket.json"), Some(Algorithm::TokenBucket)),
    (include_str!("../../tests/vectors/leaky_bucket.json"), Some(Algorithm::LeakyBucket)),
    (include_str!("../../tests/vectors/leaky_queue.json"), Some(Algorithm::LeakyQueue)),
    (include_str!("../../tests/vectors/fixed_window.json"), Some(Algorithm::FixedWindow)),
    (include_str!("../../tests/vectors/sliding_counter.json"), Some(Algorithm::SlidingCounter)),
    (include_str!("../../tests/vectors/several_limits.json"), None),
];

/// One key's accounts, one for each limit.
#[derive(Clone)]
struct Accounts<'r> {
    rules: &'r [Rule],
    limit: u32,
    accounts: Vec<Option<Account>>,
}

impl Accounts<'_> {
    fn pairs(&self, now: u64) -> impl Iterator<Item = (&Rule, Account)> {
        let unseen = move |rule: &Rule| Account { anchor: rule.anchor_at(now), used: rule.opening(0).used };
        self.rules
            .iter()
            .zip(&self.accounts)
            .map(move |(rule, account)| (rule, account.unwrap_or_else(|| unseen(rule))))
    }

    fn look(&self, now: u64) -> Expect {
        let remaining = self.pairs(now).map(|(rule, account)| rule.remaining(account, now)).min().expect("a limit");
        let reset = self.pairs(now).map(|(rule, account)| rule.reset_after(account, now)).max().expect("a limit");
        Expect { answer: None, numbers: BTreeMap::from([("remaining", remaining.into()), ("reset_ns", reset)]) }
    }

    /// Every limit must admit, or none is charged.
    fn acquire(&mut self, now: u64, cost: u32) -> Expect {
        if cost > self.limit {
            return Expect { answer: Some("never".to_owned()), ..Expect::default() };
        }
        let (mut wait, mut delay) = (None, 0);
        let mut after = vec![];
        for (rule, account) in self.pairs(now).filter(|_| cost > 0) {
            delay = delay.max(rule.delay_ns(account, now));
            after.push(match rule.step(account, now, cost) {
                Step::Charge { used } => Account { used, ..account },
                Step::Advance { used } => Account { anchor: rule.advanced(account.anchor), used },
                Step::Open { used } => Account { anchor: rule.anchor_at(now), used },
                Step::Deny { wait_ns } => {
                    wait = wait.max(Some(wait_ns));
                    account
                }
            });
        }
        if wait.is_some() {
            // Accounts of a new key open all the same, uncharged.
            after = self.pairs(now).map(|(_, account)| account).collect();
        }
        for (account, after) in self.accounts.iter_mut().zip(after) {
            *account = Some(after);
        }
        let mut answer = self.look(now);
        answer.answer = Some(if wait.is_some() { "denied" } else { "admitted" }.to_owned());
        answer.numbers.extend([wait.map_or(("delay_ns", delay), |wait| ("retry_ns", wait))]);
        answer
    }
}

fn replay(case: &Case, origin: u64) -> Result<(), Fault> {
    let checked = case.quotas.iter().try_for_each(Quota::validate);
    if let Some(expected) = &case.error {
        let error = checked.err().map(|error| format!("{error:?}")).unwrap_or_default();
        return if error.starts_with(expected) {
            Ok(())
        } else {
            Err(format!("{}: {error}, not {expected}", case.name))
        };
    }
    checked.map_err(|error| format!("{}: {error}", case.name))?;
    let rules: Vec<Rule> = case.quotas.iter().map(|quota| Rule::of(*quota, origin).expect("not a log")).collect();
    let limit = case.quotas.iter().map(Quota::limit).min().expect("a limit");
    let new = Accounts { rules: &rules, limit, accounts: vec![None; rules.len()] };
    let mut keys = BTreeMap::new();
    for (position, ask) in case.asks.iter().enumerate() {
        let key = keys.entry(&ask.key).or_insert_with(|| new.clone());
        let now = origin + ask.at_ns;
        let got = match (ask.what.as_str(), ask.times) {
            ("look", None) => key.look(now),
            ("would", None) => key.clone().acquire(now, ask.cost),
            ("acquire", None) => key.acquire(now, ask.cost),
            ("acquire", Some(times)) => {
                let answers = (0..times).map(|time| key.acquire(now + time * ask.every_ns, ask.cost).answer);
                let admitted = answers.filter(|answer| answer.as_deref() == Some("admitted")).count();
                let admitted = u64::try_from(admitted).expect("a number of times");
                Expect { answer: None, numbers: BTreeMap::from([("admitted", admitted)]) }
            }
            _ => return Err(format!("{}, step {position}: only an acquire is repeated", case.name)),
        };
        if !ask.expect.is_met_by(&got) {
            return Err(format!("{}, step {position}: {ask:?}\ngot {got:?}", case.name));
        }
    }
    Ok(())
}

#[test]
fn every_case_is_answered_as_expected() {
    let mut count = 0;
    for (file, algorithm) in FILES {
        let cases = read(file).unwrap_or_else(|fault| panic!("{fault}"));
        for case in &cases {
            assert_eq!(algorithm.is_none(), case.quotas.len() > 1, "{}", case.name);
            for quota in &case.quotas {
                assert!(algorithm.is_none_or(|algorithm| algorithm == quota.algorithm()), "{}", case.name);
            }
            for origin in [0, LATE_ORIGIN] {
                // Windows that are aligned begin with the clock, wherever its origin is.
                replay(case, origin).unwrap_or_else(|fault| panic!("{fault}"));
            }
        }
        count += cases.len();
    }
    assert_eq!(count, 56);
}

#[test]
fn what_the_reader_does_not_know_is_an_error_and_a_wrong_expectation_fails() {
    let (file, _) = FILES[0];
    let with = |from: &str, to: &str| {
        assert!(file.contains(from), "{from}");
        read(&file.replacen(from, to, 1))
    };
    assert!(with(r#""do": "look""#, r#""do": "glance""#).is_err_and(|fault| fault.contains("glance")));
    assert!(with(r#""at_ns": 0,"#, r#""at_ns": 0, "jitter": 1,"#).is_err_and(|fault| fault.contains("jitter")));
    assert!(with(r#""remaining": 51"#, r#""left": 51"#).is_err_and(|fault| fault.contains("left")));
    assert!(with(r#""capacity": 100,"#, r#""capacity": 100, "burst": 3,"#).is_err_and(|fault| fault.contains("burst")));
    assert!(with(r#""format": 2"#, r#""format": 1"#).is_err());
    assert!(with(r#""expect": {"answer": "admitted"}"#, r#""expect": {}"#).is_err(), "nothing expected");
    let fails = |cases: Vec<Case>| cases.iter().map(|case| replay(case, 0)).any(|result| result.is_err());
    assert!(fails(with(r#""remaining": 51"#, r#""remaining": 50"#).expect("can be read")));
    assert!(fails(with(r#""error": "ZeroRate""#, r#""error": "ZeroLimit""#).expect("can be read")));
    assert!(fails(with(r#""retry_ns": 10"#, r#""retry_ns": 11"#).expect("can be read")));
}
