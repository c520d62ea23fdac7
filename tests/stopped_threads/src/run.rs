//! One round: threads that do one operation after the other, and one that stops some of them for as
//! long as the others take for so many operations.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::stopping;

/// Threads of a round.
pub const THREADS: usize = 4;

/// Operations of each thread in a round: the round is over once one has done so many. They are
/// checked all together, which takes the longer the more there are, and the stopping thread may be
/// off its processor for a while.
const OPERATIONS: u64 = 6000;

/// How long the others may take for the operations of one stop before it is said that they are held
/// up. They take some milliseconds.
const HELD_UP: Duration = Duration::from_secs(120);

/// What rounds came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stops {
    /// Threads that were stopped.
    pub stopped: u64,
    /// Operations that others completed while at least one was.
    pub meanwhile: u64,
    /// The most while the same were stopped.
    pub longest: u64,
}

impl Stops {
    /// With those of another round.
    pub fn add(&mut self, other: Self) {
        self.stopped += other.stopped;
        self.meanwhile += other.meanwhile;
        self.longest = self.longest.max(other.longest);
    }
}

/// Runs `operation` over and over in each of the threads, each with what `start` gives for it, and
/// stops some of them so many times. Gives what they ended with.
///
/// # Panics
///
/// If an operation panics.
pub fn run<T: Send>(
    seed: u64,
    stops: u32,
    start: impl Fn(usize) -> T + Sync,
    operation: impl Fn(&mut T, &mut Chance) + Sync,
) -> (Vec<T>, Stops) {
    stopping::install();
    // Whether no more is to be done, and whether no more stops are to come.
    let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let progress: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];
    let ready = AtomicU64::new(0);
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|number| {
            let (over, done, progress, ready) = (&over, &done, &progress, &ready);
            let (start, operation) = (&start, &operation);
            scope.spawn(move || {
                let (mut state, mut chance) = (start(number), Chance::new(seed, number));
                stopping::can_be_stopped(number);
                ready.fetch_add(1, Ordering::Release);
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    while !done.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                        operation(&mut state, &mut chance);
                        let operations = progress[number].fetch_add(1, Ordering::Relaxed) + 1;
                        over.fetch_or(operations == OPERATIONS, Ordering::Relaxed);
                    }
                }));
                over.store(true, Ordering::Relaxed);
                // It may be asked to stop until then.
                while !done.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                ended.map_or_else(|panic| resume_unwind(panic), |()| state)
            })
        });
        let threads: Vec<_> = threads.collect();
        while ready.load(Ordering::Acquire) < THREADS as u64 {
            thread::yield_now();
        }
        let stops = stop_some(&mut Chance::new(seed, THREADS), stops, &progress, &over);
        done.store(true, Ordering::Release);
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (ended.collect(), stops)
    })
}

fn stop_some(chance: &mut Chance, stops: u32, progress: &[AtomicU64; THREADS], over: &AtomicBool) -> Stops {
    let mut all = Stops::default();
    for _ in 0..stops {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let threads = u32::try_from(THREADS).expect("a few");
        let most = 1 + chance.below(threads - 1);
        let first = chance.below(threads) as usize;
        let asked = (first..first + most as usize).map(|number| number % THREADS);
        let stopped: Vec<usize> = asked.filter(|&number| stopping::stop(number)).collect();
        let others: Vec<usize> = (0..THREADS).filter(|number| !stopped.contains(number)).collect();
        let done = || others.iter().map(|&number| progress[number].load(Ordering::Relaxed)).sum::<u64>();
        // As many short stops as long ones: 1 to 4096.
        let magnitude = chance.below(13);
        let operations = u64::from(chance.below(1 << magnitude)) + 1;
        let (before, began) = (done(), Instant::now());
        while !stopped.is_empty() && done() - before < operations && !over.load(Ordering::Relaxed) {
            if began.elapsed() > HELD_UP {
                let did = done() - before;
                // Not by a panic, which would wait for the threads.
                let _ = writeln!(
                    std::io::stderr(),
                    "held up: with the threads {stopped:?} stopped, the threads {others:?} completed {did} operations in {HELD_UP:?}"
                );
                std::process::abort();
            }
            thread::yield_now();
        }
        let meanwhile = if stopped.is_empty() { 0 } else { done() - before };
        all.add(Stops { stopped: stopped.len() as u64, meanwhile, longest: meanwhile });
        stopped.into_iter().for_each(stopping::release);
    }
    all
}
