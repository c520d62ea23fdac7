//! The measurement of decisions.

use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::side_by_side::contender::{
    By, Contender, Governor, GovernorForAll, Name, OneForAll, OneLock, RateNet, Setup, ShardedDeques, Tollgate,
};
use crate::side_by_side::keys::{Key, Popularity};
use crate::side_by_side::measured::{Measured, Plan, Timings};
use crate::side_by_side::scenario::{Admits, Scenario, TollgateClock};
use crate::turns::turns;

/// How many rounds' worth of requests are drawn; later rounds start over.
const ROUNDS_DRAWN: usize = 24;

/// With one key a short list of requests is enough. It is gone through many times, so that reading
/// it costs nothing.
const ONE_KEY_REQUESTS: usize = 4096;

/// From here on two threads share the first requests of all keys.
const MANY_KEYS: usize = 100_000;

/// The most threads that there are parts for.
pub const MOST_THREADS: usize = 8;

/// "Nearly everything": who reads the clock and then has to wait for a lock, or is stopped, decides
/// by a reading that is older than the window, and may be denied.
const NEARLY_EVERYTHING: f64 = 0.9;

/// Measures a scenario with keys of type `K`, and checks that every contender admitted what it
/// should have.
///
/// # Panics
///
/// When a contender admitted anything else.
#[must_use]
pub fn measure<K: Key>(scenario: &Scenario, plan: Plan, progress: &ProgressBar) -> Measured {
    measure_made(scenario, plan, progress, contender::<K>)
}

/// The same for limiters without keys.
#[must_use]
pub fn measure_one_for_all(scenario: &Scenario, plan: Plan, progress: &ProgressBar) -> Measured {
    measure_made(scenario, plan, progress, one_for_all)
}

fn measure_made<K: Key>(
    scenario: &Scenario,
    plan: Plan,
    progress: &ProgressBar,
    make: fn(Name, Setup, TollgateClock) -> Box<dyn TakesTurns<K>>,
) -> Measured {
    let began = Instant::now();
    let requests = Requests::<K>::draw(scenario, plan);
    let contenders: Vec<_> = scenario.who.iter().map(|&name| make(name, scenario.setup(), scenario.clock)).collect();
    let new_timings = |&name| Timings { name, ns: Vec::with_capacity(plan.rounds), admitted: 0.0 };
    let mut timings: Vec<Timings> = scenario.who.iter().map(new_timings).collect();
    let mut admitted = vec![0_u64; contenders.len()];
    let mut admitted_when_timed = admitted.clone();

    // Every key gets its place before time is taken, and the round before the first is not timed
    // either.
    let everyone = scenario.popularity.everyone::<K>();
    // That takes longer than all that is timed, where there are millions; two threads share it.
    let share = if everyone.len() < MANY_KEYS { everyone.len() } else { everyone.len().div_ceil(2) };
    let greeters: Vec<&[K]> = everyone.chunks(share).collect();
    for (contender, admitted) in contenders.iter().zip(&mut admitted) {
        *admitted += contender.round(&greeters, scenario.greetings(), scenario.cost).admitted;
    }
    for (round, whose) in turns(plan.rounds + 1, contenders.len()) {
        let per_thread = requests.of_round(round, plan.threads);
        let outcome = contenders[whose].round(&per_thread, requests.repeats, scenario.cost);
        admitted[whose] += outcome.admitted;
        if round > 0 {
            let decisions_per_thread = per_thread[0].len() * requests.repeats;
            timings[whose].ns.push(outcome.wall.as_secs_f64() * 1e9 / decisions_per_thread as f64);
            admitted_when_timed[whose] += outcome.admitted;
        }
        progress.inc(1);
    }
    let elapsed = began.elapsed();

    let decisions_when_timed = requests.of_round(0, plan.threads).iter().map(|part| part.len()).sum::<usize>()
        * requests.repeats
        * plan.rounds;
    for (timings, admitted) in timings.iter_mut().zip(admitted_when_timed) {
        timings.admitted = admitted as f64 / decisions_when_timed as f64;
    }
    match scenario.admits {
        Admits::Nothing => check_each(scenario, &timings, |share| share == 0.0),
        Admits::Everything => check_each(scenario, &timings, |share| share >= NEARLY_EVERYTHING),
        Admits::LimitOfEachKey => check_totals(scenario, &admitted, &requests.counts(plan, &everyone), elapsed),
    }
    Measured { threads: plan.threads, contenders: timings }
}

fn contender<K: Key>(name: Name, setup: Setup, clock: TollgateClock) -> Box<dyn TakesTurns<K>> {
    match (name, clock) {
        (Name::Tollgate, TollgateClock::Monotonic) => Box::new(Tollgate::new(By::Log, setup)),
        (Name::Tollgate, TollgateClock::Coarse) => Box::new(Tollgate::coarse(By::Log, setup)),
        (Name::Bucket, TollgateClock::Monotonic) => Box::new(Tollgate::new(By::Bucket, setup)),
        (Name::Bucket, TollgateClock::Coarse) => Box::new(Tollgate::coarse(By::Bucket, setup)),
        (Name::Governor, _) => Box::new(Governor::new(setup)),
        (Name::RateNet, _) => Box::new(RateNet::new(setup)),
        (Name::ShardedDeques, _) => Box::new(ShardedDeques::new(setup)),
        (Name::OneLock, _) => Box::new(OneLock::new(setup)),
    }
}

fn one_for_all(name: Name, setup: Setup, _: TollgateClock) -> Box<dyn TakesTurns<u64>> {
    match name {
        Name::Tollgate => Box::new(OneForAll::new(By::Log, setup)),
        Name::Bucket => Box::new(OneForAll::new(By::Bucket, setup)),
        Name::Governor => Box::new(GovernorForAll::new(setup)),
        _ => unreachable!("{} has no limiter without keys", name.label()),
    }
}

/// A contender as the rounds see it. The call is dynamic once a round; the loop inside is compiled
/// for each contender.
trait TakesTurns<K> {
    /// One thread for each part, started together; each goes through its part so many times.
    fn round(&self, parts: &[&[K]], repeats: usize, cost: u32) -> Outcome;
}

struct Outcome {
    /// From the first thread's start to the last one's end.
    wall: Duration,
    admitted: u64,
}

impl<K: Key, C: Contender<K>> TakesTurns<K> for C {
    fn round(&self, parts: &[&[K]], repeats: usize, cost: u32) -> Outcome {
        let barrier = Barrier::new(parts.len());
        let decide = |part: &[K]| {
            barrier.wait();
            let start = Instant::now();
            let mut admitted = 0;
            for _ in 0..repeats {
                // Two loops, because most users never name a cost.
                if cost == 1 {
                    admitted += part.iter().filter(|key| self.try_acquire(black_box(*key))).count();
                } else {
                    admitted += part.iter().filter(|key| self.try_acquire_n(black_box(*key), cost)).count();
                }
            }
            (start, Instant::now(), admitted as u64)
        };
        let results: Vec<(Instant, Instant, u64)> = thread::scope(|scope| {
            let threads: Vec<_> = parts.iter().map(|part| scope.spawn(|| decide(part))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no contender panics")).collect()
        });
        let first = results.iter().map(|&(start, ..)| start).min().expect("at least one thread");
        let last = results.iter().map(|&(_, end, _)| end).max().expect("at least one thread");
        Outcome { wall: last - first, admitted: results.iter().map(|&(.., admitted)| admitted).sum() }
    }
}

/// Requests drawn beforehand: a chunk for each round, started over when they run out.
struct Requests<K> {
    drawn: Vec<K>,
    chunk: usize,
    repeats: usize,
}

impl<K: Key> Requests<K> {
    fn draw(scenario: &Scenario, plan: Plan) -> Self {
        let Scenario { popularity, decisions, .. } = *scenario;
        if matches!(popularity, Popularity::OneKey) {
            let chunk = MOST_THREADS * ONE_KEY_REQUESTS;
            return Self { drawn: popularity.requests(chunk), chunk, repeats: decisions.div_ceil(chunk) };
        }
        // New keys are new only once.
        let rounds = if popularity.has_new_keys() { plan.rounds + 1 } else { ROUNDS_DRAWN };
        Self { drawn: popularity.requests(decisions * rounds), chunk: decisions, repeats: 1 }
    }

    fn chunk_of_round(&self, round: usize) -> usize {
        round % (self.drawn.len() / self.chunk)
    }

    /// The parts of that many threads, all of one length.
    fn of_round(&self, round: usize, threads: usize) -> Vec<&[K]> {
        let start = self.chunk_of_round(round) * self.chunk;
        self.drawn[start..start + self.chunk].chunks_exact(self.chunk / threads).take(threads).collect()
    }

    /// How often each key has asked by the end, the warm-up included.
    fn counts<'a>(&'a self, plan: Plan, everyone: &'a [K]) -> Counts<'a, K> {
        let mut times_run = vec![0_u64; self.drawn.len() / self.chunk];
        for round in 0..=plan.rounds {
            times_run[self.chunk_of_round(round)] += self.repeats as u64;
        }
        let mut drawn = HashMap::new();
        for (chunk, times) in times_run.into_iter().enumerate() {
            for key in self.of_round(chunk, plan.threads).into_iter().flatten() {
                *drawn.entry(key).or_insert(0) += times;
            }
        }
        let greeted: HashSet<&K> = everyone.iter().filter(|key| drawn.contains_key(key)).collect();
        // One for having been among everyone at first.
        greeted.iter().for_each(|&key| *drawn.entry(key).or_default() += 1);
        let only_once = (everyone.len() - greeted.len()) as u64;
        Counts { drawn, only_once }
    }
}

/// How often keys have asked.
struct Counts<'a, K> {
    /// Those that were drawn.
    drawn: HashMap<&'a K, u64>,
    /// How many others there are, which asked once, when everyone did.
    only_once: u64,
}

fn check_each(scenario: &Scenario, timings: &[Timings], plausible: impl Fn(f64) -> bool) {
    for Timings { name, admitted, .. } in timings {
        let (label, scenario) = (name.label(), scenario.name);
        assert!(plausible(*admitted), "{scenario}: {label} admitted {:.3} % and should not have", admitted * 100.0);
    }
}

/// An exact log admits the limit of each key, not one more or less, whatever the interleaving. GCRA
/// and a token bucket admit one more of a busy key for each `window / limit` that passed.
fn check_totals(scenario: &Scenario, admitted: &[u64], asked: &Counts<'_, impl Key>, elapsed: Duration) {
    assert!(elapsed < scenario.window, "{}: the run outlasted the window, so nothing can be said", scenario.name);
    let total = |permits: u64| {
        let most = permits / u64::from(scenario.cost);
        asked.drawn.values().map(|&count| count.min(most)).sum::<u64>() + asked.only_once
    };
    let limit = u64::from(scenario.limit);
    let replenished = elapsed.as_nanos() / (scenario.window / scenario.limit).as_nanos() + 1;
    let most = total(limit + u64::try_from(replenished).expect("less than the window's worth"));
    for (name, &admitted) in scenario.who.iter().zip(admitted) {
        let expected = if name.is_exact_log() { total(limit)..=total(limit) } else { total(limit)..=most };
        let (label, scenario) = (name.label(), scenario.name);
        assert!(expected.contains(&admitted), "{scenario}: {label} admitted {admitted}, expected {expected:?}");
    }
}
