//! What keys that behave notice of a flood of new keys, when there is no room for those.
//!
//! There are as many keys as the cap allows, all with a live permit. One thread asks for keys that
//! were never seen, as fast as it can; another asks for a thousand keys that it knows, at its own
//! pace, and times each decision. With two threads on two cores the slowest decisions are also
//! those in which the scheduler took the core away, so what matters is the same without a flood,
//! beside it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::side_by_side::contender::{By, Contender, Governor, Name, OneLock, RateNet, Setup, ShardedDeques, Tollgate};
use crate::side_by_side::keys::Key;
use crate::statistics::median;
use crate::turns::turns;

const WELL_BEHAVED: u32 = 1_000;
/// No well-behaved key comes near it.
const LIMIT: u32 = 1_000;
const WINDOW: Duration = Duration::from_secs(600);
/// Between two decisions of the well-behaved.
const PAUSE: Duration = Duration::from_nanos(500);
/// Of one thread with and without a flood, so that no key reaches the limit.
const MOST_DECISIONS: usize = WELL_BEHAVED as usize * (LIMIT as usize / 2 - 1);
/// Fewer have no percentiles to speak of.
const FEWEST_DECISIONS: usize = 1_000;

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Keys that there is room for.
    pub cap: u64,
    /// New keys of a flood; and decisions of the well-behaved where there is none.
    pub flood: u32,
    /// Times that each contender is flooded.
    pub rounds: usize,
}

/// Contenders that can be told to hold no more than so many keys.
#[must_use]
pub const fn has_a_cap(name: Name) -> bool {
    matches!(name, Name::Tollgate | Name::Bucket | Name::RateNet)
}

/// Nanoseconds of a decision of the well-behaved.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Half of them take no longer.
    pub p50: f64,
    /// 99 of 100 take no longer.
    pub p99: f64,
    /// 999 of 1,000 take no longer.
    pub p999: f64,
}

/// What came out for one contender: medians over rounds.
#[derive(Debug)]
pub struct Flooded {
    /// Whose it is.
    pub name: Name,
    /// With no flood.
    pub quiet: Latency,
    /// With one.
    pub flooded: Latency,
    /// The share of the well-behaved that were admitted while there was one; all of them should be.
    pub admitted: f64,
    /// Nanoseconds that a new key takes.
    pub new_key_ns: f64,
    /// The share of the new keys that were admitted.
    pub new_admitted: f64,
}

struct Round {
    latency: Latency,
    admitted: f64,
    new_key_ns: f64,
    new_admitted: f64,
}

/// Floods everyone in turn.
#[must_use]
pub fn measure(size: Size, progress: &ProgressBar) -> Vec<Flooded> {
    let mut rounds: Vec<(Vec<Round>, Vec<Round>)> = Name::ALL.map(|_| (Vec::new(), Vec::new())).into();
    for (_, whose) in turns(size.rounds, Name::ALL.len()) {
        let (quiet, flooded) = of(Name::ALL[whose], size);
        rounds[whose].0.push(quiet);
        rounds[whose].1.push(flooded);
        progress.inc(1);
    }
    let summary = |(name, (quiet, flooded)): (Name, (Vec<Round>, Vec<Round>))| {
        let middle = |rounds: &[Round], what: fn(&Round) -> f64| median(&rounds.iter().map(what).collect::<Vec<_>>());
        let latency = |rounds: &[Round]| Latency {
            p50: middle(rounds, |round| round.latency.p50),
            p99: middle(rounds, |round| round.latency.p99),
            p999: middle(rounds, |round| round.latency.p999),
        };
        Flooded {
            name,
            quiet: latency(&quiet),
            flooded: latency(&flooded),
            admitted: middle(&flooded, |round| round.admitted),
            new_key_ns: middle(&flooded, |round| round.new_key_ns),
            new_admitted: middle(&flooded, |round| round.new_admitted),
        }
    };
    Name::ALL.into_iter().zip(rounds).map(summary).collect()
}

fn of(name: Name, size: Size) -> (Round, Round) {
    let keys = usize::try_from(size.cap).expect("64 bits");
    let setup = Setup { limit: LIMIT, window: WINDOW, keys, cap: true };
    match name {
        Name::Tollgate => quiet_and_flooded(&Tollgate::new(By::Log, setup), size),
        Name::Bucket => quiet_and_flooded(&Tollgate::new(By::Bucket, setup), size),
        Name::Governor => quiet_and_flooded(&Governor::new(setup), size),
        Name::RateNet => quiet_and_flooded(&RateNet::new(setup), size),
        Name::ShardedDeques => quiet_and_flooded(&ShardedDeques::new(setup), size),
        Name::OneLock => quiet_and_flooded(&OneLock::new(setup), size),
    }
}

/// First without a flood and then with one, on the same limiter.
fn quiet_and_flooded(limiter: &impl Contender<u64>, size: Size) -> (Round, Round) {
    for rank in 0..size.cap {
        // Whoever has shards of fixed sizes may refuse some.
        let _ = limiter.try_acquire(&u64::of_rank(rank));
    }
    (round(limiter, size, false), round(limiter, size, true))
}

fn round(limiter: &impl Contender<u64>, size: Size, flooding: bool) -> Round {
    let (start, over) = (Barrier::new(2), AtomicBool::new(!flooding));
    let flood = || {
        start.wait();
        let began = Instant::now();
        let new = if flooding { size.cap..size.cap + u64::from(size.flood) } else { 0..0 };
        let admitted = new.filter(|&rank| limiter.try_acquire(&u64::of_rank(rank))).count();
        let ns = began.elapsed().as_secs_f64() * 1e9;
        over.store(true, Ordering::Relaxed);
        (ns / f64::from(size.flood), admitted as f64 / f64::from(size.flood))
    };
    // Without a flood as many as there would be new keys.
    let fewest = if flooding { FEWEST_DECISIONS } else { size.flood as usize };
    let behave = || {
        let keys: Vec<u64> = (0..u64::from(WELL_BEHAVED)).map(u64::of_rank).collect();
        let (mut taken, mut admitted) = (Vec::with_capacity(MOST_DECISIONS), 0_u64);
        start.wait();
        for key in keys.iter().cycle().take(MOST_DECISIONS) {
            if over.load(Ordering::Relaxed) && taken.len() >= fewest {
                break;
            }
            let before = Instant::now();
            admitted += u64::from(limiter.try_acquire(key));
            let after = Instant::now();
            taken.push(after - before);
            while after.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        (taken, admitted)
    };
    let ((new_key_ns, new_admitted), (mut taken, admitted)) = thread::scope(|scope| {
        let flood = scope.spawn(flood);
        let behaved = behave();
        (flood.join().expect("no contender panics"), behaved)
    });
    taken.sort_unstable();
    let percentile = |per_mille: usize| taken[taken.len() * per_mille / 1_000].as_nanos() as f64;
    let latency = Latency { p50: percentile(500), p99: percentile(990), p999: percentile(999) };
    Round { latency, admitted: admitted as f64 / taken.len() as f64, new_key_ns, new_admitted }
}
