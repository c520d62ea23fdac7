//! The vectors of the workspace, replayed on a real server: what well-known limiters' own tests
//! expect of these algorithms.
//!
//! The store counts in microseconds. A case that has other times, or expects them, is played a
//! thousand times slower, a microsecond for each of its nanoseconds: the algorithms know no unit. It
//! is listed on the standard error of every run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use tokio::runtime::Runtime;
use tollgate::{Algorithm, Decision, Quota, Status};
use tollgate_kit::redis::{Clock, Server, case_name, runtime};
use tollgate_kit::vectors::{Ask, Case, Expect, Fault, read};
use tollgate_redis::{BuildError, Decided, RedisLimiter, Store, StoreError};

const FILES: [&str; 7] = [
    include_str!("../../../../tests/vectors/sliding_window_log.json"),
    include_str!("../../../../tests/vectors/token_bucket.json"),
    include_str!("../../../../tests/vectors/leaky_bucket.json"),
    include_str!("../../../../tests/vectors/leaky_queue.json"),
    include_str!("../../../../tests/vectors/fixed_window.json"),
    include_str!("../../../../tests/vectors/sliding_counter.json"),
    include_str!("../../../../tests/vectors/several_limits.json"),
];

/// The origin of the cases' clock: a midnight, at which the windows of all cases begin. None of
/// their keys expires by the real clock.
const ORIGIN: u64 = 29_000 * 86_400_000_000;

/// How many nanoseconds of a case a microsecond of the server stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Real = 1_000,
    Slow = 1,
}

impl Pace {
    /// The pace at which a case can be played.
    fn of(case: &Case) -> Self {
        let times = |expect: &Expect| {
            let names = ["retry_ns", "reset_ns", "delay_ns"];
            names.into_iter().filter_map(|name| expect.numbers.get(name).copied()).collect::<Vec<_>>()
        };
        let asked = case.asks.iter().flat_map(|ask| [ask.at_ns, ask.every_ns].into_iter().chain(times(&ask.expect)));
        let is_whole = |time: u128| time.is_multiple_of(1_000);
        let quotas = case.quotas.iter().all(|quota| {
            let times = [quota.phase(), quota.max_delay(), quota.rate().map(|(_, per)| per)];
            is_whole(quota.window().as_nanos()) && times.into_iter().flatten().all(|time| is_whole(time.as_nanos()))
        });
        if quotas && asked.map(u128::from).all(is_whole) { Self::Real } else { Self::Slow }
    }

    fn micros(self, nanos: u64) -> u64 {
        nanos / self as u64
    }

    fn nanos(self, time: Duration) -> u64 {
        u64::try_from(time.as_micros()).expect("short") * self as u64
    }

    /// The quota in the server's time.
    fn quota(self, quota: Quota) -> Quota {
        let slow = |time: Duration| match self {
            Self::Real => time,
            Self::Slow => time.saturating_mul(1_000),
        };
        let (limit, (permits, per)) = (quota.limit(), quota.rate().unwrap_or_default());
        let of_window = slow(quota.window());
        let paced = match quota.algorithm() {
            Algorithm::SlidingWindowLog => Quota::new(limit, of_window),
            Algorithm::TokenBucket => Quota::token_bucket(limit, permits, slow(per)),
            Algorithm::LeakyBucket => Quota::leaky_bucket(limit, permits, slow(per)),
            Algorithm::LeakyQueue => Quota::leaky_queue(permits, slow(per), slow(quota.max_delay().unwrap())),
            Algorithm::FixedWindow => Quota::fixed_window(limit, of_window),
            Algorithm::SlidingCounter => Quota::sliding_counter(limit, of_window / 2),
            other => panic!("{other} has no vectors"),
        };
        let paced = quota.start().map_or(paced, |start| paced.starting_with(start));
        quota.phase().map_or(paced, |phase| paced.aligned(slow(phase)))
    }
}

/// A case in play.
struct Play<'a> {
    pace: Pace,
    limiter: RedisLimiter,
    clock: &'a Clock,
    runtime: &'a Runtime,
}

fn build(store: &Store, case: &Case, pace: Pace) -> Result<RedisLimiter, BuildError> {
    let [first, others @ ..] = &*case.quotas else { panic!("no quota") };
    let builder = RedisLimiter::builder(store, &case_name(), pace.quota(*first));
    others.iter().fold(builder, |builder, &quota| builder.and(pace.quota(quota))).build()
}

impl Play<'_> {
    fn take(&self, ask: &Ask) -> Expect {
        let key = ask.key.as_str();
        self.at(ask.at_ns);
        match (ask.what.as_str(), ask.times) {
            ("acquire", None) => self.seen(self.runtime.block_on(self.limiter.try_acquire_status(key, ask.cost))),
            ("would", None) => self.seen(self.runtime.block_on(self.limiter.peek(key, ask.cost))),
            ("look", None) => Expect { answer: None, ..self.seen(self.runtime.block_on(self.limiter.peek(key, 0))) },
            ("forget", None) => {
                self.runtime.block_on(self.limiter.forget(key)).expect("the server answers");
                Expect::default()
            }
            ("acquire", Some(times)) => {
                let admitted = (0..times).filter(|time| {
                    self.at(ask.at_ns + time * ask.every_ns);
                    let decision = self.runtime.block_on(self.limiter.try_acquire_n(key, ask.cost));
                    decision.is_ok_and(|decision| decision.is_admitted())
                });
                let admitted = u64::try_from(admitted.count()).expect("a number of times");
                Expect { answer: None, numbers: BTreeMap::from([("admitted", admitted)]) }
            }
            _ => Expect::default(),
        }
    }

    fn at(&self, nanos: u64) {
        self.clock.set(ORIGIN + self.pace.micros(nanos));
    }

    fn seen(&self, status: Result<Decided<Status>, StoreError>) -> Expect {
        let status = match status {
            Ok(status) => status,
            Err(StoreError::CostExceedsLimit { .. }) => {
                return Expect { answer: Some("never".to_owned()), ..Expect::default() };
            }
            Err(error) => panic!("{error}"),
        };
        let mut numbers = BTreeMap::from([
            ("remaining", status.remaining().into()),
            ("reset_ns", self.pace.nanos(status.reset_after())),
        ]);
        let answer = match status.decision() {
            Decision::Admitted(admission) => {
                numbers.insert("delay_ns", self.pace.nanos(admission.delay()));
                "admitted"
            }
            Decision::Denied(denial) => {
                numbers.insert("retry_ns", self.pace.nanos(denial.retry_after()));
                numbers.insert("quota", u64::try_from(denial.quota()).expect("a few"));
                "denied"
            }
        };
        Expect { answer: Some(answer.to_owned()), numbers }
    }
}

/// Replays a case; the first step that is answered otherwise than expected is the fault.
fn replay(server: (&Store, &Clock, &Runtime), case: &Case, pace: Pace) -> Result<(), Fault> {
    let (store, clock, runtime) = server;
    let limiter = match (build(store, case, pace), &case.error) {
        (Ok(limiter), None) => limiter,
        (Err(error), Some(expected)) if format!("{error:?}").contains(&format!("({expected}")) => return Ok(()),
        (built, expected) => return Err(format!("{}: {:?}, expected {expected:?}", case.name, built.err())),
    };
    let play = Play { pace, limiter, clock, runtime };
    for (position, ask) in case.asks.iter().enumerate() {
        let got = play.take(ask);
        if !ask.expect.is_met_by(&got) {
            return Err(format!("{} ({}), step {position}: {ask:?}\ngot {got:?}", case.name, case.repo));
        }
    }
    Ok(())
}

fn say_loudly(line: &str) {
    writeln!(std::io::stderr(), "vectors on a server: {line}").expect("the standard error takes a line");
}

#[test]
fn every_case_is_answered_as_in_process() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let (mut real, mut slow) = (0, 0);
    for file in FILES {
        for case in read(file).unwrap_or_else(|fault| panic!("{fault}")) {
            let pace = Pace::of(&case);
            match pace {
                Pace::Real => real += 1,
                Pace::Slow => {
                    slow += 1;
                    say_loudly(&format!("{}: a thousand times slower, for its nanoseconds", case.name));
                }
            }
            replay((&store, &clock, &runtime), &case, pace).unwrap_or_else(|fault| panic!("{fault}"));
        }
    }
    assert_eq!((real, slow), (49, 22));
}

/// The test would notice another answer.
#[test]
fn another_answer_fails() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    for (file, from, to) in [
        (FILES[0], r#""remaining": 10"#, r#""remaining": 9"#),
        (FILES[1], r#""remaining": 51"#, r#""remaining": 50"#),
        (FILES[1], r#""retry_ns": 10"#, r#""retry_ns": 11"#),
        (FILES[1], r#""error": "ZeroRate""#, r#""error": "ZeroLimit""#),
        (FILES[3], r#""delay_ns": 100000000"#, r#""delay_ns": 100000001"#),
    ] {
        assert!(file.contains(from), "{from}");
        let cases = read(&file.replacen(from, to, 1)).expect("can be read");
        let fails = cases.iter().any(|case| replay((&store, &clock, &runtime), case, Pace::of(case)).is_err());
        assert!(fails, "{from}");
    }
}
