//! The measurement: contenders take turns, round by round, so that whatever slows the machine for a while slows all of them.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::contender::{Contender, Governor, Name, OneLock, RateNet, Setup, ShardedDeques, Tollgate};
use crate::keys::{Key, Popularity};
use crate::scenario::{Admits, Scenario, TollgateClock};

/// How many rounds' worth of requests are drawn; later rounds start over.
const ROUNDS_DRAWN: usize = 6;

/// With one key a short list of requests is enough. It is gone through many times, so that reading it costs nothing.
const ONE_KEY_REQUESTS: usize = 4096;

/// "Nearly everything": who reads the clock and then has to wait for a lock, or is stopped, decides by a reading that is older
/// than the window, and may be denied.
const NEARLY_EVERYTHING: f64 = 0.9;

/// How a scenario is run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads that ask at once.
    pub threads: usize,
    /// Timed rounds.
    pub rounds: usize,
}

/// What came out for one scenario and number of threads.
#[derive(Debug)]
pub struct Measured {
    /// Threads that asked at once.
    pub threads: usize,
    /// For each contender, in the order of [`Name::ALL`].
    pub contenders: Vec<Timings>,
}

/// What came out for one contender.
#[derive(Debug)]
pub struct Timings {
    /// Whose they are.
    pub name: Name,
    /// Nanoseconds per decision and thread, of each timed round.
    pub ns: Vec<f64>,
    /// Requests admitted, of those timed.
    pub admitted: f64,
}

impl Measured {
    /// The timings of one contender.
    ///
    /// # Panics
    ///
    /// When it was not measured.
    #[must_use]
    pub fn of(&self, name: Name) -> &Timings {
        self.contenders.iter().find(|timings| timings.name == name).expect("everyone is measured")
    }

    /// tollgate's time as a share of a peer's: the median over rounds of the ratio in each round.
    ///
    /// The two runs of one round are neighbours in time, so a slow spell of the machine cancels out.
    #[must_use]
    pub fn ratio_to(&self, peer: Name) -> f64 {
        let pairs = self.of(Name::Tollgate).ns.iter().zip(&self.of(peer).ns);
        median(&pairs.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
    }
}

/// The median.
///
/// # Panics
///
/// When there are no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// Measures a scenario with keys of type `K`, and checks that every contender admitted what it should have.
///
/// # Panics
///
/// When a contender admitted anything else.
#[must_use]
pub fn measure<K: Key>(scenario: &Scenario, plan: Plan, progress: &ProgressBar) -> Measured {
    let began = Instant::now();
    let requests = Requests::<K>::draw(scenario.popularity, scenario.decisions);
    let contenders = contenders::<K>(scenario.setup(), scenario.clock);
    let mut timings = Name::ALL.map(|name| Timings { name, ns: Vec::with_capacity(plan.rounds), admitted: 0.0 });
    let mut admitted = [0_u64; Name::ALL.len()];
    let mut admitted_when_timed = [0_u64; Name::ALL.len()];

    // Every key gets its place before time is taken, and the round before the first is not timed either.
    let everyone = scenario.popularity.everyone::<K>();
    for (contender, admitted) in contenders.iter().zip(&mut admitted) {
        *admitted += contender.round(&[&everyone], 1).admitted;
    }
    for round in 0..=plan.rounds {
        let per_thread = requests.of_round(round, plan.threads);
        for turn in 0..contenders.len() {
            let whose = (round + turn) % contenders.len();
            let outcome = contenders[whose].round(&per_thread, requests.repeats);
            admitted[whose] += outcome.admitted;
            if round > 0 {
                let decisions_per_thread = per_thread[0].len() * requests.repeats;
                timings[whose].ns.push(outcome.wall.as_secs_f64() * 1e9 / decisions_per_thread as f64);
                admitted_when_timed[whose] += outcome.admitted;
            }
            progress.inc(1);
        }
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
        Admits::LimitOfEachKey => {
            let asked = requests.counts(plan);
            check_totals(scenario, &admitted, &asked, elapsed);
        }
    }
    Measured { threads: plan.threads, contenders: timings.into() }
}

/// Everyone, in the order of [`Name::ALL`].
fn contenders<K: Key>(setup: Setup, clock: TollgateClock) -> [Box<dyn TakesTurns<K>>; Name::ALL.len()] {
    Name::ALL.map(|name| -> Box<dyn TakesTurns<K>> {
        match (name, clock) {
            (Name::Tollgate, TollgateClock::Monotonic) => Box::new(Tollgate::new(setup)),
            (Name::Tollgate, TollgateClock::Coarse) => Box::new(Tollgate::coarse(setup)),
            (Name::Governor, _) => Box::new(Governor::new(setup)),
            (Name::RateNet, _) => Box::new(RateNet::new(setup)),
            (Name::ShardedDeques, _) => Box::new(ShardedDeques::new(setup)),
            (Name::OneLock, _) => Box::new(OneLock::new(setup)),
        }
    })
}

/// A contender as the rounds see it. The call is dynamic once a round; the loop inside is compiled for each contender.
trait TakesTurns<K> {
    /// One thread for each part, started together; each goes through its part so many times.
    fn round(&self, parts: &[&[K]], repeats: usize) -> Outcome;
}

struct Outcome {
    /// From the first thread's start to the last one's end.
    wall: Duration,
    admitted: u64,
}

impl<K: Key, C: Contender<K>> TakesTurns<K> for C {
    fn round(&self, parts: &[&[K]], repeats: usize) -> Outcome {
        let barrier = Barrier::new(parts.len());
        let decide = |part: &[K]| {
            barrier.wait();
            let start = Instant::now();
            let mut admitted = 0;
            for _ in 0..repeats {
                for key in part {
                    admitted += u64::from(self.try_acquire(black_box(key)));
                }
            }
            (start, Instant::now(), admitted)
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
    fn draw(popularity: Popularity, decisions: usize) -> Self {
        if matches!(popularity, Popularity::OneKey) {
            // For each of up to two threads a part of that length.
            let chunk = 2 * ONE_KEY_REQUESTS;
            return Self { drawn: popularity.requests(chunk), chunk, repeats: decisions.div_ceil(chunk) };
        }
        Self { drawn: popularity.requests(decisions * ROUNDS_DRAWN), chunk: decisions, repeats: 1 }
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
    fn counts(&self, plan: Plan) -> HashMap<&K, u64> {
        let mut times_run = vec![0_u64; self.drawn.len() / self.chunk];
        for round in 0..=plan.rounds {
            times_run[self.chunk_of_round(round)] += self.repeats as u64;
        }
        let mut counts = HashMap::new();
        for (chunk, times) in times_run.into_iter().enumerate() {
            for key in self.of_round(chunk, plan.threads).into_iter().flatten() {
                // One for having been among everyone at first.
                *counts.entry(key).or_insert(1) += times;
            }
        }
        counts
    }
}

fn check_each(scenario: &Scenario, timings: &[Timings], plausible: impl Fn(f64) -> bool) {
    for Timings { name, admitted, .. } in timings {
        let (label, scenario) = (name.label(), scenario.name);
        assert!(plausible(*admitted), "{scenario}: {label} admitted {:.3} % and should not have", admitted * 100.0);
    }
}

/// An exact log admits the limit of each key, not one more or less, whatever the interleaving. governor admits one more of
/// a busy key for each `window / limit` that passed.
fn check_totals(scenario: &Scenario, admitted: &[u64], asked: &HashMap<&impl Key, u64>, elapsed: Duration) {
    assert!(elapsed < scenario.window, "{}: the run outlasted the window, so nothing can be said", scenario.name);
    let limit = u64::from(scenario.limit);
    // Keys that were never drawn asked once, when everyone did.
    let only_once = (scenario.popularity.keys() - asked.len()) as u64;
    let total = |limit: u64| asked.values().map(|&count| count.min(limit)).sum::<u64>() + only_once;
    let replenished = elapsed.as_nanos() / (scenario.window / scenario.limit).as_nanos() + 1;
    let most = total(limit + u64::try_from(replenished).expect("less than the window's worth"));
    for (name, &admitted) in Name::ALL.into_iter().zip(admitted) {
        let expected = if name.is_exact_log() { total(limit)..=total(limit) } else { total(limit)..=most };
        let (label, scenario) = (name.label(), scenario.name);
        assert!(expected.contains(&admitted), "{scenario}: {label} admitted {admitted}, expected {expected:?}");
    }
}
