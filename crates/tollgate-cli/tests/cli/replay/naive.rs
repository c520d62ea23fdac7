//! What a policy does to a log, by a program that is slow, plain, and shares nothing with the
//! library: every granted stamp of every key is kept, and all of them are looked at for every
//! decision.

use std::collections::HashMap;

use tollgate_kit::key::Quotas;
use tollgate_kit::oracle::meter::Meter;

/// Whole seconds since 1970: access logs have no finer times.
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// At most so many in any window of so many seconds.
pub(crate) fn log(limit: u32, seconds: u64) -> Quotas {
    Quotas::log(limit, seconds * NANOS_PER_SECOND)
}

/// A bucket of so many tokens, of which so many come back in so many seconds, evenly.
pub(crate) fn token_bucket(capacity: u32, refill: u32, seconds: u64) -> Quotas {
    Quotas::Meter(Meter::TokenBucket { capacity, refill, per: seconds * NANOS_PER_SECOND, start: capacity })
}

/// At most so many from a first request until so many seconds later.
pub(crate) fn fixed_window(limit: u32, seconds: u64) -> Quotas {
    Quotas::Meter(Meter::FixedWindow { limit, window: seconds * NANOS_PER_SECOND, phase: None })
}

/// By the counts of two windows that begin at multiples of so many seconds since 1970, the older one
/// weighed by what is left.
pub(crate) fn sliding_counter(limit: u32, seconds: u64) -> Quotas {
    Quotas::Meter(Meter::SlidingCounter { limit, window: seconds * NANOS_PER_SECOND, phase: 0 })
}

/// How long until one more is admitted beside those `granted` so far, in nanoseconds; zero for at
/// once.
pub(crate) fn wait(quotas: &Quotas, granted: &[u64], now: u64) -> u64 {
    let mut key = quotas.key(granted.first().copied().unwrap_or(now));
    granted.iter().for_each(|&stamp| key.grant(stamp, 1));
    key.wait(now, 1)
}

/// What became of a log's requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// Of the denied: how many each dimension made wait longest (the first, of those that are
    /// equal), and how many it was in the way of.
    pub(crate) by_dimension: Vec<(u64, u64)>,
    /// The same of each quota of each dimension, as far as the longest wait goes.
    pub(crate) by_quota: Vec<Vec<u64>>,
    /// Zero for admitted, else the wait.
    pub(crate) waits: Vec<u64>,
}

/// Decides a log's requests by the rules of several dimensions: all of them grant a request, or
/// none is charged.
pub(crate) fn decide(log: &str, dimensions: &[(Part, Vec<Quotas>)]) -> Totals {
    let mut requests: Vec<Request> = log.lines().map(Request::of).collect();
    requests.sort_by_key(|request| request.time);
    let mut totals = Totals {
        by_dimension: vec![(0, 0); dimensions.len()],
        by_quota: dimensions.iter().map(|(_, rules)| vec![0; rules.len()]).collect(),
        ..Totals::default()
    };
    let mut granted: HashMap<(usize, &str), Vec<u64>> = HashMap::new();
    for request in &requests {
        let keys: Vec<(usize, &str)> =
            dimensions.iter().enumerate().filter_map(|(at, (part, _))| Some((at, request.part(*part)?))).collect();
        // The wait in each dimension, and the quota it is for: the one with more permits, of those
        // that are equal.
        let mut waits: Vec<(usize, u64, usize)> = Vec::new();
        for &(at, key) in &keys {
            let stamps = granted.entry((at, key)).or_default();
            let rules = dimensions[at].1.iter().enumerate();
            let longest = rules.map(|(quota, rule)| (wait(rule, stamps, request.time), quota)).max().unwrap();
            if longest.0 > 0 {
                waits.push((at, longest.0, longest.1));
            }
        }
        let Some(&(decider, wait, quota)) =
            waits.iter().reduce(|first, other| if other.1 > first.1 { other } else { first })
        else {
            totals.admitted += 1;
            totals.waits.push(0);
            keys.iter().for_each(|key| granted.get_mut(key).unwrap().push(request.time));
            continue;
        };
        totals.denied += 1;
        totals.waits.push(wait);
        totals.by_dimension[decider].0 += 1;
        totals.by_quota[decider][quota] += 1;
        waits.iter().for_each(|(at, ..)| totals.by_dimension[*at].1 += 1);
    }
    totals
}

/// A part of a log's line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Client,
    Path,
}

struct Request<'a> {
    client: &'a str,
    path: Option<&'a str>,
    time: u64,
}

impl<'a> Request<'a> {
    fn of(line: &'a str) -> Self {
        let client = line.split(' ').next().unwrap();
        let time = crate::replay::decisions::seconds_of(line.split(['[', ']']).nth(1).unwrap()) * NANOS_PER_SECOND;
        let request = line.split("] \"").nth(1).unwrap();
        let target = request.split("\" ").next().unwrap().split(' ').nth(1);
        Self { client, path: target.map(|target| target.split(['?', '#']).next().unwrap()), time }
    }

    fn part(&self, part: Part) -> Option<&'a str> {
        match part {
            Part::Client => Some(self.client),
            Part::Path => self.path,
        }
    }
}

/// The key and the time in whole seconds of every request that has such a key, in time order.
pub(crate) fn requests_of(log: &str, part: Part) -> Vec<(String, u64)> {
    let mut requests: Vec<Request> = log.lines().map(Request::of).collect();
    requests.sort_by_key(|request| request.time);
    let with_key = requests.iter().filter_map(|request| Some((request.part(part)?, request.time / NANOS_PER_SECOND)));
    with_key.map(|(key, seconds)| (key.to_owned(), seconds)).collect()
}
